"""Exact medians of magnitudes by radix selection: counts in intervals of their bits, which become narrower.

Magnitudes in the order of their bits are in the order of their values. Each pass over all of them counts those in an
interval by bins; the bin that holds the wanted rank is the next interval, until it holds one value only. Counts are
whole numbers: those of parts of the magnitudes may be added up in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array, Counts, DType


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

    def narrowed(self, rank: int, below: int, upto: Counts, itemsize: int, bins: int) -> tuple[Interval, int]:
        """Where the magnitude of this rank (from 0) lies, and how many lie below that, with so many bins at most.

        ``below`` lie below this interval, and ``upto`` are the cumulated counts of its bins. Of a rank that is not
        inside only the side is known.
        """
        if rank < below:
            return Interval.within(0, self.low - 1, bins), 0
        if rank >= below + int(upto[-1]):
            return Interval.within(self.high + 1, Interval.every(itemsize, bins).high, bins), below + int(upto[-1])
        k = int(np.searchsorted(upto, rank - below, "right"))
        low = self.low + (k << self.shift)
        high = min(low + (1 << self.shift) - 1, self.high)
        return Interval.within(low, high, bins), below + (int(upto[k - 1]) if k else 0)
