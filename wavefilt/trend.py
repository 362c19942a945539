"""Means and straight lines of traces, removed before the transform and added again after it.

They are least-squares fits, computed from sums over fixed blocks of samples, so that a trace in memory and one that is
read block by block give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array
from wavefilt.vocabulary import Detrend

BLOCK = 1 << 14
"""Samples per block, few enough to stay in the second-level cache."""
READ = 16 * BLOCK
"""Samples of a row per read."""


@dataclass(frozen=True)
class Trend:
    """Lines ``middle`` + ``slope`` (i - (samples - 1)/2) at sample i, one for each row; both arrays are (rows, 1)."""

    middle: Array
    slope: Array
    samples: int
    sloping: bool
    """Whether any slope is not 0; less has to be computed without one."""

    @property
    def highest(self) -> float:
        """Upper bound for the magnitude of the lines; NaN if a line is not a number."""
        highest = np.abs(self.middle)
        if self.sloping:
            highest += np.abs(self.slope) * self.samples
        return float(highest.max(initial=0))

    def removed(self, rows: Array) -> Array:
        """Return a copy of the rows without the lines."""
        out = np.empty_like(rows)
        self.change(np.subtract, rows, 0, out)
        return out

    def restore(self, rows: Array) -> None:
        """Add the lines to the rows, in place."""
        self.change(np.add, rows, 0, rows)

    def change(self, operation: np.ufunc, rows: Array, first: int, out: Array) -> None:
        """Subtract the lines from rows that begin at sample ``first``, or add them, and write the result to ``out``."""
        if not self.sloping:
            operation(rows, self.middle.astype(rows.dtype), out=out)
            return
        places = np.arange(BLOCK, dtype=rows.real.dtype)
        for lot, part in _blocks(len(rows), first, first + rows.shape[1]):
            start = part.start // BLOCK * BLOCK
            base = self.middle[lot] + self.slope[lot] * (start - (self.samples - 1) / 2)
            own, lines = slice(part.start - first, part.stop - first), self.slope[lot].astype(rows.dtype)
            lines = lines * places[part.start - start : part.stop - start] + base.astype(rows.dtype)
            operation(rows[lot, own], lines, out=out[lot, own])


def fit(read: Callable[[slice, slice], Array], shape: tuple[int, int], kind: Detrend) -> Trend:
    """Fit the trends of rows of this shape; ``read`` returns the samples for a slice of rows and one of samples."""
    rows, samples = shape
    middle, slope = np.zeros((2, rows, 1))
    spread = samples * (samples**2 - 1) / 12 if kind == "line" else 0
    places = np.arange(BLOCK if spread else 0, dtype=np.float64)
    for lot, part in _blocks(rows, 0, samples):
        block = read(lot, part)
        wide = block.astype(np.complex128 if block.dtype.kind == "c" else np.float64, order="C")
        if middle.dtype != wide.dtype:
            middle, slope = middle.astype(wide.dtype), slope.astype(wide.dtype)
        total = np.add.reduce(wide, axis=1, keepdims=True)
        middle[lot] += total / samples
        if spread:
            wide *= places[: part.stop - part.start]
            moment = np.add.reduce(wide, axis=1, keepdims=True) + (part.start - (samples - 1) / 2) * total
            slope[lot] += moment / spread
    return Trend(middle, slope, samples, bool(spread and slope.any()))


def of_rows(rows: Array, kind: Detrend) -> Trend:
    """Fit the trends of rows in memory."""
    return fit(lambda lot, part: rows[lot, part], (rows.shape[0], rows.shape[1]), kind)


def fit_read(read: Callable[[int, int], Array], samples: int, kind: Detrend) -> Trend:
    """Fit the trend of one row of a file; ``read`` returns its samples from one place to another, in few calls."""
    begin, held = 0, read(0, 0)

    def block(lot: slice, part: slice) -> Array:
        nonlocal begin, held
        if part.stop > begin + len(held):
            begin, held = part.start, read(part.start, min(part.start + READ, samples))
        return held[None, part.start - begin : part.stop - begin]

    return fit(block, (1, samples), kind)


def _blocks(rows: int, first: int, last: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of rows and samples with at most `BLOCK` samples, or of one row, cut at multiples of `BLOCK`."""
    together = max(BLOCK // max(last - first, 1), 1)
    for row in range(0, rows, together):
        for start in range(first // BLOCK * BLOCK, last, BLOCK):
            yield slice(row, min(row + together, rows)), slice(max(start, first), min(start + BLOCK, last))
