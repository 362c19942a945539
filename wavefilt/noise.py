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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Unpack

import numpy as np

from wavefilt.api import run
from wavefilt.arrays import Array, Floats, Mask
from wavefilt.backends import Backend, registry
from wavefilt.options import Clock, Keywords, Noise, NoiseForm, Options, check_names
from wavefilt.wavelets.filters import WaveletLike

Kind = Literal["declared", "found", "flat", "median", "extrapolated"]
SOURCES = {
    "median": "median of the whole trace, by frequency",
    "extrapolated": "extrapolated from the three highest octaves",
}
"""Estimates from the whole trace in words."""
SHORTEST, LONGEST, PARTS = 16, 4096, 8
"""Fewest and most samples of a segment of a trace, and the number of segments without overlap that a trace has."""
RESOLVED, STEEPEST = 4, 3
"""Periods in a noise window above which it determines the power at a frequency. Below, the power rises as in the two
octaves above, at most with this negative power of the frequency, and not above the median of the whole trace."""
RAISED = 1.25
"""Factor on the power in a window that was found: the search prefers windows that happen to be quiet."""
SUSTAINED = 2.0
"""Variance of the median of a whole trace, over that in the window found, that shows a signal in most of the trace."""
REAL = 0.656
"""Median over mean of the square of a normal number, 0.455, divided by that of an exponential number, ln 2."""
FLAT = 16
"""Consecutive equal samples that are not noise: a muted or clipped part."""
BLOCK = 1 << 19
"""Samples that are transformed at a time."""


# ---- models


@dataclass(frozen=True)
class NoiseModel:
    """Stationary noise of each trace.

    Attributes
    ----------
    kind : {"declared", "found", "flat", "median", "extrapolated"}
    source : str
        The origin of the estimate in words.
    power : ndarray
        Power (traces, frequencies) at the frequencies of the FFT of a trace; 1 for white noise of variance 1, and 0
        for dead traces.
    samples : int
        Samples of a trace.
    sigmas : tuple
        For each trace, the option ``sigma`` of `wavefilt.denoise` that means this noise.
    """

    kind: Kind
    source: str
    power: Floats
    samples: int
    sigmas: tuple[NoiseForm, ...]

    @classmethod
    def estimated(cls, kind: Kind, source: str, x: Array, sigmas: Sequence[NoiseForm]) -> NoiseModel:
        """Estimate the noise of traces in which gaps are NaN."""
        return cls(kind, source, _power(kind, x, sigmas), x.shape[1], tuple(sigmas))

    @classmethod
    def undeclared(cls, kind: Kind, x: Array) -> NoiseModel:
        """Estimate the noise of traces in which gaps are NaN from the whole traces."""
        return cls.estimated(kind, SOURCES[kind], x, ["level"] * len(x))

    def of_others(self, x: Array, rows: Array) -> NoiseModel:
        """Return the same estimate for other samples of some of the traces, such as simulated noise."""
        return self.estimated(self.kind, self.source, x, [self.sigmas[row] for row in rows])

    @property
    def window(self) -> tuple[int, int] | None:
        """First sample of the noise window and the one after its last, None without a window common to all traces."""
        windows = {Noise.of(sigma).window for sigma in dict.fromkeys(self.sigmas)}
        return windows.pop() if len(windows) == 1 else None

    def in_words(self, clock: Clock, declared: str = "") -> str:
        """Return the source, with times instead of samples; for noise ``declared`` by headers, their words."""
        if self.kind == "declared" and declared:
            return declared
        if self.window is None or not clock.interval:
            return self.source
        start, stop = map(clock.time, self.window)
        return self.source.replace("from sample {} to {}".format(*self.window), f"from {start:.4g} to {stop:.4g} s")

    @property
    def variance(self) -> Floats:
        """The variance of the noise of each trace."""
        weights = np.full(self.power.shape[1], 2.0)
        weights[0] = 1
        if self.samples % 2 == 0:
            weights[-1] = 1
        return np.asarray(self.power @ weights / self.samples)

    def draw(self, rng: np.random.Generator, rows: Array | slice = slice(None)) -> Floats:
        """Return Gaussian noise (traces, samples) with the spectra of some of the traces."""
        amplitudes = np.sqrt(self.power[rows])
        spectrum = np.fft.rfft(rng.standard_normal((len(amplitudes), self.samples)))
        return np.asarray(np.fft.irfft(spectrum * amplitudes, self.samples))

    def sigma(self, options: Options, level: int) -> Floats:
        """Return the standard deviation (bands, traces) in each band of a transform, finest band first.

        As by `estimate_sigma`, white noise has the same standard deviation in all bands, whatever the transform. In
        sections, the noise of different traces is taken to be independent.
        """
        frequencies, responses = _responses(options, level)
        at = np.fft.rfftfreq(self.samples)
        weights = np.array([np.interp(at, frequencies, response) for response in responses])
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(np.sqrt(weights @ self.power.T))


def estimates(x: Array, sigma: NoiseForm | Sequence[NoiseForm] = "level") -> tuple[NoiseModel, ...]:
    """Return the noise models that have to agree on a conclusion, the most plausible one first.

    A declared standard deviation stands alone. A declared window, and ``"global"`` (white noise), are accompanied by
    the median of the whole trace. Without a declaration these are the window that is found, the median, the window with
    a flat spectrum at the frequencies that it does not resolve, and the extrapolated spectrum. If no window is found,
    they are the extrapolated spectrum and the median.

    Parameters
    ----------
    x : ndarray
        Real traces (traces, samples). NaN are gaps; runs of `FLAT` equal samples count as gaps.
    sigma : option of `wavefilt.denoise`, or one for each trace
        With windows in samples.
    """
    x, one = without_flat_parts(x), isinstance(sigma, str | tuple | float | int)
    sigmas: list[NoiseForm] = [sigma] * len(x) if one else list(sigma)  # type: ignore[arg-type, list-item]
    words = [said for each in dict.fromkeys(sigmas) if (said := _declaration(each))]
    if words:
        source = words[0] if len(words) == 1 else f"{words[0]} and {len(words) - 1} more"
        declared = NoiseModel.estimated("declared", source, x, sigmas)
        alone = not any(isinstance(each, str | tuple) for each in sigmas)
        return (declared,) if alone else (declared, NoiseModel.undeclared("median", x))
    window, median = quiet_window(x), NoiseModel.undeclared("median", x)
    if window is not None:
        source = f"quiet window found from sample {window.start} to {window.stop}"
        windows = [("window", window.start, window.stop)] * len(x)
        found, flat = (NoiseModel.estimated(kind, source, x, windows) for kind in ("found", "flat"))
        return found, median, flat, NoiseModel.undeclared("extrapolated", x)
    return NoiseModel.undeclared("extrapolated", x), median


def for_ranking(x: Array, sigma: NoiseForm | Sequence[NoiseForm] = "level") -> NoiseModel:
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


def _declaration(sigma: NoiseForm) -> str:
    """Return a declared noise in words, "" for noise that is to be estimated from the whole trace."""
    if window := Noise.of(sigma).window:
        return f"noise window from sample {window[0]} to {window[1]}"
    if isinstance(sigma, str | tuple):
        return "white, by the finest details" if sigma == "global" else ""
    return f"standard deviation {sigma:g}"


def _power(kind: Kind, x: Array, sigmas: Sequence[NoiseForm]) -> Floats:
    """Return the power (traces, frequencies) by the option ``sigma`` of each trace."""
    if kind == "extrapolated":
        return extrapolated_power(x)
    power = np.zeros((len(x), x.shape[1] // 2 + 1))
    for sigma in dict.fromkeys(sigmas):
        own = np.array([each == sigma for each in sigmas])
        if window := Noise.of(sigma).window:
            power[own] = power_in_window(x[own], slice(*window), rising=kind != "flat")
        elif sigma == "global":
            power[own] = power_of_white_noise(x[own])
        elif isinstance(sigma, str | tuple):
            power[own] = power_of_traces(x[own])
        else:
            power[own] = np.where(np.isfinite(x[own]).any(axis=1), sigma**2, 0.0)[:, None]
    return power * RAISED if kind in ("found", "flat") else power


def without_flat_parts(x: Array) -> Floats:
    """Return traces in float64 with NaN in gaps and in runs of equal samples."""
    rows = np.where(np.isfinite(x), x, np.nan).astype(np.float64)
    if rows.shape[1] < FLAT:
        rows[np.nanmax(rows, axis=1, initial=-np.inf) == np.nanmin(rows, axis=1, initial=np.inf)] = np.nan
        return rows
    edges = np.pad(np.diff(rows, axis=1) == 0, [(0, 0), (1, 1)]).astype(np.int8)
    steps = np.diff(edges, axis=1)
    for row, first, last in zip(*np.nonzero(steps == 1), np.nonzero(steps == -1)[1], strict=True):
        if last - first + 1 >= FLAT:
            rows[row, first : last + 1] = np.nan
    return rows


# ---- spectra


def power_of_traces(x: Array) -> Floats:
    """Return the median power over segments, (traces, frequencies), at the frequencies of the FFT of a trace.

    For noise alone, the power of a segment has an exponential distribution, and at the frequencies 0 and 1/2 that of
    the square of a normal number.
    """
    found = []
    for rows in in_blocks(x):
        power = _periodograms(rows, _segment(x.shape[1], PARTS))
        ratio = np.full(power.shape[-1], _median_of_exponentials(power.shape[1]))
        ratio[[0, -1]] *= REAL
        found.append(_at_all(np.nanmedian(power, axis=1) / ratio, x.shape[1]))
    return np.concatenate(found) if found else np.zeros((0, x.shape[1] // 2 + 1))


def power_in_window(x: Array, window: slice, rising: bool = True) -> Floats:
    """Return the power, as `power_of_traces`, of samples that contain only noise.

    Frequencies with fewer than `RESOLVED` periods in the window continue the slope of those with more, or their level
    unless ``rising``.
    """
    frequencies, lowest = np.fft.rfftfreq(x.shape[1]), RESOLVED / (window.stop - window.start)
    octaves = [(frequencies >= low) & (frequencies <= 2 * low) for low in (lowest, 2 * lowest)]
    unresolved = frequencies < lowest
    found = []
    for rows in in_blocks(x):
        inside = rows[:, window]
        power = _at_all(np.nanmean(_periodograms(inside, _segment(inside.shape[1], 2)), axis=1), x.shape[1])
        if all(octave.any() for octave in octaves):
            lower, upper = (np.maximum(power[:, octave].mean(axis=1), 1e-300) for octave in octaves)
            slope = np.clip(np.mean(np.log2(lower / upper)), 0, STEEPEST if rising else 0)
            rise = (1.5 * lowest / np.maximum(frequencies[unresolved], 0.5 / x.shape[1])) ** slope
            continued = lower[:, None] * np.maximum(rise, 1)
            power[:, unresolved] = np.fmin(continued, power_of_traces(rows)[:, unresolved])
        found.append(power)
    return np.concatenate(found) if found else np.zeros((0, len(frequencies)))


def extrapolated_power(x: Array) -> Floats:
    """Return the power of the highest octave, continued to low frequencies with the slope of the three highest ones.

    It is at most the median of the whole trace.
    """
    power, frequencies = power_of_traces(x), np.fft.rfftfreq(x.shape[1])
    octaves = [(frequencies >= 0.25 / 2**k) & (frequencies <= 0.5 / 2**k) for k in range(3)]
    if not all(octave.any() for octave in octaves):
        return power
    highest, _, third = (np.maximum(power[:, octave].mean(axis=1, keepdims=True), 1e-300) for octave in octaves)
    slope = np.clip(np.log2(third / highest) / 2, 0, STEEPEST)
    low = frequencies < 0.25
    rise = (np.maximum(frequencies[low], 0.5 / x.shape[1]) / 0.375) ** -slope
    power[:, low] = np.minimum(power[:, low], highest * rise)
    return power


def power_of_white_noise(x: Array) -> Floats:
    """Return the power of white noise by the median absolute value of the finest details."""
    sigma = np.zeros(len(x))
    known = np.isfinite(x)
    filled = np.where(known, x, np.nanmean(np.where(known.any(axis=1, keepdims=True), x, 0), axis=1, keepdims=True))
    details = np.abs(np.diff(filled, axis=1)) / math.sqrt(2)
    if x.shape[1] > 1:
        usable = known[:, 1:] & known[:, :-1]
        middle = np.nanmedian(np.where(usable | ~usable.any(axis=1, keepdims=True), details, np.nan), axis=1)
        sigma = np.where(usable.any(axis=1), middle / 0.6745, 0)
    return np.repeat(np.square(sigma)[:, None], x.shape[1] // 2 + 1, axis=1)


def in_blocks(x: Array) -> Iterator[Array]:
    step = max(1, BLOCK // max(x.shape[1], 1))
    return (x[i : i + step] for i in range(0, len(x), step))


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
    return np.array([np.interp(wanted, known, row) for row in power])


# ---- bands


@lru_cache(maxsize=32)
def _responses(options: Options, level: int) -> tuple[Floats, Floats]:
    """Return frequencies in cycles per sample, and the squared response (bands, frequencies) of a transform.

    The response is measured with sinusoids, up to a factor for each band. In sections, all traces have the same
    sinusoid with factors of their own; the responses along the traces and along time are separable.
    """
    levels = level if options.transform.has_levels else 5
    samples = max(512, 32 << levels)
    octaves = np.round(np.geomspace(1, samples // 2, 8 * int(math.log2(samples))))
    cycles = np.unique(np.concatenate([[0], octaves, np.arange(samples // 128, samples // 2, samples // 128)]))
    phases = 2 * np.pi * cycles[:, None] * np.arange(samples) / samples
    waves = np.concatenate([np.cos(phases), np.sin(phases)])
    if options.ndim == 2:
        waves = waves[:, None] * np.random.default_rng(0).standard_normal((max(32, 2 << levels), 1))
    pyramid = registry.get("pywavelets").decompose(waves, options.analysis(level))
    bands = pyramid.coefficients[: None if options.shrinks_approximation else 0 : -1]
    squares = []
    for band in bands:
        margin = band.shape[-1] // 4 if options.transform.has_levels else 0  # coefficients at the ends are left out
        inner = band[..., margin : band.shape[-1] - margin].reshape(len(waves), -1)
        squares.append(np.square(np.abs(inner)).mean(axis=1))
    return cycles / samples, np.array([square[: len(cycles)] + square[len(cycles) :] for square in squares])


OCTAVE_WAVELET = "sym8"
OCTAVES = Options(OCTAVE_WAVELET, transform="modwt", rule="js")
"""Transform by which windows are found and results are tested: octaves are well separated, energy is not shifted."""
DEEPEST = 9


def depth_for(samples: int) -> int:
    """Return the levels of `octave_bands`: the coarsest one has 16 periods or more."""
    return max(0, min(DEEPEST, samples.bit_length() - 5))


def octave_bands(rows: Floats, live: Mask) -> Iterator[Floats]:
    """Yield the MODWT coefficients of each octave at their samples, finest first, and the approximation.

    Gaps and the mean are set to 0. White noise of variance 1 has coefficients of variance 1.
    """
    from wavefilt.decomposition import modwt

    samples, depth = rows.shape[-1], depth_for(rows.shape[-1])
    mean = np.sum(rows, axis=-1, keepdims=True, where=live) / np.maximum(live.sum(axis=-1, keepdims=True), 1)
    centred = np.where(live, rows - mean, 0)
    found = modwt(np.concatenate([centred, centred[:, ::-1]], axis=-1), OCTAVE_WAVELET, depth)
    for level, band in zip([*range(1, depth + 1), depth], [*found[:0:-1], found[0]], strict=True):
        yield 2 ** (level / 2) * band[..., :samples]


def widths(count: int) -> Floats:
    """Return the share of each octave in the energy of white noise; the last one is the approximation."""
    return np.asarray(0.5 ** np.array([*range(1, count), count - 1]))


def cell_means(values: Array, live: Mask, length: int) -> tuple[Floats, Floats]:
    """Return means over cells of this many samples, and the live samples of each, arrays (traces, cells)."""
    edges = np.arange(max(1, values.shape[-1] // length)) * length
    weight = np.add.reduceat(live, edges, axis=-1, dtype=float)
    return np.add.reduceat(np.where(live, values, 0), edges, axis=-1) / np.maximum(weight, 1), weight


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
    if cells < 4 * size or not len(live):
        return None
    sums, weights = _cumulated(live, length)

    def levels(first: Array | int, count: int) -> Floats:
        """Return the mean logarithm over traces of the power of ``count`` cells, (windows, bands)."""
        total = sums[:, np.asarray(first) + count] - sums[:, first]
        weight = weights[:, np.asarray(first) + count] - weights[:, first]
        known = weight >= count * length / 2
        power = np.log(np.maximum(total / np.maximum(weight, 1), 1e-300))
        enough = known.sum(axis=0) >= len(live) / 2
        mean = np.sum(np.where(known, power, 0), axis=0) / np.maximum(known.sum(axis=0), 1)
        return np.where(enough, mean, np.nan)

    bands = sums.shape[-1]
    independent = size * length * widths(bands)
    used = np.flatnonzero(independent >= COEFFICIENTS)
    if not len(used):
        return None
    errors = np.sqrt(2 / (independent[used] * len(live)))
    starts = np.arange(0, cells - size + 1, max(cells // 8, 1))
    found = levels(starts, size)[:, used]
    starts, found = starts[np.isfinite(found).all(axis=1)], found[np.isfinite(found).all(axis=1)]
    if not len(starts):
        return None
    decibel = math.log(10) / 10
    upper, least = np.quantile(found, 0.75, axis=0), found.min(axis=0)
    loudness = (found - np.median(found, axis=0)).mean(axis=1)
    for i in np.argsort(loudness, kind="stable"):
        if loudness[i] > 0:
            break
        quarters = np.array([levels(int(starts[i]) + k * size // 4, size // 4)[used] for k in range(4)])
        passed = (
            (found[i] < upper - CONTRAST[0] * decibel - CONTRAST[1] * errors).any()
            and (found[i] < least + LEAST[0] * decibel + LEAST[1] * errors).all()
            and (np.ptp(quarters, axis=0) < STEADY[0] * math.log(2) + 2 * STEADY[1] * errors).all()
        )
        if passed:
            return _grown(levels, int(starts[i]), size, cells, used, errors, length)
    return None


def _cumulated(x: Array, length: int) -> tuple[Floats, Floats]:
    """Return sums of squares up to each cell (traces, cells + 1, bands), and of live samples (traces, cells + 1, 1)."""
    powers, weights = [], []
    for rows in in_blocks(x):
        live = np.isfinite(rows)
        means = [cell_means(band**2, live, length) for band in octave_bands(rows, live)]
        weights.append(means[0][1])
        powers.append(np.stack([mean * weight for mean, weight in means], axis=-1))
    power, weight = np.concatenate(powers), np.concatenate(weights)[..., None]
    return tuple(np.concatenate([np.zeros_like(a[:, :1]), a], axis=1).cumsum(axis=1) for a in (power, weight))  # type: ignore[return-value]


def _grown(
    levels: Callable[[int, int], Floats], first: int, size: int, cells: int, used: Array, errors: Floats, length: int
) -> slice:
    """Return the window in samples, extended by quarters of it in both directions."""
    quarter, last, own = size // 4, first + size, levels(first, size)[used]
    limit = own + math.log(GROWTH[0]) + 2 * GROWTH[1] * errors
    while first >= quarter and (levels(first - quarter, quarter)[used] < limit).all():
        first -= quarter
    while last + quarter <= cells and (levels(last, quarter)[used] < limit).all():
        last += quarter
    return slice(first * length, last * length)


# ---- the noise that `denoise` uses


def estimate_sigma(
    x: Any,
    wavelet: WaveletLike | None = None,
    *,
    by_band: bool = False,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    **options: Unpack[Keywords],
) -> Floats:
    """Estimate the standard deviation of the noise of each trace as `denoise` does.

    Parameters
    ----------
    x : array_like, pandas, xarray or DASCore object, ObsPy Stream or Trace, Recording
        As for `wavefilt.compare`; never modified. NaN and masked samples are gaps: the result for a trace is the root
        mean square over its segments, weighted by their samples.
    wavelet, axis, axes, backend, **options
        As for `wavefilt.denoise`. ``sigma`` determines how the noise is measured: "level" and "global" by the median
        absolute detail over 0.6745, a window by the details in it, with rule "js" by their mean square.
    by_band : bool
        Return the noise of all bands of the transform instead of that of the finest one.

    Returns
    -------
    ndarray of float64
        One number for each trace (or section, with ``axes``), with the shape of ``x`` without the axes; with
        ``by_band`` the numbers of each band along a new first axis, finest first, with rule "js" the approximation
        last. In the units of ``x``: for white noise, all bands have the standard deviation of its samples, whatever the
        transform. 0 for a dead trace, NaN for one that is too short for the transform or has no samples.

    Raises
    ------
    ValueError, TypeError
        As `wavefilt.denoise`, and TypeError for complex samples.

    Examples
    --------
    >>> import numpy as np
    >>> import wavefilt
    >>> x = np.random.default_rng(0).standard_normal((3, 4096)) * [[1], [2], [5]]
    >>> wavefilt.estimate_sigma(x).round()
    array([1., 2., 5.])
    >>> wavefilt.estimate_sigma(x, by_band=True).shape
    (5, 3)
    """
    from wavefilt.containers import traces_of

    registry.check_name(backend)
    check_names(options, "by_band", "axis", "axes")
    taken = traces_of(x, options.get("sigma"), axis, axes).checked()
    plain: Keywords = {**options, "sigma": "level"}
    method = Options(wavelet, **plain, ndim=1 if taken.ndim == 1 else 2)
    found: list[tuple[Mask, Floats]] = []
    for sigma in dict.fromkeys(taken.sigmas):
        own = np.array([each == sigma for each in taken.sigmas])
        found.append((own, _as_denoised(taken.rows[own], replace(method, sigma=sigma), backend)))
    bands = max((len(numbers) for _, numbers in found), default=0) if by_band else 1
    noise = np.full((bands, len(taken.rows)), np.nan)
    for own, numbers in found:
        noise[: len(numbers), own] = numbers[:bands]
    noise = noise.reshape(bands, *taken.shape[: len(taken.shape) - (taken.ndim - 1)])
    return noise if by_band else np.asarray(noise[0])


def _as_denoised(rows: Array, options: Options, backend: str | Backend) -> Floats:
    """Return the noise (bands, rows) that denoising with these options uses."""
    outcome = run(rows, options, backend, report=True)
    bands = len(options.bands(outcome.level))
    total, count = np.zeros((bands, len(rows))), np.zeros((bands, len(rows)))
    for estimate in outcome.estimates:
        own = estimate.sigma
        if estimate.approximation is not None:
            own = np.concatenate([own, estimate.approximation[:1]])
        own = own / options.noise_gains(len(own))
        part = estimate.segments
        places = np.arange(bands if len(own) == bands else len(estimate.sigma))  # shorter segments have fewer levels
        np.add.at(total, (places[:, None], part.rows), np.square(own[: len(places)]) * part.samples)
        np.add.at(count, (places[:, None], part.rows), part.samples)
    return np.asarray(np.sqrt(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)))
