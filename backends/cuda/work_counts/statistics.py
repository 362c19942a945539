"""What the kernels of the statistics do, counted for the calibrated SKE model: see `counts`.

They are chains of dependent loads, atomics and barriers whose lengths depend on the values; the numbers are read from
the source for values without many ties, and less exact than those of the transforms. An atomic of global memory
whose result is waited for counts as a load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wavefilt.ske.calibrated import Launch

from . import one_block
from .transforms import Problem, Warp, forward, inverse

DRAWN_AHEAD, SAMPLERS = (1 << 15, 1 << 20), 528
BINS, DRAWN_BYTES, PARTS, CLOSE, CHUNK, BLOCKS, WHOLE = 2048, 1 << 15, 66, 4096, 1 << 13, 330, 36 << 10
MOST_TAPS_SEARCHED = 64
"""Constants of `selection` and `plan`, which import the compiler; a test compares them."""
SELECT, SCAN, ROW = 512, 256, 128
"""Threads of a block that samples or goes through a list, that scans, and that finishes one of many rows alone.

As measured for the model. The first two are defaults of `plan.Options`, which has few rows finished by more threads.
"""
ROW_ROOM, ROW_DRAWN, ROW_LISTED = 2560, 1024, 1 / 11
"""Values of a row in shared memory, of its sample, and the share of a longer row in its window."""
LOCATE = {"barriers": 3, "shared": 12}
"""A bin found by its rank: sums of groups of bins, and three loops through some of them, whose loads do not wait."""
SEARCHING = 60
"""Integer instructions of a warp for a group of four details that it searches, and half as many others: so many that
what a search adds to a forward kernel agrees with development's times."""
LAST = 3
"""Loads of global memory that a block waits for to know that it is the last."""


def energy(problem: Problem) -> list[Launch]:
    """Sums of squares of the details of every level."""
    big = _big(problem, problem.level)
    made = []
    if problem.level > big:
        n = problem.lengths[big + 1]
        warp = Warp(problem)
        blocks = (problem.level - big) * problem.rows
        rounds = n / ROW
        warp.issue(rounds, int=8, fma64=1, other=5)
        warp.wait(0, 4 + rounds / 4)
        made.append(_launch("whole", warp, blocks, ROW, sum(problem.lengths[big + 1 :])))
    if big:
        n, across = sum(problem.lengths[1 : big + 1]), _across(problem, big)
        warp = Warp(problem)
        rounds = n / across / (4 * SCAN)
        warp.access(rounds, 4)
        warp.issue(rounds, int=12, fma64=8, other=6)
        warp.wait(9, 3 + rounds / 4, 20)
        made.append(_launch("scan", warp, across * problem.rows, SCAN, n))
        warp = Warp(problem)
        warp.issue(1, int=120, fma64=4, other=40)
        warp.wait(9, 2 + across // big // SCAN, 20)
        made.append(_launch("gather", warp, big * problem.rows, SCAN, across / 2))
    return made


def median(problem: Problem) -> list[Launch]:
    """The exact median of the finest details, by a sample, a pass over all of them, and passes over the list."""
    n = problem.lengths[1]
    if not _big(problem, 1):
        return [whole_median(problem)]
    warp = Warp(problem)
    warp.issue(1, int=40, other=20)
    warp.wait(0, 3)
    made = [_sampled("sample", warp, _drawn(problem), 1)]
    across = _across(problem, 1)
    warp = Warp(problem)
    rounds = n / across / (32 * SCAN)  # of 32 values a thread
    taken = 5 * rounds  # turns of a warp for the few values in the window: those of its busiest thread
    staged = 32 * 4.5 / _drawn(problem) ** 0.5 * rounds  # of them, which threads count and list in equal shares
    warp.access(8 * rounds, 4)
    warp.issue(rounds, int=86, fma=64, other=40)
    warp.issue(rounds, int=16, other=24)  # a place in the stage
    warp.issue(taken, int=14, other=8)
    warp.issue(staged, int=10, other=8)
    warp.wait(int(5 / 3 * rounds) + 10, 4 + 2 * rounds + taken + LAST + 2, 2 * rounds + 2 * staged + 8)
    warp.issue(1, int=8 * BINS // SCAN, other=4 * BINS // SCAN)
    made.append(_launch("scan", warp, across * problem.rows, SCAN, n))
    return [*made, *settle(problem, _drawn(problem))]


def whole_median(problem: Problem) -> Launch:
    """The finest level of a short row, by one block a row: from all values, or from those in a sampled window."""
    n, warp = problem.lengths[1], Warp(problem)
    listed = n if n <= ROW_ROOM else ROW_LISTED * n
    rounds = n / (4 * ROW)
    warp.access(rounds, 4)
    warp.issue(rounds, int=24, fma=8, other=16)
    if n > ROW_ROOM:
        warp.issue(2 * ROW_DRAWN / ROW, int=14, other=6)
        warp.wait(2 * LOCATE["barriers"] + 6, ROW_DRAWN // ROW // 4 + 1, 2 * LOCATE["shared"])
    warp.issue(3 * listed / ROW, int=12, other=4)
    warp.issue(3 * BINS / ROW, int=4, other=2)
    warp.wait(3 * (LOCATE["barriers"] + 3), rounds / 4 + 3, 3 * listed / ROW + 3 * LOCATE["shared"])
    return _launch("whole", warp, problem.rows, ROW, n)


def draw(problem: Problem) -> Launch:
    """The first window from the samples, before there are details."""
    warp, drawn = Warp(problem), _drawn_ahead(problem)
    warp.issue(problem.taps, fma=1, int=4)
    warp.issue(1, int=60, other=40)
    warp.wait(0, problem.taps // 4 + 2)
    return _sampled("draw", warp, drawn, problem.taps)


def _narrow(problem: Problem) -> Launch:
    """The window narrowed by what a forward transform has counted: a block a row."""
    warp = Warp(problem)
    warp.issue(BINS / SCAN, int=4, other=4)
    warp.issue(1, int=150, other=80)
    warp.wait(LOCATE["barriers"] + 3, 5, LOCATE["shared"])
    return _launch("narrow", warp, problem.rows, SCAN, 2 * BINS)


def settle(problem: Problem, drawn: int, narrowed: bool = True) -> list[Launch]:
    """Passes over the list alone, by which few values are left in the window and the middle found.

    Those between, each of which leaves fewer, are for very long lists, and need a window that is narrowed.
    """
    listed = _listed(problem, drawn)
    parts = max(min(-(-int(listed) // (4 * SELECT)), PARTS), 1)
    rounds = listed / parts / SELECT
    made, inside = [], listed / (BINS // 2)
    if inside > CLOSE // 2 and not narrowed:
        made, narrowed = [_narrow(problem)], True
    while inside > CLOSE // 2:
        warp = Warp(problem)
        warp.issue(rounds, int=20, other=8)
        warp.issue(BINS / SELECT, int=10, other=6)
        warp.issue(1, int=150, other=80)
        warp.wait(LOCATE["barriers"] + 6, 3 + rounds + LAST + 6, 2 * rounds + LOCATE["shared"])
        made.append(_launch("settle", warp, parts * problem.rows, SELECT, listed))
        inside /= BINS // 2
    warp = Warp(problem)
    warp.issue(rounds, int=16, other=8)
    warp.issue(2 * (inside + BINS) / SELECT, int=8, other=4)
    warp.wait(2 * LOCATE["barriers"] + 10, 3 + rounds + LAST + 4, 2 * LOCATE["shared"])
    if not narrowed:
        warp.issue(BINS / SELECT, int=4, other=4)
        warp.wait(LOCATE["barriers"], 2, LOCATE["shared"])
    return [*made, _launch("finish", warp, parts * problem.rows, SELECT, listed)]


def choose(problem: Problem) -> Launch:
    """Noise and thresholds: a thread a row and level."""
    warp = Warp(problem)
    warp.issue(1, int=80, fma64=20, other=40)
    warp.wait(3, 4)
    blocks = -(-problem.rows // max(problem.threads // problem.level, 1))
    return _launch("choose", warp, blocks, problem.threads, 4 * problem.level)


def searching(problem: Problem, launch: Launch) -> Launch:
    """The first launch of `forward` when it counts its finest details against the window and lists those inside."""
    tile = min(problem.tiles_of, problem.samples)
    groups = tile / 8 / launch.threads  # of a thread
    listed = _listed(problem, _drawn_ahead(problem)) * tile / problem.samples
    turns = -(-listed // launch.threads)  # of its busiest warp, for the values in the window

    added = {"int": SEARCHING * groups + 50 + 20 * turns, "other": SEARCHING * groups / 2 + 25 + 10 * turns}

    def more(counts: Mapping[str, float]) -> dict[str, float]:
        return {name: counts.get(name, 0.0) + added.get(name, 0.0) for name in {**counts, **added}}

    return replace(
        launch, name=f"{launch.name} searching", instructions=more(launch.instructions), path=more(launch.path),
        loads={**launch.loads, "global": launch.loads["global"] + 1, "shared": groups + 3},
        longest=None if launch.longest is None else searching(problem, launch.longest),
    )  # fmt: skip


def denoise(problem: Problem) -> list[Launch]:
    """All launches of a denoise by the universal rule and the noise of the finest level, in order."""
    if threads := one_block.threads_for(problem):
        return [one_block.denoise(problem, threads)]
    ahead, back = forward(problem), inverse(problem)
    if _big(problem, 1) and problem.taps <= MOST_TAPS_SEARCHED:  # the first launch takes part in the search
        last = settle(problem, _drawn_ahead(problem), narrowed=False)
        search = [draw(problem), searching(problem, ahead[0]), *last, *ahead[1:]]
    else:
        search = [*ahead, *median(problem)]
    return [*search, choose(problem), *back]


OF = {"forward": forward, "inverse": inverse, "energy": energy, "median": median, "denoise": denoise}
"""The launches of each, in order, as functions of a `Problem`."""


def _big(problem: Problem, depth: int) -> int:
    """Levels that take many blocks a row."""
    return sum(n > WHOLE for n in problem.lengths[1 : depth + 1])


def _drawn(problem: Problem) -> int:
    return DRAWN_BYTES // problem.itemsize


def _drawn_ahead(problem: Problem) -> int:
    most, least = DRAWN_AHEAD
    return most if problem.lengths[1] >= least else _drawn(problem)


def _listed(problem: Problem, drawn: int) -> float:
    """Values of a row in the window of a sample."""
    return float(4.5 * problem.lengths[1] / drawn**0.5)


def _across(problem: Problem, big: int) -> int:
    """Blocks of a row that scan its big levels."""
    chunk = max(CHUNK, -(-problem.lengths[1] // (BLOCKS * CHUNK)) * CHUNK)
    return sum(-(-n // chunk) for n in problem.lengths[1 : big + 1])


def _sampled(name: str, warp: Warp, drawn: int, each: int) -> Launch:
    """A launch that draws a sample, ``each`` value from so many, and lays the window around its middle.

    Each block counts its own values in the widest bins, and the last all values between two of these.
    """
    blocks, turns = max(min(drawn // SELECT, SAMPLERS // warp.problem.rows), 1), drawn / SELECT
    warp.issue(turns + drawn / SELECT / blocks, int=14, other=6)
    warp.issue(BINS / SELECT, int=18, other=18)
    warp.issue(2, int=80, other=60)
    warp.wait(2 * LOCATE["barriers"] + 6, LAST + turns // 4 + 1, 2 * turns + 2 * LOCATE["shared"])
    return _launch(name, warp, blocks * warp.problem.rows, SELECT, drawn * each)


def _launch(name: str, warp: Warp, blocks: int, threads: int, elements: float) -> Launch:
    size = warp.problem.itemsize * warp.problem.rows * elements
    return Launch(
        name, max(blocks, 1), threads, dict(warp.instructions), dict(warp.loads), warp.barriers, size, 0, size,
        registers=40, shared=24 << 10 if name in ("scan", "finish") else 12 << 10,
    )  # fmt: skip
