"""Statistics of details that are in host memory all at once: the reference for every other implementation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.statistics.interface import Risk

from . import counts as host_counts

RANKS = 1 << 14
"""Sorted magnitudes whose risk is computed at a time."""
MOST = 1e6
"""Of 1/|d| in units of 1/sigma."""


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

    def quantile_abs(self, levels: Sequence[int], share: float) -> Floats:
        return np.array([quantile(np.abs(self._details[i - 1]), share) for i in levels])

    def mean_square(self) -> Floats:
        with np.errstate(over="ignore"):  # who uses a mean square checks that it is finite
            squares = [np.square(np.abs(d), dtype=np.float64) for d in self._details]
            return np.array([np.add.reduce(own, axis=-1) / own.shape[-1] for own in squares])  # np.mean takes longer

    def exceeding(self, thresholds: Floats) -> Counts:
        return np.array([host_counts.exceeding(d, t) for d, t in zip(self._details, thresholds, strict=True)])

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        return host_counts.histogram(self._details[level - 1], widths, bins)

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        levels = zip(self._details, sigma, strict=True)
        return np.array([least_risk(risk, np.sort(np.abs(d), axis=-1), scale, inverse) for d, scale in levels])


def least_risk(risk: Risk, magnitudes: Array, sigma: Floats, inverse: bool = False) -> Floats:
    """The first of each row of sorted magnitudes (rows, coefficients), or 0, where the risk is least, shape (rows,).

    ``sigma`` (rows,) is the scale of what the risk sees, as `Statistics.minimise` says; where it is 0 the result is 0.
    Few ranks are taken at a time, to save memory.
    """
    rows, count = magnitudes.shape
    best, below = np.zeros(rows), np.zeros((rows, 1))
    alive = sigma > 0
    scale = np.where(alive, sigma, 1)[:, None]
    above = _inverse(magnitudes, scale).sum(axis=1, keepdims=True) if inverse else below
    least = risk(below, np.arange(1), below, count, *[above] * inverse)[:, 0]  # 0 is a candidate too
    for start in range(0, count, RANKS):
        part = magnitudes[:, start : start + RANKS].astype(np.float64)
        squares = (part / scale) ** 2
        sums = np.cumsum(np.concatenate([below, squares], axis=1), axis=1)[:, 1:]
        below = sums[:, -1:]
        others = []
        if inverse:
            larger = np.maximum(above - np.cumsum(_inverse(part, scale), axis=1), 0)
            others, above = [larger], larger[:, -1:]
        values = risk(squares, np.arange(start + 1, start + part.shape[1] + 1), sums, count, *others)
        where = np.argmin(values, axis=1)[:, None]
        value = np.take_along_axis(values, where, 1)[:, 0]
        found = np.take_along_axis(part, where, 1)[:, 0]
        best = np.where(value < least, found, best)
        least = np.minimum(least, value)
    return np.where(alive, best, 0.0)


def _inverse(magnitudes: Array, scale: Floats) -> Floats:
    """1/|d| in units of 1/sigma, at most `MOST`, so that those of zeros leave the others in a sum."""
    return np.asarray(scale / np.maximum(magnitudes, scale / MOST))


def quantile(magnitudes: Array, share: float) -> Floats:
    """As `Statistics.quantile_abs` along the last axis, in float64."""
    (low, high), part = around(magnitudes.shape[-1], share)
    ordered = np.partition(magnitudes, (low, high), axis=-1)
    return between(np.stack([ordered[..., low], ordered[..., high]], axis=-1), part)


def around(count: int, share: float) -> tuple[tuple[int, int], float]:
    """The ranks between which the quantile lies, and the weight of the upper one."""
    place = share * (count - 1)
    low = int(place)
    return (low, low + (place > low)), place - low


def between(pairs: Array, part: float) -> Floats:
    """What lies between two magnitudes (..., 2), by the weight of the second, in float64."""
    wide = pairs.astype(np.float64)
    return np.asarray((1 - part) * wide[..., 0] + part * wide[..., 1])


def median(magnitudes: Array) -> Floats:
    """Median along the last axis: the mean, in float64, of the two middle order statistics."""
    low, high = (magnitudes.shape[-1] - 1) // 2, magnitudes.shape[-1] // 2
    ordered = np.partition(magnitudes, (low, high), axis=-1)
    return np.asarray(np.add(ordered[..., low], ordered[..., high], dtype=np.float64) / 2)
