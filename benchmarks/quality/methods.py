"""Methods that are compared: the library's, what else is used on traces and sections, and thresholds of the literature.

An alternative has a small grid of parameters. The best ones on other records of the same kind are used, chosen with the
clean samples known: more than a user has. The library has its own parameters.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import fft, signal
from scipy.ndimage import uniform_filter, uniform_filter1d

import wavefilt
from wavefilt import backends
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.quality.records import Record, Samples
from wavefilt.options import Options
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import Shrinkage

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A function of a record and of parameters, with the values that are tried, and the package that it needs."""

    name: str
    run: Callable[..., Samples]
    grid: dict[str, tuple[float, ...]] = field(default_factory=dict)
    package: str = ""

    def choices(self) -> Iterator[Parameters]:
        """Yield every combination of parameters."""
        return (dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values()))

    def missing(self) -> str | None:
        """Return why the method cannot run here."""
        needed = self.package and not version(self.package)
        return f"{self.package} is not installed: pip install {self.package}" if needed else None


WORDS = {
    **dict.fromkeys(("soft", "hard", "garrote", "firm", "mean", "median"), "shrink"),
    **dict.fromkeys(("dwt", "modwt", "dtcwt", "fk", "wp"), "transform"),
    **dict.fromkeys(("level", "global", "window"), "sigma"),
    **dict.fromkeys(("periodization", "smooth", "reflect"), "mode"),
}


def options(text: str) -> Parameters:
    """Return the options of `denoise` in words: "js, sym8, modwt, 8 levels, window" or "keep=1".

    The word "section" stands for both axes, "window" for the record's noise window.
    """
    found: Parameters = {}
    for word in filter(None, text.split(", ")):
        if counted := re.fullmatch(r"(\d+) (level|spin)s", word):
            found["level" if counted[2] == "level" else "spins"] = int(counted[1])
        elif "=" in word:
            name, value = word.split("=")
            found[name] = int(value) if value.isdigit() else float(value) if "." in value else value
        elif word == "section":
            found["axes"] = (-2, -1)
        elif re.match(r"(db|sym|coif|haar|sine)", word):
            found["wavelet"] = word
        else:
            found[WORDS.get(word, "rule")] = word
    return found


def denoised(record: Record, **given: Any) -> Samples:
    """Denoise a record; ``sigma="window"`` is the record's noise window."""
    if given.get("sigma") == "window":
        given = {**given, "sigma": record.declared}
    return np.asarray(wavefilt.denoise(record.x, **given))


def library(text: str, name: str | None = None, **more: Any) -> Method:
    """Return the library's method with these options in words."""
    return Method(name or text, partial(denoised, **{**options(text), **more}))


Thresholds = Callable[[Any, Any, Samples], Samples]
"""From a transform, its statistics and the noise (levels, traces) to thresholds of that shape."""


def with_thresholds(record: Record, text: str, thresholds: Thresholds | None = None) -> Samples:
    """Denoise with other thresholds, and with 7 levels, more than `denoise` allows, as published studies do."""
    method = Options(**options(text), wavelet="sym8", mode="periodization", sigma="global")
    backend = backends.get("numba")
    x = np.ascontiguousarray(record.x)
    pyramid = backend.decompose(x, method.analysis(7))
    statistics = backend.statistics([pyramid], "trace")
    sigma, found = method.thresholds(statistics, x.shape[1])
    if thresholds is not None:
        found = thresholds(pyramid, statistics, sigma)
    return np.asarray(backend.reconstruct(pyramid, Shrinkage(method.function(x.shape[1]), found, sigma)))


def above(pyramid: Any, statistics: Any, sigma: Samples) -> Samples:
    """Return SURE's thresholds, which equal some |d|, raised so that hard thresholding removes that one as well."""
    return np.asarray(np.nextafter(rules.sure(statistics, sigma, pyramid.samples), np.inf))


def wavden(pyramid: Any, statistics: Any, sigma: Samples) -> Samples:
    """Return σ √(2 ln(n log₂ n)), for the n log₂ n details without decimation (Coifman and Donoho 1995)."""
    return sigma * math.sqrt(2 * math.log(int(pyramid.samples * math.log2(pyramid.samples))))


_PUBLISHED: dict[str, tuple[str, Thresholds | None]] = {
    "BlockJS": ("blockjs", None),
    "NeighBlock": ("neighblock", None),
    "SURE": ("sure, hard", above),
    "EbayesThresh": ("ebayes, mean, modwt", None),
    "TI threshold": ("universal, hard, modwt", wavden),
    "smash": ("fdr, modwt", None),
}
PUBLISHED = [
    Method(name, partial(with_thresholds, text=text, thresholds=own)) for name, (text, own) in _PUBLISHED.items()
]
"""Methods by their names in `tables.XING`; `fdr` with the MODWT is the nearest to "smash", which is not here."""


RULE_NAMES = ["universal", "minimax", "sure", "hybrid", "bayes", "fdr", "blockjs", "neighblock", "js", "bivariate"]
RULE_NAMES += ["ebayes", "ebayes-cauchy"]
RULES = [
    *map(library, RULE_NAMES),
    *map(library, ("js, global", "ebayes, mean", "bayes, modwt", "fdr, modwt", "ebayes, mean, modwt", "js, modwt")),
    library("minimax, firm, modwt, global"),
]
"""Rules on functions and records, otherwise with the library's defaults."""
_CHANGES = "db2|db4|sym8|coif3|4 levels|6 levels|periodization|global|scope=record|hard|8 spins"
CHANGES = [library(text) for text in _CHANGES.split("|")]
"""Changes of the defaults."""


def band_pass(record: Record, low: float, high: float, poles: float) -> Samples:
    """Filter by a Butterworth band-pass, zero-phase, as ObsPy does; the upper corner is at most 0.45 of the rate."""
    limits = low, min(high, 0.45 * record.rate)
    return np.asarray(
        signal.sosfiltfilt(signal.butter(int(poles), limits, "bandpass", fs=record.rate, output="sos"), record.x)
    )


def short_time(record: Record, length: float, factor: float, around: float = 1, power: float = 1) -> Samples:
    """Multiply the short-time spectrum by max(0, 1 - factor N/P)^power; N is the mean in the noise window.

    Power 1 is a Wiener filter with P averaged over time and frequency, 1/2 spectral subtraction (Boll 1979).
    """
    size, (start, stop) = int(length), record.quiet or (0, 0)
    _, times, spectra = signal.stft(record.x, nperseg=size, noverlap=size * 3 // 4)
    energy = np.abs(spectra) ** 2
    noise = energy[..., (times >= start + size / 2) & (times <= stop - size / 2)].mean(axis=-1, keepdims=True)
    mean = uniform_filter(energy, (0, int(around), int(around)))
    gain = np.maximum(0, 1 - factor * noise / np.maximum(mean, 1e-300)) ** power
    return np.asarray(signal.istft(gain * spectra, nperseg=size, noverlap=size * 3 // 4)[1][..., : record.x.shape[-1]])


TRACES = [
    Method("the record", lambda record: record.x),
    library("bayes"),
    library("bayes, 8 levels"),
    library("bayes, 8 levels, window"),
    library("sure, 8 levels"),
    library("neighblock, 8 levels, window, 8 spins"),
    library("ebayes, mean, modwt, 8 levels"),
    *(
        library(f"{text}, sym8, reflect, 6 levels", text)
        for text in ("js", "js, window", "js, modwt", "js, modwt, window")
    ),
    Method("band-pass", band_pass, {"low": (0.5, 1, 2, 3), "high": (8, 12, 18, 30), "poles": (2, 4)}),
    Method("STFT Wiener", short_time, {"length": (64, 128, 256), "factor": (1, 2, 4), "around": (5, 7)}),
    Method("spectral subtraction", short_time, {"length": (64, 128, 256), "factor": (2, 4, 8), "power": (0.5,)}),
]
"""Methods for earthquakes in field noise; ``js`` with ``sym8``, ``mode="reflect"`` and 6 levels."""

TIME = 128
"""Samples of a window of f-x methods, which overlap by half."""


def windowed(x: Samples, size: tuple[int, int], function: Callable[[Samples], Samples]) -> Samples:
    """Apply a function to a batch of windows (n, traces, samples) with half overlap, and join them by sine squared.

    The section is continued by reflection to whole windows. A window is at most as large as the section.
    """
    size = min(size[0], x.shape[0]), min(size[1], x.shape[1])
    steps = [max(1, n // 2) for n in size]
    more = [(n - total) % step for total, n, step in zip(x.shape, size, steps, strict=True)]
    padded = np.pad(x, [(0, n) for n in more], "symmetric")
    starts = [range(0, total - n + 1, step) for total, n, step in zip(padded.shape, size, steps, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, size)[np.ix_(*starts)]
    found = function(view.reshape(-1, *size)).reshape(view.shape)
    weight = np.multiply(*np.ix_(*(np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in size)))
    total, weights = np.zeros(padded.shape), np.zeros(padded.shape)
    for (i, down), (j, across) in product(enumerate(starts[0]), enumerate(starts[1])):
        place = np.s_[down : down + size[0], across : across + size[1]]
        total[place] += weight * found[i, j]
        weights[place] += weight
    return np.asarray((total / weights)[: x.shape[0], : x.shape[1]])


def _by_frequency(windows: Samples, function: Callable[[Samples], Samples], padding: int = 1) -> Samples:
    """Apply a function to the spectra (n, traces) of every window and frequency, padded with zeros."""
    traces, samples = windows.shape[1:]
    spectra = fft.rfft(windows, padding * samples).astype(np.complex64).transpose(0, 2, 1)
    found = function(spectra.reshape(-1, traces)).reshape(spectra.shape)
    return np.asarray(fft.irfft(found.transpose(0, 2, 1), padding * samples)[..., :samples])


def _predicted(spectra: Samples, order: int, damping: float) -> Samples:
    """Predict along the traces by the least-squares filter of this order; the first traces stay unchanged."""
    pieces = np.lib.stride_tricks.sliding_window_view(spectra, order + 1, axis=1)
    past, now = pieces[..., :-1], pieces[..., -1:]
    normal = past.conj().swapaxes(1, 2) @ past
    power = np.trace(normal, axis1=1, axis2=2).real / order
    normal += ((damping * power + 1e-20)[:, None] * np.ones(order))[..., None] * np.eye(order)
    found = spectra.copy()
    found[:, order:] = (past @ np.linalg.solve(normal, past.conj().swapaxes(1, 2) @ now))[..., 0]
    return found


def fx_deconvolution(x: Samples, order: float, traces: float, damping: float = 0.01) -> Samples:
    """Predict along the traces at each frequency, forward and backward (Canales 1984, Gülünay 1986)."""

    def predicted(spectra: Samples) -> Samples:
        length = min(int(order), spectra.shape[1] // 2)
        there, back = (_predicted(s, length, damping) for s in (spectra, spectra[:, ::-1]))
        found = (there + back[:, ::-1]) / 2
        found[:, :length], found[:, -length:] = back[:, ::-1][:, :length], there[:, -length:]
        return np.asarray(found)

    return windowed(x, (int(traces), TIME), partial(_by_frequency, function=predicted, padding=2))


def cadzow(x: Samples, rank: float, damping: float = 2, traces: float = 48) -> Samples:
    """Reduce the rank of the Hankel matrix of each frequency and average its antidiagonals (Trickett 2008).

    Damped as by Huang et al. (2016): a singular value s is multiplied by 1 - (t/s)^damping, t the largest one left out.
    """

    def reduced(spectra: Samples) -> Samples:
        columns = spectra.shape[1] // 2 + 1
        kept = min(int(rank), columns - 1)
        matrix = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(spectra, columns, axis=1))
        values, vectors = np.linalg.eigh(matrix.conj().swapaxes(1, 2) @ matrix)
        squares, basis = np.maximum(values, 1e-30), vectors[..., -kept:]
        factors = 1 - (squares[:, [-kept - 1]] / squares[:, -kept:]) ** (damping / 2)
        low = (matrix @ basis * factors[:, None]) @ basis.conj().swapaxes(1, 2)
        found, counts = np.zeros_like(spectra), np.zeros(spectra.shape[1])
        for j in range(columns):
            found[:, j : j + low.shape[1]] += low[..., j]
            counts[j : j + low.shape[1]] += 1
        return np.asarray(found / counts)

    return windowed(x, (int(traces), TIME), partial(_by_frequency, function=reduced))


def bm3d(record: Record) -> Samples:
    """Apply BM3D (Mäkinen, Azzari and Foi 2020) with the true spectrum of the noise."""
    module = importlib.import_module("bm3d")
    if not hasattr(np, "trapz"):
        setattr(np, "trapz", np.trapezoid)  # noqa: B010  # its version 4.0.3 needs the name that NumPy 2.4 removed
    noise = np.asarray(record.x, np.float64) - record.clean
    scale = record.x.std()  # it expects values of about 1
    power = np.square(np.abs(fft.fft(noise / scale))).mean(axis=0) * len(noise)
    return np.asarray(module.bm3d(record.x / scale, np.tile(power, (len(noise), 1))) * scale)


def non_local_means(record: Record, strength: float) -> Samples:
    """Apply scikit-image's non-local means with the true standard deviation of the noise."""
    from skimage.restoration import denoise_nl_means

    sigma = float((record.x - record.clean).std())
    return np.asarray(denoise_nl_means(record.x, 5, 6, h=strength * sigma, sigma=sigma, fast_mode=True))


SECTIONS = [
    *(library(f"section, {text}", text) for text in ("bayes", "sure", "ebayes, mean", "bivariate", "js")),
    *(library(f"section, {text}", text) for text in ("bayes, modwt", "bayes, dtcwt", "bivariate, dtcwt", "js, dtcwt")),
    *(library("section, fk, sine32x64", "js, fk, 32 x 64"), library("section, fk", "js, fk")),
    *(library(f"section, {text}", f"js, {text}, statics", statics=True) for text in ("dtcwt", "fk")),
    library("bayes, modwt", "traces: bayes, modwt"),
    library("js, dtcwt", "traces: js, dtcwt"),
    Method(
        "f-x deconvolution", lambda r, **own: fx_deconvolution(r.x, **own), {"order": (2, 4, 8), "traces": (24, 48)}
    ),
    Method("Cadzow", lambda r, **own: cadzow(r.x, **own), {"rank": (2, 4, 8)}),
    Method("BM3D", bm3d, package="bm3d"),
    Method("non-local means", non_local_means, {"strength": (0.6, 0.8, 1.0)}, "scikit-image"),
]
"""Methods for sections."""

RANKED = [*RULE_NAMES, "bayes, 8 levels", "bayes, haar", "bayes, modwt", "sure, 8 levels", "sure, hard", "fdr, modwt"]
RANKED += ["ebayes, mean, modwt, 8 levels", "js, sym8", "js, sym8, modwt"]
"""The methods that `wavefilt.compare` puts in order."""
JUDGED = [
    *map(library, ("bayes", "sure", "js", "ebayes", "neighblock", "bayes, modwt", "js, sym8, modwt", "universal")),
    *map(library, ("universal, hard", "universal, hard, db4, 6 levels")),
    *map(library, ("universal, db4, 6 levels", "bayes, db4, 6 levels")),
    *(library(f"universal, sigma={factor}") for factor in ("2.0", "4.0", "8.0")),
    *(Method(f"{level} levels set to 0", partial(denoised, rule=1e30, level=level)) for level in (1, 3, 5)),
    *(Method(f"running mean of {n}", lambda record, n=n: uniform_filter1d(record.x, n, axis=-1)) for n in (3, 9, 33)),
]
"""Methods from gentle to brutal, whose harm the trust report is to tell, for noise of standard deviation 1."""

BY_GROUP = {
    "published": PUBLISHED,
    "functions": [*RULES, *CHANGES],
    "records": [*RULES, *CHANGES],
    "earthquakes": TRACES,
}
"""Methods by the group of a record; the groups of sections have `SECTIONS`."""
