"""Statistics of details that are in host memory all at once: the reference for every other implementation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.statistics.interface import Risk

from . import counts as host_counts

RANKS = 1 << 14
"""Sorted magnitudes whose risk is computed at a time."""


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
        return np.array([median(np.abs(self._details[i - 1])) for i in levels])

    def mean_square(self) -> Floats:
        with np.errstate(over="ignore"):  # who uses a mean square checks that it is finite
            squares = [np.square(np.abs(d), dtype=np.float64) for d in self._details]
            return np.array([np.add.reduce(own, axis=-1) / own.shape[-1] for own in squares])  # np.mean takes longer

    def exceeding(self, thresholds: Floats) -> Counts:
        return np.array([host_counts.exceeding(d, t) for d, t in zip(self._details, thresholds, strict=True)])

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        return host_counts.histogram(self._details[level - 1], widths, bins)

    def minimise(self, risk: Risk, sigma: Floats) -> Floats:
        levels = zip(self._details, sigma, strict=True)
        return np.array([least_risk(risk, np.sort(np.abs(d), axis=-1), scale) for d, scale in levels])


def least_risk(risk: Risk, magnitudes: Array, sigma: Floats) -> Floats:
    """The first of each row of sorted magnitudes (rows, coefficients), or 0, where the risk is least, shape (rows,).

    ``sigma`` (rows,) is the scale of the squares that the risk sees; where it is 0 the result is 0. Few ranks are
    taken at a time, to save memory.
    """
    rows, count = magnitudes.shape
    best, below = np.zeros(rows), np.zeros((rows, 1))
    least = risk(below, np.arange(1), below, count)[:, 0]  # 0 is a candidate too
    alive = sigma > 0
    scale = np.where(alive, sigma, 1)[:, None]
    for start in range(0, count, RANKS):
        part = magnitudes[:, start : start + RANKS].astype(np.float64)
        squares = (part / scale) ** 2
        sums = np.cumsum(np.concatenate([below, squares], axis=1), axis=1)[:, 1:]
        below = sums[:, -1:]
        values = risk(squares, np.arange(start + 1, start + part.shape[1] + 1), sums, count)
        where = np.argmin(values, axis=1)[:, None]
        value = np.take_along_axis(values, where, 1)[:, 0]
        found = np.take_along_axis(part, where, 1)[:, 0]
        best = np.where(value < least, found, best)
        least = np.minimum(least, value)
    return np.where(alive, best, 0.0)


def median(magnitudes: Array) -> Floats:
    """Median along the last axis: the mean, in float64, of the two middle order statistics."""
    low, high = (magnitudes.shape[-1] - 1) // 2, magnitudes.shape[-1] // 2
    ordered = np.partition(magnitudes, (low, high), axis=-1)
    return np.asarray(np.add(ordered[..., low], ordered[..., high], dtype=np.float64) / 2)
