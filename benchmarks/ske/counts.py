"""Operation counts of the kernels of the DWT, for the calibrated SKE model, as functions of the launch.

The counts follow from the constants that the kernels are compiled with, so neither a GPU nor a compiler is needed.

* Transforms of float32 traces, with symmetric ends and soft thresholds: multiply-adds, accesses and barriers are exact,
  and tests compare them with the compiled code. The other instructions (addresses, guards, moves) were read from SASS
  for sm_90, where they are 10 to 25 % of the total; the waits of the inverse for shared memory were fitted to times.
  In an interior tile a warp executes a constant number of rounds, and some warps one more for the remainder. The
  average warp determines how busy the pipes are; the longest warp determines the latency, because all others wait for
  it at every barrier. The boundary block of each row is counted separately.
* Rows denoised by one block each: as the transforms, but the other instructions were counted by a profiler.
* Search for the median: chains of dependent loads, atomics and barriers whose lengths depend on the data. The counts
  were read from the source and from a profiler, for data without many equal values, and are less exact. A global atomic
  whose result is used counts as a load.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from wavefilt.arrays import least_run
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
SAMPLE = 4
"""Bytes of a sample."""


class Overhead(NamedTuple):
    """Other instructions: integer and other ones per warp and block, integer ones per group of outputs and access."""

    block: float
    group: int
    access: int


FORWARD, INVERSE = Overhead(55, 4, 3), Overhead(90, 10, 3)
"""Interior tiles."""
BOUNDARY = Overhead(110, 90, 25)
"""Boundary blocks, whose sizes are run-time values."""
COMPARED, COMPUTED = 2, 1
"""Comparisons and arithmetic per coefficient of the soft threshold."""
PAIRS = 4
"""Pairs of samples per thread of the inverse kernel."""
TOGETHER = 8
"""Wide loads of a thread that the compiler issues before the first use."""
LEVEL_WAIT = 7
"""Latencies of shared memory in a level of the inverse: addresses, loads and sums depend on one another."""


@dataclass(frozen=True)
class Problem:
    """A transform (filter taps, samples per row, rows, levels) and its launch parameters."""

    taps: int
    samples: int
    rows: int = 1
    level: int = 8
    tile: int = 0
    threads: int = 256

    @property
    def filter(self) -> Filter:
        return Filter(self.taps, False)

    @property
    def tiles_of(self) -> int:
        """Samples per tile."""
        return self.tile or TILE_BYTES // SAMPLE

    @property
    def fused(self) -> list[int]:
        """Number of levels of each launch, finest first."""
        one = at_once(self.filter, self.level, self.tiles_of, SAMPLE, self.rows * self.samples)
        return [self.level] if one else launches(self.filter, self.level, self.tiles_of)

    @property
    def lengths(self) -> list[int]:
        """Samples per row, then coefficients per row at every level."""
        lengths = [self.samples]
        for _ in range(self.level):
            lengths.append(self.filter.length(lengths[-1]))
        return lengths


def forward(problem: Problem) -> list[Launch]:
    """Return the launches of the forward transform, in order."""
    return [_launch("forward", problem, *part, forward_tiling, forward_block) for part in _parts(problem)]


def inverse(problem: Problem) -> list[Launch]:
    """Return the launches of the inverse transform with soft thresholds, in order."""
    return [_launch("inverse", problem, *part, inverse_tiling, inverse_block) for part in _parts(problem)[::-1]]


@dataclass
class Warp:
    """Counts of the average warp of a block, or of the ``longest``, which executes all compiled rounds.

    ``shared`` is the shared memory of the block, in elements.
    """

    problem: Problem
    longest: bool = False
    instructions: Counts = field(default_factory=lambda: defaultdict(float))
    loads: Counts = field(default_factory=lambda: defaultdict(float))
    barriers: int = 0
    shared: int = 0

    def executions(self, items: int) -> float:
        """Return how often a warp executes code that handles one of ``items`` per thread: rounds and remainder."""
        threads = self.problem.threads
        rounds, rest = divmod(items, threads)
        return rounds + (rest > 0 if self.longest else -(-rest // WARP) / -(-threads // WARP))

    def wait(self, barriers: int = 0, device: float = 0.0, shared: float = 0.0) -> None:
        """Add barriers, and dependent loads from device and shared memory."""
        self.barriers += barriers
        for name, n in {"global": device, "shared": shared}.items():
            if n:
                self.loads[name] += n

    def issue(self, times: float, **instructions: float) -> None:
        """Add instructions by class, with underscores for spaces."""
        for name, n in instructions.items():
            self.instructions[name.replace("_", " ")] += times * n

    def access(self, times: float, elements: float) -> None:
        """Add accesses to consecutive elements per thread, at most 16 bytes each."""
        size = SAMPLE * elements
        self.issue(times, other=max(size / 16, 1), wavefront=size * WARP / LINE)


def analysis_cost(f: Filter) -> tuple[int, int]:
    """Return the multiply-adds and wide loads for four consecutive coefficients of both filters: see `wide.filters`."""
    delta = up4(f.lead) - f.lead
    places = {((delta + k) % 2, ((delta + k) // 2 + i) // 4) for k in range(f.taps) for i in range(4)}
    return _products(f, 8), len(places)


def synthesis_cost(f: Filter, pairs: int) -> tuple[int, int]:
    """Return the multiply-adds and wide loads for consecutive pairs of samples."""
    reach = range(f.taps // 2)
    places = {(up4(f.low) + pair + top - j) // pairs for j in reach for pair in range(pairs) for top in f.tops}
    return _products(f, 2 * pairs), 2 * len(places)


def _half(n: int) -> int:
    """Return the elements of the even, or of the odd, quads of n elements, padded: see `dwt.kernels.Layout`."""
    n = up4(n // 2)
    return n + (16 - n) % 32


def _products(f: Filter, outputs: int) -> int:
    return outputs * f.taps if f.taps > 2 else outputs * 3 // 2  # outputs of Haar share their products


def _parts(problem: Problem) -> list[tuple[int, int]]:
    """Return the first level and the number of levels of each launch."""
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
    """Return one launch: interior tiles, and the boundary block of every row, which takes longer."""
    lengths = problem.lengths[first : first + levels + 1]
    n, tile = lengths[0], problem.tiles_of
    if first:
        tile = suited_tile(problem.filter, tile, levels, n, problem.rows)
    cut = tiling(problem.filter, tile, levels)
    tiles = cut.interior(n)
    end, longest = (block(problem, cut, n - cut.gap(n), longest=which) for which in (False, True))
    blocks = problem.rows * (tiles + 1)
    samples, bands = (SAMPLE * problem.rows * size for size in (n, sum(lengths[1:]) + lengths[-1]))
    read, written = (samples, bands) if name == "forward" else (bands, samples)
    made = Launch(
        f"{name} {'-'.join(str(first + i) for i in ((1, levels) if levels > 1 else (1,)))}", blocks, problem.threads,
        end.instructions, longest.loads, longest.barriers, read, written, samples + bands,
        0 if name == "forward" else written, longest.instructions,
        registers=40 if name == "forward" else 48, shared=SAMPLE * end.shared, boundary=True,
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
    """Count an interior tile of the forward kernel, or the boundary block with ``n`` samples."""
    f, warp, levels = problem.filter, Warp(problem, longest), cut.levels
    lead, extra = up4(f.lead), BOUNDARY if n else FORWARD
    fma, wide = analysis_cost(f)
    sizes = cut.capacity + 2 * f.taps + 16, (cut.capacity + f.taps) // 2 + 2 * f.taps + 16
    warp.shared = 2 * sum(map(_half, sizes))

    def groups(level: int) -> int:
        """Return the groups of four samples or coefficients that a level needs."""
        below = (1 << levels - level) - 1
        return -(-(n or lead * below + (cut.tile >> level) + f.lag * below) // 4)

    warp.issue(1, int=extra.block, other=extra.block)
    loads = warp.executions(groups(0))
    warp.access(loads, 4)
    warp.access(2 * loads, 2)
    warp.issue(loads, int=extra.access)
    rounds, rest = divmod(groups(0), problem.threads)  # loads of whole rounds overlap; the remainder waits again
    warp.wait(device=-(-rounds // TOGETHER) + (rest > 0))
    for level in range(1, levels + 1):
        beyond = 0.0
        if n:
            n, beyond = f.length(n), warp.executions(f.lead + f.taps)
            warp.issue(beyond, int=60, fma=3, other=12)
        times = warp.executions(groups(level))
        stored = times if n else warp.executions((cut.tile >> level) // 4)
        warp.issue(times * fma, fma=1)
        warp.access(times * wide, 4)
        warp.issue(times, int=extra.group)
        warp.wait(2 if n else 1, beyond)
        warp.access(stored * (1 if level < levels else 2), 4)
        if level < levels:
            warp.access(2 * times, 2)
    _probe(warp, cut.tile)
    return warp


def _probe(warp: Warp, samples: int) -> None:
    """Count the search for runs of equal samples, of which later launches have only the first instructions.

    Its loads meet the cache, while other warps still compute.
    """
    warp.issue(1, int=20)
    warp.issue(warp.executions(samples // (least_run(warp.problem.samples) // 2)), int=30, other=10)


def inverse_block(problem: Problem, cut: Tiling, n: int = 0, longest: bool = False) -> Warp:
    """Count an interior tile of the inverse kernel, or the boundary block with ``n`` samples."""
    f, warp, levels = problem.filter, Warp(problem, longest), cut.levels
    halo, extra, pairs = 2 * up4(f.low) + up4(2 * f.high), BOUNDARY if n else INVERSE, PAIRS
    sizes = [n or cut.tile]
    for level in range(1, levels + 1):
        sizes.append(f.length(sizes[-1]) if n else cut.tile >> level)
    room = [up4((cut.capacity >> level) + f.taps + halo + 8) for level in range(1, levels + 1)]
    warp.shared = sum(room) + sum(room[:2])
    warp.issue(1, int=extra.block, other=extra.block)
    for level in range(1, levels + 1):  # load, shrink and store four coefficients
        times = warp.executions(-(-sizes[level] // 4) if n else (sizes[level] + halo) >> 2)
        warp.access(times * (4 if level == levels else 2), 4)
        warp.issue(times, int=4 * COMPARED + extra.access)
        warp.issue(4 * times * COMPUTED, fma=1)
        warp.wait(device=times if n else 0)  # one after the other
    turns = -(-cut.tile // (8 * problem.threads))  # of the finest level
    warp.wait(*((1, 0) if n else (0, 2 + 2 * turns)))  # tile: thresholds, then details of all levels
    fma, wide = synthesis_cost(f, pairs)
    for level in range(levels, 0, -1):
        times = warp.executions(-(-(sizes[level - 1] + (halo if level > 1 else 0)) // (2 * pairs)))
        warp.issue(times * (fma + (2 * pairs if level == 1 else 0)), fma=1)
        warp.access(times * wide, pairs)
        warp.access(times * pairs / 2, 4)
        if level == 1:  # both halves of 32 bytes of a thread, in device memory
            warp.issue(times * pairs / 2, wavefront=SAMPLE)
        warp.issue(times, int=extra.group)
        warp.wait(1, shared=LEVEL_WAIT)
    return warp


# rows denoised by one block each: constants of `dwt.one_block`, which imports the compiler; a test compares them

ROUNDS, THREADS, MOST_TAPS, MOST_LEVELS, MOST_SAMPLES = 5, (128, 256, 512), 32, 8, 48 << 20
BESIDE, ROW_REGISTERS, FEW = 9576, 64, 128
"""Bytes of shared memory beside the row, registers per thread, and values whose median is found by comparing them."""
ROW_LEVEL = 255
"""Other instructions of a warp per level, for guards and addresses; from counts of executed instructions."""


def row_threads(problem: Problem) -> int | None:
    """Return the threads of a block that denoises a row alone; None if the backend does not do that."""
    p = problem
    if p.taps > MOST_TAPS or p.tile or not 0 < p.level <= MOST_LEVELS:
        return None
    suited = THREADS[:2] if p.rows * p.samples > MOST_SAMPLES else THREADS
    return next((threads for threads in suited if -(-p.lengths[1] // 4) <= ROUNDS * threads), None)


def one_block(problem: Problem) -> Launch:
    """Return the launch that denoises every row by one block, by the universal rule and the noise of the finest level.

    Raises ValueError for rows that take several blocks.
    """
    threads = row_threads(problem)
    if threads is None:
        raise ValueError(f"rows of {problem.samples} samples take several blocks")
    whole = replace(problem, threads=threads)
    average, longest = (_row_block(whole, which) for which in (False, True))
    size = SAMPLE * whole.rows * whole.samples
    return Launch(
        "one block", whole.rows, threads, average.instructions, longest.loads, longest.barriers, size, size, 2 * size,
        size, longest.instructions, registers=ROW_REGISTERS, shared=SAMPLE * average.shared + BESIDE,
    )  # fmt: skip


def _row_block(problem: Problem, longest: bool) -> Warp:
    """Count a block that denoises a row: load, analyse, find the median, shrink, synthesise."""
    f, warp, lengths = problem.filter, Warp(problem, longest), problem.lengths
    (ahead, wide), (back, both) = analysis_cost(f), synthesis_cost(f, PAIRS)
    bands = 0
    for n, coarser in pairwise(lengths):
        warp.shared = max(warp.shared, 2 * _half(n + up4(f.lead) + 2 * f.taps + 16) + bands)
        bands += up4(coarser) + 16
    times = warp.executions(problem.samples // 4)
    warp.issue(1, int=120, other=100)
    warp.access(2 * times, 4)
    warp.issue(times, int=11)
    warp.wait(1, device=1 + times / TOGETHER)
    for n in lengths[1:]:
        ends, times = warp.executions(f.lead + f.taps), warp.executions(-(-n // 4))
        warp.issue(ends, int=25, fma=6, other=10)
        warp.issue(times * ahead, fma=1)
        warp.access(times * (wide + 2), 4)
        warp.issue(times, int=FORWARD.group + 12)
        warp.issue(1, int=ROW_LEVEL / 2, other=ROW_LEVEL / 2)
        warp.wait(4, shared=2 * ends + times + 4)
    _block_median(warp, lengths[1])
    _probe(warp, problem.samples)
    warp.issue(1, int=60, fma64=60, other=40)
    warp.wait(2, device=2)
    for level in range(problem.level, 0, -1):
        times = warp.executions(-(-lengths[level] // 4))
        warp.access(2 * times, 4)
        warp.issue(times, int=4 * COMPARED, fma=4 * COMPUTED)
        times = warp.executions(-(-lengths[level - 1] // (2 * PAIRS)))
        warp.issue(times * back, fma=1)
        warp.access(times * (both + 2), 4)
        warp.issue(times, int=INVERSE.group + 12)
        if level == 1:
            warp.issue(times, int=2 * PAIRS, wavefront=2 * SAMPLE)
        warp.wait(2, shared=times + 4)
    return warp


def _block_median(warp: Warp, n: int) -> None:
    """Count the median of n values in shared memory: three histograms, or all comparisons."""
    if n <= FEW:  # by one warp
        times = n * n / WARP / 4
        warp.issue(times if warp.longest else times * WARP / warp.problem.threads, int=18, other=7, wavefront=1)
        warp.wait(1, shared=n / 4)
        return
    times, clear = warp.executions(-(-n // 4)), BINS / warp.problem.threads
    warp.issue(3 * clear, int=4, other=2)
    warp.access(3 * times, 4)
    warp.issue(3 * times, int=24, other=8, wavefront=8)  # atomics of hot bins collide
    warp.issue(1, int=120, other=60)
    warp.wait(3 * (LOCATE["barriers"] + 3), shared=3 * (LOCATE["shared"] + times + clear / 4))


# the search for the median: constants of `selection`, which imports the compiler; a test compares them

BINS, SAMPLERS, CHUNK, BLOCKS = 2048, 528, 1 << 13, 330
DRAWN_BYTES, PARTS, CLOSE, WHOLE = 1 << 15, 66, 4096, 36 << 10
SELECT, SCAN, ROW, FULL = 512, 256, 128, 528
"""Threads of a block that samples or searches a list, of one that scans a row, and of one that handles a short row if
there are more than `FULL`; else it has as many as the first."""
LOCATE = {"barriers": 3, "shared": 12}
"""Dependent operations to find the bin of a rank."""
LAST = 3
"""Dependent global loads of a block to determine whether it is the last."""


def denoise(problem: Problem) -> list[Launch]:
    """Return the launches of denoising with the universal rule and the noise of the finest level, in order."""
    if row_threads(problem):
        return [one_block(problem)]
    ahead, back = forward(problem), inverse(problem)
    return [ahead[0], *search(problem), *ahead[1:], _choose(problem), *back]


def search(problem: Problem) -> list[Launch]:
    """Return the launches that find the median of the finest level, in order."""
    if problem.lengths[1] <= WHOLE:
        return [_row_median(problem)]
    return [_sample(problem), _scan(problem), _finish(problem)]


def _row_median(problem: Problem) -> Launch:
    """Count the median of a short row: three histograms of all values."""
    n, threads = problem.lengths[1], SELECT if problem.rows <= FULL else ROW
    warp, rounds = Warp(problem), n / (4 * threads)
    warp.issue(1, int=600, other=400)
    warp.issue(3 * BINS / threads, int=14, other=6)
    warp.access(3 * rounds, 4)
    warp.issue(3 * rounds, int=28, other=8, wavefront=8)  # atomics collide
    warp.wait(3 * (LOCATE["barriers"] + 3), 3 * rounds, 3 * rounds + 3 * LOCATE["shared"])
    return _search_launch("whole", warp, problem.rows, threads, n)


def _sample(problem: Problem) -> Launch:
    """Count the first window, from a sample of the details."""
    warp, drawn = Warp(problem), _drawn(problem)
    blocks, turns = max(min(drawn // SELECT, SAMPLERS // problem.rows), 1), drawn // SELECT
    own = turns / blocks  # values that a thread draws; the last block then counts all
    warp.issue(1, int=220, other=120)
    warp.issue(own, int=20, other=10, wavefront=WARP)
    warp.wait(2 * LOCATE["barriers"] + 6, LAST + 2 + 3 * own + turns // 4, 2 * turns + 2 * LOCATE["shared"])
    made = _search_launch("sample", warp, blocks * problem.rows, SELECT, drawn)
    return replace(made, read=8 * made.read)  # sectors of 32 bytes


def _scan(problem: Problem) -> Launch:
    """Count the pass over the finest details that counts and lists the values in the window."""
    n, warp = problem.lengths[1], Warp(problem)
    chunk = max(CHUNK, -(-n // (BLOCKS * CHUNK)) * CHUNK)
    values = chunk / SCAN
    warp.issue(1, int=340, other=180)
    warp.access(values / 4, 4)
    warp.issue(values, int=6, fma=2, other=3)
    warp.wait(round(values / 32) + 8, 4, 4 * values)  # loads are ahead; comparisons and lists are not
    return _search_launch("scan", warp, -(-n // chunk) * problem.rows, SCAN, n)


def _finish(problem: Problem) -> Launch:
    """Count the pass over the list that finds the median."""
    listed = _listed(problem, _drawn(problem))
    parts, inside = max(min(-(-int(listed) // (4 * SELECT)), PARTS), 1), listed / (BINS // 2)
    rounds, warp = listed / parts / SELECT, Warp(problem)
    warp.issue(1, int=200, other=100)
    warp.issue(rounds, int=18, other=8)
    warp.issue(inside / SELECT, int=16, other=8)
    warp.wait(3 * LOCATE["barriers"] + 10, LAST + 7 + 0.4 * rounds, 3 * LOCATE["shared"])
    return _search_launch("finish", warp, parts * problem.rows, SELECT, listed)


def _choose(problem: Problem) -> Launch:
    """Count the noise and thresholds: a thread per row and level."""
    warp = Warp(problem)
    warp.issue(1, int=80, fma64=20, other=40)
    warp.wait(3, 4)
    blocks = -(-problem.rows // max(problem.threads // problem.level, 1))
    return _search_launch("choose", warp, blocks, problem.threads, 4 * problem.level)


def _drawn(problem: Problem) -> int:
    """Return the values in the sample."""
    values = DRAWN_BYTES // SAMPLE
    while _listed(problem, values) // (BINS // 2) > CLOSE // 4:
        values *= 4
    return values


def _listed(problem: Problem, drawn: int) -> float:
    """Return the expected number of values of a row in the window of a sample."""
    return float(4.5 * problem.lengths[1] / drawn**0.5)


def _search_launch(name: str, warp: Warp, blocks: int, threads: int, elements: float) -> Launch:
    size = SAMPLE * warp.problem.rows * elements
    shared = ({"whole": 13, "scan": 24, "finish": 25}.get(name, 10)) << 10
    counts, registers = (dict(warp.instructions), dict(warp.loads), warp.barriers), 56 if name == "whole" else 48
    return Launch(name, max(blocks, 1), threads, *counts, size, 0, size, registers=registers, shared=shared)
