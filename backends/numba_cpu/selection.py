"""Exact medians and mean squares of the details, without sorting or copying them.

The order of non-negative floats is that of their bits as integers, so magnitudes are compared as integers.
A guess brackets the median, or in long rows a sample; one pass counts the magnitudes below the bracket and lists the
few inside; the median is selected from the list, or from all magnitudes if the bracket was wrong (many equal values).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, Counts, DType, Floats, least_run
from wavefilt.statistics import reference
from wavefilt.statistics.mergeable import Interval, Summation
from wavefilt.statistics.reference import RANKS, Risk, around, least_risk

from . import entries, memory, native, team
from .native import GROUP_BYTES, Constant

CHUNK = 1 << 16  # coefficients of one share of a long row, and of one sum of squares: sums do not depend on threads
LISTED = CHUNK // 16  # magnitudes of a chunk that may lie inside the bracket
SAMPLE = 1 << 14  # magnitudes drawn from a row that is cut into chunks at least: 3 % of it then lie inside the bracket
SHORT = 1 << 20  # rows up to here are cut into `FINE` shares
SHARED = 1 << 15  # details from which several threads may be worth it for a row
LONGER = 1.5  # times a thread's share of all details, a row is cut for all threads
FINE = CHUNK // 4  # the same of a row that is cut though it is `SHORT`
GRAIN = 1 << 17  # coefficients below which a share of the work is not worth waking a thread
SAMPLED = 1 << 14  # of longer rows a sample brackets the median: they leave the first-level cache
MAD = 1.4826  # standard deviation of normal noise over its median magnitude, for the first guess
SPREAD = 3.0  # octaves times √n on both sides of a guess, which hold the median of 97 % of rows of n normal magnitudes
RATIOS = 8  # bytes that are kept of each level from row to row
STEP = 1024
COUNTED = 1 << 18  # details that one thread counts at a time


@cache
def sign_off(dtype: DType, least: int = 0) -> Constant:
    """Return the mask of all bits except the sign, and the step at which samples are probed for runs of ``least``.

    Both are integers of the size of ``dtype``. A kernel looks through a part of a trace at a time: at least half of a
    run is in one part, with two of the probes.
    """
    bits = np.dtype(f"i{dtype.itemsize}")
    return Constant(np.array([np.iinfo(bits).max, least // 4], bits))


@cache
def no_samples(dtype: DType) -> Constant:
    """Return an empty array, from which kernels know the dtype."""
    return Constant(np.empty(0, dtype))


AT_ONCE = 1 << 17
"""Samples whose peak is found before a launch reads them again, from the second-level cache.

With a job of its own for the peak, both axes of 2048 x 2048 samples take 1.06 times as long.
"""


class Peak:
    """The largest magnitude of samples, or NaN as `Backend.peak`; they are aligned, in C order, kept by the caller."""

    def __init__(self, x: Array) -> None:
        self._bits, self._samples, self._dtype, self.found = np.dtype(f"i{x.itemsize}"), x.size, x.dtype, 0
        self.infinite = self.bits_of(np.inf)
        self._find = entries.PEAK.of(x.dtype, memory.address(x), sign_off(x.dtype, least_run(x.shape[-1])))

    def bits_of(self, magnitude: float) -> int:
        """Return the bits of a magnitude, to compare with `found`."""
        return int(np.array(magnitude, self._dtype).view(self._bits))

    @property
    def value(self) -> float:
        """Return NaN if there is a NaN, else infinity if there is one; 0 for no samples."""
        return float(np.array(self.found, self._bits).view(self._dtype))

    def find(self) -> None:
        self.found = team.parallel(self._find, self._samples, GRAIN)

    def along(self, work: native.Work, jobs: int, grain: int) -> team.Job:
        """Return a job that finds the peak of the samples of each range before ``work`` reads them."""
        return team.Job(work, jobs, grain, self._find, self._samples, AT_ONCE)

    @property
    def finite(self) -> bool:
        return self.found < self.infinite


def count_inside(interval: Interval, rows: Array, table: Counts) -> None:
    """Count as `wavefilt.statistics.mergeable.tabulate` does, but compiled: several times as fast."""
    if rows.dtype.kind == "c":
        rows = np.abs(rows)
    bits, kernel = np.dtype(f"i{rows.itemsize}"), entries.TABULATE_FEW if table.itemsize == 4 else entries.TABULATE
    limits = np.iinfo(bits).max, interval.low, interval.high, interval.shift
    for row in memory.packed(np.atleast_2d(rows)).view(bits):
        kernel.of(rows.dtype, row, *limits, table)(0, row.size)


def cut_from(groups: int, details: int) -> int:
    """Return the length from which a row is cut, for ``groups`` of ``details`` coefficients each."""
    number = threads.get_num_threads()
    if 2 * groups >= number:  # rows enough for all
        return SHORT
    return min(max(SHARED, int(LONGER * details / number)), SHORT)


def survey(
    addresses: Counts, lengths: Counts, pools: Counts, dtype: DType, lows: Array, highs: Array
) -> tuple[team.Job, tuple[Array, Counts, Counts, Floats]]:
    """Return a job over chunks, and its results.

    They are the magnitudes inside the bracket of a chunk's pool, their number, the number below the bracket, and the
    sum of squares.
    """
    count = len(addresses)
    listed = memory.empty((count, LISTED + 1), f"i{dtype.itemsize}")
    inside, below, squares = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    native.load(entries.LONG, dtype)
    arguments = addresses, lengths, pools, sign_off(dtype), no_samples(dtype), lows, highs
    results = listed, inside, below, squares
    work = entries.LONG_CHUNKS.of(dtype, *arguments, *results, workspace=(STEP + 1) * dtype.itemsize)
    return team.Job(work, count, GRAIN // CHUNK), results


class NumbaStatistics:
    """Statistics of details, of each row or of all rows of a level together."""

    def __init__(self, levels: Sequence[Sequence[Array]], scope: str) -> None:
        """Take the (rows, coefficients) arrays of each level (one if every row is a group), or their magnitudes."""
        self._pooled = scope == "record"
        if levels[0][0].dtype.kind == "c":
            levels = _magnitudes(levels)
        self._levels, self._dtype = levels, levels[0][0].dtype
        sizes = [sum(d.size for d in ds) if self._pooled else ds[0].shape[1] for ds in levels]
        self.counts = np.array(sizes, dtype=np.int64)
        self.medians = np.empty((len(sizes), self.groups))
        self.powers = np.empty_like(self.medians)
        self._surveyed: set[int] = set()
        self._summed: set[int] = set()
        """Levels whose mean squares are known."""

    @property
    def groups(self) -> int:
        return 1 if self._pooled else len(self._levels[0][0])

    def quantile_abs(self, levels: Sequence[int], share: float = 0.5) -> Floats:
        places = [level - 1 for level in levels]
        if share == 0.5:
            self._survey(levels)
            return self.medians.take(places, axis=0)
        found = np.empty_like(self.medians)
        team.run([self._whole(places, share, found)])
        self._summed.update(levels)
        return found.take(places, axis=0)

    def mean_square(self) -> Floats:
        self._survey([level for level in range(1, len(self._levels) + 1) if level not in self._summed])
        return self.powers.copy()

    def _survey(self, levels: Sequence[int]) -> None:
        """Find the unknown medians of these levels, and their mean squares."""
        if not self._surveyed.issuperset(levels):
            jobs, take = self.surveying(levels)
            team.run(jobs)
            take()

    def surveying(self, levels: Sequence[int]) -> tuple[list[team.Job], Callable[[], None]]:
        """Return jobs for medians and mean squares, and a function to call when they are done."""
        places = [i - 1 for i in levels if i not in self._surveyed]
        least = cut_from(self.groups, int(self.counts[places].sum()))
        cut = [i for i in places if self.counts[i] > least]
        whole = [i for i in places if i not in cut]
        jobs = [self._whole(whole)] if whole else []
        if cut:
            jobs = self._cut(cut, jobs)

        def take() -> None:
            self._surveyed.update(levels)
            self._summed.update(levels)
            for place in cut:
                if np.isnan(self.medians[place]).any():  # the sample misled
                    team.run([self._whole([place])])

        return jobs, take

    def _whole(self, places: Sequence[int], share: float = 0.5, quantiles: Floats | None = None) -> team.Job:
        """Return the job for medians, or other quantiles, and mean squares, each row by one thread."""
        owners = [self._rows(place) for place in places]
        lengths = self.counts[places].tolist()
        ranks = [around(length, share) for length in lengths]
        tasks = np.array(
            [
                (place, memory.address(rows), length, rows.strides[0], *rank)
                for place, rows, length, (rank, _) in zip(places, owners, lengths, ranks, strict=True)
            ],
            dtype=np.int64,
        )
        weights = np.array([weight for _, weight in ranks])
        results = self.medians if quantiles is None else quantiles, self.powers
        arguments = tasks, weights, sign_off(self._dtype), no_samples(self._dtype), *results
        count, work = len(places) * self.groups, sum(lengths) * self.groups
        room = RATIOS * len(places) + max(lengths) * self._dtype.itemsize + GROUP_BYTES
        kernel = entries.SHORT_ROWS.of(self._dtype, *arguments, workspace=room, kept=owners)
        return team.Job(kernel, count, GRAIN * count // max(work, 1))  # of rows of mean length

    def _cut(self, places: Sequence[int], others: Sequence[team.Job]) -> list[team.Job]:
        """Return the jobs for the medians and mean squares of rows that are cut into chunks.

        The work of another job, if given, runs beside the first one, which alone would leave threads idle. A median is
        NaN where the sample misled, as it does where many magnitudes are equal.
        """
        native.load(entries.LONG, self._dtype)
        dtype, kept = self._dtype, [self._rows(place) for place in places]
        firsts = np.concatenate([memory.address(rows) + rows.strides[0] * np.arange(self.groups) for rows in kept])
        sizes = np.repeat(self.counts[places], self.groups)
        among_results = np.arange(self.medians.size).reshape(self.medians.shape)[places].ravel()
        table = np.stack([sizes, among_results], axis=1)
        chunk = np.where(sizes > SHORT, CHUNK, FINE)
        counts = -(-sizes // chunk)
        starts = np.append(0, np.cumsum(counts))  # the first chunk of each row, and the end of the last
        rows = np.repeat(np.arange(len(sizes)), counts)
        before = chunk[rows] * (np.arange(len(rows)) - starts[rows])
        addresses = firsts[rows] + dtype.itemsize * before
        lengths = np.minimum(sizes[rows] - before, chunk[rows])

        drawn = np.maximum(SAMPLE, sizes ** (2 / 3)).astype(np.int64)
        strides = np.maximum(sizes // drawn, 1)[rows]
        ends = np.append(0, np.cumsum(-(-lengths // strides)))
        bits, mask = np.dtype(f"i{dtype.itemsize}"), sign_off(dtype)
        samples = memory.empty((int(ends[-1]),), bits)
        draw = entries.DRAW.of(dtype, addresses, lengths, strides, ends[:-1], mask, samples, kept=kept)
        lows, highs = np.empty((2, len(sizes)), bits)
        own = ends[starts]
        room = int(np.diff(own).max()) * bits.itemsize + GROUP_BYTES
        brackets = entries.BRACKETS.of(dtype, own, samples, mask, lows, highs, workspace=room)

        surveyed, (listed, inside, below, squares) = survey(addresses, lengths, rows, dtype, lows, highs)
        lists = memory.address(listed), inside, below, squares
        results = self.medians.reshape(-1), self.powers.reshape(-1)
        arguments = starts, table, mask, no_samples(dtype), *lists, *results
        middles = entries.MIDDLES.of(dtype, *arguments, workspace=memory.LINE, kept=listed)
        beside = others[0].works[0] if others else ()
        return [
            team.Job(draw, len(rows), GRAIN // CHUNK, *beside),
            team.Job(brackets, len(sizes)),
            surveyed,
            team.Job(middles, len(sizes)),
        ]

    def _rows(self, place: int) -> Array:
        """Return the details of a level as kernels take them, with each group as one row."""
        details = self._levels[place]
        if len(details) > 1:
            return np.concatenate([d.ravel() for d in details])[None]
        return memory.packed_rows(details[0].reshape(1, -1) if self._pooled else details[0])

    def exceeding(self, thresholds: Floats) -> Counts:
        def count(rows: Array, limits: Floats) -> Counts:
            return reference.exceeding(rows, limits)[:, None]

        return np.array([self._counted(i, count, limits, 1)[:, 0] for i, limits in enumerate(thresholds)])

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        return self._counted(level - 1, lambda rows, w: reference.histogram(rows, w, bins), widths, bins)

    def _counted(self, place: int, count: Callable[[Array, Floats], Counts], scales: Floats, bins: int) -> Counts:
        """Add up ``count(rows, scales)`` over all details of a level, by group: shape (groups, bins)."""
        totals, lock, details = np.zeros((self.groups, bins), np.int64), threading.Lock(), self._rows(place)

        def work(rows: slice, columns: slice) -> None:
            found = count(details[rows, columns], scales[rows])
            with lock:
                totals[rows] += found

        _spread(work, _parts(details))
        return totals

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        best, tasks = np.zeros_like(sigma), []
        for level, count in enumerate(self.counts):
            share = max(RANKS // int(count), 1)
            tasks += [(level, slice(a, a + share)) for a in range(0, self.groups, share)]

        def work(level: int, rows: slice) -> None:
            magnitudes = np.abs(self._rows(level)[rows])
            magnitudes.sort(axis=-1)
            best[level, rows] = least_risk(risk, magnitudes, sigma[level, rows], inverse)

        _spread(work, tasks)
        return best


def _spread(function: Callable[..., None], tasks: Sequence[tuple[Any, ...]]) -> None:
    """Call the function for each task, a tuple of its arguments, in several threads."""

    def work(begin: int, end: int) -> None:
        for task in tasks[begin:end]:
            function(*task)

    threads.parallel(work, len(tasks))


def _magnitudes(levels: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Return |d| of complex details."""
    found = [[memory.empty(d.shape, d.real.dtype) for d in details] for details in levels]
    pairs = zip(chain(*levels), chain(*found), strict=True)
    _spread(np.abs, [(d[own], target[own]) for d, target in pairs for own in _parts(d)])
    return found


def _parts(d: Array) -> list[tuple[slice, slice]]:
    """Return the rows and columns of details that one thread takes at a time."""
    rows, columns = d.shape
    share = max(COUNTED // max(columns, 1), 1)
    return [
        (slice(r, min(r + share, rows)), slice(a, min(a + COUNTED, columns)))
        for r in range(0, rows, share)
        for a in range(0, columns, COUNTED)
    ]


BLOCKS_AT_ONCE = 256
"""Blocks whose magnitudes inside the interval are listed at a time: 4 MiB of float32."""


class ChunkSums(Summation):
    """`wavefilt.statistics.mergeable.Summation` in blocks of `CHUNK`, as `NumbaStatistics` sums."""

    tabulate = staticmethod(count_inside)
    block, whole = CHUNK, SHORT

    def total(self, sums: Floats) -> float:
        return float(np.cumsum(sums)[-1])

    def statistics(self, details: Array) -> NumbaStatistics:
        return NumbaStatistics([[details[None]]], "record")

    def measure(
        self, details: Array, ends: Counts, interval: Interval | None, table: Array | None
    ) -> tuple[Floats, int]:
        count, below = len(ends) - 1, 0
        if details.dtype.kind == "c":
            details = np.abs(details)
        # an empty interval has low above high
        low, high = (1, 0) if interval is None else (interval.low, interval.high)
        lows, highs = np.array([[low], [high]], f"i{details.itemsize}")
        addresses, lengths = memory.address(details) + details.itemsize * ends[:-1], np.diff(ends)
        squares, pools = np.empty(count), np.zeros(count, np.int64)
        for start in range(0, count, BLOCKS_AT_ONCE):
            some = slice(start, start + BLOCKS_AT_ONCE)
            job, (listed, inside, less, own) = survey(
                addresses[some], lengths[some], pools[some], details.dtype, lows, highs
            )
            team.run([job])
            squares[some] = own
            below += int(less.sum())
            if interval is not None and table is not None:
                for i, (row, n) in enumerate(zip(listed, inside, strict=True), start):
                    whole = n >= LISTED - STEP  # more than the list may hold
                    values = details[ends[i] : ends[i + 1]] if whole else row[:n].view(details.dtype)
                    count_inside(interval, values, table)
        return squares, below
