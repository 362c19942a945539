"""Exact medians of magnitudes that are only counted: by a few digits of their bits at a time.

Magnitudes in the order of their bits are in the order of their values, so that a few digits of bits at a time find
the one of a given rank: each time all are looked at, those that agree so far are counted by their next digit. Counts
are whole numbers: those of parts of the magnitudes may be added up in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGITS = {4: (31, 15, 0), 8: (63, 42, 21, 0)}
"""Bits of a magnitude of so many bytes between digits, the sign bit left out: two looks find a float32, three a
float64."""


@dataclass(frozen=True)
class Digit:
    """Bits ``low`` to ``high`` of those magnitudes whose bits above begin with ``prefix``."""

    prefix: int
    high: int
    low: int

    @property
    def first(self) -> int:
        """The smallest of these magnitudes' bits, those below ``low`` left out."""
        return self.prefix << (self.high - self.low)

    @property
    def values(self) -> int:
        return 1 << (self.high - self.low)


@dataclass(frozen=True)
class Search:
    """The middle two magnitudes of some levels of groups of details, as far as they are known.

    ``found`` has, for each level, group and rank, the bits known so far and the rank among the magnitudes that have
    them; ``digits`` the bits between those still to come.
    """

    found: dict[tuple[int, int, int], tuple[int, int]]
    digits: tuple[int, ...]

    @staticmethod
    def begin(counts: NDArray[np.int64], levels: Sequence[int], groups: int, digits: tuple[int, ...]) -> Search:
        """``counts`` (levels,) is the number of details of one group at every level, finest first."""
        middle = {i: ((int(counts[i - 1]) - 1) // 2, int(counts[i - 1]) // 2) for i in levels}
        return Search({(i, g, rank): (0, rank) for i in levels for g in range(groups) for rank in middle[i]}, digits)

    @property
    def done(self) -> bool:
        return len(self.digits) < 2 or not self.found

    def places(self) -> list[tuple[int, int, Digit]]:
        """Level, group and digit of what is to be counted next."""
        high, low = self.digits[:2]
        prefixes = sorted({(i, g, prefix) for (i, g, _), (prefix, _) in self.found.items()})
        return [(i, g, Digit(prefix, high, low)) for i, g, prefix in prefixes]

    def narrowed(self, counts: Sequence[NDArray[np.int64]]) -> Search:
        """With one digit more known, from the counts of `places`."""
        upto = {(i, g, digit.prefix): own.cumsum() for (i, g, digit), own in zip(self.places(), counts, strict=True)}
        found = {}
        for (i, g, place), (prefix, rank) in self.found.items():
            sums = upto[i, g, prefix]
            value = int(np.searchsorted(sums, rank, side="right"))
            below = int(sums[value - 1]) if value else 0
            found[i, g, place] = prefix << (self.digits[0] - self.digits[1]) | value, rank - below
        return Search(found, self.digits[1:])

    def medians(self, dtype: np.dtype[Any]) -> dict[int, NDArray[np.float64]]:
        """Of each level, shape (groups,): the mean of the middle two."""
        bits: dict[int, dict[int, list[int]]] = {}
        for (i, g, _), (value, _) in sorted(self.found.items()):
            bits.setdefault(i, {}).setdefault(g, []).append(value)
        medians = {}
        for i, groups in bits.items():
            pairs = np.array([[own[0], own[-1]] for own in groups.values()], f"u{dtype.itemsize}")
            medians[i] = np.asarray(pairs.view(dtype).mean(axis=1, dtype=np.float64))
        return medians
