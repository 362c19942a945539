"""Exact medians and mean squares of the details, without sorting or copying them.

The order of non-negative floats is that of their bits as integers, so magnitudes are compared as integers.
A sample brackets the median; one pass counts what lies below and lists the few magnitudes inside; the median
is selected from the list, or where the sample misled (many equal values) from all magnitudes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.statistics import counts as host_counts
from wavefilt.statistics.batch import RANKS, least_risk
from wavefilt.statistics.interface import Risk

from . import entries, memory, native
from .native import Constant

if TYPE_CHECKING:
    from wavefilt.statistics.radix_select import Interval

CHUNK = 1 << 16  # coefficients of one share of a long row; fixed, so that sums do not depend on the threads
LISTED = CHUNK // 8  # magnitudes of a chunk that may lie inside the bracket
SAMPLE = 1 << 13  # magnitudes drawn from a long row at least: 4 % of it then lie inside the bracket
SHORT = 1 << 20  # rows up to here are one thread's work each: to cut one up takes 0.4 ms, what a second would save
GRAIN = 1 << 17  # coefficients below which a share of the work is not worth waking a thread
SAMPLED = 1 << 12  # shorter rows are selected from directly
STEP = 1024
_FLOATS: dict[DType, DType] = {np.dtype("i4"): np.dtype("f4"), np.dtype("i8"): np.dtype("f8")}
COUNTED = 1 << 18  # details that one thread counts at a time


def _sign_off(dtype: DType) -> Array:
    """All bits but the sign, in an integer of the size of ``dtype``: what makes a magnitude of the bits of a float."""
    bits = np.dtype(f"i{dtype.itemsize}")
    return np.array([np.iinfo(bits).max], bits)


@cache
def sign_off(dtype: DType) -> Constant:
    """`_sign_off` for kernels."""
    return Constant(_sign_off(dtype))


@cache
def no_samples(dtype: DType) -> Constant:
    """Which tells kernels the dtype."""
    return Constant(np.empty(0, dtype))


def count_inside(interval: Interval, rows: Array, table: Counts) -> None:
    """As `Interval.tabulate` of |d|, but compiled: several times as fast."""
    mask, kernel = _sign_off(rows.dtype), entries.TABULATE_FEW if table.itemsize == 4 else entries.TABULATE
    for row in memory.packed(np.atleast_2d(rows)).view(mask.dtype):
        limits = mask[0], interval.low, interval.high, interval.shift
        kernel.of(rows.dtype, row, *limits, table)(0, row.size)


def survey(
    addresses: Counts, lengths: Counts, dtype: DType, low: int, high: int
) -> tuple[Array, Counts, Counts, Floats]:
    """Of chunks: the magnitudes inside a bracket, how many these are, and below, and the sums of squares."""
    count = len(addresses)
    listed = memory.empty((count, LISTED + 1), f"i{dtype.itemsize}")
    inside, below, squares = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    native.load(entries.LONG, dtype)
    arguments = addresses, lengths, sign_off(dtype), no_samples(dtype), low, high, listed, inside, below, squares
    work = entries.LONG_CHUNKS.of(dtype, *arguments, workspace=(STEP + 1) * dtype.itemsize)
    threads.parallel(work, count)
    return listed, inside, below, squares


class NumbaStatistics:
    """Statistics of details: for each level, finest first, the pools of the groups, each a list of 1-D arrays."""

    def __init__(self, levels: Sequence[Sequence[Array]], scope: str) -> None:
        """``levels`` holds the (rows, coefficients) arrays of each level: one if every row is a group."""
        self._pooled = scope == "record"
        self._levels = levels
        self._dtype = self._levels[0][0].dtype
        sizes = [sum(d.size for d in ds) if self._pooled else ds[0].shape[1] for ds in levels]
        self.counts = np.array(sizes, dtype=np.int64)
        self._medians = np.empty((len(sizes), self.groups))
        self._powers = np.empty_like(self._medians)
        self._surveyed: set[int] = set()

    @property
    def groups(self) -> int:
        return 1 if self._pooled else len(self._levels[0][0])

    def median_abs(self, levels: Sequence[int]) -> Floats:
        self._survey(levels)
        return self._medians.take([i - 1 for i in levels], axis=0)

    def mean_square(self) -> Floats:
        self._survey(range(1, len(self._levels) + 1))
        return self._powers.copy()

    def _survey(self, levels: Sequence[int]) -> None:
        """Medians and mean squares of these levels, those not known yet."""
        places = [i - 1 for i in levels if i not in self._surveyed]
        short = [place for place in places if self.counts[place] <= SHORT]
        if short:
            self._survey_short(short)
        for place in [place for place in places if place not in short]:
            for group, arrays in enumerate(self._pools(place)):
                self._medians[place, group], self._powers[place, group] = _long_pool(arrays)
        self._surveyed.update(levels)

    def _survey_short(self, places: Sequence[int]) -> None:
        details = [memory.packed_rows(self._joined(place)) for place in places]
        addresses = [
            (place, memory.address(d), d.shape[1], d.strides[0]) for place, d in zip(places, details, strict=True)
        ]
        tasks = np.array(addresses, dtype=np.int64)
        arguments = tasks, sign_off(self._dtype), no_samples(self._dtype), self._medians, self._powers
        rows, listed = len(details) * self.groups, max(d.shape[1] for d in details) + 2
        work = entries.SHORT_ROWS.of(self._dtype, *arguments, workspace=listed * self._dtype.itemsize, kept=details)
        threads.parallel(work, rows, GRAIN * rows // max(sum(d.size for d in details), 1))  # of rows of mean length

    def _pools(self, place: int) -> list[list[Array]]:
        details = [memory.packed_rows(d) for d in self._levels[place]]
        return [_grouped([d.ravel() for d in details])] if self._pooled else [[row] for row in details[0]]

    def _joined(self, place: int) -> Array:
        """Details of a level, those of one group as one row."""
        details = self._levels[place]
        if len(details) > 1:
            return np.concatenate([d.ravel() for d in details])[None]
        return details[0].reshape(1, -1) if self._pooled else details[0]

    def exceeding(self, thresholds: Floats) -> Counts:
        def count(rows: Array, limits: Floats) -> Counts:
            return host_counts.exceeding(rows, limits)[:, None]

        return np.array([self._counted(i, count, limits, 1)[:, 0] for i, limits in enumerate(thresholds)])

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        return self._counted(level - 1, lambda rows, w: host_counts.histogram(rows, w, bins), widths, bins)

    def _counted(self, place: int, count: Callable[[Array, Floats], Counts], scales: Floats, bins: int) -> Counts:
        """``count(rows, scales)`` of all details of a level, added up by group: shape (groups, bins)."""
        totals, lock = np.zeros((self.groups, bins), np.int64), threading.Lock()
        parts = []
        for d in self._levels[place]:
            share = max(COUNTED // max(d.shape[1], 1), 1)
            parts += [(slice(r, min(r + share, len(d))), d[r : r + share, a : a + COUNTED])
                      for r in range(0, len(d), share) for a in range(0, d.shape[1], COUNTED)]  # fmt: skip

        def work(begin: int, end: int) -> None:
            for rows, part in parts[begin:end]:
                found = count(part, np.repeat(scales, len(part)) if self._pooled else scales[rows])
                with lock:
                    totals[slice(0, 1) if self._pooled else rows] += found.sum(axis=0) if self._pooled else found

        threads.parallel(work, len(parts))
        return totals

    def minimise(self, risk: Risk, sigma: Floats) -> Floats:
        best = np.zeros_like(sigma)
        tasks = []
        for level, count in enumerate(self.counts):
            share = max(RANKS // int(count), 1)
            tasks += [(level, slice(a, a + share)) for a in range(0, self.groups, share)]

        def work(begin: int, end: int) -> None:
            for level, rows in tasks[begin:end]:
                magnitudes = np.abs(self._joined(level)[rows])
                magnitudes.sort(axis=-1)
                best[level, rows] = least_risk(risk, magnitudes, sigma[level, rows])

        threads.parallel(work, len(tasks))
        return best


def _grouped(arrays: Sequence[Array]) -> list[Array]:
    """The arrays with runs of short ones copied into one each: a chunk has a list of `LISTED` however short it is."""
    groups: list[list[Array]] = []
    for array in arrays:
        if array.size < CHUNK and groups and groups[-1][0].size < CHUNK:
            groups[-1].append(array)
        else:
            groups.append([array])
    return [group[0] if len(group) == 1 else np.concatenate(group) for group in groups]


def _order_statistics(bits: Array, n: int, k: int, both: bool, mask: Array) -> Array:
    """The k-th smallest of ``bits[:n]``, k from 0, and if ``both`` the next, else the same; overwrites them."""
    found = np.empty(2, mask.dtype)
    entries.MIDDLE.of(_FLOATS[mask.dtype], bits, n, k, both, mask[0], found)(0, 1)
    return found


def _long_pool(arrays: Sequence[Array]) -> tuple[float, float]:
    """Median magnitude and mean square of the details of one group and level, in 1-D arrays; by chunks."""
    dtype, size = arrays[0].dtype, sum(a.size for a in arrays)
    mask = _sign_off(dtype)
    stride = max(size // max(SAMPLE, int(size ** (2 / 3))), 1)
    sample = np.concatenate([np.abs(a[::stride]) for a in arrays]).view(mask.dtype)
    middle, margin = len(sample) // 2, int(2 * len(sample) ** 0.5) + 1  # 4 standard errors each way
    ends = max(middle - margin, 0), min(middle + margin, len(sample) - 1)
    bracket = (_order_statistics(sample.copy(), len(sample), end, False, mask)[0] for end in ends)
    chunks = [a[start : start + CHUNK] for a in arrays for start in range(0, a.size, CHUNK)]
    lengths = np.array([len(chunk) for chunk in chunks])
    listed, inside, below, squares = survey(memory.addresses(chunks), lengths, dtype, *bracket)
    low, high, under, count = (size - 1) // 2, size // 2, int(below.sum()), int(inside.sum())
    if under <= low <= high < under + count and inside.max() < LISTED - STEP:
        candidates = np.concatenate([row[:n] for row, n in zip(listed, inside, strict=True)])
    else:  # the sample misled
        candidates, under, count = np.abs(np.concatenate(arrays)).view(mask.dtype), 0, size
    both = _order_statistics(candidates, count, low - under, high > low, mask)
    return both.view(dtype).mean(dtype=np.float64), squares.sum() / size
