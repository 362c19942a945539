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

from wavefilt.statistics.chunked import ChunkedStatistics
from wavefilt.statistics.radix_select import Interval, Search

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
                below += int(np.count_nonzero(magnitudes.view(f"u{magnitudes.itemsize}") < interval.low))
                interval.tabulate(magnitudes, table)
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
        size = self.dtype.itemsize
        search = Search.begin(self.counts, [place + 1 for place in long], 1, size, self.bins, self._guesses(long))
        while places := search.places():
            search = search.narrowed(*self._survey([(level - 1, interval) for level, _, interval in places]))
        for level, medians in search.medians(self.dtype).items():
            self._medians[level - 1] = float(medians[0])
        return np.array([[self._medians[i - 1]] for i in levels])

    def mean_square(self) -> NDArray[np.float64]:
        if not self._squares:
            self._survey([])
        return np.array([[self._squares[place]] for place in range(len(self.counts))])

    def _guesses(self, places: Sequence[int]) -> dict[int, Interval]:
        """Intervals of levels in which their medians probably lie."""
        sample, found = self.sample() if places else (), {}
        top = (1 << 8 * self.dtype.itemsize - 1) - 1
        for place in places:
            bits = np.sort(np.abs(sample[place]).view(f"u{self.dtype.itemsize}"))
            around = min(max(AROUND, 0.5 * DEVIATIONS / len(bits) ** 0.5), 0.5)
            low, high = (int(bits[int((0.5 + side) * (len(bits) - 1))]) for side in (-around, around))
            wider = max(self.bins - (high - low) - 1, 0) // 2
            found[place + 1] = Interval.within(max(low - wider, 0), min(high + wider, top), self.bins)
        return found

    def _survey(self, asked: Sequence[tuple[int, Interval]]) -> tuple[list[NDArray[Any]], list[int]]:
        """Look at all details once: a table for each interval, and how many lie below; the first time, squares too."""
        first = not self._squares
        tables = [interval.table(int(self.counts[place])) for place, interval in asked]
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
        return tables, below

    def _measure_whole(self, place: int, details: NDArray[Any]) -> None:
        """Median and mean square of a level that is in memory."""
        statistics = self.pooled(details[None])
        self._medians[place] = float(statistics.median_abs([1])[0, 0])
        self._squares[place] = float(statistics.mean_square()[0, 0])
