"""What blocks of details, counted wherever they are, add up to: thresholds for the groups they are parts of.

Blocks are looked at several times (`wavefilt.statistics.radix_select`), as the chunks of one machine are. A look gives
counts, which are whole numbers and add up in any order, and sums of squares, which are added up at the end, in the
blocks' order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.method import Method
from wavefilt.statistics.interface import Risk
from wavefilt.statistics.radix_select import Interval, Search

Tabulate = Callable[[Interval, NDArray[Any], NDArray[Any]], None]
"""Counts magnitudes of details inside an interval in its table."""
RULES = ("universal", "minimax", "bayes")
"""Rules whose thresholds follow from numbers of blocks that can be added up."""
TOGETHER = 16
"""Looks that are merged at a time."""
BINS = {"record": 1 << 16, "trace": 1 << 11}
"""Of a table, which travels between machines: 256 KiB for all traces together, or 8 KiB, and more looks, for each.
Twice that from 4 Gi details on."""


def tabulate(interval: Interval, details: NDArray[Any], table: NDArray[Any]) -> None:
    """`Tabulate` of NumPy."""
    interval.tabulate(np.abs(details), table)


@dataclass(frozen=True)
class Look:
    """What was counted in some blocks: a table for each of `Search.places`, and sums (blocks, levels, groups)."""

    counts: list[NDArray[Any]]
    sums: NDArray[np.float64]


def merged(looks: Sequence[Look]) -> Look:
    """Of several, in their order."""
    totals = [table.copy() for table in looks[0].counts]
    for look in looks[1:]:
        for total, table in zip(totals, look.counts, strict=True):
            total += table
    return Look(totals, np.concatenate([look.sums for look in looks]))


@dataclass(frozen=True)
class Known:
    """What is known of one lot of ``groups`` groups that have ``counts`` (levels,) details each.

    ``power`` tells whether mean squares are wanted; ``sums`` are the squares' sums once they were looked at.
    """

    counts: NDArray[np.int64]
    groups: int
    search: Search
    power: bool
    sums: NDArray[np.float64] | None = None

    @staticmethod
    def nothing(method: Method, counts: NDArray[np.int64], groups: int, itemsize: int) -> Known:
        """Before the first look."""
        levels = {"level": range(1, len(counts) + 1), "global": range(1, 2)}.get(str(method.sigma), range(0))
        if method.fixed_thresholds:
            levels = range(0)
        search = Search.begin(counts, levels, groups, itemsize, BINS[method.scope])
        return Known(counts, groups, search, method.rule == "bayes")

    @property
    def looks(self) -> int:
        """Looks that are still needed."""
        return max(self.search.looks, int(self._wants()))

    def look(self, details: Sequence[Sequence[NDArray[Any]]], tabulate: Tabulate = tabulate) -> Look:
        """At the details of one block: for each level, finest first, arrays (rows, coefficients).

        The rows are the groups, or all together the one there is. ``tabulate`` is the backend's.
        """
        places = self.search.places()
        tables = [interval.table(int(self.counts[level - 1])) for level, _, interval in places]
        for (level, group, interval), table in zip(places, tables, strict=True):
            for part in details[level - 1]:
                tabulate(interval, part if self.groups == 1 else part[group], table)
        sums = np.zeros((int(self._wants()), len(details), self.groups))
        if self._wants():
            for own, parts in zip(sums[0], details, strict=True):
                for part in parts:
                    with np.errstate(over="ignore"):
                        squares = np.square(np.abs(part), dtype=np.float64)
                    own += squares.sum() if self.groups == 1 else squares.sum(axis=1)
        return Look(tables, sums)

    def after(self, look: Look) -> Known:
        """With what all blocks together counted."""
        sums = np.sum(look.sums, axis=0) if self._wants() else self.sums
        return Known(self.counts, self.groups, self.search.narrowed(look.counts), self.power, sums)

    def thresholds(
        self, method: Method, samples: int, dtype: np.dtype[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Noise and thresholds (levels, groups), finest level first, of groups of so many samples.

        Raises ValueError where they are not finite.
        """
        found = method.thresholds(_Merged(self, self.search.medians(dtype)), samples)
        if not np.isfinite(found).all():
            raise ValueError(SQUARES_OVERFLOW)
        return found

    def _wants(self) -> bool:
        return self.power and self.sums is None


@dataclass(frozen=True)
class _Merged:
    """The `Statistics` that rules of `RULES` ask for."""

    known: Known
    medians: dict[int, NDArray[np.float64]]

    @property
    def counts(self) -> NDArray[np.int64]:
        return self.known.counts

    @property
    def groups(self) -> int:
        return self.known.groups

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        return np.array([self.medians[i] for i in levels])

    def mean_square(self) -> NDArray[np.float64]:
        assert self.known.sums is not None
        return np.asarray(self.known.sums / self.counts[:, None])

    def exceeding(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        raise NotImplementedError

    def histogram(self, level: int, widths: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        raise NotImplementedError

    def minimise(self, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError
