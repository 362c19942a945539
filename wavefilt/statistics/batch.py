"""Statistics of details that are in host memory all at once: the reference for every other implementation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.statistics.interface import Risk

from . import counts as host_counts


class ReferenceStatistics:
    """Statistics of details given as one array (groups, coefficients) a level, finest first."""

    def __init__(self, details: Sequence[Array]) -> None:
        self._details = details

    @property
    def counts(self) -> Counts:
        return np.array([d.shape[-1] for d in self._details], dtype=np.int64)

    @property
    def groups(self) -> int:
        return len(self._details[0])

    def median_abs(self, levels: Sequence[int]) -> Floats:
        return np.array([_median(np.abs(self._details[i - 1])) for i in levels])

    def mean_square(self) -> Floats:
        with np.errstate(over="ignore"):  # an infinite mean square is told from by whoever uses it
            return np.array([np.mean(np.square(np.abs(d), dtype=np.float64), axis=-1) for d in self._details])

    def exceeding(self, thresholds: Floats) -> Counts:
        return np.array([host_counts.exceeding(d, t) for d, t in zip(self._details, thresholds, strict=True)])

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        return host_counts.histogram(self._details[level - 1], widths, bins)

    def minimise(self, risk: Risk, sigma: Floats) -> Floats:
        best = np.zeros_like(sigma)
        for row, details, scale in zip(best, self._details, sigma, strict=True):
            magnitudes = np.sort(np.abs(details).astype(np.float64), axis=-1)
            magnitudes = np.pad(magnitudes, ((0, 0), (1, 0)))  # 0 is a candidate too
            alive = scale > 0
            squares = (magnitudes[alive] / scale[alive, None]) ** 2
            rank = np.arange(squares.shape[-1])
            values = risk(squares, rank, np.cumsum(squares, axis=-1), details.shape[-1])
            row[alive] = np.take_along_axis(magnitudes[alive], np.argmin(values, axis=-1)[:, None], -1)[:, 0]
        return best


def _median(magnitudes: Array) -> Floats:
    """Median of each row: the mean, in float64, of the two middle order statistics."""
    low, high = (magnitudes.shape[-1] - 1) // 2, magnitudes.shape[-1] // 2
    middle = np.partition(magnitudes, (low, high), axis=-1)[:, [low, high]]
    return np.asarray(middle.mean(axis=-1, dtype=np.float64))
