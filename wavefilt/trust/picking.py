"""First breaks, with a floor under the variance without which the silence before an onset misleads pickers."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array, Floats

SHORT, LONG, SHORTEST = 128, 16, (8, 32)
"""Parts of a trace that the windows of STA/LTA have, and their samples at least."""
TRIGGER = 6.0
"""STA/LTA of a first break."""
FLOORS = 0.1, 0.05
"""In variances of the noise: under STA/LTA, and under AIC."""


def energy_ratio(x: Floats, short: int, long: int, floor: float = 0.0) -> Floats:
    """Mean square of the ``short`` samples from each one on over that of the ``long`` before it; 0 at the ends.

    ``floor`` is added to both, and a trifle to the latter. The largest is at the onset itself.
    """
    total = np.concatenate([[0.0], np.cumsum(x**2)])
    at = np.arange(long, len(x) - short + 1)
    found = np.zeros(len(x))
    after, before = (total[at + short] - total[at]) / short, (total[at] - total[at - long]) / long
    found[at] = (after + floor) / (before + floor + 1e-12 * total[-1] / len(x))
    return found


def aic(x: Floats, floor: float = 0.0) -> int:
    """The sample that parts ``x`` best into two of different variance (Maeda 1985), ``floor`` added to either."""
    k = np.arange(2, len(x) - 2)
    sums, squares = np.cumsum(x), np.cumsum(x**2)
    before = squares[k - 1] / k - (sums[k - 1] / k) ** 2
    rest = len(x) - k
    after = (squares[-1] - squares[k - 1]) / rest - ((sums[-1] - sums[k - 1]) / rest) ** 2
    levels = (np.maximum(variance, 0) + floor + 1e-300 for variance in (before, after))
    first, second = (np.log(level) for level in levels)
    return int(k[np.argmin(k * first + (rest - 1) * second)])


def first_breaks(noisy: Array, denoised: Array, noise: Floats) -> Floats:
    """Samples of the first break before and after, shape (traces, 2), NaN where STA/LTA finds none or there are gaps.

    AIC looks around the first sample where STA/LTA of the noisy trace exceeds `TRIGGER`, at the same samples of both.
    ``noise`` is the variance of the noise of each trace, 0 of a dead one, which has none.
    """
    samples = noisy.shape[1]
    short, long = max(SHORTEST[0], samples // SHORT), max(SHORTEST[1], samples // LONG)
    found = np.full((len(noisy), 2), np.nan)
    for trace, (x, y) in enumerate(zip(noisy, denoised, strict=True)):
        if samples < 2 * (short + long) or not noise[trace] or not np.isfinite(x).all():
            continue
        ratio = energy_ratio(x - x.mean(), short, long, FLOORS[0] * noise[trace])
        above = np.flatnonzero(ratio > TRIGGER)
        if not above.size:
            continue
        at = above[0] + int(np.argmax(ratio[above[0] : above[0] + short]))
        start = max(0, at - long)
        part = slice(start, min(samples, at + long // 2))
        found[trace] = [start + aic(own[part], FLOORS[1] * noise[trace]) for own in (x, y)]
    return found
