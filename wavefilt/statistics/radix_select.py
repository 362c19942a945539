"""Exact medians of magnitudes by radix selection: counts in intervals of their bits, which become narrower.

Magnitudes in the order of their bits are in the order of their values. Each pass over all of them counts those in an
interval by bins; the bin that holds the wanted rank is the next interval, until it holds one value only. Counts are
whole numbers: those of parts of the magnitudes may be added up in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array, Counts, DType, Floats


@dataclass(frozen=True, order=True)
class Interval:
    """Magnitudes whose bits lie from ``low`` to ``high``, counted by their bits above the last ``shift``."""

    low: int
    high: int
    shift: int

    @staticmethod
    def within(low: int, high: int, bins: int) -> Interval:
        """With bins as narrow as so many of them, a power of two, allow."""
        return Interval(low, high, max((high - low).bit_length() - (bins.bit_length() - 1), 0))

    @staticmethod
    def every(itemsize: int, bins: int) -> Interval:
        """All magnitudes of so many bytes."""
        return Interval.within(0, (1 << 8 * itemsize - 1) - 1, bins)

    @staticmethod
    def not_finite(dtype: DType) -> Interval:
        """All magnitudes that are not finite, and they alone, in one bin."""
        mantissa, top = np.finfo(dtype).nmant, (1 << 8 * dtype.itemsize - 1) - 1
        return Interval(top >> mantissa << mantissa, top, mantissa)

    @property
    def bins(self) -> int:
        return (self.high - self.low >> self.shift) + 1

    def table(self, count: int) -> Array:
        """No counts yet, for so many magnitudes at most."""
        return np.zeros(self.bins, np.uint32 if count >> 32 == 0 else np.int64)

    def tabulate(self, magnitudes: Array, table: Array) -> None:
        """Count those inside."""
        bits = magnitudes.view(f"u{magnitudes.itemsize}")
        place = bits - bits.dtype.type(self.low)  # wraps if below
        inside = (place[place <= self.high - self.low] >> self.shift).astype(np.intp)
        np.add.at(table, inside, table.dtype.type(1))  # bincount makes an array of all counts; a plain 1 is converted


@dataclass(frozen=True)
class Search:
    """The middle two magnitudes of some levels of groups of details, as far as they are known.

    ``found`` has, for each level, group and rank, the interval where that magnitude lies and how many lie below it, or
    an interval where it may lie and None. Intervals have ``bins`` bins at most; magnitudes have ``itemsize`` bytes.
    """

    found: dict[tuple[int, int, int], tuple[Interval, int | None]]
    bins: int
    itemsize: int

    @staticmethod
    def begin(
        counts: Counts, levels: Sequence[int], groups: int, itemsize: int, bins: int,
        guesses: Mapping[int, Interval] | None = None,
    ) -> Search:  # fmt: skip
        """``counts`` (levels,) is the number of details of one group at every level, finest first.

        ``guesses`` are intervals of levels to try first, for searches that are told how many magnitudes lie below.
        """
        first = (Interval.every(itemsize, bins), 0)
        begins = {i: first if guesses is None else (guesses[i], None) for i in levels}
        middle = {i: ((int(counts[i - 1]) - 1) // 2, int(counts[i - 1]) // 2) for i in levels}
        return Search({(i, g, rank): begins[i] for i in levels for g in range(groups) for rank in middle[i]},
                      bins, itemsize)  # fmt: skip

    @property
    def passes(self) -> int:
        """Passes that are still needed, if guesses are right."""
        digit = self.bins.bit_length() - 1
        return max((-(-(a.high - a.low).bit_length() // digit) for _, _, a in self.places()), default=0)

    def places(self) -> list[tuple[int, int, Interval]]:
        """Level, group and interval of what is to be counted next; nothing once all are found."""
        return sorted({(i, g, found[0]) for (i, g, _), found in self.found.items() if not _settled(*found)})

    def narrowed(self, tables: Sequence[Array], below: Sequence[int] | None = None) -> Search:
        """With what was counted at `places`; where there are guesses, also how many lie below each interval."""
        places = self.places()
        counted = {
            place: (less, table.cumsum(dtype=np.int64))
            for place, table, less in zip(places, tables, below or [0] * len(places), strict=True)
        }
        found = dict(self.found)
        for (i, g, rank), (interval, known) in self.found.items():
            if not _settled(interval, known):
                less, upto = counted[i, g, interval]
                found[i, g, rank] = self._narrower(interval, rank, less if known is None else known, upto)
        return Search(found, self.bins, self.itemsize)

    def _narrower(self, interval: Interval, rank: int, below: int, upto: Counts) -> tuple[Interval, int]:
        if rank < below:
            low, high, below = 0, interval.low - 1, 0
        elif rank >= below + int(upto[-1]):
            low, high, below = interval.high + 1, (1 << 8 * self.itemsize - 1) - 1, below + int(upto[-1])
        else:
            k = int(np.searchsorted(upto, rank - below, "right"))
            low = interval.low + (k << interval.shift)
            high = min(low + (1 << interval.shift) - 1, interval.high)
            below += int(upto[k - 1]) if k else 0
        return Interval.within(low, high, self.bins), below

    def medians(self, dtype: DType) -> dict[int, Floats]:
        """Of each level, shape (groups,): the mean of the middle two."""
        bits: dict[int, dict[int, list[int]]] = {}
        for (i, g, _), (interval, _) in sorted(self.found.items()):
            bits.setdefault(i, {}).setdefault(g, []).append(interval.low)
        medians = {}
        for i, groups in bits.items():
            pairs = np.array([[own[0], own[-1]] for own in groups.values()], f"u{dtype.itemsize}")
            medians[i] = np.asarray(pairs.view(dtype).mean(axis=1, dtype=np.float64))
        return medians


def _settled(interval: Interval, below: int | None) -> bool:
    return interval.low == interval.high and below is not None
