"""The noise of a record as a power spectrum: declared, found in a quiet window, or estimated from whole traces.

The estimates are: ``declared``, by a noise window or a standard deviation that the user gives; ``found``, by a
stationary quiet window of the record, with its power raised by a quarter; ``flat``, the same without the rise towards
the frequencies that the window does not resolve; ``median``, over parts of the whole trace, frequency by frequency,
which takes a signal that fills more than half of a trace for noise; and ``extrapolated``, the median of the three
highest octaves, continued with their slope, which takes other low-frequency noise for signal.

Only a declaration is certain. `estimates` therefore returns the models that have to agree on a conclusion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from wavefilt.arrays import Array, Floats, Mask, constant, equal_runs
from wavefilt.decomposition import modwt
from wavefilt.options import LEAST_DECLARED, Clock, Noise, NoiseForm
from wavefilt.wavelets.filters import as_wavelet

Kind = Literal["declared", "found", "flat", "median", "extrapolated"]
SHORTEST, LONGEST, PARTS = 16, 4096, 8
"""Fewest and most samples of a segment of a trace, and the number of segments without overlap that a trace has."""
RESOLVED, STEEPEST = 4, 3
"""Periods of a frequency in a noise window from which on it determines the power. At lower frequencies, the power rises
as in the two octaves above, at most with this negative power of the frequency, up to the median of the whole trace."""
RAISED = 1.25
"""Factor on the power in a window that was found: the search prefers windows that happen to be quiet."""
SUSTAINED = 2.0
"""Variance of the median of a whole trace, over that in the window found, that shows a signal in most of the trace."""
REAL = 0.656
"""Median over mean of the square of a normal number, 0.455, divided by that of an exponential number, ln 2."""
BLOCK = 1 << 19
"""Samples that are transformed at a time."""
OCTAVE_WAVELET = "sym8"
"""Wavelet of the MODWT by which windows are found and results are tested: octaves are well separated."""
DEEPEST = 9
"""Most levels of that MODWT."""
TINIEST = 1e-300
"""Power that stands for none where its logarithm is taken."""


# ---- models


@dataclass(frozen=True)
class NoiseModel:
    """Stationary noise of each trace.

    Attributes
    ----------
    kind : {"declared", "found", "flat", "median", "extrapolated"}
    power : ndarray
        Power (traces, frequencies) at the frequencies of the FFT of a trace; 1 for white noise of variance 1, and 0
        for dead traces.
    samples : int
        Samples of a trace.
    sigma : option of `wavefilt.denoise`
        The declared noise, or the window that was found.
    """

    kind: Kind
    power: Floats
    samples: int
    sigma: NoiseForm = "level"

    @classmethod
    def of(cls, kind: Kind, x: Array, sigma: NoiseForm = "level") -> NoiseModel:
        """Estimate the noise of traces in which gaps are NaN."""
        window, frequencies, powers = Noise.of(sigma).window, x.shape[1] // 2 + 1, []
        for rows in in_blocks(x):
            if kind == "extrapolated":
                power = extrapolated_power(rows)
            elif kind == "median":
                power = power_of_traces(rows)
            elif window:
                power = power_in_window(rows, slice(*window), rising=kind != "flat")
            elif isinstance(sigma, str | tuple):  # "global"
                power = np.repeat(power_of_white_noise(rows)[:, None], frequencies, axis=1)
            else:
                power = np.where(np.isfinite(rows).any(axis=1, keepdims=True), np.full(frequencies, sigma**2), 0.0)
            powers.append(power)
        model = cls(kind, np.concatenate(powers), x.shape[1], sigma)
        model.power[:] *= model.raised
        return model

    @property
    def window(self) -> tuple[int, int] | None:
        """First sample of the noise window and the one after its last, None without a window."""
        return Noise.of(self.sigma).window

    @property
    def advice(self) -> str:
        """The declaration that would make a conclusion more certain."""
        return "another noise window" if self.kind == "declared" and self.window else "a noise window"

    @property
    def raised(self) -> float:
        """The factor by which the power was raised."""
        return RAISED if self.kind in ("found", "flat") else 1.0

    @property
    def variance(self) -> Floats:
        """The variance of the noise of each trace."""
        weights = np.full(self.power.shape[1], 2.0)
        weights[0] = 1
        if self.samples % 2 == 0:
            weights[-1] = 1
        return np.asarray(self.power @ weights / self.samples)

    @property
    def octaves(self) -> Floats:
        """The power of the noise (traces, octaves) in the bands of `octave_bands`; 1 for white noise of variance 1."""
        return np.asarray(self.power @ _octave_shares(self.samples).T)

    def words(self, clock: Clock, declared: str = "") -> str:
        """Return the origin of the estimate in words, with times of a clock; ``declared`` describes header windows."""
        if self.kind == "declared" and declared:
            return declared
        if self.kind == "median":
            return "median of the whole trace, by frequency"
        if self.kind == "extrapolated":
            return "extrapolated from the three highest octaves"
        if self.window is None:
            return "white, by the finest details" if self.sigma == "global" else "standard deviation"
        name, (start, stop) = "noise window" if self.kind == "declared" else "quiet window found", self.window
        if clock.interval is None:
            return f"{name} from sample {start} to {stop}"
        return f"{name} from {clock.time(start):.4g} to {clock.time(stop):.4g} s"

    def draw(self, rng: np.random.Generator, rows: Array | slice = slice(None)) -> Floats:
        """Return Gaussian noise (traces, samples) with the spectra of some of the traces."""
        amplitudes = np.sqrt(self.power[rows])
        spectrum = np.fft.rfft(rng.standard_normal((len(amplitudes), self.samples)))
        return np.asarray(np.fft.irfft(spectrum * amplitudes, self.samples))


def estimates(x: Array, sigma: NoiseForm = "level") -> tuple[NoiseModel, ...]:
    """Return the noise models that have to agree on a conclusion, the most plausible one first.

    A declared standard deviation stands alone. A declared window, and ``"global"`` (white noise), are accompanied by
    the median of the whole trace. Without a declaration these are the window that is found, the median, the window with
    a flat spectrum at the frequencies that it does not resolve, and the extrapolated spectrum. If no window is found,
    they are the extrapolated spectrum and the median.

    Parameters
    ----------
    x : ndarray
        Real traces (traces, samples). NaN, dead traces and runs of equal samples (`wavefilt.arrays.equal_runs`) are
        gaps.
    sigma : option of `wavefilt.denoise`
        With windows in samples. A window of fewer than `LEAST_DECLARED` samples declares nothing.
    """
    x, noise = without_flat_parts(x), Noise.of(sigma)
    if not isinstance(sigma, str | tuple):
        return (NoiseModel.of("declared", x, sigma),)
    median, (start, stop) = NoiseModel.of("median", x), noise.window or (0, 0)
    if sigma == "global" or (stop - start >= LEAST_DECLARED and stop <= x.shape[1]):
        return NoiseModel.of("declared", x, noise.sigma), median
    window, extrapolated = quiet_window(x), NoiseModel.of("extrapolated", x)
    if window is None:
        return extrapolated, median
    found, flat = (NoiseModel.of(kind, x, ("window", window.start, window.stop)) for kind in ("found", "flat"))
    return found, median, flat, extrapolated


def for_ranking(x: Array, sigma: NoiseForm = "level") -> NoiseModel:
    """Return the noise model with which methods are ranked.

    It is the declared one, the extrapolated one if no window is found, and otherwise the median of the whole trace, or
    the flat spectrum of the window if the median is so much stronger that it must contain a signal.
    """
    first, *others = estimates(x, sigma)
    if first.kind != "found":
        return first
    median, flat, _ = others
    live = first.variance > 0
    sustained = live.any() and np.median(median.variance[live] / first.variance[live]) > SUSTAINED
    return flat if sustained else median


def without_flat_parts(x: Array) -> Floats:
    """Return traces in float64 with NaN in gaps, in dead traces and in runs of equal samples."""
    rows = np.where(np.isfinite(x), x, np.nan).astype(np.float64)
    runs = equal_runs(rows)
    rows[constant(rows, gaps=True)] = np.nan
    return rows if runs is None else np.where(runs, np.nan, rows)


# ---- spectra


def power_of_traces(x: Array) -> Floats:
    """Return the median power over segments, (traces, frequencies), at the frequencies of the FFT of a trace.

    For noise alone, the power of a segment has an exponential distribution, and at the frequencies 0 and 1/2 that of
    the square of a normal number.
    """
    power = _periodograms(x, _segment(x.shape[1], PARTS))
    ratio = np.full(power.shape[-1], _median_of_exponentials(power.shape[1]))
    ratio[[0, -1]] *= REAL
    return _at_all(np.nanmedian(power, axis=1) / ratio, x.shape[1])


def power_in_window(x: Array, window: slice, rising: bool = True) -> Floats:
    """Return the power, as `power_of_traces`, of samples that contain only noise.

    At frequencies with fewer than `RESOLVED` periods in the window, the power continues the slope of the octaves above,
    or their level unless ``rising``.
    """
    lowest, inside = RESOLVED / (window.stop - window.start), x[:, window]
    power = _at_all(np.nanmean(_periodograms(inside, _segment(inside.shape[1], 2)), axis=1), x.shape[1])
    lower, upper = (_in_octave(power, low, x.shape[1]) for low in (lowest, 2 * lowest))
    if np.isfinite(lower).all() and np.isfinite(upper).all():
        slope = np.mean(np.log2(lower / upper), axis=0, keepdims=True) if rising else np.zeros((1, 1))
        _continue(power, lowest, lower, slope, power_of_traces(x), x.shape[1])
    return power


def extrapolated_power(x: Array) -> Floats:
    """Return the power of the highest octave, continued to low frequencies with the slope of the three highest ones.

    It is at most the median of the whole trace.
    """
    power = power_of_traces(x)
    highest, third = (_in_octave(power, low, x.shape[1]) for low in (1 / 4, 1 / 16))
    if np.isfinite(third).all():
        _continue(power, 1 / 4, highest, np.log2(third / highest) / 2, power, x.shape[1])
    return power


def _in_octave(power: Floats, low: float, samples: int) -> Floats:
    """Return the mean power (traces, 1) in the octave above a frequency; infinite if the octave is empty."""
    frequencies = np.fft.rfftfreq(samples)
    octave = (frequencies >= low) & (frequencies <= 2 * low)
    mean = power[:, octave].mean(axis=1, keepdims=True) if octave.any() else np.full((len(power), 1), np.inf)
    return np.asarray(np.maximum(mean, TINIEST))


def _continue(power: Floats, lowest: float, octave: Floats, slope: Floats, most: Floats, samples: int) -> None:
    """Replace the power below a frequency: it continues the power in the ``octave`` above with this slope."""
    frequencies = np.fft.rfftfreq(samples)
    below = frequencies < lowest
    rise = (1.5 * lowest / np.maximum(frequencies[below], 0.5 / samples)) ** np.clip(slope, 0, STEEPEST)
    power[:, below] = np.where(octave > TINIEST, np.fmin(octave * rise, most[:, below]), 0)


def power_of_white_noise(x: Array) -> Floats:
    """Return the variance of white noise (traces,) from the median absolute value of the finest details."""
    details, variance = np.abs(np.diff(x, axis=1)) / math.sqrt(2), np.zeros(len(x))
    known = np.isfinite(details).any(axis=1)
    variance[known] = np.square(np.nanmedian(details[known], axis=1) / 0.6745)
    return variance


def in_blocks(x: Array) -> Iterator[Array]:
    """Yield consecutive rows of at most `BLOCK` samples together."""
    step = max(1, BLOCK // max(x.shape[1], 1))
    return (x[i : i + step] for i in range(0, max(len(x), 1), step))


def _median_of_exponentials(count: int) -> float:
    """Return the expected median of independent exponential numbers of mean 1, which tends to ln 2."""
    middle = (count - 1) // 2, count // 2
    return float(np.mean([sum(1 / (count - smaller) for smaller in range(place + 1)) for place in middle]))


def _segment(samples: int, parts: int) -> int:
    """Return the samples of a segment, a power of 2 where that leaves enough of them."""
    return min(LONGEST, max(SHORTEST, 1 << int(math.log2(max(samples / parts, 1)))), samples)


def _periodograms(x: Array, length: int) -> Floats:
    """Return the power (traces, segments, frequencies) of overlapping segments under a Hann window.

    The mean of each trace is removed. Segments with half of their weight in gaps are NaN; dead traces are 0.
    """
    known = ~np.isnan(x)
    mean = np.sum(x, axis=1, where=known, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
    x = np.where(known, x - mean, 0)
    taper = np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2
    step = max(length // 2, 1)
    segments, there = (np.lib.stride_tricks.sliding_window_view(y, length, axis=1)[:, ::step] for y in (x, known))
    weight = there @ taper**2
    power = np.abs(np.fft.rfft(segments * taper)) ** 2 / np.maximum(weight, 1e-300)[..., None]
    power[weight <= np.sum(taper**2) / 2] = np.nan
    power[np.isnan(power).all(axis=(1, 2))] = 0
    return np.asarray(power)


def _at_all(power: Floats, samples: int) -> Floats:
    """Return the power at the frequencies of an FFT of this many samples, by linear interpolation."""
    known, wanted = np.linspace(0, 0.5, power.shape[1]), np.fft.rfftfreq(samples)
    return np.array([np.interp(wanted, known, row) for row in power]).reshape(len(power), len(wanted))


# ---- octaves


@lru_cache(maxsize=8)
def _octave_shares(samples: int) -> Floats:
    """Return the share of each frequency of the FFT of a trace in each of `octave_bands`, (octaves, frequencies)."""
    filters, passed = as_wavelet(OCTAVE_WAVELET), np.ones(samples // 2 + 1)
    responses = []
    for level in range(depth_for(samples)):
        at = np.exp(-2j * np.pi * np.fft.rfftfreq(samples) * 2**level)
        responses.append(passed * np.abs(np.polyval(filters.dec_hi, at)) ** 2)
        passed = passed * np.abs(np.polyval(filters.dec_lo, at)) ** 2
    shares = np.array([*responses, passed])
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def depth_for(samples: int) -> int:
    """Return the levels of `octave_bands`: the coarsest one has 16 periods or more."""
    return max(0, min(DEEPEST, samples.bit_length() - 5))


def octave_bands(rows: Floats, live: Mask) -> Iterator[Floats]:
    """Yield the MODWT coefficients of each octave at their samples, finest first, and the approximation.

    Gaps and the mean are set to 0. White noise of variance 1 has coefficients of variance 1.
    """
    samples, depth = rows.shape[-1], depth_for(rows.shape[-1])
    mean = np.sum(rows, axis=-1, keepdims=True, where=live) / np.maximum(live.sum(axis=-1, keepdims=True), 1)
    centred = np.where(live, rows - mean, 0)
    found = modwt(np.concatenate([centred, centred[:, ::-1]], axis=-1), OCTAVE_WAVELET, depth)
    for level, band in zip([*range(1, depth + 1), depth], [*found[:0:-1], found[0]], strict=True):
        yield 2 ** (level / 2) * band[..., :samples]


def widths(count: int) -> Floats:
    """Return the share of each octave in the energy of white noise; the last one is the approximation."""
    return np.asarray(0.5 ** np.array([*range(1, count), count - 1]))


def cell_sums(values: Array, live: Mask, length: int) -> Floats:
    """Return sums of the live values over cells of this many samples, (traces, cells); the last one may be longer."""
    edges = np.arange(max(1, values.shape[-1] // length)) * length
    return np.asarray(np.add.reduceat(np.where(live, values, 0), edges, axis=-1, dtype=float))


# ---- the search for a quiet window

CELL = 32
SHARE = 0.15
"""Share of the trace in a window to start with."""
COEFFICIENTS = 6
"""Independent coefficients that a window needs for a band to be tested."""
CONTRAST = 2.0, 4.0
"""Decibels, and standard errors, by which a band lies below the upper quartile of all windows: the record is not
stationary, so the quiet part differs from the rest."""
LEAST = 3.0, 3.0
"""Decibels, and standard errors, by which each band may lie above its quietest window: no sweep passes through."""
STEADY = 1.6, 4.0
"""Octaves, and standard errors, by which the quarters of a window may differ."""
GROWTH = 1.25, 2.0
"""Factor, and standard errors, by which quarters that are added may exceed the window."""


def quiet_window(x: Array) -> slice | None:
    """Return the samples of a stationary quiet window that all traces share, None if there is none.

    NaN are gaps. See the constants above for the tests; a window that passes is extended in both directions.
    """
    samples = x.shape[1]
    length = max(8, min(CELL, 1 << max(samples // 64, 1).bit_length() - 1), 1 << max(0, samples // 4096).bit_length())
    cells = samples // length
    size = 4 * max(1, round(SHARE * cells / 4))
    live = x[np.isfinite(x).any(axis=1)]
    independent = size * length * widths(depth_for(samples) + 1)
    used = independent >= COEFFICIENTS
    if cells < 4 * size or not len(live) or not used.any():
        return None
    sums, weights = _cumulated(live, length)

    def levels(first: Array, count: int) -> Floats:
        """Return the mean logarithm over traces of the power of ``count`` cells, (windows, bands)."""
        total, weight = (cumulated[:, first + count] - cumulated[:, first] for cumulated in (sums[..., used], weights))
        known = weight >= count * length / 2
        power = np.log(np.maximum(total / np.maximum(weight, 1), 1e-300))
        mean = np.sum(np.where(known, power, 0), axis=0) / np.maximum(known.sum(axis=0), 1)
        return np.where(known.sum(axis=0) >= len(live) / 2, mean, np.nan)

    errors = np.sqrt(2 / (independent[used] * len(live)))
    starts = np.arange(0, cells - size + 1, max(cells // 8, 1))
    found = levels(starts, size)
    starts, found = starts[np.isfinite(found).all(axis=1)], found[np.isfinite(found).all(axis=1)]
    if not len(starts):
        return None
    decibel, quarter = math.log(10) / 10, size // 4
    upper, least = np.quantile(found, 0.75, axis=0), found.min(axis=0)
    loudness = (found - np.median(found, axis=0)).mean(axis=1)
    for i in np.argsort(loudness, kind="stable")[: np.count_nonzero(loudness <= 0)]:
        quarters = levels(starts[i] + quarter * np.arange(4), quarter)
        if (
            (found[i] < upper - CONTRAST[0] * decibel - CONTRAST[1] * errors).any()
            and (found[i] < least + LEAST[0] * decibel + LEAST[1] * errors).all()
            and (np.ptp(quarters, axis=0) < STEADY[0] * math.log(2) + 2 * STEADY[1] * errors).all()
        ):
            limit = found[i] + math.log(GROWTH[0]) + 2 * GROWTH[1] * errors
            first, last = int(starts[i]), int(starts[i]) + size
            while first >= quarter and (levels(np.array([first - quarter]), quarter) < limit).all():
                first -= quarter
            while last + quarter <= cells and (levels(np.array([last]), quarter) < limit).all():
                last += quarter
            return slice(first * length, last * length)
    return None


def _cumulated(x: Array, length: int) -> tuple[Floats, Floats]:
    """Return sums of squares up to each cell (traces, cells + 1, bands), and of live samples (traces, cells + 1, 1)."""
    sums = []
    for rows in in_blocks(x):
        live = np.isfinite(rows)
        counted = [*(band**2 for band in octave_bands(rows, live)), live]
        sums.append(np.stack([cell_sums(values, live, length) for values in counted], axis=-1))
    total = np.pad(np.concatenate(sums), [(0, 0), (1, 0), (0, 0)]).cumsum(axis=1)
    return total[..., :-1], total[..., -1:]
