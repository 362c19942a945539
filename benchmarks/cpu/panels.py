"""Two dimensions against PyWavelets and scikit-image: ``python -m wavefilt.benchmarks.cpu.panels [--quick]``.

Times of one and the same denoise, side by side; and what is gained on a gather and an image whose clean samples are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

import wavefilt
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.benchmarks.common.command import alone
from wavefilt.benchmarks.common.environment import environment, version
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import difference, first_call, turns
from wavefilt.benchmarks.common.tables import Sheet, number, quartiles
from wavefilt.thresholding.rules import MAD_TO_SIGMA

Samples = NDArray[Any]
WAVELET = "db4"
TOLERANCE = 1e-5  # of float32 results, relative to their norm
RATIO = 6.0
"""Times as fast as PyWavelets' composition the first case should be, on two cores."""


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
    options = {"rule": "universal", "sigma": "global", "level": level}
    return np.asarray(wavefilt.denoise(x, WAVELET, axes=(0, 1), backend="numba", **options))  # type: ignore[arg-type]


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


def measure(case: Case, repeats: int) -> dict[str, Any]:
    """Times of a case in milliseconds. Raises Mismatch if the results differ."""
    x = noisy(case)
    calls: dict[str, Callable[[], Samples]] = {
        "pywavelets": lambda: pywavelets_denoise(x, case.level),
        "numba": lambda: own_denoise(x, case.level),
    }
    if version("scikit-image"):
        calls["scikit_image"] = lambda: scikit_image_denoise(x, case.level)
    error = difference(own_denoise(x, case.level), pywavelets_denoise(x, case.level))
    if not error <= TOLERANCE:
        raise Mismatch(f"{case.name}: results differ by {error:.1e} of their norm")
    times = dict(zip(calls, turns(list(calls.values()), repeats), strict=True))
    ratios = {name: times[name]["median"] / times["numba"]["median"] for name in calls if name != "numba"}
    return {"name": case.name, **asdict(case), "error": error, **times, "ratios": ratios}


_FIRST = """
import time
import numpy as np, pywt
start = time.perf_counter()
from wavefilt.backends.numba_cpu import NumbaCPU
backend, pair = NumbaCPU(), (pywt.Wavelet("db4"),) * 2
x = np.ones((1, 64, 64), "f4")
backend.reconstruct2(backend.decompose2(x, pair, ("symmetric",) * 2, 2))
print(time.perf_counter() - start)
"""


def crossover(repeats: int) -> dict[str, float]:
    """From how many samples times taps a process that has loaded no kernels should load them."""
    backend, bank, x = PyWavelets(), pywt.Wavelet(WAVELET), noisy(Case(1024, 1024))[None]
    pair, modes = (bank, bank), ("symmetric", "symmetric")
    call = lambda: backend.reconstruct2(backend.decompose2(x, pair, modes, 4))  # noqa: E731
    reference = 1e6 * turns([call], repeats)[0]["median"] / (x.size * bank.dec_len)
    load = first_call(_FIRST, repeats)
    return {"load_seconds": load, "reference_ns_per_tap": reference, "first": 1e9 * load / reference}


def gather(traces: int = 120, samples: int = 1024) -> Samples:
    """Four reflections: Ricker wavelets along hyperbolas."""
    time, offset = 0.002 * np.arange(samples), 12.5 * np.arange(traces)[:, None]
    clean = np.zeros((traces, samples))
    for start, velocity, size, frequency in ((0.2, 1500, 1, 30), (0.5, 1900, -0.7, 25), (0.9, 2300, 0.6, 22),
                                             (1.3, 2700, 0.5, 20)):  # fmt: skip
        square = (np.pi * frequency * (time - np.hypot(start, offset / velocity))) ** 2
        clean += size * (1 - 2 * square) * np.exp(-square)
    return clean


def pictures() -> dict[str, Samples]:
    """Clean samples: the gather, and scikit-image's photograph of a cameraman where that is installed."""
    found = {"gather": gather()}
    if version("scikit-image"):
        from skimage import data

        found["image"] = data.camera() / 255
    return found


def white(rng: np.random.Generator, shape: tuple[int, int]) -> Samples:
    return rng.standard_normal(shape)


def pink(rng: np.random.Generator, shape: tuple[int, int]) -> Samples:
    """Power as 1/f along the rows, none of it shared by them; standard deviation 1."""
    spectrum = np.fft.rfft(rng.standard_normal(shape), axis=1)
    samples = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(spectrum.shape[1]), 1)), shape[1], axis=1)
    return np.asarray(samples / samples.std())


NOISES = {"white": white, "pink": pink}
STRENGTHS = (0.3, 1.0, 2.0)
"""Standard deviations of the noise over that of the clean samples."""


def scikit_image_bayes(x: Samples) -> Samples:
    from skimage.restoration import denoise_wavelet

    return np.asarray(denoise_wavelet(x, wavelet="db8", rescale_sigma=False))


WAYS: dict[str, Callable[[Samples], Samples]] = {
    "traces": lambda x: np.asarray(wavefilt.denoise(x)),
    "two dimensions": lambda x: np.asarray(wavefilt.denoise(x, axes=(0, 1))),
    "the same, sigma global": lambda x: np.asarray(wavefilt.denoise(x, axes=(0, 1), sigma="global")),
    "the same, ebayes mean": lambda x: np.asarray(wavefilt.denoise(x, axes=(0, 1), rule="ebayes", shrink="mean")),
    "scikit-image": scikit_image_bayes,
}


def gains(draws: int) -> list[dict[str, Any]]:
    """dB of signal-to-noise ratio gained, means over draws of noise."""
    rows = []
    for picture, clean in pictures().items():
        for noise, make in NOISES.items():
            for strength in STRENGTHS:
                row: dict[str, Any] = {"picture": picture, "noise": noise, "strength": strength, "gain": {}}
                for name, way in WAYS.items():
                    if name == "scikit-image" and not version(name):
                        continue
                    rng = np.random.default_rng(11)
                    noises = [strength * clean.std() * make(rng, clean.shape) for _ in range(draws)]
                    row["gain"][name] = float(np.mean([_gain(clean, e, way) for e in noises]))
                rows.append(row)
    return rows


def _gain(clean: Samples, noise: Samples, way: Callable[[Samples], Samples]) -> float:
    return 10 * float(np.log10(np.sum(noise**2) / np.sum((way(clean + noise) - clean) ** 2)))


def run(quick: bool = False, repeats: int = 9, draws: int = 5) -> dict[str, Any]:
    """Measure every case; ``quick`` takes small ones, 3 repeats and one draw of noise."""
    repeats, draws = (3, 1) if quick else (repeats, draws)
    return {
        "environment": environment() | {"scikit-image": version("scikit-image")},
        "study": "sections", "quick": quick, "repeats": repeats, "wavelet": WAVELET, "draws": draws,
        "cases": [measure(case, repeats) for case in (QUICK if quick else CASES)],
        "crossover": crossover(min(repeats, 5)),
        "gains": gains(draws),
    }  # fmt: skip


def times_table(result: dict[str, Any]) -> Sheet:
    """One row a case; times in milliseconds."""
    where = result["environment"]
    title = (
        f"Universal soft thresholds in milliseconds, median (quartiles): {result['wavelet']}, float32, "
        f"{where['processor']}, {where['threads']} threads, PyWavelets {where['versions']['PyWavelets']}, "
        f"scikit-image {where['scikit-image']}"
    )
    heads: list[Sequence[str]] = [("section,", "levels"), ("PyWavelets", "wavedec2"), ("scikit-image", "VisuShrink"),
             ("numba", ""), ("PyWavelets", "/ numba"), ("scikit-image", "/ numba")]  # fmt: skip
    rows = []
    for case in result["cases"]:
        theirs = quartiles(case["scikit_image"]) if "scikit_image" in case else "-"
        ratios = [
            number(case["ratios"][name]) if name in case["ratios"] else "-" for name in ("pywavelets", "scikit_image")
        ]
        rows.append([f"{case['name']}, {case['level']}", quartiles(case["pywavelets"]), theirs,
                     quartiles(case["numba"]), *ratios])  # fmt: skip
    return Sheet(title, heads, rows)


def gains_table(result: dict[str, Any]) -> Sheet:
    """One row a picture, a noise and its strength."""
    title = f"dB of signal-to-noise ratio gained, means over {result['draws']} draws: db8, rule bayes but where said"
    ways = [name for name in WAYS if name in result["gains"][0]["gain"]]
    heads: list[Sequence[str]] = [("picture", ""), ("noise, sd", "of the clean"), *((name, "") for name in ways)]
    rows = [[row["picture"], f"{row['noise']}, {row['strength']:g}", *(f"{row['gain'][name]:+.1f}" for name in ways)]
            for row in result["gains"]]  # fmt: skip
    return Sheet(title, heads, rows)


if __name__ == "__main__":
    alone(run, lambda result: "\n".join([times_table(result).text(120), gains_table(result).text(120)]))
