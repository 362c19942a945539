"""Long rows of details measured a part at a time, with the kernel, and so the sums, of `selection`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, Counts, Floats

from . import memory, selection
from .compiler import jit, sign_off

if TYPE_CHECKING:
    from wavefilt.statistics.radix_select import Interval

AT_ONCE = 256
"""Blocks whose magnitudes inside the interval are listed at a time: 8 MiB of float32."""


@jit
def tabulate(bits, all_bits, low, high, shift, table):
    """Count magnitudes from low to high by their bits above the last ``shift``."""
    for i in range(len(bits)):
        u = bits[i] & all_bits
        if low <= u <= high:
            table[(u - low) >> shift] += 1


def _energies(x: Array, y: Array, scale: float) -> tuple[float, float]:
    change, before = 0.0, 0.0
    for i in range(len(x)):
        wide = np.float64(x[i]) * scale
        less = wide - np.float64(y[i]) * scale
        before += wide * wide
        change += less * less
    return change, before


class ChunkSums:
    """`wavefilt.statistics.summation.Summation` in blocks of `selection.CHUNK`, as `selection.NumbaStatistics` sums."""

    energies = staticmethod(jit(_energies, fastmath={"reassoc", "contract", "nsz"}))

    @property
    def whole(self) -> int:
        return selection.SHORT

    def measure_whole(self, details: Array) -> tuple[float, float]:
        statistics = selection.NumbaStatistics([[details[None]]], "record")
        return float(statistics.median_abs([1])[0, 0]), float(statistics.mean_square()[0, 0])

    def tabulate(self, interval: Interval, details: Array, table: Array) -> None:
        """As `Interval.tabulate` of |d|, but compiled: several times as fast."""
        mask = sign_off(details.dtype)
        kind = mask.dtype.type
        limits = mask[0], kind(interval.low), kind(interval.high), kind(interval.shift)
        for row in np.atleast_2d(details):
            tabulate(row.view(mask.dtype), *limits, table)

    def ends(self, size: int) -> Counts:
        return np.append(np.arange(0, size, selection.CHUNK), size)

    def total(self, sums: Floats, size: int) -> float:
        return float(sums.sum())

    def measure(
        self, details: Array, ends: Counts, interval: Interval | None, table: Array | None
    ) -> tuple[Floats, int]:
        mask = sign_off(details.dtype)
        kind = mask.dtype.type
        # an empty interval has low above high
        low, high = (kind(1), kind(0)) if interval is None else (kind(interval.low), kind(interval.high))
        addresses = memory.address(details) + details.itemsize * ends[:-1]
        lengths, floats, count = np.diff(ends), np.empty(0, details.dtype), len(ends) - 1
        squares, inside, below = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
        lows, highs = np.full(count, low), np.full(count, high)
        bits = details.view(mask.dtype)
        for start in range(0, count, AT_ONCE):
            some = slice(start, min(start + AT_ONCE, count))
            listed = memory.empty((some.stop - start, selection.LISTED + 1), mask.dtype)
            blocks = [a[some] for a in (addresses, lengths)]
            arguments = (*blocks, mask, floats, lows[some], highs[some], listed, inside[some], below[some])
            threads.parallel(partial(selection.long_chunks, *arguments, squares[some]), some.stop - start)
            if interval is not None:
                for i in range(start, some.stop):
                    whole = inside[i] >= selection.LISTED - selection.STEP  # more than the list may hold
                    values = bits[ends[i] : ends[i + 1]] if whole else listed[i - start, : inside[i]]
                    tabulate(values, mask[0], low, high, kind(interval.shift), table)
        return squares, int(below.sum())
