"""Correlation of the residual with that of the neighbouring trace."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Floats

WINDOW, LAG = 64, 8
"""Samples of a window, and the largest shift in either direction."""


def coherence(rows: Floats) -> Floats:
    """Return the largest correlation, by magnitude, of each window with the next trace, shape (traces - 1, windows).

    NaN where a window has gaps or is constant.
    """
    one, other = rows[:-1], rows[1:]
    count = rows.shape[1] // WINDOW
    best = np.full((len(one), count), -np.inf)

    def windows(values: Floats, shift: int) -> Floats:
        rolled = np.roll(values, shift, axis=1)[:, : count * WINDOW].reshape(len(values), count, WINDOW)
        return np.asarray(rolled - rolled.mean(axis=2, keepdims=True))

    first = windows(one, 0)
    power = np.einsum("ijk,ijk->ij", first, first)
    for lag in range(-LAG, LAG + 1):
        second = windows(other, lag)
        norm = np.sqrt(power * np.einsum("ijk,ijk->ij", second, second))
        product = np.einsum("ijk,ijk->ij", first, second)
        value = np.divide(product, norm, out=np.full_like(norm, np.nan), where=norm > 0)
        best = np.maximum(best, np.abs(value))
    return best
