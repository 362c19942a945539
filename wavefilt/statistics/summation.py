"""Sums of squares and medians of rows that are seen a part at a time, bit for bit those of whole rows.

Sums of squares are taken block by block, with the blocks and the order in which the backend itself adds up a whole
row: its `Summation`. A median is searched in an interval that a sample of the details suggests, whose magnitudes are
counted one by one: if it lies there, one pass over all details finds it exactly, and if not, two more do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.statistics.batch import ReferenceStatistics, quantile
from wavefilt.statistics.mergeable import Counted, Details, State, tabulate
from wavefilt.statistics.radix_select import Interval

BINS = 1 << 20
"""Magnitudes of an interval that are counted one by one at most."""
AROUND = 0.005
"""Share of a sample on each side of its median, at least, in which that of all is searched."""
DEVIATIONS = 3.2
"""The same in standard deviations of the rank of a median."""
LEAF = 1 << 16
"""Details of a block of `PairwiseSums` at most."""


class Summation(Protocol):
    """How a backend adds up the squares of a row in host memory: a long one block by block, each on its own."""

    @property
    def whole(self) -> int:
        """Details of a row up to which it is measured in one go."""

    def measure_whole(self, details: Array) -> tuple[float, float]:
        """Median of |d| and mean of |d|² of a row (details,) that is in memory."""

    def ends(self, size: int) -> Counts:
        """Where the blocks of a row of so many details begin, and the row's end."""

    def total(self, sums: Floats, size: int) -> float:
        """The sum of a row from those of its blocks."""

    def measure(
        self, details: Array, ends: Counts, interval: Interval | None, table: Array | None
    ) -> tuple[Floats, int]:
        """The sum of squares of each block of ``details``, and how many |d| lie below the interval.

        Those inside are counted in ``table``.
        """

    def tabulate(self, interval: Interval, details: Array, table: Array) -> None:
        """Count |d| inside the interval in its table."""

    def energies(self, x: Array, y: Array, scale: float) -> tuple[float, float]:
        """Σ |x - y|² and Σ |x|² of two rows times a scale."""


class PairwiseSums:
    """`Summation` of NumPy: a row of more than 128 is halved, at a multiple of 8, and so are its halves."""

    whole = BINS
    tabulate = staticmethod(tabulate)

    def measure_whole(self, details: Array) -> tuple[float, float]:
        statistics = ReferenceStatistics([details[None]])
        return float(statistics.median_abs([1])[0, 0]), float(statistics.mean_square()[0, 0])

    def ends(self, size: int) -> Counts:
        found = [0]

        def halve(begin: int, size: int) -> None:
            if size <= LEAF:
                found.append(begin + size)
                return
            half = size // 2 - size // 2 % 8
            halve(begin, half)
            halve(begin + half, size - half)

        halve(0, size)
        return np.array(found, np.int64)

    def total(self, sums: Floats, size: int) -> float:
        blocks = iter(sums.tolist())

        def add(size: int) -> float:
            if size <= LEAF:
                return float(next(blocks))
            half = size // 2 - size // 2 % 8
            left = add(half)
            return left + add(size - half)

        return add(size)

    def measure(
        self, details: Array, ends: Counts, interval: Interval | None, table: Array | None
    ) -> tuple[Floats, int]:
        sums, below = np.empty(len(ends) - 1), 0
        for i in range(len(sums)):
            magnitudes = np.abs(details[ends[i] : ends[i + 1]])
            with np.errstate(over="ignore"):
                sums[i] = np.sum(np.square(magnitudes, dtype=np.float64))
            if interval is not None and table is not None:
                below += int(np.count_nonzero(magnitudes.view(f"u{magnitudes.itemsize}") < interval.low))
                interval.tabulate(magnitudes, table)
        return sums, below

    def energies(self, x: Array, y: Array, scale: float) -> tuple[float, float]:
        wide = np.result_type(x, np.float64)
        before = x.astype(wide) * scale
        change = before - y.astype(wide) * scale
        return tuple(float(np.einsum("i,i->", v, v.conj()).real) for v in (change, before))  # type: ignore[return-value]


def around_median(sample: Array, bins: int) -> Interval:
    """Where the median of |d| probably lies, of details of which a sample (details,) is given."""
    magnitudes = np.abs(sample)
    size = magnitudes.itemsize
    bits, top = np.sort(magnitudes.view(f"u{size}")), (1 << 8 * size - 1) - 1
    around = min(max(AROUND, 0.5 * DEVIATIONS / len(bits) ** 0.5), 0.5)
    low, high = (int(bits[int((0.5 + side) * (len(bits) - 1))]) for side in (-around, around))
    wider = max(bins - (high - low) - 1, 0) // 2
    return Interval.within(max(low - wider, 0), min(high + wider, top), bins)


@dataclass
class JoinedBlocks:
    """A row of details put together from parts: its blocks that are whole come out, the rest is kept."""

    ends: Counts
    _kept: dict[int, tuple[Array, int]] = field(default_factory=dict)

    def add(self, place: int, details: Array) -> Iterator[tuple[int, int, Array]]:
        """Blocks first to stop, and their details."""
        ends, stop = self.ends, place + details.size
        first, last = int(np.searchsorted(ends, place)), int(np.searchsorted(ends, stop, "right")) - 1
        if first > last:
            yield from self._join(last, place, details)
            return
        begin, end = int(ends[first]) - place, int(ends[last]) - place
        if begin:
            yield from self._join(first - 1, place, details[:begin])
        if last > first:
            yield first, last, details[begin:end]
        if end < details.size:
            yield from self._join(last, place + end, details[end:])

    def _join(self, block: int, place: int, details: Array) -> Iterator[tuple[int, int, Array]]:
        begin, size = int(self.ends[block]), int(self.ends[block + 1] - self.ends[block])
        joined, filled = self._kept.pop(block) if block in self._kept else (np.empty(size, details.dtype), 0)
        joined[place - begin : place - begin + details.size] = details
        if filled + details.size == size:
            yield block, block + 1, joined
        else:
            self._kept[block] = joined, filled + details.size


class RowTally:
    """`Tally` of one group whose parts come in any order, with the sums of whole rows: those of ``summation``.

    Levels of up to ``Summation.whole`` details are kept until they are whole.
    """

    def __init__(self, state: State, summation: Summation) -> None:
        self._state, self._summation = state, summation
        self._places, self._tables = state.places, state.tables()
        self._below = [0] * len(self._places)
        self._whole: dict[int, tuple[float, float]] = {}
        counts = state.counts.tolist()
        self._ends = [np.array([0, n]) if n <= summation.whole else summation.ends(n) for n in counts]
        self._rows, self._sums = [JoinedBlocks(e) for e in self._ends], [np.empty(len(e) - 1) for e in self._ends]

    def add(self, details: Details) -> None:
        for level, parts in enumerate(details, 1):
            own = [k for k, (place, _, _) in enumerate(self._places) if place == level]
            if not own and not self._state.sums_squares:
                continue
            for start, rows in parts:
                for first, last, blocks in self._rows[level - 1].add(start, rows.reshape(-1)):
                    self._measure(level, own, slice(first, last), blocks)

    def _measure(self, level: int, own: Sequence[int], blocks: slice, details: Array) -> None:
        """Blocks of a level, for which the intervals of these places ask."""
        if self._state.counts[level - 1] <= self._summation.whole:
            median, square = self._summation.measure_whole(details)
            if self._state.share != 0.5:
                median = float(quantile(np.abs(details), self._state.share))
            self._whole[level] = median, square
            return
        ends, sums = self._ends[level - 1][blocks.start : blocks.stop + 1], self._sums[level - 1]
        ends = ends - ends[0]
        for k in own:
            interval = self._places[k][2]
            sums[blocks], below = self._summation.measure(details, ends, interval, self._tables[k])
            self._below[k] += below
        if not own:
            sums[blocks], _ = self._summation.measure(details, ends, None, None)

    def result(self) -> Counted:
        totals = np.zeros((int(self._state.sums_squares), len(self._sums), 1))
        for found in totals:  # one, or none
            for level, sums in enumerate(self._sums, 1):
                if level not in self._whole:
                    found[level - 1] = self._summation.total(sums, int(self._state.counts[level - 1]))
        return Counted(self._tables, totals, self._below, self._whole)
