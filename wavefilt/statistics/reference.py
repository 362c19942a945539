"""The statistics of detail coefficients that threshold rules may ask for, and the reference implementation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from wavefilt.arrays import Array, Counts, Floats

Risk = Callable[..., Array]
"""``risk(square, rank, sum_below, count)``: a function of the k-th smallest squared coefficient (in units of the
noise variance), k, the sum of the k smallest, and the number of coefficients; see `Statistics.minimise`."""

RANKS = 1 << 14
"""Number of sorted magnitudes whose risk is computed at once, to save memory."""
LARGEST_INVERSE = 1e6
"""Upper limit of 1/|d| in units of 1/sigma, so that the inverses of zeros do not hide the others in a sum."""
LEAF = 1 << 16
"""Number of squares that are added up at once: the sums of rows are those of rows read in parts, bit for bit."""


class Statistics(Protocol):
    """Statistics of the details of groups of traces. All of them can be computed chunk by chunk and merged.

    Arrays have one row for each level, finest (level 1) first, and one column for each group: one trace
    (scope "trace") or all traces together (scope "record").
    """

    @property
    def counts(self) -> Counts:
        """Number of coefficients of one group at each level, shape (levels,)."""

    @property
    def groups(self) -> int:
        """Number of groups."""

    def quantile_abs(self, levels: Sequence[int], share: float = 0.5) -> Floats:
        """Return the quantiles of |d| of these levels, by default the medians, shape (len(levels), groups).

        Among n sorted magnitudes, counted from 0, this is the one of rank ``share`` (n - 1), interpolated linearly.
        """

    def mean_square(self) -> Floats:
        """Return the mean of |d|², shape (levels, groups)."""

    def exceeding(self, thresholds: Floats) -> Counts:
        """Count the |d| that are at least the threshold (levels, groups) of their level and group."""

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        """Count the |d| of a level in bins of each group's width (groups,), shape (groups, bins).

        The last bin also counts all larger values. With width 0 all values of a group are in the first bin.
        """

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        """Return the |d| of each level, or 0, at which ``risk`` is smallest, shape (levels, groups).

        If several values have the same risk, the smallest one is returned. For 0 the arguments of the risk are 0.
        ``sigma`` (levels, groups) scales the squares; where it is 0 the result is 0. With ``inverse`` the risk takes
        one more argument: the sum of 1/|d| of the larger values, in units of 1/sigma.
        """


@dataclass(frozen=True)
class Measured:
    """Noise, thresholds and mean squares (None if not computed) as arrays (levels, traces), finest level first."""

    sigma: Floats
    thresholds: Floats
    power: Floats | None


class ReferenceStatistics:
    """Statistics of details in host memory, given as one array (groups, coefficients) for each level."""

    def __init__(self, details: Sequence[Array]) -> None:
        self._details = details

    @property
    def counts(self) -> Counts:
        return np.array([d.shape[-1] for d in self._details], dtype=np.int64)

    @property
    def groups(self) -> int:
        return len(self._details[0])

    def quantile_abs(self, levels: Sequence[int], share: float = 0.5) -> Floats:
        return np.array([quantile(np.abs(self._details[i - 1]), share) for i in levels])

    def mean_square(self) -> Floats:
        with np.errstate(over="ignore"):  # callers check that mean squares are finite
            return np.array([energy(d) / d.shape[-1] for d in self._details])  # np.mean takes longer

    def exceeding(self, thresholds: Floats) -> Counts:
        return np.array([exceeding(d, t) for d, t in zip(self._details, thresholds, strict=True)])

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        return histogram(self._details[level - 1], widths, bins)

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        levels = zip(self._details, sigma, strict=True)
        return np.array([least_risk(risk, np.sort(np.abs(d), axis=-1), scale, inverse) for d, scale in levels])


def energy(rows: Array) -> Floats:
    """Return Σ|d|² of each row (..., coefficients) in float64, the sum of the sums of `LEAF` coefficients each."""
    squares = np.square(np.abs(rows), dtype=np.float64)
    parts = [np.add.reduce(squares[..., a : a + LEAF], axis=-1) for a in range(0, max(squares.shape[-1], 1), LEAF)]
    return np.asarray(parts[0] if len(parts) == 1 else np.add.reduce(np.stack(parts, axis=-1), axis=-1))


def quantile(magnitudes: Array, share: float = 0.5) -> Floats:
    """Return the quantile, or the median, along the last axis in float64, as `Statistics.quantile_abs` defines it."""
    (low, high), weight = around(magnitudes.shape[-1], share)
    ordered = np.partition(magnitudes, (low, high), axis=-1)
    return between(np.stack([ordered[..., low], ordered[..., high]], axis=-1), weight)


def around(count: int, share: float) -> tuple[tuple[int, int], float]:
    """Return the two ranks between which a quantile of ``count`` values lies, and the weight of the upper one."""
    place = share * (count - 1)
    low = int(place)
    return (low, low + (place > low)), place - low


def between(pairs: Array, weight: float) -> Floats:
    """Interpolate between two magnitudes (..., 2), with this weight of the second one, in float64."""
    wide = pairs.astype(np.float64)
    return np.asarray((1 - weight) * wide[..., 0] + weight * wide[..., 1])


def exceeding(rows: Array, thresholds: Floats) -> Counts:
    """Count the |d| of each row (rows, coefficients) that are at least its threshold (rows,)."""
    return np.asarray(np.count_nonzero(np.abs(rows) >= thresholds[:, None], axis=1))


def histogram(rows: Array, widths: Floats, bins: int) -> Counts:
    """Count the |d| of each row in bins of its width (rows,), as `Statistics.histogram` does; shape (rows, bins)."""
    scale = np.divide(1, widths, out=np.zeros_like(widths), where=widths > 0)[:, None]
    places = np.fmin(np.abs(rows) * scale, bins - 1).astype(np.int64)
    return np.array([np.bincount(own, minlength=bins) for own in places])


def least_risk(risk: Risk, magnitudes: Array, sigma: Floats, inverse: bool = False) -> Floats:
    """Return the value of each row of sorted magnitudes, or 0, at which the risk is smallest, shape (rows,).

    The arguments are those of `Statistics.minimise`, with ``sigma`` of shape (rows,).
    """
    rows, count = magnitudes.shape
    best, below = np.zeros(rows), np.zeros((rows, 1))
    alive = sigma > 0
    scale = np.where(alive, sigma, 1)[:, None]
    above = _inverse(magnitudes, scale).sum(axis=1, keepdims=True) if inverse else below
    least = risk(below, np.arange(1), below, count, *[above] * inverse)[:, 0]  # the threshold may be 0 too
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
        best = np.where(value < least, np.take_along_axis(part, where, 1)[:, 0], best)
        least = np.minimum(least, value)
    return np.where(alive, best, 0.0)


def _inverse(magnitudes: Array, scale: Floats) -> Floats:
    """Return 1/|d| in units of 1/sigma, at most `LARGEST_INVERSE`."""
    return np.asarray(scale / np.maximum(magnitudes, scale / LARGEST_INVERSE))
