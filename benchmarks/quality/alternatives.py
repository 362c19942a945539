"""What the study of real noise compares: rules of the library, what a seismologist would use instead, and oracles.

Every function takes records and returns what it makes of ``records.x``. All but the band-pass and the oracles take the
noise from the samples `NOISE` before the arrival. Values in the grids are tried on records of other sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from scipy import fft, signal
from scipy.ndimage import uniform_filter, uniform_filter1d

import wavefilt
from wavefilt.arrays import Floats
from wavefilt.benchmarks.quality.earthquakes import NOISE, Records
from wavefilt.benchmarks.quality.methods import Options
from wavefilt.benchmarks.quality.signals import Samples
from wavefilt.statistics.interface import Statistics
from wavefilt.thresholding.rules import RULES

VOICES, OCTAVES, MORLET = 8, 9, 6.0
"""Scales of an octave and octaves of the continuous transform, and the frequency of its Morlet wavelet."""
BEFORE = ("window", *NOISE)
JS: Options = {"rule": "js", "wavelet": "sym8", "level": 6, "mode": "reflect"}
BASE, BEST = "bayes, 5 levels", "ebayes, mean, modwt, 8 levels"
LIBRARY: dict[str, Options] = {
    BASE: {},
    "bayes, 5 levels, window": {"sigma": BEFORE},
    "bayes, 8 levels": {"level": 8},
    "bayes, 8 levels, window": {"level": 8, "sigma": BEFORE},
    "sure, 8 levels": {"rule": "sure", "level": 8},
    "neighblock, 8 levels, window, 8 spins": {"rule": "neighblock", "level": 8, "sigma": BEFORE, "spins": 8},
    BEST: {"rule": "ebayes", "shrink": "mean", "transform": "modwt", "level": 8},
    "js": JS,
    "js, window": JS | {"sigma": BEFORE},
    "js, modwt": JS | {"transform": "modwt"},
    "js, modwt, 8 levels": JS | {"transform": "modwt", "level": 8},
    "js, modwt, window": JS | {"transform": "modwt", "sigma": BEFORE},
    "js, modwt, window, blend 0.2": JS | {"transform": "modwt", "sigma": BEFORE, "blend": 0.2},
}
"""Options of `denoise`; the first is what the others are compared with."""
FORMS_OF_JS = [name for name, options in LIBRARY.items() if options.get("rule") == "js" and "blend" not in options]
"""Those that are held to the targets."""
ORACLES = ("dwt", "modwt")
RECORD = "the record"
Grid = dict[str, tuple[float, ...]]
Parameters = dict[str, float]


@dataclass(frozen=True)
class Alternative:
    """A function of records and of parameters, with the values of them that are tried."""

    name: str
    function: Callable[..., Samples]
    grid: Grid

    def choices(self) -> Iterator[Parameters]:
        """Every combination."""
        return (dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values()))


def band_pass(records: Records, low: float, high: float, poles: float) -> Samples:
    """ObsPy's Butterworth filter, zero-phase; the upper corner at most 0.45 of the sampling rate."""
    from obspy.signal.filter import bandpass

    found = [
        bandpass(x, low, min(high, 0.45 * rate), rate, corners=int(poles), zerophase=True)
        for x, rate in zip(records.x, records.rate, strict=True)
    ]
    return np.array(found)


def _spectra(x: Samples, length: int) -> tuple[Samples, Samples]:
    """Short-time Fourier transform of rows, Hann windows, three quarters of overlap; and which lie in the noise."""
    _, times, spectra = signal.stft(x, nperseg=length, noverlap=length * 3 // 4)
    return spectra, (times >= NOISE[0] + length / 2) & (times <= NOISE[1] - length / 2)


def _samples(spectra: Samples, length: int, samples: int) -> Samples:
    return np.asarray(signal.istft(spectra, nperseg=length, noverlap=length * 3 // 4)[1][..., :samples])


def wiener(records: Records, length: float, factor: float, around: float) -> Samples:
    """Short-time Wiener filter: 1 - factor N/P, at least 0, with the power P in the mean around frequency and time."""
    spectra, quiet = _spectra(records.x, int(length))
    power = np.abs(spectra) ** 2
    noise = power[..., quiet].mean(axis=-1, keepdims=True)
    power = uniform_filter(power, (0, int(around), int(around)))
    gain = np.maximum(0, 1 - factor * noise / np.maximum(power, 1e-300))
    return _samples(gain * spectra, int(length), records.x.shape[-1])


def subtraction(records: Records, length: float, factor: float, least: float) -> Samples:
    """Spectral subtraction (Boll 1979; Berouti et al. 1979): power less that of the noise, phases unchanged."""
    spectra, quiet = _spectra(records.x, int(length))
    power = np.abs(spectra) ** 2
    noise = power[..., quiet].mean(axis=-1, keepdims=True)
    left = np.maximum(power - factor * noise, least * noise)
    gain = np.sqrt(np.minimum(left / np.maximum(power, 1e-300), 1))
    return _samples(gain * spectra, int(length), records.x.shape[-1])


@dataclass(frozen=True)
class Continuous:
    """Continuous transform with Morlet's wavelet, W (scales, samples), by the FFT (Torrence and Compo 1998).

    Records are reflected to twice their length. The sum over scales is divided by what the wavelets add up to at each
    frequency, so that unchanged coefficients give the record back; below the coarsest scale nothing is left.
    """

    samples: int
    scales: Samples
    wavelets: Samples

    @classmethod
    def of(cls, samples: int) -> Continuous:
        """For records of so many samples."""
        scales = MORLET / np.pi * 2 ** (np.arange(VOICES * OCTAVES) / VOICES - 0.5)
        omega = 2 * np.pi * fft.rfftfreq(2 * samples)
        wavelets = np.exp(-0.5 * (scales[:, None] * omega - MORLET) ** 2) * (omega > 0)
        return cls(samples, scales, wavelets.astype(np.float32))

    def transform(self, x: Samples) -> Samples:
        """Complex coefficients of a record."""
        spectrum = np.zeros((len(self.scales), 2 * self.samples), np.complex64)
        spectrum[:, : self.samples + 1] = self.wavelets * fft.rfft(np.concatenate([x, x[::-1]]))
        return np.asarray(fft.ifft(spectrum, overwrite_x=True))

    def invert(self, coefficients: Samples) -> Samples:
        """The record."""
        total = self.wavelets.sum(axis=0)
        spectrum = fft.rfft(coefficients.real.sum(axis=0)) / np.maximum(total, total.max() / 2)
        return np.asarray(2 * fft.irfft(spectrum, 2 * self.samples)[: self.samples])

    def quiet(self) -> Iterator[slice]:
        """Samples of noise at every scale, less what its wavelet covers at their ends, at most a quarter of them."""
        for scale in self.scales:
            trim = int(min(2 * scale, (NOISE[1] - NOISE[0]) / 4))
            yield slice(NOISE[0] + trim, NOISE[1] - trim)


def cwt(records: Records, quantile: float, soft: float) -> Samples:
    """Thresholds from the distribution of |W| in the noise before the event (Langston and Mousavi 2019)."""
    transform = Continuous.of(records.x.shape[-1])
    found = []
    for x in records.x:
        w = transform.transform(x)
        size = np.abs(w)
        quiet = [np.quantile(row[part], quantile) for row, part in zip(size, transform.quiet(), strict=True)]
        limits = np.array(quiet)[:, None]
        kept = np.maximum(size - limits, 0) / np.maximum(size, 1e-300) if soft else size > limits
        found.append(transform.invert(w * kept))
    return np.array(found)


def cwt_neighbours(records: Records, factor: float, periods: float) -> Samples:
    """W max(0, 1 - factor/A), A the mean of |W|²/σ² over an octave of scales and some periods."""
    transform = Continuous.of(records.x.shape[-1])
    found = []
    for x in records.x:
        w = transform.transform(x)
        power = np.abs(w) ** 2
        mean = np.empty(power.shape)
        for j, (row, part) in enumerate(zip(power, transform.quiet(), strict=True)):
            around = max(1, round(periods * 2 * np.pi / MORLET * transform.scales[j]))
            mean[j] = uniform_filter1d(row / max(row[part].mean(), 1e-300), around, mode="reflect")
        mean = uniform_filter1d(mean, VOICES, axis=0, mode="nearest")
        found.append(transform.invert(w * np.maximum(0, 1 - factor / np.maximum(mean, 1e-300))))
    return np.array(found)


def js(records: Records, factor: float, transform: str) -> Samples:
    """The library's rule js, the noise from before the event, with another λ than its own."""

    def limit(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
        return sigma * math.sqrt(factor)

    RULES.register("js-study", replace(RULES["js"], function=limit, measured=None))
    try:
        options = JS | {"rule": "js-study", "transform": transform, "sigma": BEFORE}
        return np.asarray(wavefilt.denoise(records.x, **options))
    finally:
        RULES.unregister("js-study")


FACTORS = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
ALTERNATIVES = (
    Alternative("js, window, λ tuned", partial(js, transform="dwt"), {"factor": FACTORS}),
    Alternative("js, modwt, window, λ tuned", partial(js, transform="modwt"), {"factor": FACTORS}),
    Alternative("band-pass", band_pass, {"low": (0.5, 1, 2, 3), "high": (8, 12, 18, 30), "poles": (2, 4)}),
    Alternative("STFT Wiener", wiener, {"length": (32, 64, 128, 256), "factor": (1, 2, 3, 4), "around": (3, 5, 7)}),
    Alternative(
        "spectral subtraction", subtraction, {"length": (32, 64, 128, 256), "factor": (1, 2, 4, 8), "least": (0, 0.01)}
    ),
    Alternative("CWT, noise quantile, hard", cwt, {"quantile": (0.95, 0.99, 0.998, 1), "soft": (0,)}),
    Alternative("CWT, noise quantile, soft", cwt, {"quantile": (0.8, 0.9, 0.95, 0.99), "soft": (1,)}),
    Alternative("CWT, neighbours", cwt_neighbours, {"factor": (1.5, 2, 3), "periods": (1, 3)}),
)


def oracle(records: Records, transform: str, levels: int = 8) -> Samples:
    """Soft thresholds of every band, the approximation too, with the least error of its coefficients: the clean known.

    No rule that has one threshold a band does better, but for how bands overlap.
    """
    if transform == "modwt":
        noisy, clean = (wavefilt.modwt(x, "sym8", levels, "symmetric") for x in (records.x, records.clean))
        return np.asarray(
            wavefilt.imodwt([_best(*pair) for pair in zip(noisy, clean, strict=True)], "sym8", "symmetric")
        )
    noisy, clean = (wavefilt.wavedec(x, "sym8", "symmetric", levels) for x in (records.x, records.clean))
    return np.asarray(wavefilt.waverec([_best(*pair) for pair in zip(noisy, clean, strict=True)], "sym8", "symmetric"))


def _best(noisy: Samples, clean: Samples) -> Samples:
    """Each row soft-thresholded at whichever of its 40 quantiles, 0 included, is nearest to the clean one."""
    size = np.abs(noisy)
    ordered = np.sort(size, axis=-1)
    found, least = noisy.copy(), np.sum((noisy - clean) ** 2, axis=-1)
    for share in np.linspace(0.025, 1, 40):
        limit = ordered[:, [round(share * (size.shape[-1] - 1))]]
        tried = np.copysign(np.maximum(size - limit, 0), noisy)
        error = np.sum((tried - clean) ** 2, axis=-1)
        better = error < least
        found[better], least[better] = tried[better], error[better]
    return found
