"""Statistics of details that are seen a chunk at a time: exact medians by counting, sums, and for SURE all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wavefilt.statistics.interface import Risk, Statistics
from wavefilt.statistics.radix_select import Interval, Search

from . import counts as host_counts

BINS = {4: 1 << 16, 8: 1 << 21}
"""Of a table for magnitudes of so many bytes: two looks find a float32, three a float64."""
Details = Sequence[Sequence[Any]]
"""Details of a chunk: for each level, finest first, arrays (rows, coefficients) of the backend's kind."""


class Tally(Protocol):
    """What is counted and summed up while chunks pass by, in the memory where the details are."""

    def __init__(self, dtype: np.dtype[Any], intervals: Sequence[Interval], sums: int) -> None:
        """Nothing yet: a count for each bin of each interval, and ``sums`` sums; ``dtype`` is that of |d|."""

    def count(self, i: int, details: Any) -> None:
        """Count the magnitudes of ``details`` (rows, coefficients) in the i-th interval."""

    def add_squares(self, i: int, details: Any) -> None:
        """Add their squares to the i-th sum, in float64."""

    def counts(self) -> list[NDArray[np.int64]]:
        """The counts of every interval."""

    def sums(self) -> NDArray[np.float64]:
        """The sums."""


class HostTally:
    """`Tally` of NumPy arrays."""

    def __init__(self, dtype: np.dtype[Any], intervals: Sequence[Interval], sums: int) -> None:
        self._intervals = intervals
        self._counts = [np.zeros(interval.bins, np.int64) for interval in intervals]
        self._sums = np.zeros(sums)

    def count(self, i: int, details: NDArray[Any]) -> None:
        self._intervals[i].tabulate(np.abs(details), self._counts[i])

    def add_squares(self, i: int, details: NDArray[Any]) -> None:
        with np.errstate(over="ignore"):
            self._sums[i] += np.sum(np.square(np.abs(details), dtype=np.float64))

    def counts(self) -> list[NDArray[np.int64]]:
        return self._counts

    def sums(self) -> NDArray[np.float64]:
        return self._sums


def not_finite(dtype: np.dtype[Any]) -> Interval:
    """All magnitudes that are not finite, and they alone, in one bin."""
    mantissa, top = np.finfo(dtype).nmant, (1 << 8 * dtype.itemsize - 1) - 1
    return Interval(top >> mantissa << mantissa, top, mantissa)


@dataclass
class ChunkedStatistics:
    """`Statistics` of one group of traces, whose details ``visit`` shows chunk by chunk as often as it is called.

    ``pooled`` gives the statistics of details (1, coefficients) that are in host memory all at once. Where another look
    is ``cheap``, squares are summed up only when they are asked for.
    """

    counts: NDArray[np.int64]
    dtype: np.dtype[Any]
    visit: Callable[[Callable[[Details], None]], None]
    tally: type[Tally]
    to_host: Callable[[Any], NDArray[Any]]
    pooled: Callable[[NDArray[Any]], Statistics]
    groups: int = 1
    cheap: bool = False
    _sums: NDArray[np.float64] | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)  # chunks may be looked at together

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        size = self.dtype.itemsize
        search = Search.begin(self.counts, levels, 1, size, BINS[size])
        while places := search.places():
            search = search.narrowed(self._look([(level, interval) for level, _, interval in places]))
        medians = search.medians(self.dtype)
        return np.array([medians[i] for i in levels])

    def mean_square(self) -> NDArray[np.float64]:
        if self._sums is None:
            self._look([])
        assert self._sums is not None
        return (self._sums / self.counts)[:, None]

    def _look(self, asked: Sequence[tuple[int, Interval]]) -> list[NDArray[np.int64]]:
        """Show all chunks once and count in intervals of these levels; sum up squares if that saves a look."""
        sums = 0 if self._sums is not None or (asked and self.cheap) else len(self.counts)
        tally = self.tally(self.dtype, [interval for _, interval in asked], sums)

        def look(details: Details) -> None:
            for k, (level, _) in enumerate(asked):
                for part in details[level - 1]:
                    tally.count(k, part)
            for k in range(sums):
                for part in details[k]:
                    tally.add_squares(k, part)

        self.visit(look)
        if sums:
            self._sums = tally.sums()
        return tally.counts()

    def exceeding(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        found = np.zeros(thresholds.shape, np.int64)

        def count(details: Details) -> None:
            for place, parts in enumerate(details):
                for part in parts:
                    rows = self.to_host(part)
                    here = host_counts.exceeding(rows, np.repeat(thresholds[place], len(rows))).sum()
                    with self._lock:
                        found[place] += here

        self.visit(count)
        return found

    def histogram(self, level: int, widths: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        found = np.zeros((1, bins), np.int64)

        def count(details: Details) -> None:
            for part in details[level - 1]:
                rows = self.to_host(part)
                here = host_counts.histogram(rows, np.repeat(widths, len(rows)), bins).sum(axis=0)
                with self._lock:
                    found[0] += here

        self.visit(count)
        return found

    def minimise(self, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        """As the protocol says, from all magnitudes of one level after the other in host memory.

        Raises MemoryError if they do not fit.
        """
        best = np.zeros_like(sigma)
        for i in np.flatnonzero(sigma[:, 0] > 0):
            try:
                best[i] = self.pooled(self._magnitudes(int(i))).minimise(risk, sigma[i : i + 1])[0]
            except MemoryError as error:
                raise MemoryError(
                    f"rule='sure' sorts all details of a level, and {self.counts[i]} of level {i + 1} do not fit in "
                    "memory; use another rule"
                ) from error
        return best

    def _magnitudes(self, place: int) -> NDArray[Any]:
        """|d| of one level, shape (1, coefficients)."""
        magnitudes, filled = np.empty((1, int(self.counts[place])), self.dtype), 0

        def gather(details: Details) -> None:
            nonlocal filled
            for part in details[place]:
                values = np.abs(self.to_host(part)).ravel()
                with self._lock:
                    magnitudes[0, filled : filled + values.size] = values
                    filled += values.size

        self.visit(gather)
        return magnitudes
