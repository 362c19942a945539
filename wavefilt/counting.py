"""Statistics of details that are seen a chunk at a time: exact medians by counting, sums, and for SURE all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends import Statistics, host_counts
from wavefilt.backends.interface import Risk
from wavefilt.searching import DIGITS, Digit, Search

Details = Sequence[Sequence[Any]]
"""Details of a chunk: for each level, finest first, arrays (rows, coefficients) of the backend's kind."""


class Tally(Protocol):
    """What is counted and summed up while chunks pass by, in the memory where the details are."""

    def __init__(self, dtype: np.dtype[Any], digits: Sequence[Digit], sums: int) -> None:
        """Nothing yet: a count for each value of each of ``digits``, and ``sums`` sums; ``dtype`` is that of |d|."""

    def count(self, i: int, details: Any) -> None:
        """Count the magnitudes of ``details`` (rows, coefficients) by the i-th digit."""

    def add_squares(self, i: int, details: Any) -> None:
        """Add their squares to the i-th sum, in float64."""

    def counts(self) -> list[NDArray[np.int64]]:
        """The counts of every digit."""

    def sums(self) -> NDArray[np.float64]:
        """The sums."""


class HostTally:
    """`Tally` of NumPy arrays."""

    def __init__(self, dtype: np.dtype[Any], digits: Sequence[Digit], sums: int) -> None:
        self._bits, self._digits = np.dtype(f"u{dtype.itemsize}"), digits
        self._counts = [np.zeros(digit.values, np.int64) for digit in digits]
        self._sums = np.zeros(sums)

    def count(self, i: int, details: NDArray[Any]) -> None:
        digit = self._digits[i]
        values = (np.abs(details).view(self._bits) >> digit.low) - self._bits.type(digit.first)  # wraps if below
        inside = values[values < digit.values].astype(np.intp)
        np.add.at(self._counts[i], inside, 1)  # bincount makes an array of all counts each time

    def add_squares(self, i: int, details: NDArray[Any]) -> None:
        with np.errstate(over="ignore"):
            self._sums[i] += np.sum(np.square(np.abs(details), dtype=np.float64))

    def counts(self) -> list[NDArray[np.int64]]:
        return self._counts

    def sums(self) -> NDArray[np.float64]:
        return self._sums


def exponent_of_infinity(dtype: np.dtype[Any]) -> Digit:
    """The digit that all values that are not finite have, and they alone: one count."""
    below = np.finfo(dtype).nmant
    return Digit((1 << np.finfo(dtype).nexp) - 1, below, below)


@dataclass
class ChunkedStatistics:
    """`Statistics` of one group of traces, whose details ``visit`` shows chunk by chunk as often as it is called.

    ``pooled`` gives the statistics of details (1, coefficients) that are in host memory all at once.
    """

    counts: NDArray[np.int64]
    dtype: np.dtype[Any]
    visit: Callable[[Callable[[Details], None]], None]
    tally: type[Tally]
    to_host: Callable[[Any], NDArray[Any]]
    pooled: Callable[[NDArray[Any]], Statistics]
    groups: int = 1
    _sums: NDArray[np.float64] | None = field(default=None, init=False)

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        search = Search.begin(self.counts, levels, 1, DIGITS[self.dtype.itemsize])
        while not search.done:
            search = search.narrowed(self._look([(level, digit) for level, _, digit in search.places()]))
        medians = search.medians(self.dtype)
        return np.array([medians[i] for i in levels])

    def mean_square(self) -> NDArray[np.float64]:
        if self._sums is None:
            self._look([])
        assert self._sums is not None
        return (self._sums / self.counts)[:, None]

    def _look(self, digits: Sequence[tuple[int, Digit]]) -> list[NDArray[np.int64]]:
        """Show all chunks once and count the digits of these levels; the first time, sum up squares as well."""
        sums = 0 if self._sums is not None else len(self.counts)
        tally = self.tally(self.dtype, [digit for _, digit in digits], sums)

        def look(details: Details) -> None:
            for k, (level, _) in enumerate(digits):
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
                    found[place] += host_counts.exceeding(rows, np.repeat(thresholds[place], len(rows))).sum()

        self.visit(count)
        return found

    def histogram(self, level: int, widths: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        found = np.zeros((1, bins), np.int64)

        def count(details: Details) -> None:
            for part in details[level - 1]:
                rows = self.to_host(part)
                found[0] += host_counts.histogram(rows, np.repeat(widths, len(rows)), bins).sum(axis=0)

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
                magnitudes[0, filled : filled + values.size] = values
                filled += values.size

        self.visit(gather)
        return magnitudes
