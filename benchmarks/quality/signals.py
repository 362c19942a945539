"""Test functions of the wavelet literature, by their formulas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

JUMPS = np.array([0.10, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81])
"""Where Blocks jumps and Bumps has its peaks, of 0 to 1."""
STEPS = np.array([4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2])
HEIGHTS = np.array([4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
WIDTHS = np.array([0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005])


def blocks(t: Samples) -> Samples:
    """Steps (Donoho and Johnstone 1994, table 1)."""
    return np.asarray((STEPS * (1 + np.sign(t[:, None] - JUMPS)) / 2).sum(axis=1))


def bumps(t: Samples) -> Samples:
    """Narrow peaks (Donoho and Johnstone 1994, table 1)."""
    return np.asarray((HEIGHTS * (1 + np.abs(t[:, None] - JUMPS) / WIDTHS) ** -4).sum(axis=1))


def heavisine(t: Samples) -> Samples:
    """A sine with two jumps (Donoho and Johnstone 1994, table 1)."""
    return 4 * np.sin(4 * np.pi * t) - np.sign(t - 0.3) - np.sign(0.72 - t)


def doppler(t: Samples) -> Samples:
    """An oscillation that slows down (Donoho and Johnstone 1994, table 1)."""
    return np.sqrt(t * (1 - t)) * np.sin(2.1 * np.pi / (t + 0.05))


def spikes(t: Samples) -> Samples:
    """Five Gaussian peaks (Antoniadis, Bigot and Sapatinas 2001); the last as Xing et al. 2021 have it, not 3/4."""
    peaks = ((0.75, 500, 0.23), (1.5, 2000, 0.33), (3, 8000, 0.47), (2.25, 16000, 0.69), (0.5, 32000, 0.83))
    return np.asarray(sum(size * np.exp(-narrow * (t - at) ** 2) for size, narrow, at in peaks))


ANGLES = ((0, 0.5), (0.15, 0.8), (0.2, 0.2), (0.5, 0.2), (0.6, 0.8), (0.65, 0.3), (0.85, 0.2), (1, 0.5))
"""Corners of Angles: place and value."""


def angles(t: Samples) -> Samples:
    """Straight lines (Antoniadis, Bigot and Sapatinas 2001)."""
    places, values = zip(*ANGLES, strict=True)
    return np.asarray(np.interp(t, places, values))


def blip(t: Samples) -> Samples:
    """A line with a hump and a jump at 0.8 (Antoniadis, Bigot and Sapatinas 2001)."""
    late = t > 0.8
    return 0.32 - 0.6 * late + 0.6 * t + 0.3 * np.exp(-100 * (t - 0.3 - late) ** 2)


def corner(t: Samples) -> Samples:
    """Polynomials that meet at 0.5 and 0.8 (Antoniadis, Bigot and Sapatinas 2001), as Xing et al. 2021 have them."""
    first, second = 623.87 * t**3 * (1 - 2 * t), 187.161 * (0.125 - t**3) * t**4
    return np.select([t <= 0.5, t <= 0.8], [first, second], 3708.470441 * (t - 1) ** 3)


def _lifted(values: Samples) -> Samples:
    """From 0.2 to 0.8. The mean counts: errors are divided by the sum of squares."""
    return np.asarray(0.2 + 0.6 * (values - values.min()) / np.ptp(values))


def published(samples: int = 1024) -> dict[str, Samples]:
    """The seven signals of Xing, Carbonetto and Stephens, JMLR 22(93) 2021, as scaled there."""
    t = np.arange(1, samples + 1) / samples
    made = {"Blocks": _lifted(blocks(t)), "Bumps": (1 + 2.97 / 5 * bumps(t)) / 5, "Doppler": _lifted(doppler(t))}
    made |= {"Spikes": (1 + spikes(t)) / 5, "Angles": _lifted(angles(t)), "Blip": blip(t)}
    return made | {"Corner": _lifted(corner(t))}


def classic(samples: int = 2048, ratio: float = 7) -> dict[str, Samples]:
    """Donoho and Johnstone's four, whose standard deviation is ``ratio``."""
    t = np.arange(1, samples + 1) / samples
    made = {"Blocks": blocks(t), "Bumps": bumps(t), "HeaviSine": heavisine(t), "Doppler": doppler(t)}
    return {name: values * (ratio / values.std()) for name, values in made.items()}
