"""What the transforms' kernels do, counted: for the calibrated SKE model, as functions of their launch.

Everything here follows from the same constants that the kernels are compiled with (`geometry`), so it needs neither a
GPU nor a compiler. Multiply-adds, accesses and barriers are exact; tests compare them with the compiled code. What
else a warp issues (addresses, guards, moves) was read from SASS for sm_90, where it is 10 to 25 % of all.

Of an interior tile a warp executes a constant number of rounds, and some warps one more for the remainder. What fills
the pipes is counted for the average warp of a block; how long the block takes, which waits for all its warps at every
barrier, for the longest. A launch's boundary blocks, one a row, are counted apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from wavefilt.backends.cuda.dwt.tiling import (
    TILE_BYTES,
    Filter,
    Tiling,
    at_once,
    forward_tiling,
    inverse_tiling,
    launches,
    suited_tile,
    up4,
)
from wavefilt.ske.calibrated import Launch

WARP, LINE = 32, 128
Counts = defaultdict[str, float]
REGISTERS = {4: 40, 8: 64}
"""Of a thread, by bytes of a sample: what the compiler needs for most filters. On a GPU the driver's number counts."""


class Overhead(NamedTuple):
    """Other instructions: of each kind for a warp and a block, of integers for a group of outputs and a wide access."""

    block: float
    group: int
    access: int


FORWARD, INVERSE = Overhead(55, 4, 3), Overhead(90, 4, 3)
"""Of an interior tile."""
BOUNDARY = Overhead(110, 90, 25)
"""Of a boundary block, whose sizes are run-time values."""
SHRINKING = {"keep": (0, 0), "soft": (2, 1), "hard": (2, 0), "firm": (5, 2), "garrote": (4, 10)}
"""Comparisons and arithmetic for one coefficient, by threshold function."""
PAIRS = 4
TOGETHER = 8
"""Wide loads of a thread that the compiler puts before the first use of one."""


@dataclass(frozen=True)
class Problem:
    """Which transform: taps of the filter, rows of samples, levels, and how it is launched."""

    taps: int
    samples: int
    rows: int = 1
    level: int = 8
    periodized: bool = False
    itemsize: int = 4
    tile: int = 0
    threads: int = 256

    @property
    def filter(self) -> Filter:
        return Filter(self.taps, self.periodized)

    @property
    def tiles_of(self) -> int:
        """Samples of a tile."""
        return self.tile or TILE_BYTES // self.itemsize

    @property
    def fused(self) -> list[int]:
        """Levels of each launch, finest first."""
        one = at_once(self.filter, self.level, self.tiles_of, self.itemsize, self.rows * self.samples)
        return [self.level] if one else launches(self.filter, self.level, self.tiles_of)

    @property
    def lengths(self) -> list[int]:
        """Samples of a row, then its coefficients at every level."""
        lengths = [self.samples]
        for _ in range(self.level):
            lengths.append(self.filter.length(lengths[-1]))
        return lengths


def forward(problem: Problem) -> list[Launch]:
    """The launches of the forward transform, in order."""
    return [_launch("forward", problem, *part, forward_tiling, forward_block) for part in _parts(problem)]


def inverse(problem: Problem, function: str = "soft") -> list[Launch]:
    """The launches of the inverse transform, in order; ``function`` is the threshold function, or "keep"."""
    block = partial(inverse_block, function=function)
    return [_launch("inverse", problem, *part, inverse_tiling, block) for part in _parts(problem)[::-1]]


@dataclass
class Warp:
    """Counts of an average warp of a block, or of the ``longest``, which takes part in everything that is compiled.

    ``shared`` are the elements of shared memory of the block.
    """

    problem: Problem
    longest: bool = False
    instructions: Counts = field(default_factory=lambda: defaultdict(float))
    loads: Counts = field(default_factory=lambda: defaultdict(float))
    barriers: int = 0
    shared: int = 0

    def executions(self, items: int) -> float:
        """How often a warp executes what every thread does for one of ``items``: whole rounds, and the remainder."""
        threads = self.problem.threads
        rounds, rest = divmod(items, threads)
        return rounds + (rest > 0 if self.longest else -(-rest // WARP) / -(-threads // WARP))

    def wait(self, barriers: int = 0, device: float = 0.0, shared: float = 0.0) -> None:
        """Barriers, and loads from device and from shared memory that wait for each other."""
        self.barriers += barriers
        for name, n in {"global": device, "shared": shared}.items():
            if n:
                self.loads[name] += n

    def issue(self, times: float, **instructions: float) -> None:
        """Instructions by class, underscores for spaces."""
        for name, n in instructions.items():
            self.instructions[name.replace("_", " ")] += times * n

    def fma(self, times: float) -> None:
        """Arithmetic in the samples' precision."""
        self.instructions["fma" if self.problem.itemsize == 4 else "fma64"] += times

    def access(self, times: float, elements: float) -> None:
        """Accesses of so many consecutive elements a thread, at most 16 bytes each."""
        size = elements * self.problem.itemsize
        self.issue(times, other=max(size / 16, 1), wavefront=size * WARP / LINE)


def analysis_cost(f: Filter) -> tuple[int, int]:
    """Multiply-adds and wide loads for four consecutive coefficients of both filters: see `wide.filters`."""
    delta = up4(f.lead) - f.lead
    places = {((delta + k) % 2, ((delta + k) // 2 + i) // 4) for k in range(f.taps) for i in range(4)}
    return _products(f, 8), len(places)


def synthesis_cost(f: Filter, pairs: int) -> tuple[int, int]:
    """The same for so many consecutive pairs of samples."""
    reach = range(f.taps // 2)
    places = {(up4(f.low) + pair + top - j) // pairs for j in reach for pair in range(pairs) for top in f.tops}
    return _products(f, 2 * pairs), 2 * len(places)


def _products(f: Filter, outputs: int) -> int:
    return outputs * f.taps if f.taps > 2 else outputs * 3 // 2  # the outputs of Haar share their products


def _parts(problem: Problem) -> list[tuple[int, int]]:
    """First level and number of levels of each launch."""
    fused = problem.fused
    return [(sum(fused[:i]), levels) for i, levels in enumerate(fused)]


def _launch(
    name: str,
    problem: Problem,
    first: int,
    levels: int,
    tiling: Callable[[Filter, int, int], Tiling],
    block: Callable[..., Warp],
) -> Launch:
    """One launch: its tiles, and the boundary block of every row, which is longer."""
    lengths = problem.lengths[first : first + levels + 1]
    n, tile = lengths[0], problem.tiles_of
    if first:
        tile = suited_tile(problem.filter, tile, levels, n, problem.rows)
    cut = tiling(problem.filter, tile, levels)
    tiles = cut.interior(n)
    end, longest = (block(problem, cut, n - cut.gap(n), longest=which) for which in (False, True))
    blocks = problem.rows * (tiles + 1)
    samples, bands = (problem.itemsize * problem.rows * size for size in (n, sum(lengths[1:]) + lengths[-1]))
    read, written = (samples, bands) if name == "forward" else (bands, samples)
    made = Launch(
        f"{name} {'-'.join(str(first + i) for i in ((1, levels) if levels > 1 else (1,)))}", blocks, problem.threads,
        end.instructions, longest.loads, longest.barriers, read, written, samples + bands,
        0 if name == "forward" else written, longest.instructions,
        registers=REGISTERS[problem.itemsize], shared=problem.itemsize * end.shared, boundary=True,
    )  # fmt: skip
    if not tiles:
        return made
    inner, slowest = (block(problem, cut, longest=which) for which in (False, True))
    return replace(
        made, instructions=_mean(inner.instructions, end.instructions, tiles),
        path=_mean(slowest.instructions, longest.instructions, tiles),
        loads=_mean(slowest.loads, longest.loads, tiles),
        barriers=(tiles * slowest.barriers + longest.barriers) / (tiles + 1),
        longest=replace(made, blocks=1), boundary=False,
    )  # fmt: skip


def _mean(inner: Counts, end: Counts, tiles: int) -> dict[str, float]:
    return {name: (tiles * inner[name] + end[name]) / (tiles + 1) for name in {**inner, **end}}


def forward_block(problem: Problem, cut: Tiling, n: int = 0, longest: bool = False) -> Warp:
    """An interior tile of the forward kernel, or the boundary block of a row of ``n`` samples."""
    f, warp, levels = problem.filter, Warp(problem, longest), cut.levels
    lead, extra = up4(f.lead), BOUNDARY if n else FORWARD
    fma, wide = analysis_cost(f)
    halves = (cut.capacity + 2 * f.taps + 16) // 2, ((cut.capacity + f.taps) // 2 + 2 * f.taps + 16) // 2
    warp.shared = 2 * sum(map(up4, halves))

    def groups(level: int) -> int:
        """Of four samples or coefficients that a level needs."""
        below = (1 << levels - level) - 1
        return -(-(n or lead * below + (cut.tile >> level) + f.lag * below) // 4)

    warp.issue(1, int=extra.block, other=extra.block)
    loads = warp.executions(groups(0))
    warp.access(loads, 4)
    warp.access(2 * loads, 2)
    warp.issue(loads, int=extra.access)
    rounds, rest = divmod(groups(0), problem.threads)  # the loads of rounds come together, then those of the rest
    warp.wait(device=-(-loads // 4) if n else -(-rounds // TOGETHER) + (rest > 0))
    for level in range(1, levels + 1):
        beyond = 0.0
        if n:
            n, beyond = f.length(n), warp.executions(f.lead + f.taps)
            warp.issue(beyond, int=60, fma=3, other=12)
        times = warp.executions(groups(level))
        stored = times if n else warp.executions((cut.tile >> level) // 4)
        warp.fma(times * fma)
        warp.access(times * wide, 4)
        warp.issue(times, int=extra.group)
        warp.wait(2 if n else 1, beyond)
        warp.access(stored * (1 if level < levels else 2), 4)
        if level < levels:
            warp.access(2 * times, 2)
    return warp


def inverse_block(problem: Problem, cut: Tiling, n: int = 0, longest: bool = False, function: str = "soft") -> Warp:
    """An interior tile of the inverse kernel, or the boundary block of a row of ``n`` samples."""
    f, warp, levels = problem.filter, Warp(problem, longest), cut.levels
    halo, extra, pairs = 2 * up4(f.low) + up4(2 * f.high), BOUNDARY if n else INVERSE, 2 if n else PAIRS
    compared, computed = SHRINKING[function]
    sizes = [n or cut.tile]
    for level in range(1, levels + 1):
        sizes.append(f.length(sizes[-1]) if n else cut.tile >> level)
    room = [up4((cut.capacity >> level) + f.taps + halo + 8) for level in range(1, levels + 1)]
    warp.shared = sum(room) + sum(room[:2])
    warp.issue(1, int=extra.block, other=extra.block)
    for level in range(1, levels + 1):  # four details loaded, shrunk and stored in shared memory; approximations too
        times = warp.executions(-(-sizes[level] // 4) if n else (sizes[level] + halo) >> 2)
        warp.access(times * (4 if level == levels else 2), 4)
        warp.issue(times, int=4 * compared + extra.access)
        warp.fma(4 * times * computed)
        warp.wait(device=times if n else 0)  # one after the other; the threshold with the first
    warp.wait(*((1, 0) if n else (0, 2)))  # of a tile the thresholds, then details of all levels at once
    fma, wide = synthesis_cost(f, pairs)
    for level in range(levels, 0, -1):
        times = warp.executions(-(-(sizes[level - 1] + (halo if level > 1 else 0)) // (2 * pairs)))
        warp.fma(times * (fma + (2 * pairs if level == 1 else 0)))
        warp.access(times * wide, pairs)
        warp.access(times * pairs / 2, 4)
        warp.issue(times * pairs / 2, wavefront=problem.itemsize)  # two lanes meet in a bank
        warp.issue(times, int=extra.group)
        warp.wait(1)
    return warp
