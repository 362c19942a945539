"""Long rows of details measured a part at a time, with the kernel, and so the sums, of `selection`."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.statistics.mergeable import Interval, Summation

from . import entries, memory, selection, team

AT_ONCE = 256
"""Blocks whose magnitudes inside the interval are listed at a time: 4 MiB of float32."""


def _energies(x: Array, y: Array, scale: float) -> tuple[float, float]:
    dtype = np.result_type(x, y, np.float32)
    x, y = (memory.packed(np.asarray(row, dtype)) for row in (x, y))
    sums = np.empty(2)
    entries.ENERGIES.of(dtype, x, y, float(scale), sums)(0, len(x))
    return float(sums[0]), float(sums[1])


class ChunkSums(Summation):
    """`wavefilt.statistics.mergeable.Summation` in blocks of `selection.CHUNK`, as `selection.NumbaStatistics` sums."""

    energies = staticmethod(_energies)
    tabulate = staticmethod(selection.count_inside)
    whole = selection.SHORT

    def measure_whole(self, details: Array) -> tuple[float, float]:
        statistics = selection.NumbaStatistics([[details[None]]], "record")
        return float(statistics.median_abs([1])[0, 0]), float(statistics.mean_square()[0, 0])

    def ends(self, size: int) -> Counts:
        return np.append(np.arange(0, size, selection.CHUNK), size)

    def total(self, sums: Floats, size: int) -> float:
        return float(sums.sum())

    def measure(
        self, details: Array, ends: Counts, interval: Interval | None, table: Array | None
    ) -> tuple[Floats, int]:
        count, below = len(ends) - 1, 0
        if details.dtype.kind == "c":
            details = np.abs(details)
        # an empty interval has low above high
        low, high = (1, 0) if interval is None else (interval.low, interval.high)
        lows, highs = np.array([[low], [high]], f"i{details.itemsize}")
        addresses, lengths = memory.address(details) + details.itemsize * ends[:-1], np.diff(ends)
        squares, pools = np.empty(count), np.zeros(count, np.int64)
        for start in range(0, count, AT_ONCE):
            some = slice(start, start + AT_ONCE)
            job, (listed, inside, less, own) = selection.survey(
                addresses[some], lengths[some], pools[some], details.dtype, lows, highs
            )
            team.run([job])
            squares[some] = own
            below += int(less.sum())
            if interval is not None and table is not None:
                for i, (row, n) in enumerate(zip(listed, inside, strict=True), start):
                    whole = n >= selection.LISTED - selection.STEP  # more than the list may hold
                    values = details[ends[i] : ends[i + 1]] if whole else row[:n].view(details.dtype)
                    selection.count_inside(interval, values, table)
        return squares, below
