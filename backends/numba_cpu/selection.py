"""Exact medians and mean squares of the details, without sorting or copying them.

The order of non-negative floats is that of their bits as integers, so magnitudes are compared as integers.
A sample brackets the median; one pass counts what lies below and lists the few magnitudes inside; the median
is selected from the list, or where the sample misled (many equal values) from all magnitudes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.statistics import counts as host_counts
from wavefilt.statistics.batch import RANKS, least_risk
from wavefilt.statistics.interface import Risk

from . import memory
from .compiler import jit, sign_off, view
from .vector import VECTOR_BYTES, list_inside

if TYPE_CHECKING:
    from wavefilt.statistics.radix_select import Interval

CHUNK = 1 << 16  # coefficients of one share of a long row; fixed, so that sums do not depend on the threads
LISTED = CHUNK // 8  # magnitudes of a chunk that may lie inside the bracket
SAMPLE = 1 << 13  # magnitudes drawn from a long row at least: 4 % of it then lie inside the bracket
SHORT = 1 << 20  # rows up to here are one thread's work each: to cut one up takes 0.4 ms, what a second would save
GRAIN = 1 << 17  # coefficients below which a share of the work is not worth waking a thread
SAMPLED = 1 << 12  # shorter rows are selected from directly
STEP = 1024
COUNTED = 1 << 18  # details that one thread counts at a time


def _squares(x: Array) -> float:
    total = 0.0
    for i in range(len(x)):
        value = np.float64(x[i])
        total += value * value
    return total


_sum_squares = jit(_squares, fastmath={"reassoc", "contract", "nsz"})


@jit
def _list_inside(bits, begin, end, sign_off, low, high, listed, k):
    """Append magnitudes within [low, high] to ``listed`` from k on; their number, and how many lie below."""
    below, lanes, i = 0, VECTOR_BYTES // bits.itemsize, begin
    while i + lanes <= end:
        inside, less = list_inside(bits, i, sign_off, low, high, listed, k)
        k += inside
        below += less
        i += lanes
    for rest in range(i, end):
        u = bits[rest] & sign_off
        below += u < low
        listed[k] = u
        k += (u >= low) & (u <= high)
    return k, below


@jit
def _middle(a, n, k, both, all_bits):
    """The k-th smallest of a[:n], k from 0, and if ``both`` the next, else the same; overwrites a.

    Each turn keeps what lies on the k-th value's side of a pivot, the middle one of three values from places that
    look random: of fixed places, data that rises and falls once has the smallest values at every turn.
    """
    ceiling = all_bits  # the smallest value dropped from above
    place = 1
    while True:
        place = (place * 1103515245 + 12345) & 0x7FFFFFFF
        x, y, z = a[place % n], a[(place >> 5) % n], a[(place >> 10) % n]
        pivot = max(min(x, y), min(max(x, y), z))
        less, equal = 0, 0
        for i in range(n):
            less += a[i] < pivot
            equal += a[i] == pivot
        if k < less:
            ceiling = pivot
            n, _ = _list_inside(a, 0, n, all_bits, a.dtype.type(0), a.dtype.type(pivot - 1), a, 0)
        elif k >= less + equal:
            k -= less + equal
            n, _ = _list_inside(a, 0, n, all_bits, a.dtype.type(pivot + 1), all_bits, a, 0)
        else:
            if not both or k + 1 < less + equal:
                return pivot, pivot
            for i in range(n):
                if pivot < a[i] < ceiling:
                    ceiling = a[i]
            return pivot, ceiling


@jit
def short_rows(tasks, sign_off, floats, medians, powers, begin, end):
    """Median magnitude and mean square of rows ``begin`` to ``end``, counted through all levels of each trace.

    ``tasks`` has for each level its place among ``medians`` and ``powers``, its address, the length of its rows and
    how many bytes lie from one to the next.
    """
    listed = np.empty(tasks[:, 2].max() + 2, sign_off.dtype)
    middle = view(listed.ctypes.data, 2, floats)  # its first two elements
    all_bits = sign_off[0]
    for job in range(begin, end):
        row = job // len(tasks)
        place, first, m, pitch = tasks[job % len(tasks)]
        address = first + row * pitch
        powers[place, row] = _sum_squares(view(address, m, floats)) / m
        bits = view(address, m, sign_off)
        low, high = (m - 1) // 2, m // 2
        count, below = 0, 0
        if m > SAMPLED:
            stride = int(m ** (1 / 3))  # m^(2/3) samples (Floyd and Rivest 1975)
            drawn = m // stride
            margin = int(1.5 * np.sqrt(drawn)) + 1
            for i in range(drawn):
                listed[i] = bits[i * stride] & all_bits
            bottom, _ = _middle(listed, drawn, max(drawn // 2 - margin, 0), False, all_bits)
            for i in range(drawn):
                listed[i] = bits[i * stride] & all_bits
            top, _ = _middle(listed, drawn, min(drawn // 2 + margin, drawn - 1), False, all_bits)
            count, below = _list_inside(bits, 0, m, all_bits, bottom, top, listed, 0)
        if not below <= low <= high < below + count:
            below, count = 0, m
            for i in range(m):
                listed[i] = bits[i] & all_bits
        listed[0], listed[1] = _middle(listed, count, low - below, high > low, all_bits)
        medians[place, row] = (np.float64(middle[0]) + np.float64(middle[1])) / 2


@jit
def long_chunks(addresses, lengths, sign_off, floats, low, high, listed, inside, below, squares, begin, end):
    """For chunks ``begin`` to ``end``: sum of squares, magnitudes below the bracket, and those inside listed.

    A chunk with more inside than its row of ``listed`` holds goes on counting them without listing.
    """
    spill = np.empty(STEP + 1, sign_off.dtype)
    for chunk in range(begin, end):
        m = lengths[chunk]
        bits = view(addresses[chunk], m, sign_off)
        values = view(addresses[chunk], m, floats)
        squares[chunk] = 0.0
        k, beyond, smaller = 0, 0, 0
        for at in range(0, m, STEP):
            to = min(at + STEP, m)
            squares[chunk] += _sum_squares(values[at:to])
            if beyond == 0 and k + STEP < listed.shape[1]:
                k, less = _list_inside(bits, at, to, sign_off[0], low, high, listed[chunk], k)
            else:
                more, less = _list_inside(bits, at, to, sign_off[0], low, high, spill, 0)
                beyond += more
            smaller += less
        inside[chunk] = k + beyond
        below[chunk] = smaller


@jit
def tabulate(bits, all_bits, low, high, shift, table):
    """Count magnitudes from low to high by their bits above the last ``shift``."""
    for i in range(len(bits)):
        u = bits[i] & all_bits
        if low <= u <= high:
            table[(u - low) >> shift] += 1


def count_inside(interval: Interval, rows: Array, table: Counts) -> None:
    """As `Interval.tabulate` of |d|, but compiled: several times as fast."""
    mask = sign_off(rows.dtype)
    limits = mask[0], *np.array([interval.low, interval.high, interval.shift], mask.dtype)
    for row in np.atleast_2d(rows):
        tabulate(row.view(mask.dtype), *limits, table)


def survey(
    addresses: Counts, lengths: Counts, dtype: DType, low: int, high: int
) -> tuple[Array, Counts, Counts, Floats]:
    """Of chunks: the magnitudes inside a bracket, how many these are, and below, and the sums of squares."""
    mask, count = sign_off(dtype), len(addresses)
    bracket = np.array([low, high], mask.dtype)
    listed = memory.empty((count, LISTED + 1), mask.dtype)
    inside, below, squares = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    arguments = addresses, lengths, mask, np.empty(0, dtype), *bracket, listed, inside, below, squares
    threads.parallel(partial(long_chunks, *arguments), count)
    return listed, inside, below, squares


class NumbaStatistics:
    """Statistics of details: for each level, finest first, the pools of the groups, each a list of 1-D arrays."""

    def __init__(self, levels: Sequence[Sequence[Array]], scope: str) -> None:
        """``levels`` holds the (rows, coefficients) arrays of each level: one if every row is a group."""
        self._pooled = scope == "record"
        self._levels = levels
        self._dtype = self._levels[0][0].dtype
        self._sign_off = sign_off(self._dtype)
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
        arguments = tasks, self._sign_off, np.empty(0, self._dtype), self._medians, self._powers
        rows = len(details) * self.groups
        grain = GRAIN * rows // max(sum(d.size for d in details), 1)  # of rows of mean length
        threads.parallel(lambda begin, end: short_rows(*arguments, begin, end), rows, grain)

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


def _long_pool(arrays: Sequence[Array]) -> tuple[float, float]:
    """Median magnitude and mean square of the details of one group and level, in 1-D arrays; by chunks."""
    dtype, size = arrays[0].dtype, sum(a.size for a in arrays)
    mask = sign_off(dtype)
    stride = max(size // max(SAMPLE, int(size ** (2 / 3))), 1)
    sample = np.concatenate([np.abs(a[::stride]) for a in arrays]).view(mask.dtype)
    middle, margin = len(sample) // 2, int(2 * len(sample) ** 0.5) + 1  # 4 standard errors each way
    ends = max(middle - margin, 0), min(middle + margin, len(sample) - 1)
    bracket = (_middle(sample.copy(), len(sample), end, False, mask[0])[0] for end in ends)
    chunks = [a[start : start + CHUNK] for a in arrays for start in range(0, a.size, CHUNK)]
    lengths = np.array([len(chunk) for chunk in chunks])
    listed, inside, below, squares = survey(memory.addresses(chunks), lengths, dtype, *bracket)
    low, high, under, count = (size - 1) // 2, size // 2, int(below.sum()), int(inside.sum())
    if under <= low <= high < under + count and inside.max() < LISTED - STEP:
        candidates = np.concatenate([row[:n] for row, n in zip(listed, inside, strict=True)])
    else:  # the sample misled
        candidates, under, count = np.abs(np.concatenate(arrays)).view(mask.dtype), 0, size
    both = np.array(_middle(candidates, count, low - under, high > low, mask[0]), mask.dtype)
    return both.view(dtype).mean(dtype=np.float64), squares.sum() / size
