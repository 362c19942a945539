"""Probabilities under noise alone by simulation, and what of many tests is left."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Floats, Mask

TAIL = 0.1
"""Share of the largest simulated values that an exponential tail continues (peaks over a threshold)."""


def p_values(values: Floats, null: Floats) -> Floats:
    """Probability of values at least as large, by values simulated under noise alone; NaN where a value is.

    Ranks among the simulated ones, and beyond the largest `TAIL` of them an exponential law with their mean excess.
    1 everywhere without any.
    """
    simulated = np.sort(null[np.isfinite(null)], axis=None)
    if not simulated.size:
        return np.where(np.isfinite(values), 1.0, np.nan)
    above = simulated.size - np.searchsorted(simulated, values, side="left")
    found = (above + 1) / (simulated.size + 1)
    first = int((1 - TAIL) * simulated.size)
    limit, tail = simulated[first], simulated[first:]
    excess = float(np.mean(tail - limit))
    if excess > 0:
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = TAIL * np.exp(-(values - limit) / excess)
        found = np.where(values > limit, np.maximum(beyond, 1e-300), found)
    return np.where(np.isfinite(values), np.minimum(found, 1), np.nan)


def rejected(p: Floats, rate: float) -> Mask:
    """Which hypotheses Benjamini and Hochberg (1995) reject at this false discovery rate; none that is NaN."""
    flat = p[np.isfinite(p)]
    ordered = np.sort(flat)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, flat.size + 1) / max(flat.size, 1))
    limit = ordered[passed[-1]] if passed.size else -1.0
    with np.errstate(invalid="ignore"):
        return np.asarray(p <= limit)
