"""The power spectrum of the noise in traces, by the samples themselves, and noise drawn from it."""

from __future__ import annotations

import math

import numpy as np

from wavefilt.arrays import Array, Floats

SHORTEST, LONGEST, PARTS = 16, 4096, 8
"""Fewest and most samples of a segment, and how many of them, side by side, a trace has at least."""
RESOLVED = 16
"""Periods in a noise window from which on it tells the power of a frequency; of lower ones the whole trace does."""
REAL = 0.656
"""Median over mean of the square of a normal number, 0.455, over that of an exponential number, ln 2."""


def white(sigma: Floats, samples: int) -> Floats:
    """The power (traces, frequencies) of white noise with these standard deviations."""
    return np.repeat(np.square(sigma)[:, None], samples // 2 + 1, axis=1)


def of_traces(x: Array) -> Floats:
    """Power of the noise of traces (traces, samples), NaN where there are gaps, at the frequencies of their FFT.

    White noise of variance 1 has power 1. It is the median over segments that overlap by half: of noise alone their
    power has an exponential distribution, and at the frequencies 0 and 1/2 that of the square of a normal number.
    """
    power = _periodograms(x, _segment(x.shape[1], PARTS))
    ratio = np.full(power.shape[-1], median_of_exponentials(power.shape[1]))
    ratio[[0, -1]] *= REAL
    return _at_all(np.nanmedian(power, axis=1) / ratio, x.shape[1])


def median_of_exponentials(count: int) -> float:
    """Expected median of so many independent exponential numbers of mean 1, which tends to ln 2."""
    middle = (count - 1) // 2, count // 2
    return float(np.mean([sum(1 / (count - smaller) for smaller in range(place + 1)) for place in middle]))


def of_window(x: Array, window: slice) -> Floats:
    """As `of_traces`, but from samples that are noise alone, where these are some periods of the frequency."""
    inside = x[:, window]
    power = _at_all(_periodograms(inside, _segment(inside.shape[1], 4)).mean(axis=1), x.shape[1])
    low = np.fft.rfftfreq(x.shape[1]) < RESOLVED / inside.shape[1]
    power[:, low] = of_traces(x)[:, low]
    return power


def drawn(power: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """Gaussian noise (traces, samples) of this power."""
    spectrum = np.fft.rfft(rng.standard_normal((len(power), samples)))
    return np.asarray(np.fft.irfft(spectrum * np.sqrt(power), samples))


def variance(power: Floats, samples: int) -> Floats:
    """Of noise of this power, by trace."""
    count = np.full(power.shape[1], 2.0)
    count[0] = 1
    if samples % 2 == 0:
        count[-1] = 1
    return np.asarray(power @ count / samples)


def _segment(samples: int, parts: int) -> int:
    """Samples of a segment, a power of 2."""
    return min(LONGEST, max(SHORTEST, 1 << int(math.log2(max(samples / parts, 1)))), samples)


def _periodograms(x: Array, length: int) -> Floats:
    """Power (traces, segments, frequencies) of segments under a Hann window, without the mean of their trace.

    It is NaN for segments of which half or more is in gaps, unless all of a trace are: then it is 0.
    """
    known = ~np.isnan(x)
    x = np.where(known, x - np.nanmean(x, axis=1, keepdims=True, dtype=np.float64), 0)
    taper = np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2
    step = max(length // 2, 1)
    segments, there = (np.lib.stride_tricks.sliding_window_view(y, length, axis=1)[:, ::step] for y in (x, known))
    weight = there @ taper**2
    power = np.abs(np.fft.rfft(segments * taper)) ** 2 / np.maximum(weight, 1e-300)[..., None]
    power[weight <= np.sum(taper**2) / 2] = np.nan
    power[np.isnan(power).all(axis=(1, 2))] = 0
    return np.asarray(power)


def _at_all(power: Floats, samples: int) -> Floats:
    """The power at the frequencies of an FFT of so many samples, linear between those where it is known."""
    known, wanted = np.linspace(0, 0.5, power.shape[1]), np.fft.rfftfreq(samples)
    return np.array([np.interp(wanted, known, row) for row in power])
