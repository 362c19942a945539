"""Statistics of detail coefficients that are seen in parts, whose counts are merged.

A `State` says what the next pass over the details counts: intervals of magnitudes, for exact medians, and sums of
squares. A `Tally` counts them in the parts that it is given; what several tallies counted is `merged`, and
`State.after` that the intervals are narrower, until each holds one value. Who makes a pass, and where the parts come
from, is the same to all of this: one thread, several, or the tasks of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.statistics.batch import around, between, least_risk
from wavefilt.statistics.interface import Risk
from wavefilt.statistics.radix_select import Interval

from . import counts as host_counts

if TYPE_CHECKING:
    from wavefilt.options import Options

Details = Sequence[Sequence[tuple[int, Array]]]
"""Details of a chunk: for each level, finest first, arrays (rows, coefficients) of the backend's kind, each with the
place of its first coefficient among those of the level and group."""
Tabulate = Callable[[Interval, Array, Array], None]
"""Counts magnitudes of details inside an interval in its table."""
Result = TypeVar("Result")

TRAVELLING = {"record": 1 << 16, "trace": 1 << 11}
"""Bins of a table that travels between machines: 256 KiB for all traces together, or 8 KiB, and more passes, for each.
Twice that from 4 Gi details on."""


@dataclass(frozen=True)
class Counted:
    """What was counted in some parts of the details: a table for each of `State.places`, and sums of squares.

    ``sums`` (parts, levels, groups) is empty if none were asked for; they are added up at the end, in the order of the
    parts. ``below`` is how many magnitudes lie below each interval, where the interval was a guess, and ``whole`` has
    the median and mean square of levels (finest 1) that were in memory at once.
    """

    tables: Sequence[Array]
    sums: Floats
    below: Sequence[int] | None = None
    whole: Mapping[int, tuple[float, float]] = field(default_factory=dict)


def merged(parts: Sequence[Counted]) -> Counted:
    """What was counted in several parts; in their order, for tables are whole numbers but sums are not."""
    if len(parts) == 1:
        return parts[0]
    totals = [table.copy() for table in parts[0].tables]
    for part in parts[1:]:
        for total, table in zip(totals, part.tables, strict=True):
            total += table
    return Counted(totals, np.concatenate([part.sums for part in parts]))


@dataclass(frozen=True)
class State:
    """What passes have found so far of groups of ``counts`` (levels,) details each, and what the next one looks for.

    ``search`` has, for each level (finest 1), group and rank that is wanted, the interval where that magnitude lies and
    how many lie below it, or an interval where it may lie and None; intervals have ``bins`` bins at most and magnitudes
    ``dtype``. ``medians`` has those found of each level, shape (groups,), or the quantiles of another ``share``. The
    next pass sums squares if ``squares`` and no ``mean_square`` (levels, groups) is known.
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
    def of(method: Options, counts: Counts, groups: int, dtype: DType) -> State:
        """Before the first pass for a mergeable rule, whose passes are known before: tables are small."""
        levels = {"level": range(1, len(counts) + 1), "global": range(1, 2)}.get(str(method.sigma), range(0))
        squares = "mean_square" in method.rule.needs
        state = State(counts, groups, dtype, TRAVELLING[method.scope], squares, share=method.transform.noise_share)
        return state if method.rule.values else state.searching(levels)

    def searching(self, levels: Sequence[int], guesses: Mapping[int, Interval] | None = None) -> State:
        """The next passes count for the medians of these levels, and first in the intervals guessed, if any are."""
        first = Interval.every(self.dtype.itemsize, self.bins)
        search: dict[tuple[int, int, int], tuple[Interval, int | None]] = {}
        for level in levels:
            begin = (first, 0) if guesses is None else (guesses[level], None)
            count = int(self.counts[level - 1])
            ranks, _ = around(count, self.share)
            search |= {(level, group, rank): begin for group in range(self.groups) for rank in ranks}
        return replace(self, search=search)

    @property
    def places(self) -> list[tuple[int, int, Interval]]:
        """Level, group and interval of each table of the next pass; none once all medians are found."""
        return sorted({(i, g, found[0]) for (i, g, _), found in self.search.items() if not _settled(*found)})

    @property
    def sums_squares(self) -> bool:
        """Whether the next pass sums squares."""
        return self.squares and self.mean_square is None

    @property
    def passes(self) -> int:
        """Passes that are still needed, if guesses are right."""
        digit = self.bins.bit_length() - 1
        needed = [-(-(interval.high - interval.low).bit_length() // digit) for _, _, interval in self.places]
        return max(needed, default=int(self.sums_squares))

    def tables(self) -> list[Array]:
        """No counts yet."""
        return [interval.table(int(self.counts[level - 1])) for level, _, interval in self.places]

    def after(self, counted: Counted) -> State:
        """With what a pass counted in all parts."""
        upto = {place: table.cumsum(dtype=np.int64) for place, table in zip(self.places, counted.tables, strict=True)}
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
            for level, (_, found) in counted.whole.items():
                mean_square[level - 1] = found
        state = replace(self, search=search, medians=medians, mean_square=mean_square)
        return state if state.places else replace(state, search={}, medians=medians | state._found())

    def _found(self) -> dict[int, Floats]:
        """The medians searched, once all are found, between the middle two."""
        found = {}
        for level in {level for level, _, _ in self.search}:
            ranks, part = around(int(self.counts[level - 1]), self.share)
            bits = [[self.search[level, g, rank][0].low for rank in ranks] for g in range(self.groups)]
            found[level] = between(np.array(bits, f"u{self.dtype.itemsize}").view(self.dtype), part)
        return found


def _settled(interval: Interval, below: int | None) -> bool:
    return interval.low == interval.high and below is not None


Begin = Callable[[], tuple[Callable[[Details], None], Callable[[], Result]]]
"""Begins one thread's share of a pass: what it does with the details of each chunk, and what gives the result."""


class Run(Protocol):
    """Makes a pass: every chunk is in one of the shares that ``begin`` begins; their results, in a fixed order."""

    def __call__(self, begin: Begin[Result]) -> list[Result]: ...


class Tally(Protocol):
    """What counts in one thread's share of a pass, where the details are."""

    def add(self, details: Details) -> None:
        """Count the details of another chunk."""

    def result(self) -> Counted:
        """What was counted in all of them."""


def tabulate(interval: Interval, details: Array, table: Array) -> None:
    """`Tabulate` by NumPy."""
    interval.tabulate(np.abs(details), table)


class HostTally:
    """`Tally` of NumPy arrays, whose rows are the groups, or all together the one there is."""

    def __init__(self, state: State, tabulate: Tabulate = tabulate) -> None:
        self._state, self._tabulate = state, tabulate
        self._tables = state.tables()
        self._sums = np.zeros((int(state.sums_squares), len(state.counts), state.groups))

    def add(self, details: Details) -> None:
        pooled = self._state.groups == 1
        for (level, group, interval), table in zip(self._state.places, self._tables, strict=True):
            for _, rows in details[level - 1]:
                self._tabulate(interval, rows if pooled else rows[group], table)
        for sums in self._sums:  # one, or none
            for own, parts in zip(sums, details, strict=True):
                for _, rows in parts:
                    with np.errstate(over="ignore"):
                        squares = np.square(np.abs(rows), dtype=np.float64)
                    own += squares.sum() if pooled else squares.sum(axis=1)

    def result(self) -> Counted:
        return Counted(self._tables, self._sums)


@dataclass
class PassStatistics:
    """`Statistics` of groups whose details every call of ``run`` passes over.

    What ``state`` has is not counted again: with passes made elsewhere there is nothing to run. ``tally`` counts what a
    state asks for. Levels of up to ``whole`` details are measured in memory in the first pass; for others ``guesses``
    returns where the medians probably are. Only medians and mean squares know several groups.
    """

    state: State
    run: Run
    tally: Callable[[State], Tally] = HostTally
    to_host: Callable[[Array], Array] = np.asarray
    whole: int = 0
    guesses: Callable[[Sequence[int]], Mapping[int, Interval] | None] = lambda levels: None

    @property
    def counts(self) -> Counts:
        return self.state.counts

    @property
    def groups(self) -> int:
        return self.state.groups

    def median_abs(self, levels: Sequence[int]) -> Floats:
        return self.quantile_abs(levels, 0.5)

    def quantile_abs(self, levels: Sequence[int], share: float) -> Floats:
        if share != self.state.share:
            self.state = replace(self.state, share=share, search={}, medians={})
        missing = [i for i in levels if i not in self.state.medians]
        longer = [i for i in missing if self.counts[i - 1] > self.whole]
        if longer:
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
        def begin() -> tuple[Callable[[Details], None], Callable[[], Counted]]:
            tally = self.tally(self.state)
            return tally.add, tally.result

        self.state = self.state.after(merged(self.run(begin)))

    def exceeding(self, thresholds: Floats) -> Counts:
        def count(details: Details) -> Counts:
            pairs = zip(details, thresholds, strict=True)
            return np.array([[sum(host_counts.exceeding(*rows).sum() for rows in self._rows(*pair))] for pair in pairs])

        return self._counted(count)

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        def count(details: Details) -> Counts:
            rows = self._rows(details[level - 1], widths)
            return np.asarray(np.sum([host_counts.histogram(*own, bins).sum(axis=0) for own in rows], axis=0))

        return self._counted(count)[None]

    def _rows(self, parts: Sequence[tuple[int, Array]], values: Floats) -> Iterator[tuple[Array, Floats]]:
        """Each part in host memory, with the group's value for each of its rows."""
        for _, part in parts:
            rows = self.to_host(part)
            yield rows, np.repeat(values, len(rows))

    def _counted(self, count: Callable[[Details], Counts]) -> Counts:
        """The sum of whole numbers over all chunks."""

        def begin() -> tuple[Callable[[Details], None], Callable[[], Counts]]:
            found: list[Counts] = []
            return lambda details: found.append(count(details)), lambda: np.asarray(sum(found))

        return np.asarray(sum(self.run(begin)))

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        """As the protocol says, from all magnitudes of one level after the other in host memory.

        Raises MemoryError if they do not fit.
        """
        best = np.zeros_like(sigma)
        for i in np.flatnonzero(sigma[:, 0] > 0):
            try:
                best[i] = least_risk(risk, self._magnitudes(int(i))[None], sigma[i], inverse)
            except MemoryError as error:
                raise MemoryError(
                    f"rule='sure' sorts all details of a level, and {self.counts[i]} of level {i + 1} do not fit in "
                    "memory; use another rule"
                ) from error
        return best

    def _magnitudes(self, place: int) -> Array:
        """|d| of one level in order, shape (coefficients,)."""
        magnitudes = np.empty(int(self.counts[place]), self.state.dtype)

        def gather(details: Details) -> None:
            for start, part in details[place]:
                values = self.to_host(part).reshape(-1)
                np.abs(values, out=magnitudes[start : start + values.size])

        self.run(lambda: (gather, lambda: None))
        magnitudes.sort()
        return magnitudes
