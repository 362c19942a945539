"""Exact statistics of detail coefficients that are read chunk by chunk, in several passes over the data.

A `State` says what the next pass counts: magnitudes in intervals of their bits (for exact medians) and sums of
squares. `count` or a `RowTally` counts them, and `State.after` narrows the intervals until each holds one value. The
state does not depend on who makes a pass: the counts of several tasks of a graph are `merged`.

Medians are found by radix selection. The bits of magnitudes have the order of their values. Each pass counts the
magnitudes of an interval in bins, and the bin that holds the wanted rank is the next interval. Where a sample of the
details suggests a narrow first interval, one pass is usually enough.

Sums of squares have the bits of whole rows: a backend's `Summation` adds up a row block by block, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.statistics.reference import (
    LEAF,
    ReferenceStatistics,
    Risk,
    Statistics,
    around,
    between,
    energy,
)

if TYPE_CHECKING:
    from wavefilt.options import Options

Details = Sequence[Sequence[tuple[int, Array]]]
"""Details of a chunk: for each level, finest first, arrays (rows, coefficients) of the backend, each with the place of
its first coefficient among those of the level and group."""
Run = Callable[[Callable[[Details], None]], None]
"""Makes a pass: calls a function with the details of each chunk."""

TRAVELLING = {"record": 1 << 16, "trace": 1 << 11}
"""Bins of a table that is sent between machines: 256 KiB for all traces together, or 8 KiB, and more passes, for each.
Twice that from 4 Gi details on."""
BINS = 1 << 20
"""Largest number of magnitudes that are counted one by one in an interval."""
AROUND = 0.005
"""The median is searched between the quantiles of a sample that differ from 1/2 by this share, or by more."""
DEVIATIONS = 3.2
"""The same in standard deviations of the rank of the sample's median."""


@dataclass(frozen=True, order=True)
class Interval:
    """Magnitudes whose bits lie from ``low`` to ``high``, counted by their bits above the lowest ``shift`` ones."""

    low: int
    high: int
    shift: int

    @staticmethod
    def within(low: int, high: int, bins: int) -> Interval:
        """Return the interval with the narrowest bins if at most ``bins``, a power of two, are allowed."""
        return Interval(low, high, max((high - low).bit_length() - (bins.bit_length() - 1), 0))

    @staticmethod
    def every(itemsize: int, bins: int) -> Interval:
        """Return the interval of all magnitudes of this number of bytes."""
        return Interval.within(0, (1 << 8 * itemsize - 1) - 1, bins)

    @property
    def bins(self) -> int:
        return (self.high - self.low >> self.shift) + 1

    def narrowed(self, rank: int, below: int, upto: Counts, itemsize: int, bins: int) -> tuple[Interval, int]:
        """Return the interval where the magnitude of this rank lies, and the number of magnitudes below it.

        ``below`` magnitudes lie below this interval, and ``upto`` are the cumulated counts of its bins. If the rank is
        outside, the result is everything on that side.
        """
        if rank < below:
            return Interval.within(0, self.low - 1, bins), 0
        if rank >= below + int(upto[-1]):
            return Interval.within(self.high + 1, Interval.every(itemsize, bins).high, bins), below + int(upto[-1])
        k = int(np.searchsorted(upto, rank - below, "right"))
        low = self.low + (k << self.shift)
        high = min(low + (1 << self.shift) - 1, self.high)
        return Interval.within(low, high, bins), below + (int(upto[k - 1]) if k else 0)


def around_median(sample: Array, bins: int) -> Interval:
    """Return the interval where the median of |d| probably lies, given a sample (details,) of the details."""
    magnitudes = np.abs(sample)
    size = magnitudes.itemsize
    bits, top = np.sort(magnitudes.view(f"u{size}")), (1 << 8 * size - 1) - 1
    share = min(max(AROUND, 0.5 * DEVIATIONS / len(bits) ** 0.5), 0.5)
    low, high = (int(bits[int((0.5 + side) * (len(bits) - 1))]) for side in (-share, share))
    wider = max(bins - (high - low) - 1, 0) // 2
    return Interval.within(max(low - wider, 0), min(high + wider, top), bins)


def tabulate(interval: Interval, details: Array, table: Array) -> None:
    """Count the |d| inside the interval in its table."""
    magnitudes = np.abs(details)
    bits = magnitudes.view(f"u{magnitudes.itemsize}")
    place = bits - bits.dtype.type(interval.low)  # wraps around below the interval
    inside = (place[place <= interval.high - interval.low] >> interval.shift).astype(np.intp)
    np.add.at(table, inside, table.dtype.type(1))  # bincount would make another table; a plain 1 is converted


@dataclass(frozen=True)
class Counted:
    """The counts of some parts of the details: a table for each of `State.places`, and sums of squares.

    ``sums`` (parts, levels, groups) is empty if no sums were wanted; they are added up at the end, in the order of the
    parts. ``below`` are the numbers of magnitudes below the intervals, where intervals were guesses. ``whole`` has the
    median and mean square of the levels (finest 1) that were in memory at once.
    """

    tables: Sequence[Array]
    sums: Floats
    below: Sequence[int] | None = None
    whole: Mapping[int, tuple[float, float]] = field(default_factory=dict)


def merged(parts: Sequence[Counted]) -> Counted:
    """Merge the counts of several parts, in their order: the order of sums matters, that of tables does not."""
    if len(parts) == 1:
        return parts[0]
    totals = [table.copy() for table in parts[0].tables]
    for part in parts[1:]:
        for total, table in zip(totals, part.tables, strict=True):
            total += table
    return Counted(totals, np.concatenate([part.sums for part in parts]))


@dataclass(frozen=True)
class State:
    """Results of the passes so far, for groups of ``counts`` (levels,) details each, and the task of the next pass.

    ``search`` has, for each level (finest 1), group and wanted rank, the interval that holds this magnitude with the
    number of magnitudes below it, or a guess of the interval and None. Intervals have at most ``bins`` bins, and
    magnitudes have ``dtype``. ``medians`` are those found so far, shape (groups,) for each level, or the quantiles of
    another ``share``. The next pass sums squares if ``squares`` is set and ``mean_square`` (levels, groups) is unknown.
    """

    counts: Counts
    groups: int
    dtype: DType
    bins: int
    squares: bool
    search: Mapping[tuple[int, int, int], tuple[Interval, int | None]] = field(default_factory=dict)
    medians: Mapping[int, Floats] = field(default_factory=dict)
    mean_square: Floats | None = None
    share: float = 0.5

    @staticmethod
    def of(options: Options, counts: Counts, groups: int, dtype: DType) -> State:
        """Return the state before the first pass for a mergeable rule, with small tables."""
        levels = {"level": range(1, len(counts) + 1), "global": range(1, 2)}.get(str(options.sigma), range(0))
        squares, share = "mean_square" in options.rule.needs, options.transform.noise_share
        state = State(counts, groups, dtype, TRAVELLING[options.scope], squares, share=share)
        return state if options.rule.values else state.searching(levels)

    def searching(self, levels: Sequence[int], guesses: Mapping[int, Interval] | None = None) -> State:
        """Return a state that searches the medians of these levels, first in the guessed intervals if given."""
        first = Interval.every(self.dtype.itemsize, self.bins)
        search: dict[tuple[int, int, int], tuple[Interval, int | None]] = {}
        for level in levels:
            begin = (first, 0) if guesses is None else (guesses[level], None)
            ranks, _ = around(int(self.counts[level - 1]), self.share)
            search |= {(level, group, rank): begin for group in range(self.groups) for rank in ranks}
        return replace(self, search=search)

    @property
    def places(self) -> list[tuple[int, int, Interval]]:
        """Level, group and interval of each table of the next pass; empty once all medians are found."""
        return sorted({(i, g, found[0]) for (i, g, _), found in self.search.items() if not _settled(*found)})

    @property
    def sums_squares(self) -> bool:
        """Whether the next pass sums squares."""
        return self.squares and self.mean_square is None

    @property
    def passes(self) -> int:
        """Number of passes that are still needed, if guesses are right."""
        digit = self.bins.bit_length() - 1
        needed = [-(-(interval.high - interval.low).bit_length() // digit) for _, _, interval in self.places]
        return max(needed, default=int(self.sums_squares))

    def tables(self) -> list[Array]:
        """Return a table of zeros for each of `places`."""
        dtypes = [np.int64 if count >> 32 else np.uint32 for count in self.counts.tolist()]
        return [np.zeros(interval.bins, dtypes[level - 1]) for level, _, interval in self.places]

    def after(self, counted: Counted) -> State:
        """Return the state after a pass with these counts of all parts; a complete state is unchanged."""
        pairs = zip(self.places, counted.tables, strict=bool(self.search))  # no live row, no places
        upto = {place: table.cumsum(dtype=np.int64) for place, table in pairs}
        below = dict(zip(upto, counted.below or [0] * len(upto), strict=True))
        search = dict(self.search)
        for (level, group, rank), (interval, known) in self.search.items():
            place = level, group, interval
            if not _settled(interval, known):
                less = below[place] if known is None else known
                narrower = interval.narrowed(rank, less, upto[place], self.dtype.itemsize, self.bins)
                search[level, group, rank] = narrower
        medians = {**self.medians, **{level: np.array([median]) for level, (median, _) in counted.whole.items()}}
        mean_square = self.mean_square
        if self.sums_squares:
            mean_square = np.sum(counted.sums, axis=0) / self.counts[:, None]
            for level, (_, square) in counted.whole.items():
                mean_square[level - 1] = square
        state = replace(self, search=search, medians=medians, mean_square=mean_square)
        return state if state.places else replace(state, search={}, medians=medians | state._found())

    def _found(self) -> dict[int, Floats]:
        """Return the medians, once the search has found both middle values of all levels."""
        medians = {}
        for level in {level for level, _, _ in self.search}:
            ranks, weight = around(int(self.counts[level - 1]), self.share)
            bits = [[self.search[level, g, rank][0].low for rank in ranks] for g in range(self.groups)]
            medians[level] = between(np.array(bits, f"u{self.dtype.itemsize}").view(self.dtype), weight)
        return medians


def _settled(interval: Interval, below: int | None) -> bool:
    return interval.low == interval.high and below is not None


def count(state: State, details: Details, tabulate: Callable[[Interval, Array, Array], None] = tabulate) -> Counted:
    """Return the counts of a block of rows, each of which is a group; a single group has all rows."""
    pooled, tables = state.groups == 1, state.tables()
    totals = np.zeros((int(state.sums_squares), len(state.counts), state.groups))
    for (level, group, interval), table in zip(state.places, tables, strict=True):
        for _, rows in details[level - 1]:
            tabulate(interval, rows if pooled else rows[group], table)
    for sums in totals:  # one element or none
        for own, parts in zip(sums, details, strict=True):
            for _, rows in parts:
                with np.errstate(over="ignore"):
                    own += energy(rows.reshape(1, -1) if pooled else rows)
    return Counted(tables, totals)


class Summation:
    """The way a backend adds up the squares of a row in host memory: a long row block by block. This one is NumPy's."""

    block = LEAF
    """Details of a block."""
    whole = BINS
    """Largest number of details of a row that is measured at once."""
    tabulate: Callable[[Interval, Array, Array], None] = staticmethod(tabulate)

    def statistics(self, details: Array) -> Statistics:
        """Return the statistics of a row (details,) in memory."""
        return ReferenceStatistics([details[None]])

    def total(self, sums: Floats) -> float:
        """Return the sum of the blocks' sums of squares."""
        return float(sums.sum())

    def measure(
        self, details: Array, ends: Counts, interval: Interval | None, table: Array | None
    ) -> tuple[Floats, int]:
        """Return the sum of squares of each block, and the number of |d| below the interval.

        The |d| inside the interval are counted in ``table``.
        """
        sums, below = np.empty(len(ends) - 1), 0
        for i in range(len(sums)):
            magnitudes = np.abs(details[ends[i] : ends[i + 1]])
            with np.errstate(over="ignore"):
                sums[i] = energy(magnitudes)
            if interval is not None and table is not None:
                below += int(np.count_nonzero(magnitudes.view(f"u{magnitudes.itemsize}") < interval.low))
                tabulate(interval, magnitudes, table)
        return sums, below


@dataclass
class JoinedBlocks:
    """Puts a row of details together from parts in any order: complete blocks are returned, the rest is kept."""

    ends: Counts
    _kept: dict[int, tuple[Array, int]] = field(default_factory=dict)

    def add(self, place: int, details: Array) -> Iterator[tuple[int, int, Array]]:
        """Yield complete blocks: the first one, the one after the last, and their details."""
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
    """Counts one group whose parts come in any order, with the sums that ``summation`` computes for whole rows.

    Levels of up to ``Summation.whole`` details are kept until they are complete.
    """

    def __init__(self, state: State, summation: Summation) -> None:
        self._state, self._summation = state, summation
        self._places, self._tables = state.places, state.tables()
        self._below = [0] * len(self._places)
        self._whole: dict[int, tuple[float, float]] = {}
        blocks = [n if n <= summation.whole else summation.block for n in state.counts.tolist()]
        self._ends = [np.append(np.arange(0, n, block), n) for n, block in zip(state.counts, blocks, strict=True)]
        self._rows, self._sums = [JoinedBlocks(e) for e in self._ends], [np.empty(len(e) - 1) for e in self._ends]

    def add(self, details: Details) -> None:
        for level, parts in enumerate(details, 1):
            own = [k for k, (place, _, _) in enumerate(self._places) if place == level]
            if own or self._state.sums_squares:
                for start, rows in parts:
                    for first, last, blocks in self._rows[level - 1].add(start, rows.reshape(-1)):
                        self._measure(level, own, slice(first, last), blocks)

    def _measure(self, level: int, own: Sequence[int], blocks: slice, details: Array) -> None:
        """Measure blocks of a level, and count them for these of `State.places`."""
        if self._state.counts[level - 1] <= self._summation.whole:
            statistics = self._summation.statistics(details)
            quantile = statistics.quantile_abs([1], self._state.share)
            self._whole[level] = float(quantile[0, 0]), float(statistics.mean_square()[0, 0])
            return
        ends, sums = self._ends[level - 1][blocks.start : blocks.stop + 1], self._sums[level - 1]
        ends = ends - ends[0]
        for k in own:
            sums[blocks], below = self._summation.measure(details, ends, self._places[k][2], self._tables[k])
            self._below[k] += below
        if not own:
            sums[blocks], _ = self._summation.measure(details, ends, None, None)

    def result(self) -> Counted:
        totals = np.zeros((int(self._state.sums_squares), len(self._sums), 1))
        for total in totals:  # one element or none
            for level, sums in enumerate(self._sums, 1):
                if level not in self._whole:
                    total[level - 1] = self._summation.total(sums)
        return Counted(self._tables, totals, self._below, self._whole)


@dataclass
class PassStatistics:
    """`Statistics` computed by passes over the details, each made by a call of ``run``.

    Nothing that ``state`` knows is counted again. Levels of up to ``summation.whole`` details are measured in memory in
    the first pass; for longer ones ``guesses`` returns intervals where the medians probably are. Several groups are
    possible if ``state`` knows all that is asked for.
    """

    state: State
    run: Run
    summation: Summation = field(default_factory=Summation)
    guesses: Callable[[Sequence[int]], Mapping[int, Interval] | None] = lambda levels: None

    @property
    def counts(self) -> Counts:
        return self.state.counts

    @property
    def groups(self) -> int:
        return self.state.groups

    def quantile_abs(self, levels: Sequence[int], share: float = 0.5) -> Floats:
        if share != self.state.share:
            self.state = replace(self.state, share=share, search={}, medians={})
        missing = [i for i in levels if i not in self.state.medians]
        if longer := [i for i in missing if self.counts[i - 1] > self.summation.whole]:
            self.state = self.state.searching(longer, self.guesses(longer) if share == 0.5 else None)
        while any(i not in self.state.medians for i in missing):
            self._pass()
        return np.array([self.state.medians[i] for i in levels])

    def mean_square(self) -> Floats:
        if self.state.mean_square is None:
            self.state = replace(self.state, squares=True)
            self._pass()
        assert self.state.mean_square is not None
        return self.state.mean_square

    def _pass(self) -> None:
        tally = RowTally(self.state, self.summation)
        self.run(tally.add)
        self.state = self.state.after(tally.result())

    def exceeding(self, thresholds: Floats) -> Counts:
        return self._summed(lambda part: part.exceeding(thresholds))

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        return self._summed(lambda part: part.histogram(level, widths, bins))

    def _summed(self, count: Callable[[Statistics], Counts]) -> Counts:
        """Return the sum of counts over all parts of the chunks, whose details belong to the only group."""
        counts: list[Counts] = []

        def add(details: Details) -> None:
            for parts in zip(*details, strict=True):
                counts.append(count(ReferenceStatistics([rows.reshape(1, -1) for _, rows in parts])))

        self.run(add)
        return np.asarray(sum(counts))

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        """Raise TypeError: rules that sort details need whole traces in memory."""
        raise TypeError("a rule sorts details, and does not declare it: add 'sorted' to its needs")
