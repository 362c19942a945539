"""Two pickers of P onsets, with a floor under the variance without which silence misleads them."""

from __future__ import annotations

import numpy as np

from wavefilt.benchmarks.quality.earthquakes import NOISE, Records
from wavefilt.benchmarks.quality.signals import Samples
from wavefilt.trust.picking import aic, energy_ratio

AIC, AIC_FLOOR = 4.5, 0.05
"""Seconds around P, and the floor in variances of the noise before denoising."""
SHORT, LONG, RATIO_FLOOR = 0.5, 5.0, 0.1
"""Seconds after and before a sample for STA/LTA, and its floor, likewise."""
TRIGGER = 4.0
"""STA/LTA that is an arrival: what no window of noise reaches, see `field_records.LIMITS`."""
FAR = 0.2
"""Seconds beyond which a pick is an outlier."""


def sta_lta(x: Samples, short: int, long: int, floor: float = 0.0) -> int:
    """The largest STA/LTA within ``short`` samples of the first above `TRIGGER`, or the largest if there is none."""
    ratio = energy_ratio(x, short, long, floor)
    above = np.flatnonzero(ratio > TRIGGER)
    if not len(above):
        return int(np.argmax(ratio))
    return int(above[0] + np.argmax(ratio[above[0] : above[0] + short]))


def errors(records: Records, y: Samples, picker: str, floored: bool = True) -> Samples:
    """Seconds between the pick in ``y``, which is ``records.x`` or what became of it, and P.

    AIC looks at `AIC` seconds around P, at a random place in the middle third; STA/LTA has the whole record.
    """
    rng = np.random.default_rng(4)
    found = np.empty(len(records))
    for i, (before, after) in enumerate(zip(records.x, y, strict=True)):
        rate, onset, variance = records.rate[i], int(records.onset[i]), float(before[slice(*NOISE)].var())
        if picker == "AIC":
            length = round(AIC * rate)
            start = onset - int(length * rng.uniform(1 / 3, 2 / 3))
            pick = start + aic(after[start : start + length], AIC_FLOOR * variance * floored)
        else:
            pick = sta_lta(after, round(SHORT * rate), round(LONG * rate), RATIO_FLOOR * variance * floored)
        found[i] = abs(pick - onset) / rate
    return found
