"""Means and straight lines of traces, removed before the transform and added again after it.

They are fitted by least squares, from sums over fixed blocks of samples: the same bits for a trace in memory and for
one of which a block is there at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array
from wavefilt.vocabulary import Detrend

BLOCK = 1 << 14
"""Samples at a time: what is computed from them stays in the second-level cache."""
READ = 16 * BLOCK
"""Samples of a row that are read at a time."""


@dataclass(frozen=True)
class Trend:
    """The lines ``middle`` + ``slope`` (i - (samples - 1)/2) at sample i, a row each; both are (rows, 1)."""

    middle: Array
    slope: Array
    samples: int

    @property
    def each(self) -> list[Trend]:
        """Of each row its own."""
        rows = zip(self.middle[:, None], self.slope[:, None], strict=True)
        return [Trend(middle, slope, self.samples) for middle, slope in rows]

    @property
    def highest(self) -> float:
        """No magnitude of a line is larger; NaN if one is no number."""
        return float((np.abs(self.middle) + np.abs(self.slope) * self.samples).max(initial=0))

    def removed(self, rows: Array) -> Array:
        """A copy of the rows without the lines."""
        out = np.empty_like(rows)
        self.remove(rows, 0, out)
        return out

    def restore(self, rows: Array) -> None:
        """Add the lines to the rows, in place."""
        self.add(rows, 0, rows)

    def remove(self, rows: Array, first: int, out: Array) -> None:
        """Into ``out`` the rows, which begin at sample ``first``, without the lines."""
        self._change(np.subtract, rows, first, out)

    def add(self, rows: Array, first: int, out: Array) -> None:
        """The opposite of `remove`."""
        self._change(np.add, rows, first, out)

    def _change(self, operation: np.ufunc, rows: Array, first: int, out: Array) -> None:
        if not self.slope.any():
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
    """The trends of rows of this shape, of which ``read`` gives those of a slice, at a slice of their samples."""
    rows, samples = shape
    middle, slope, places = np.zeros((rows, 1)), np.zeros((rows, 1)), np.arange(BLOCK, dtype=np.float64)
    spread = samples * (samples**2 - 1) / 12
    for lot, part in _blocks(rows, 0, samples):
        block = read(lot, part)
        wide = block.astype(np.result_type(block.dtype, np.float64), order="C")
        if middle.dtype != wide.dtype:
            middle, slope = middle.astype(wide.dtype), slope.astype(wide.dtype)
        total = np.add.reduce(wide, axis=1, keepdims=True)
        middle[lot] += total / samples
        if kind == "line" and spread:
            wide *= places[: part.stop - part.start]
            moment = np.add.reduce(wide, axis=1, keepdims=True) + (part.start - (samples - 1) / 2) * total
            slope[lot] += moment / spread
    return Trend(middle, slope, samples)


def of_rows(rows: Array, kind: Detrend) -> Trend:
    """The trends of rows in memory."""
    return fit(lambda lot, part: rows[lot, part], (rows.shape[0], rows.shape[1]), kind)


def fit_read(read: Callable[[int, int], Array], samples: int, kind: Detrend) -> Trend:
    """The trend of a row that is elsewhere, of which ``read`` gives the samples from one to another, few times."""
    begin, held = 0, read(0, 0)

    def block(lot: slice, part: slice) -> Array:
        nonlocal begin, held
        if part.stop > begin + len(held):
            begin, held = part.start, read(part.start, min(part.start + READ, samples))
        return held[None, part.start - begin : part.stop - begin]

    return fit(block, (1, samples), kind)


def _blocks(rows: int, first: int, last: int) -> Iterator[tuple[slice, slice]]:
    """Slices of rows and samples that have `BLOCK` of them or fewer, or are of one row; cut at multiples of it."""
    together = max(BLOCK // max(last - first, 1), 1)
    for row in range(0, rows, together):
        for start in range(first // BLOCK * BLOCK, last, BLOCK):
            yield slice(row, min(row + together, rows)), slice(max(start, first), min(start + BLOCK, last))
