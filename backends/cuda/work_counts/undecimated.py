"""What the kernels of the MODWT do, counted: see `transforms`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from wavefilt.backends.cuda.dwt.tiling import up4
from wavefilt.backends.cuda.modwt import tiling
from wavefilt.backends.cuda.modwt.tiling import QUADS, Tiling, threads_for
from wavefilt.ske.calibrated import Launch
from wavefilt.wavelets import modwt_boundary

from .transforms import SHRINKING, Problem, Warp

LOADED, STORED, CHECKED = 12, 14, 9
"""Integers for a load and for a store of four elements, whose places are apart, and what tells if they are finite."""
BLOCK = 70
"""Other instructions of a warp and step."""


@dataclass(frozen=True)
class Undecimated:
    """A MODWT of some rows; ``mode`` is periodic, or any of the others, which all keep the same coefficients."""

    taps: int
    samples: int
    rows: int = 1
    level: int = 8
    mode: str = "periodic"
    itemsize: int = 4
    threads: int = 256

    @property
    def dtype(self) -> str:
        return f"float{8 * self.itemsize}"

    @cached_property
    def launches(self) -> list[tiling.Launch]:
        """Finest first."""
        return tiling.launches(self.taps, self.level, 0, self.dtype, threads_for(self.dtype, self.threads))

    def warp(self, one: Tiling) -> Warp:
        return Warp(Problem(self.taps, self.samples, itemsize=self.itemsize, threads=one.threads))

    def extent(self, level: int, forward: bool) -> tuple[int, int]:
        """First position and end of a level's approximation coefficients (of the samples: 0)."""
        if forward:
            before, after = modwt_boundary.needed(self.taps, self.mode, level, self.level)
        else:
            before, after = modwt_boundary.kept(self.taps, self.mode, level)
        return -before, self.samples + after

    def length(self, level: int) -> int:
        """Details of a level in a row."""
        return modwt_boundary.length(self.samples, self.taps, self.mode, level)


def forward(of: Undecimated) -> list[Launch]:
    """The launches of the forward transform, in order; without the one that extends rows, which is short."""
    made = []
    for one in of.launches:
        low, high = of.extent(one.last, True)
        blocks, tile = _grid(one.forward, one.spread, low, high, of.rows)
        written = sum(of.length(level) for level in range(one.first + 1, one.last + 1)) + high - low
        first = of.extent(one.first, True)
        read = first[1] - first[0]
        made.append(
            _launch("modwt forward", of, one, one.forward, blocks, tile, _analysis(of, one, tile), read, written)
        )
    return made


def inverse(of: Undecimated, function: str = "soft") -> list[Launch]:
    """The launches of the inverse transform, in order."""
    made = []
    for one in of.launches[::-1]:
        low, high = of.extent(one.first, False)
        blocks, tile = _grid(one.inverse, one.spread, low, high, of.rows)
        read = sum(of.length(level) for level in range(one.first + 1, one.last + 1)) + of.length(one.last)
        warp = _synthesis(of, one, tile, function)
        made.append(_launch("modwt inverse", of, one, one.inverse, blocks, tile, warp, read, high - low))
    return made


def _grid(one: Tiling, spread: int, low: int, high: int, rows: int) -> tuple[int, int]:
    _, tile, blocks = one.grid(spread, low, high, rows)
    return blocks * rows, tile


def _launch(
    name: str,
    of: Undecimated,
    one: tiling.Launch,
    cut: Tiling,
    blocks: int,
    tile: int,
    warp: Warp,
    read: int,
    written: int,
) -> Launch:
    again = (cut.heads[0] + cut.tails[0]) * blocks  # read by neighbours as well
    if cut.inverse:
        again += sum(cut.heads[i] + cut.tails[i] for i in range(cut.levels)) * blocks
    distinct = of.itemsize * of.rows * (read + written)
    return Launch(
        f"{name} {one.first + 1}-{one.last}",
        blocks,
        cut.threads,
        warp.instructions,
        warp.loads,
        warp.barriers,
        read=of.itemsize * (of.rows * read + again),
        written=of.itemsize * of.rows * written,
        touched=distinct,
        registers=64 if of.taps <= 8 and of.itemsize == 4 else 96,
        shared=of.itemsize * cut.room * (2 if cut.inverse else 1),
    )


def _busy(one: Tiling, i: int, tile: int) -> float:
    """Share of a block's warps that have work at the i-th step."""
    return min(-(-one._threads(i, tile) // 32) / -(-one.threads // 32), 1.0)


def _windows(one: Tiling, i: int) -> int:
    """16-byte loads of the windows of three quads at the i-th step."""
    step = one.steps[i]
    skip, apart = up4(one.lead(step)) - one.lead(step), max(step, 4)
    return len(
        {(skip + m * apart + c + q * step) // 4 for m in range(QUADS) for c in range(4) for q in range(one.taps)}
    )


def _load(warp: Warp, one: Tiling, i: int, tile: int, checked: bool, function: str = "keep") -> None:
    """What the i-th step reads of a tile into shared memory; all threads take part in all turns."""
    most = one.heads[i] + one.most + one.tails[i] + 3 >> 2
    rounds = -(-most // one.threads)
    compared, computed = SHRINKING[function]
    warp.access(2 * rounds, 4)
    warp.issue(rounds, int=LOADED + 4 * compared, other=CHECKED if checked else 0)
    warp.fma(4 * rounds * computed)


def _analysis(of: Undecimated, one: tiling.Launch, tile: int) -> Warp:
    cut, warp = one.forward, of.warp(one.forward)
    _load(warp, cut, 0, tile, one.first == 0)
    warp.wait(1, 1, 0)
    for i in range(cut.levels):
        busy, last = _busy(cut, i, tile), i == cut.levels - 1
        warp.fma(busy * 8 * QUADS * of.taps)
        warp.access(busy * (_windows(cut, i) + 2 * QUADS), 4)
        warp.issue(busy, int=STORED * QUADS * (2 if last else 1), other=BLOCK)
        warp.wait(1 if last else 2, 0, 1)
    return warp


def _synthesis(of: Undecimated, one: tiling.Launch, tile: int, function: str) -> Warp:
    cut, warp = one.inverse, of.warp(one.inverse)
    _load(warp, cut, 0, tile, False)
    warp.wait(0, 1, 0)
    for i in range(cut.levels):
        busy, last = _busy(cut, i, tile), i == cut.levels - 1
        _load(warp, cut, i, tile, False, function)
        warp.fma(busy * 8 * QUADS * of.taps)
        warp.access(busy * (2 * _windows(cut, i) + QUADS), 4)
        warp.issue(busy, int=STORED * QUADS if last else 8, other=BLOCK)
        warp.wait(1 if last else 2, 1, 1)
    return warp
