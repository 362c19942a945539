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
from dataclasses import dataclass, field, replace

from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES, Filter, Tiling, forward_tiling, inverse_tiling, launches, up4
from wavefilt.ske.calibrated import Launch

WARP, LINE = 32, 128
Counts = defaultdict[str, float]
REGISTERS = {4: 40, 8: 64}
"""Of a thread, by bytes of a sample: what the compiler needs for most filters. On a GPU the driver's number counts."""
PER_WARP, PER_GROUP, PER_ACCESS = 110, 4, 3
"""Other instructions: of a warp for a tile of the forward kernel, for each group of outputs, for each wide access."""
PER_INVERSE = 180
"""Of a warp for a tile of the inverse kernel."""
END_PER_GROUP, END_PER_QUAD = 90, 25
"""The same for the loops of a boundary block, whose sizes are run-time values."""
SHRINKING = {"keep": (0, 0), "soft": (2, 1), "hard": (2, 0), "firm": (5, 2), "garrote": (4, 10)}
"""Comparisons and arithmetic for one coefficient, by threshold function."""
PAIRS = 4


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
        return launches(self.filter, self.level, self.tiles_of)

    @property
    def lengths(self) -> list[int]:
        """Samples of a row, then its coefficients at every level."""
        lengths = [self.samples]
        for _ in range(self.level):
            lengths.append(self.filter.length(lengths[-1]))
        return lengths


def forward(problem: Problem) -> list[Launch]:
    """The launches of the forward transform, in order."""
    return [
        _launch("forward", problem, forward_tiling, first, levels, forward_tile, _forward_end, _forward_shared)
        for first, levels in _parts(problem)
    ]


def inverse(problem: Problem, function: str = "soft") -> list[Launch]:
    """The launches of the inverse transform, in order; ``function`` is the threshold function, or "keep"."""

    def tile(p: Problem, cut: Tiling, longest: bool) -> Warp:
        return inverse_tile(p, cut, function, longest)

    def end(p: Problem, cut: Tiling, n: int, longest: bool) -> Warp:
        return _inverse_end(p, cut, n, function, longest)

    return [
        _launch("inverse", problem, inverse_tiling, first, levels, tile, end, _inverse_shared)
        for first, levels in reversed(_parts(problem))
    ]


@dataclass
class Warp:
    """Counts of an average warp of a block, or of the ``longest``, which takes part in everything that is compiled."""

    problem: Problem
    longest: bool = False
    instructions: Counts = field(default_factory=lambda: defaultdict(float))
    loads: Counts = field(default_factory=lambda: defaultdict(float))
    barriers: int = 0

    def executions(self, items: int) -> float:
        """How often a warp executes what every thread does for one of ``items``: whole rounds, and the remainder."""
        threads = self.problem.threads
        rounds, rest = divmod(items, threads)
        return rounds + (rest > 0 if self.longest else -(-rest // WARP) / -(-threads // WARP))

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


def _launch(name, problem, tiling, first, levels, of_tile, of_end, shared):
    """One launch: its tiles, and the boundary block of every row, which is longer."""
    n, lengths = problem.lengths[first], problem.lengths[first : first + levels + 1]
    cut = tiling(problem.filter, problem.tiles_of, levels)
    tiles = cut.interior(n)
    end, longest = (of_end(problem, cut, n - cut.gap(n), which) for which in (False, True))
    blocks = problem.rows * (tiles + 1)
    moved = problem.itemsize * problem.rows * (n + sum(lengths[1:]) + lengths[-1])
    made = Launch(
        f"{name} {'-'.join(str(first + i) for i in ((1, levels) if levels > 1 else (1,)))}", blocks, problem.threads,
        end.instructions, longest.loads, longest.barriers, moved, moved, path=longest.instructions,
        registers=REGISTERS[problem.itemsize], shared=problem.itemsize * shared(problem, cut),
    )  # fmt: skip
    if not tiles:
        return made
    inner, slowest = (of_tile(problem, cut, which) for which in (False, True))
    return replace(
        made, instructions=_mean(inner.instructions, end.instructions, tiles),
        path=_mean(slowest.instructions, longest.instructions, tiles),
        loads=_mean(slowest.loads, longest.loads, tiles),
        barriers=(tiles * slowest.barriers + longest.barriers) / (tiles + 1),
        longest=replace(made, blocks=1, bytes=moved / blocks),
    )  # fmt: skip


def _mean(inner: Counts, end: Counts, tiles: int) -> dict[str, float]:
    return {name: (tiles * inner[name] + end[name]) / (tiles + 1) for name in {**inner, **end}}


def forward_tile(problem: Problem, cut: Tiling, longest: bool = False) -> Warp:
    """An interior tile of the forward kernel."""
    f, warp, levels = problem.filter, Warp(problem, longest), cut.levels
    lead, total = up4(f.lead), (1 << levels) - 1
    quads = (lead * total + cut.tile + f.lag * total + 3) >> 2
    warp.issue(1, int=PER_WARP / 2, other=PER_WARP / 2)
    loads = warp.executions(quads)
    warp.access(loads, 4)
    warp.access(2 * loads, 2)
    warp.issue(loads, int=PER_ACCESS)
    warp.loads["global"] += 1
    fma, wide = analysis_cost(f)
    for level in range(1, levels + 1):
        below = (1 << levels - level) - 1
        size = cut.tile >> level
        groups = (lead * below + size + f.lag * below + 3) >> 2
        times, stored = warp.executions(groups), warp.executions(size // 4)
        warp.fma(times * fma)
        warp.access(times * wide, 4)
        warp.issue(times, int=PER_GROUP)
        warp.loads["shared"] += times
        warp.access(stored * (1 if level < levels else 2), 4)
        if level < levels:
            warp.access(2 * times, 2)
        warp.barriers += 1
    return warp


def _forward_end(problem: Problem, cut: Tiling, n: int, longest: bool = False) -> Warp:
    f, warp = problem.filter, Warp(problem, longest)
    warp.issue(1, int=PER_WARP, other=PER_WARP)
    quads = warp.executions(-(-n // 4))
    warp.access(quads, 4)
    warp.access(2 * quads, 2)
    warp.issue(quads, int=END_PER_QUAD)
    warp.loads["global"] += -(-quads // 4)
    fma, wide = analysis_cost(f)
    for level in range(1, cut.levels + 1):
        beyond = warp.executions(f.lead + f.taps)
        warp.issue(beyond, int=60, fma=3, other=12)
        warp.loads["global"] += beyond
        n = f.length(n)
        times = warp.executions(-(-n // 4))
        warp.fma(times * fma)
        warp.access(times * wide, 4)
        warp.issue(times, int=END_PER_GROUP)
        warp.loads["shared"] += times + beyond
        warp.access(times * (1 if level < cut.levels else 2), 4)
        if level < cut.levels:
            warp.access(2 * times, 2)
        warp.barriers += 2
    return warp


def _forward_shared(problem: Problem, cut: Tiling) -> int:
    """Elements of shared memory."""
    taps = problem.taps
    halves = (cut.capacity + 2 * taps + 16) // 2, ((cut.capacity + taps) // 2 + 2 * taps + 16) // 2
    return 2 * sum(map(up4, halves))


def inverse_tile(problem: Problem, cut: Tiling, function: str, longest: bool = False) -> Warp:
    """An interior tile of the inverse kernel."""
    f, warp, levels = problem.filter, Warp(problem, longest), cut.levels
    halo = 2 * up4(f.low) + up4(2 * f.high)
    warp.issue(1, int=PER_INVERSE / 2, other=PER_INVERSE / 2)
    warp.loads["global"] += 2  # thresholds, then details of all levels at once
    for level in range(1, levels + 1):
        _load(warp, warp.executions(((cut.tile >> level) + halo) >> 2), level == levels, function, PER_ACCESS)
    fma, wide = synthesis_cost(f, PAIRS)
    for level in range(levels, 0, -1):
        samples = cut.tile >> (level - 1)
        times = warp.executions(-(-(samples + (halo if level > 1 else 0)) // (2 * PAIRS)))
        warp.fma(times * (fma + (8 if level == 1 else 0)))
        warp.access(times * wide, 4)
        warp.access(2 * times, 4)
        warp.issue(times, int=PER_GROUP)
        warp.loads["shared"] += times
        warp.barriers += 1
    return warp


def _load(warp: Warp, times: float, coarsest: bool, function: str, overhead: float) -> None:
    """Four details loaded, shrunk and stored in shared memory, and four approximations where they are the coarsest."""
    compared, computed = SHRINKING[function]
    warp.access(times * (4 if coarsest else 2), 4)
    warp.issue(times, int=4 * compared + overhead)
    warp.fma(4 * times * computed)


def _inverse_end(problem: Problem, cut: Tiling, n: int, function: str, longest: bool = False) -> Warp:
    f, warp = problem.filter, Warp(problem, longest)
    halo = 2 * up4(f.low) + up4(2 * f.high)
    warp.issue(1, int=PER_WARP, other=PER_WARP)
    lengths = [n]
    for level in range(1, cut.levels + 1):
        lengths.append(f.length(lengths[-1]))
        times = warp.executions(-(-lengths[-1] // 4))
        _load(warp, times, level == cut.levels, function, END_PER_QUAD)
        warp.loads["global"] += times  # one after the other; the threshold with the first
    warp.barriers += 1
    fma, wide = synthesis_cost(f, 2)
    for level in range(cut.levels, 0, -1):
        times = warp.executions(-(-(lengths[level - 1] + (halo if level > 1 else 0)) // 4))
        warp.fma(times * (fma + (4 if level == 1 else 0)))
        warp.access(times * wide, 2)
        warp.access(times, 4)
        warp.issue(times, int=END_PER_GROUP)
        warp.loads["shared"] += times
        warp.barriers += 1
    return warp


def _inverse_shared(problem: Problem, cut: Tiling) -> int:
    """Elements of shared memory."""
    f = problem.filter
    room = problem.taps + 2 * up4(f.low) + up4(2 * f.high) + 8
    sizes = [up4((cut.capacity >> level) + room) for level in range(1, cut.levels + 1)]
    return sum(sizes) + sizes[0] + (sizes[1] if cut.levels > 1 else 0)
