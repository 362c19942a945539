"""What blocks of details, counted wherever they are, add up to: thresholds for the groups they are parts of.

Blocks are looked at several times, as `wavefilt.counting` does with the chunks of one machine. A look gives counts,
which are whole numbers and add up in any order, and sums of squares, which are added up at the end, in the blocks'
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.interface import Risk
from wavefilt.counting import HostTally
from wavefilt.method import Method
from wavefilt.searching import Search

RULES = ("universal", "minimax", "bayes")
"""Rules whose thresholds follow from numbers of blocks that can be added up."""
DIGITS = {4: (31, 15, 0), 8: (63, 47, 31, 15, 0)}
"""Bits between digits where all rows are counted together: tables of at most 512 KiB, which travel between machines."""
FINE = {4: (31, 20, 10, 0), 8: (63, 53, 42, 31, 21, 10, 0)}
"""Digits where each trace has a count of its own: more looks with tables of at most 16 KiB."""


@dataclass(frozen=True)
class Look:
    """What was counted in some blocks: a table for each of `Search.places`, and sums (blocks, levels, groups)."""

    counts: list[NDArray[np.int64]]
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
        digits = (DIGITS if method.scope == "record" else FINE)[itemsize]
        return Known(counts, groups, Search.begin(counts, levels, groups, digits), method.rule == "bayes")

    @property
    def looks(self) -> int:
        """Looks that are still needed."""
        return len(self.search.digits) - 1 if self.search.found else int(self.power and self.sums is None)

    def look(self, details: Sequence[Sequence[NDArray[Any]]]) -> Look:
        """At the details of one block: for each level, finest first, arrays (rows, coefficients).

        The rows are the groups, or all together the one there is.
        """
        places = [] if self.search.done else self.search.places()
        rows = range(self.groups)
        real = details[0][0].real.dtype
        tally = HostTally(real, [digit for _, _, digit in places], len(details) * self.groups if self._wants() else 0)
        for i, (level, group, _) in enumerate(places):
            for part in details[level - 1]:
                tally.count(i, part if self.groups == 1 else part[group : group + 1])
        if self._wants():
            for place, parts in enumerate(details):
                for part in parts:
                    for group in rows:
                        tally.add_squares(place * self.groups + group, part if self.groups == 1 else part[group])
        sums = tally.sums().reshape(1, -1, self.groups) if self._wants() else np.empty((0, len(details), self.groups))
        return Look(tally.counts(), sums)

    def after(self, look: Look) -> Known:
        """With what all blocks together counted."""
        search = self.search if self.search.done else self.search.narrowed(look.counts)
        sums = np.sum(look.sums, axis=0) if self._wants() else self.sums
        return Known(self.counts, self.groups, search, self.power, sums)

    def thresholds(
        self, method: Method, samples: int, dtype: np.dtype[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Noise and thresholds (levels, groups), finest level first, of groups of so many samples.

        Raises ValueError where they are not finite.
        """
        found = method.thresholds(_Merged(self, self.search.medians(dtype)), samples)
        if not np.isfinite(found).all():
            raise ValueError("the squares of the samples overflow float64; scale them down first")
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
