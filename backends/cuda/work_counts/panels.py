"""What the kernels of the transform of both axes do, counted: see `transforms`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wavefilt.backends.cuda.dwt.tiling import Filter
from wavefilt.ske.calibrated import Launch

from .transforms import SHRINKING, Counts, Problem, Warp

STEP, BLOCKS, TAPS_A_TURN = 4, 2112, 8
"""Constants of `dwt2`, which imports the compiler; a test compares them, and `Cut`."""
EDGE, BLOCK = 26, 90
"""Other instructions for an element of an edge, and of a warp and block."""


@dataclass(frozen=True)
class Cut:
    """As `PanelLevel` cuts panels: coefficients of a tile across and down, and threads of its block."""

    filter: Filter
    height: int
    threads: int

    @property
    def forward_width(self) -> int:
        f = self.filter
        return (self.threads - f.lead - f.lead % 2 - f.lag) // 2

    @property
    def inverse_width(self) -> int:
        return self.threads // 2 - self.filter.low - self.filter.high


@dataclass(frozen=True)
class Panels:
    """A transform of both axes of some panels with one filter, whose blocks have ``threads`` and tiles ``tile``."""

    taps: int
    rows: int
    columns: int
    panels: int = 1
    level: int = 4
    periodized: bool = False
    itemsize: int = 4
    tile: int = 0
    threads: int = 256

    @property
    def cut(self) -> Cut:
        """As `PanelPlan` has it."""
        threads = max(self.threads, 1 << (2 * self.taps - 1).bit_length())
        tile = self.tile or (1 << 14) // self.itemsize
        return Cut(Filter(self.taps, self.periodized), max(tile // threads // STEP, 1) * STEP, threads)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Rows and columns of a panel, then of its bands at every level."""
        f, sizes = Filter(self.taps, self.periodized), [(self.rows, self.columns)]
        for _ in range(self.level):
            sizes.append((f.length(sizes[-1][0]), f.length(sizes[-1][1])))
        return sizes


def forward(of: Panels) -> list[Launch]:
    """The launches of the forward transform, in order."""
    return [_launch(of, i, True, _forward) for i in range(of.level)]


def inverse(of: Panels, function: str = "soft") -> list[Launch]:
    """The launches of the inverse transform, in order."""

    def block(of: Panels, turns: int, edge: bool) -> Warp:
        return _inverse(of, turns, edge, function)

    return [_launch(of, i, False, block) for i in reversed(range(of.level))]


def _launch(of: Panels, i: int, ahead: bool, block: Callable[[Panels, int, bool], Warp]) -> Launch:
    cut, (finer, coarser) = of.cut, of.sizes[i : i + 2]
    rows, columns = coarser if ahead else ((finer[0] + 1) // 2, (finer[1] + 1) // 2)
    across = -(-columns // (cut.forward_width if ahead else cut.inverse_width))
    down = -(-rows // cut.height)
    turns = max(min(across * down * of.panels // BLOCKS, of.taps // TAPS_A_TURN), 1)
    tall = -(-down // turns)
    blocks = across * tall * of.panels
    edges = (across * tall - max(across - 2, 0) * max(tall - 2, 0)) / (across * tall)
    inner, outer = (block(of, turns, edge) for edge in (False, True))
    size, bands = of.itemsize * of.panels, 4 * coarser[0] * coarser[1]
    samples = finer[0] * finer[1]
    name = f"panels {'forward' if ahead else 'inverse'} {i + 1}"
    made = Launch(
        name,
        blocks,
        cut.threads,
        _mean(inner.instructions, outer.instructions, edges),
        _mean(inner.loads, outer.loads, edges),
        inner.barriers,
        read=size * (samples if ahead else bands),
        written=size * (bands if ahead else samples),
        touched=size * (samples + bands),
        registers=64 if of.itemsize == 8 or of.taps > 16 else 56,
        shared=2 * of.itemsize * cut.height * cut.threads,
    )
    if edges == 0:
        return made
    longest = replace(
        made,
        blocks=1,
        instructions=dict(outer.instructions),
        loads=dict(outer.loads),
        barriers=outer.barriers,
        read=made.read / blocks,
        written=made.written / blocks,
    )
    return replace(made, longest=longest)


def _mean(inner: Counts, outer: Counts, edges: float) -> dict[str, float]:
    return {name: (1 - edges) * inner[name] + edges * outer[name] for name in {**inner, **outer}}


def _warp(of: Panels) -> Warp:
    warp = Warp(Problem(of.taps, 1, itemsize=of.itemsize, threads=of.cut.threads))
    warp.issue(1, int=BLOCK, other=BLOCK)
    return warp


def _forward(of: Panels, turns: int, edge: bool) -> Warp:
    cut, warp, new = of.cut, _warp(of), 2 * STEP
    f = cut.filter
    warm, steps = -(-(f.taps - 2) // new), turns * cut.height // STEP
    reads = warm + steps
    warp.access(reads * new, 1)
    warp.issue(reads, int=2 * new if not edge else EDGE * new)
    if edge:
        warp.access(2 * reads * new, 1)
        warp.fma(reads * new)
    warp.wait(0, reads, 0)
    warp.fma(steps * 2 * STEP * f.taps)
    warp.access(steps * 2 * STEP, 1)
    width = cut.forward_width / (cut.threads // 2)
    rows = turns * cut.height * min(width, 1.0)
    warp.fma(rows * 2 * f.taps)
    warp.access(rows * -(-(f.taps + f.lead % 2) // 2), 2)
    warp.access(2 * rows, 1)
    warp.issue(rows, int=6, other=2)
    warp.wait(2 * turns, 0, turns * cut.height)
    return warp


def _inverse(of: Panels, turns: int, edge: bool, function: str) -> Warp:
    cut, warp = of.cut, _warp(of)
    f = cut.filter
    warm, steps = -(-(f.low + f.high) // STEP), turns * cut.height // STEP
    reads = warm + steps
    compared, computed = SHRINKING[function]
    warp.access(reads * 2 * STEP, 1)
    warp.issue(reads, int=(2 * STEP * EDGE if edge else 2 * STEP) + 2 * STEP * (compared + 1))
    warp.fma(reads * 2 * STEP * computed)
    if edge:
        warp.access(2 * reads * 2 * STEP, 1)
    warp.wait(0, reads + 1, 0)
    warp.fma(steps * 2 * STEP * f.taps)
    warp.access(steps * 2 * STEP, 1)
    rows = turns * cut.height * min(cut.inverse_width / (cut.threads // 2), 1.0)
    warp.fma(rows * 2 * f.taps)
    warp.access(rows * f.taps, 1)
    warp.access(rows, 2)
    warp.issue(rows, int=6, other=4)
    warp.wait(2 * turns, 0, turns * cut.height)
    return warp
