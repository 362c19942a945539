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
from wavefilt.statistics.batch import least_risk
from wavefilt.statistics.interface import Risk
from wavefilt.statistics.radix_select import Interval, Search

from . import counts as host_counts

if TYPE_CHECKING:
    from wavefilt.method import Method

Details = Sequence[Sequence[tuple[int, Array]]]
"""Details of a chunk: for each level, finest first, arrays (rows, coefficients) of the backend's kind, each with the
place of its first coefficient among those of the level and group."""
Tabulate = Callable[[Interval, Array, Array], None]
"""Counts magnitudes of details inside an interval in its table."""
Result = TypeVar("Result")
Found = TypeVar("Found", covariant=True)

TRAVELLING = {"record": 1 << 16, "trace": 1 << 11}
"""Bins of a table that travels between machines: 256 KiB for all traces together, or 8 KiB, and more passes, for each.
Twice that from 4 Gi details on."""


@dataclass(frozen=True)
class Counted:
    """What was counted in some parts of the details: a table for each of `State.places`, and sums of squares.

    ``sums`` (parts, levels, groups) is empty if none were asked for; they are added up at the end, in the order of the
    parts. ``below`` tells how many magnitudes lie below each interval, where the interval was a guess, and ``whole``
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

    ``dtype`` is that of magnitudes. ``medians`` has those found of each level (finest 1), shape (groups,); squares are
    summed in the next pass if ``squares`` and not ``mean_square`` (levels, groups) is known.
    """

    counts: Counts
    groups: int
    dtype: DType
    search: Search
    squares: bool
    medians: Mapping[int, Floats] = field(default_factory=dict)
    mean_square: Floats | None = None

    @staticmethod
    def of(method: Method, counts: Counts, groups: int, dtype: DType) -> State:
        """Before the first pass for a mergeable rule, whose passes are known before: tables are small."""
        levels = {"level": range(1, len(counts) + 1), "global": range(1, 2)}.get(str(method.sigma), range(0))
        search = Search({}, TRAVELLING[method.scope], dtype.itemsize)
        state = State(counts, groups, dtype, search, "mean_square" in method.spec.needs)
        return state if method.fixed_thresholds else state.searching(levels)

    def searching(self, levels: Sequence[int], guesses: Mapping[int, Interval] | None = None) -> State:
        """Passes count for the medians of these levels next."""
        first = self.search
        search = Search.begin(self.counts, levels, self.groups, first.itemsize, first.bins, guesses)
        return replace(self, search=search)

    @property
    def passes(self) -> int:
        """Passes that are still needed, if guesses are right."""
        return max(self.search.passes, int(self.sums_squares))

    @property
    def places(self) -> list[tuple[int, int, Interval]]:
        """Level, group and interval of each table of the next pass."""
        return self.search.places()

    @property
    def sums_squares(self) -> bool:
        """Whether the next pass sums squares."""
        return self.squares and self.mean_square is None

    def tables(self) -> list[Array]:
        """No counts yet."""
        return [interval.table(int(self.counts[level - 1])) for level, _, interval in self.places]

    def after(self, counted: Counted) -> State:
        """With what a pass counted in all parts."""
        search = self.search.narrowed(counted.tables, counted.below)
        medians = {**self.medians, **{level: np.array([median]) for level, (median, _) in counted.whole.items()}}
        if not search.places():
            medians |= search.medians(self.dtype)
        mean_square = self.mean_square
        if self.sums_squares:
            mean_square = np.sum(counted.sums, axis=0) / self.counts[:, None]
            for level, (_, known) in counted.whole.items():
                mean_square[level - 1] = known
        return replace(self, search=search, medians=medians, mean_square=mean_square)


class Worker(Protocol[Found]):
    """What one thread does in a pass with its share of the chunks, one after the other."""

    def add(self, details: Details) -> None:
        """Take the details of another chunk."""

    def result(self) -> Found:
        """What was found in all of them."""


Tally = Worker[Counted]


class Run(Protocol):
    """Makes a pass: each chunk is added to one of the workers that ``begin`` makes; their results, in a fixed order."""

    def __call__(self, begin: Callable[[], Worker[Result]]) -> list[Result]: ...


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


class _Sum:
    """`Worker` that adds up whole numbers."""

    def __init__(self, count: Callable[[Details], Counts]) -> None:
        self._count, self._total = count, np.zeros((), np.int64)

    def add(self, details: Details) -> None:
        self._total = self._total + self._count(details)

    def result(self) -> Counts:
        return self._total


def _added(counts: Sequence[Counts]) -> Counts:
    return np.asarray(np.sum(counts, axis=0))


class _Magnitudes:
    """`Worker` that copies |d| of one level to ``out`` (coefficients,), each to its place."""

    def __init__(self, level: int, out: Array, to_host: Callable[[Array], Array]) -> None:
        self._level, self._out, self._to_host = level, out, to_host

    def add(self, details: Details) -> None:
        for start, rows in details[self._level - 1]:
            values = self._to_host(rows).reshape(-1)
            np.abs(values, out=self._out[start : start + values.size])

    def result(self) -> None:
        pass


@dataclass
class PassStatistics:
    """`Statistics` of groups whose details ``run`` presents to workers as often as it is called.

    What ``state`` has is not counted again: with passes made elsewhere there is nothing to run. ``tally`` counts what a
    state asks for. Levels of up to ``whole`` details are measured in memory in the first pass; of others ``guesses``
    tells where the medians probably are. Only medians and mean squares know several groups.
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
        missing = [i for i in levels if i not in self.state.medians]
        longer = [i for i in missing if self.counts[i - 1] > self.whole]
        if longer:
            self.state = self.state.searching(longer, self.guesses(longer))
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
        state = self.state
        self.state = state.after(merged(self.run(lambda: self.tally(state))))

    def exceeding(self, thresholds: Floats) -> Counts:
        def count(details: Details) -> Counts:
            pairs = zip(details, thresholds, strict=True)
            found = [[host_counts.exceeding(*rows).sum() for rows in self._rows(*pair)] for pair in pairs]
            return np.array([[sum(own)] for own in found])

        return _added(self.run(lambda: _Sum(count)))

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        def count(details: Details) -> Counts:
            found = [host_counts.histogram(*rows, bins).sum(axis=0) for rows in self._rows(details[level - 1], widths)]
            return _added(found)[None]

        return _added(self.run(lambda: _Sum(count)))

    def _rows(self, parts: Sequence[tuple[int, Array]], values: Floats) -> Iterator[tuple[Array, Floats]]:
        """Each part in host memory, with the group's value for each of its rows."""
        for _, part in parts:
            rows = self.to_host(part)
            yield rows, np.repeat(values, len(rows))

    def minimise(self, risk: Risk, sigma: Floats) -> Floats:
        """As the protocol says, from all magnitudes of one level after the other in host memory.

        Raises MemoryError if they do not fit.
        """
        best = np.zeros_like(sigma)
        for i in np.flatnonzero(sigma[:, 0] > 0):
            try:
                magnitudes = np.empty(int(self.counts[i]), self.state.dtype)
                self.run(lambda i=i, out=magnitudes: _Magnitudes(int(i) + 1, out, self.to_host))  # type: ignore[misc]
                magnitudes.sort()
                best[i] = least_risk(risk, magnitudes[None], sigma[i])
            except MemoryError as error:
                raise MemoryError(
                    f"rule='sure' sorts all details of a level, and {self.counts[i]} of level {i + 1} do not fit in "
                    "memory; use another rule"
                ) from error
        return best
