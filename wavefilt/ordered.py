"""Statistics of details that pass by a part at a time, to the last bit those of all of them at once.

Sums of squares are taken block by block, with the blocks and the order in which the backend itself adds up a whole
row. A median is looked for in an interval that a sample of the details suggests, whose magnitudes are counted one by
one: if it lies there, one look at all details finds it exactly, and if not, two more do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wavefilt.counting import ChunkedStatistics

BINS = 1 << 20
"""Magnitudes of an interval that are counted one by one at most."""
AROUND = 0.005
"""Share of a sample on each side of its median, at least, in which that of all is looked for."""
DEVIATIONS = 3.2
"""The same in standard deviations of the rank of a median."""
LEAF = 1 << 16
"""Details of a block of `Pairwise` at most."""

Show = Callable[[Callable[[int, int, NDArray[Any]], None]], None]
"""Calls what it is given with the place of a level (finest 0), that of its first detail in the level, and details."""


@dataclass(frozen=True)
class Interval:
    """Magnitudes whose bits lie from ``low`` to ``high``, counted by their bits above the last ``shift``."""

    low: int
    high: int
    shift: int

    @staticmethod
    def within(low: int, high: int, bins: int) -> Interval:
        """With bins as narrow as so many of them allow."""
        return Interval(low, high, max((high - low).bit_length() - (bins.bit_length() - 1), 0))

    @property
    def bins(self) -> int:
        return (self.high - self.low >> self.shift) + 1


class Adding(Protocol):
    """How a backend adds up the squares of a long row: block by block, each a matter of its own details."""

    def ends(self, size: int) -> NDArray[np.int64]:
        """Where the blocks of a row of so many details begin, and the row's end."""

    def total(self, sums: NDArray[np.float64], size: int) -> float:
        """The sum of a row from those of its blocks."""

    def measure(
        self, details: NDArray[Any], ends: NDArray[np.int64], interval: Interval | None, table: NDArray[Any] | None
    ) -> tuple[NDArray[np.float64], int]:
        """The sum of squares of each block of ``details``, and how many |d| lie below the interval.

        Those inside are counted in ``table``.
        """


class Pairwise:
    """`Adding` of NumPy: a row of more than 128 is halved, at a multiple of 8, and so are its halves."""

    def ends(self, size: int) -> NDArray[np.int64]:
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

    def total(self, sums: NDArray[np.float64], size: int) -> float:
        blocks = iter(sums.tolist())

        def add(size: int) -> float:
            if size <= LEAF:
                return float(next(blocks))
            half = size // 2 - size // 2 % 8
            left = add(half)
            return left + add(size - half)

        return add(size)

    def measure(
        self, details: NDArray[Any], ends: NDArray[np.int64], interval: Interval | None, table: NDArray[Any] | None
    ) -> tuple[NDArray[np.float64], int]:
        sums, below = np.empty(len(ends) - 1), 0
        for i in range(len(sums)):
            magnitudes = np.abs(details[ends[i] : ends[i + 1]])
            with np.errstate(over="ignore"):
                sums[i] = np.sum(np.square(magnitudes, dtype=np.float64))
            if interval is not None and table is not None:
                bits = magnitudes.view(f"u{magnitudes.itemsize}")
                below += int(np.count_nonzero(bits < interval.low))
                inside = bits[(bits >= interval.low) & (bits <= interval.high)] - bits.dtype.type(interval.low)
                np.add.at(table, (inside >> interval.shift).astype(np.intp), 1)
        return sums, below


@dataclass
class _Blocks:
    """A row of details put together from parts: its blocks that are whole come out, the rest is kept."""

    ends: NDArray[np.int64]
    _kept: dict[int, tuple[NDArray[Any], int]] = field(default_factory=dict)

    def add(self, place: int, details: NDArray[Any]) -> Iterator[tuple[int, int, NDArray[Any]]]:
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

    def _join(self, block: int, place: int, details: NDArray[Any]) -> Iterator[tuple[int, int, NDArray[Any]]]:
        begin, size = int(self.ends[block]), int(self.ends[block + 1] - self.ends[block])
        joined, filled = self._kept.pop(block, None) or (np.empty(size, details.dtype), 0)
        joined[place - begin : place - begin + details.size] = details
        if filled + details.size == size:
            yield block, block + 1, joined
        else:
            self._kept[block] = joined, filled + details.size


@dataclass(kw_only=True)
class OrderedStatistics(ChunkedStatistics):
    """`Statistics` of one group of traces, whose details ``show`` presents as often as it is called.

    Rows of up to ``gathered`` details are kept until they are whole and measured by ``pooled``; longer ones are summed
    as ``adding`` does. ``sample`` gives some details of every level.
    """

    show: Show
    adding: Adding
    gathered: int
    sample: Callable[[], Sequence[NDArray[Any]]]
    bins: int = BINS
    _medians: dict[int, float] = field(default_factory=dict, init=False)
    _squares: dict[int, float] = field(default_factory=dict, init=False)

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        wanted = [i - 1 for i in levels if i - 1 not in self._medians]
        long = [place for place in wanted if self.counts[place] > self.gathered]
        if wanted and not self._squares and not long:
            self._survey([])
        searches = {place: self._ranks(place) for place in long}
        guesses = self._guesses(long)
        intervals = {(place, rank): guesses[place] for place in long for rank in searches[place]}
        found: dict[tuple[int, int], int] = {}
        while intervals:
            looks = sorted({(place, interval.low, interval.high) for (place, _), interval in intervals.items()})
            asked = [(place, Interval.within(low, high, self.bins)) for place, low, high in looks]
            tables = dict(zip(asked, self._survey(asked), strict=True))
            for (place, rank), interval in list(intervals.items()):
                interval = Interval.within(interval.low, interval.high, self.bins)
                answer = self._narrowed(interval, rank, *tables[place, interval])
                if isinstance(answer, int):
                    found[place, rank] = answer
                    del intervals[place, rank]
                else:
                    intervals[place, rank] = answer
        for place in long:
            bits = np.array([found[place, rank] for rank in self._ranks(place)], f"u{self.dtype.itemsize}")
            self._medians[place] = float(bits.view(self.dtype).mean(dtype=np.float64))
        return np.array([[self._medians[i - 1]] for i in levels])

    def mean_square(self) -> NDArray[np.float64]:
        if not self._squares:
            self._survey([])
        return np.array([[self._squares[place]] for place in range(len(self.counts))])

    def _ranks(self, place: int) -> tuple[int, int]:
        count = int(self.counts[place])
        return (count - 1) // 2, count // 2

    def _guesses(self, places: Sequence[int]) -> dict[int, Interval]:
        """Intervals in which the medians of these levels probably lie."""
        sample, found = self.sample() if places else (), {}
        top = (1 << 8 * self.dtype.itemsize - 1) - 1
        for place in places:
            bits = np.sort(np.abs(sample[place]).view(f"u{self.dtype.itemsize}"))
            around = min(max(AROUND, 0.5 * DEVIATIONS / len(bits) ** 0.5), 0.5)
            low, high = (int(bits[int((0.5 + side) * (len(bits) - 1))]) for side in (-around, around))
            wider = max(self.bins - (high - low) - 1, 0) // 2
            found[place] = Interval.within(max(low - wider, 0), min(high + wider, top), self.bins)
        return found

    def _narrowed(self, interval: Interval, rank: int, below: int, table: NDArray[Any]) -> int | Interval:
        """The magnitude of this rank, or where to look next."""
        if rank < below:
            return Interval(0, interval.low - 1, 0)
        upto = np.cumsum(table, dtype=np.int64)
        if rank >= below + int(upto[-1]):
            return Interval(interval.high + 1, (1 << 8 * self.dtype.itemsize - 1) - 1, 0)
        low = interval.low + (int(np.searchsorted(upto, rank - below, "right")) << interval.shift)
        return Interval(low, low + (1 << interval.shift) - 1, 0) if interval.shift else low

    def _survey(self, asked: Sequence[tuple[int, Interval]]) -> list[tuple[int, NDArray[Any]]]:
        """Look at all details once: how many lie below each interval, and its table; the first time, squares too."""
        first = not self._squares
        kinds = [np.uint32 if self.counts[place] >> 32 == 0 else np.int64 for place, _ in asked]
        tables = [np.zeros(interval.bins, kind) for (_, interval), kind in zip(asked, kinds, strict=True)]
        below = [0] * len(asked)
        short = {place for place, count in enumerate(self.counts) if count <= self.gathered}
        ends = [np.array([0, n]) if i in short else self.adding.ends(int(n)) for i, n in enumerate(self.counts)]
        rows, sums = [_Blocks(e) for e in ends], [np.empty(len(e) - 1) for e in ends]

        def look(place: int, start: int, details: NDArray[Any]) -> None:
            own = [k for k, (level, _) in enumerate(asked) if level == place]
            if not own and not first:
                return
            for a, b, part in rows[place].add(start, details):
                if place in short:
                    self._measure_whole(place, part)
                    continue
                for k in own or (None,):
                    interval, table = (None, None) if k is None else (asked[k][1], tables[k])
                    sums[place][a:b], less = self.adding.measure(part, ends[place][a : b + 1] - ends[place][a],
                                                                 interval, table)  # fmt: skip
                    if k is not None:
                        below[k] += less

        self.show(look)
        if first:
            for place in set(range(len(self.counts))) - short:
                size = int(self.counts[place])
                self._squares[place] = self.adding.total(sums[place], size) / size
        return list(zip(below, tables, strict=True))

    def _measure_whole(self, place: int, details: NDArray[Any]) -> None:
        """Median and mean square of a level that is in memory."""
        statistics = self.pooled(details[None])
        self._medians[place] = float(statistics.median_abs([1])[0, 0])
        self._squares[place] = float(statistics.mean_square()[0, 0])
