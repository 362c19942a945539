"""First breaks before and after denoising.

A floor under the variance keeps the silence before an onset from misleading the picker.
"""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array, Floats

SHORT, LONG, SHORTEST = 128, 16, (8, 32)
"""Parts of a trace in the short and the long window of STA/LTA, and their fewest samples."""
TRIGGER = 6.0
"""STA/LTA of a first break."""
FLOORS = 0.1, 0.05
"""In variances of the noise: added to the energies of STA/LTA, and to the variances of AIC."""
FEWEST, CONFIDENCE = 8, 0.99
"""First breaks that a test of their shift needs, and the confidence of the interval of its median."""


def energy_ratio(x: Floats, short: int, long: int, floor: float = 0.0) -> Floats:
    """Return the mean square of the next ``short`` samples over that of the last ``long``; 0 at the ends.

    ``floor`` is added to both. The largest ratio is at the onset itself.
    """
    total = np.concatenate([[0.0], np.cumsum(x**2)])
    at = np.arange(long, len(x) - short + 1)
    found = np.zeros(len(x))
    after, before = (total[at + short] - total[at]) / short, (total[at] - total[at - long]) / long
    found[at] = (after + floor) / (before + floor + 1e-12 * total[-1] / len(x))
    return found


def aic(x: Floats, floor: float = 0.0) -> int:
    """Return the sample that divides ``x`` best into two parts of different variance (Maeda 1985)."""
    k = np.arange(2, len(x) - 2)
    sums, squares = np.cumsum(x), np.cumsum(x**2)
    before = squares[k - 1] / k - (sums[k - 1] / k) ** 2
    rest = len(x) - k
    after = (squares[-1] - squares[k - 1]) / rest - ((sums[-1] - sums[k - 1]) / rest) ** 2
    levels = (np.maximum(variance, 0) + floor + 1e-300 for variance in (before, after))
    first, second = (np.log(level) for level in levels)
    return int(k[np.argmin(k * first + (rest - 1) * second)])


def first_breaks(noisy: Array, denoised: Array, noise: Floats) -> Floats:
    """Return the sample of the first break before and after, shape (traces, 2); NaN where none is found.

    AIC is computed around the first sample where STA/LTA exceeds `TRIGGER`, at the same samples of both traces. Both
    have to exceed it there. ``noise`` is the variance of the noise of each trace, 0 for a dead trace.
    """
    samples = noisy.shape[1]
    short, long = max(SHORTEST[0], samples // SHORT), max(SHORTEST[1], samples // LONG)
    found = np.full((len(noisy), 2), np.nan)
    for trace, (x, y) in enumerate(zip(noisy, denoised, strict=True)):
        if samples < 2 * (short + long) or not noise[trace] or not np.isfinite(x).all():
            continue
        before, after = (energy_ratio(rows - rows.mean(), short, long, FLOORS[0] * noise[trace]) for rows in (x, y))
        above = np.flatnonzero(before > TRIGGER)
        if not above.size:
            continue
        at = above[0] + int(np.argmax(before[above[0] : above[0] + short]))
        start = max(0, at - long)
        part = slice(start, min(samples, at + long // 2))
        if after[part].max() > TRIGGER:
            found[trace] = [start + aic(own[part], FLOORS[1] * noise[trace]) for own in (x, y)]
    return found


def median_interval(shifts: Floats) -> tuple[float, float]:
    """Return the confidence interval of the median, by order statistics, whatever the distribution."""
    from scipy.special import bdtr

    chances = bdtr(np.arange(len(shifts)), len(shifts), 0.5)
    rank = max(int(np.count_nonzero(chances <= (1 - CONFIDENCE) / 2)) - 1, 0)
    ordered = np.sort(shifts)
    return float(ordered[rank]), float(ordered[-1 - rank])


def moved(shifts: Floats) -> bool | None:
    """Return whether first breaks moved by a sample or more, None where that cannot be told."""
    if len(shifts) < FEWEST:
        return None
    low, high = median_interval(shifts)
    if low > 0 or high < 0:
        return abs(float(np.median(shifts))) >= 1
    return False if low > -2 and high < 2 else None
