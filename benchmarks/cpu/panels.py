"""Two dimensions beside PyWavelets and scikit-image: ``python -m wavefilt.benchmarks.cpu.panels [--quick]``.

Times of one and the same denoise, side by side; and what is gained on a gather and an image whose clean samples are
known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product

import numpy as np
import pywt

import wavefilt
from wavefilt.arrays import Array as Samples
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import environment, version
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import turns
from wavefilt.benchmarks.common.tables import Report, Row, Sheet, Table
from wavefilt.benchmarks.cpu.crossover import first_use
from wavefilt.benchmarks.quality.records import noise
from wavefilt.benchmarks.quality.study import gain
from wavefilt.thresholding.rules import MAD_TO_SIGMA
from wavefilt.transforms import DWT2

WAVELET = "db4"
TOLERANCE = 1e-5  # of float32 results, relative to their norm


@dataclass(frozen=True)
class Case:
    """A float32 section and its levels."""

    rows: int
    columns: int
    level: int = 4

    @property
    def name(self) -> str:
        return f"{self.rows} x {self.columns}"


CASES = (Case(4096, 4096), Case(1024, 1024), Case(240, 4096), Case(256, 256))
QUICK = (Case(512, 512), Case(120, 1024))


def pywavelets_denoise(x: Samples, level: int) -> Samples:
    """What a user of PyWavelets writes: wavedec2, median of the finest diagonal band, soft thresholds, waverec2."""
    coefficients = pywt.wavedec2(x, WAVELET, level=level)
    sigma = MAD_TO_SIGMA * np.median(np.abs(coefficients[-1][-1]))
    value = x.dtype.type(sigma * np.sqrt(2 * np.log(x.size)))
    coefficients[1:] = [tuple(pywt.threshold(band, value, "soft") for band in bands) for bands in coefficients[1:]]
    return np.asarray(pywt.waverec2(coefficients, WAVELET)[: x.shape[0], : x.shape[1]])


def own_denoise(x: Samples, level: int) -> Samples:
    quiet = wavefilt.denoise(x, WAVELET, axes=(0, 1), backend="numba", rule="universal", sigma="global", level=level)
    return np.asarray(quiet)


def scikit_image_denoise(x: Samples, level: int) -> Samples:
    """The same method by scikit-image."""
    from skimage.restoration import denoise_wavelet

    options = {"method": "VisuShrink", "mode": "soft", "rescale_sigma": False}
    return np.asarray(denoise_wavelet(x, wavelet=WAVELET, wavelet_levels=level, **options))


def noisy(case: Case) -> Samples:
    """Dipping events in noise."""
    rng = np.random.default_rng(7)
    down, across = np.ogrid[: case.rows, : case.columns]
    events = np.sin(0.11 * down + 0.17 * across) * (down > across // 3)
    return (events + 0.4 * rng.standard_normal((case.rows, case.columns))).astype(np.float32)


def measure(case: Case, repeats: int) -> Row:
    """Times of a case in milliseconds. Raises Mismatch if the results differ."""
    x = noisy(case)
    work = {"pywavelets": pywavelets_denoise, "numba": own_denoise}
    if version("scikit-image"):
        work["scikit_image"] = scikit_image_denoise
    calls = {name: partial(function, x, case.level) for name, function in work.items()}
    error = agreement(calls["numba"](), calls["pywavelets"](), TOLERANCE, case.name)
    times = turns(calls, repeats)
    ratios = {name: times[name]["median"] / times["numba"]["median"] for name in calls if name != "numba"}
    return {"name": case.name, **asdict(case), "error": error, **times, "ratios": ratios}


def gather(traces: int = 120, samples: int = 1024) -> Samples:
    """Four reflections: Ricker wavelets along hyperbolas."""
    time, offset = 0.002 * np.arange(samples), 12.5 * np.arange(traces)[:, None]
    clean = np.zeros((traces, samples))
    reflections = ((0.2, 1500, 1, 30), (0.5, 1900, -0.7, 25), (0.9, 2300, 0.6, 22), (1.3, 2700, 0.5, 20))
    for start, velocity, size, frequency in reflections:
        square = (np.pi * frequency * (time - np.hypot(start, offset / velocity))) ** 2
        clean += size * (1 - 2 * square) * np.exp(-square)
    return clean


STRENGTHS = (0.3, 1.0, 2.0)
"""Standard deviations of the noise over that of the clean samples."""


def scikit_image_bayes(x: Samples) -> Samples:
    from skimage.restoration import denoise_wavelet

    return np.asarray(denoise_wavelet(x, wavelet="db8", rescale_sigma=False))


METHODS: dict[str, Callable[[Samples], Samples]] = {
    "traces": lambda x: np.asarray(wavefilt.denoise(x)),
    "two dimensions": lambda x: np.asarray(wavefilt.denoise(x, axes=(0, 1))),
    "the same, sigma global": lambda x: np.asarray(wavefilt.denoise(x, axes=(0, 1), sigma="global")),
    "the same, ebayes mean": lambda x: np.asarray(wavefilt.denoise(x, axes=(0, 1), rule="ebayes", shrink="mean")),
}


def gains(draws: int) -> list[Row]:
    """dB of signal-to-noise ratio gained, means over draws of noise, each row of it independent of the others.

    On the gather, and on scikit-image's photograph of a cameraman where that is installed.
    """
    pictures = {"gather": gather()}
    methods = METHODS
    if version("scikit-image"):
        from skimage import data

        pictures["image"], methods = data.camera() / 255, METHODS | {"scikit-image": scikit_image_bayes}
    rows: list[Row] = []
    for (picture, clean), colour, strength in product(pictures.items(), ("white", "pink"), STRENGTHS):
        rng = np.random.default_rng(11)
        noises = [noise(rng, clean.shape, colour) for _ in range(draws)]
        noisy = np.array([clean + strength * clean.std() / one.std() * one for one in noises])
        gained = {name: gain(clean, noisy, np.array([*map(method, noisy)])) for name, method in methods.items()}
        rows.append({"picture": picture, "noise": colour, "strength": strength, "gain": gained})
    return rows


def run(quick: bool = False, repeats: int = 9, draws: int = 5) -> Row:
    """Measure every case; ``quick`` takes small ones, 3 repeats and one draw of noise."""
    repeats, draws = (3, 1) if quick else (repeats, draws)
    x, taps = noisy(Case(1024, 1024))[None], pywt.Wavelet(WAVELET).dec_len
    return {
        "environment": environment() | {"scikit-image": version("scikit-image")},
        "study": "sections",
        "quick": quick,
        "repeats": repeats,
        "wavelet": WAVELET,
        "draws": draws,
        "cases": [measure(case, repeats) for case in (QUICK if quick else CASES)],
        "crossover": first_use(DWT2, WAVELET, x, 4, x.size * taps, min(repeats, 5)),
        "gains": gains(draws),
    }


TIMES = Table(
    "Universal soft thresholds in milliseconds, median (quartiles): {wavelet}, float32, {environment[processor]}, "
    "{environment[threads]} threads, PyWavelets {environment[versions][PyWavelets]}, "
    "scikit-image {environment[scikit-image]}",
    {
        "panel,|levels": "{name}, {level}",
        "PyWavelets|wavedec2": "{pywavelets:quartiles}",
        "scikit-image|VisuShrink": "?{scikit_image:quartiles}",
        "numba": "{numba:quartiles}",
        "PyWavelets|/ numba": "{ratios[pywavelets]:n}",
        "scikit-image|/ numba": "?{ratios[scikit_image]:n}",
    },
    "cases",
)


def gains_table(result: Row) -> Sheet:
    """One row a picture, a noise and its strength."""
    columns = {"picture": "{picture}", "noise, sd|of the clean": "{noise}, {strength:g}"}
    columns |= {name: f"{{gain[{name}]:+.1f}}" for name in result["gains"][0]["gain"]}
    title = "Gain in signal-to-noise ratio in dB, means over {draws} realisations: db8, rule bayes unless stated"
    return Table(title, columns, "gains")(result)


def report(result: Row) -> Report:
    return Report([TIMES(result), gains_table(result)])


if __name__ == "__main__":
    main(run, report)
