"""MODWT denoising against PyWavelets' SWT, side by side: ``python -m wavefilt.benchmarks.cpu.modwt [--quick]``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
import pywt
from numpy.typing import ArrayLike

from wavefilt.arrays import Array, Floats
from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import crossover_of, difference, peak_beyond, signal, turns
from wavefilt.benchmarks.common.tables import Row, Table, size
from wavefilt.thresholding.rules import MAD_TO_SIGMA
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import MODWT

Ki, Mi = 1 << 10, 1 << 20
WAVELET = "db8"
TOLERANCE = 1e-5  # of float32 results, relative to their norm


@dataclass(frozen=True)
class Case:
    """Traces of float32 samples, their levels, and how many times faster than PyWavelets it should be."""

    traces: int
    samples: int
    level: int = 8
    target: float = 10

    @property
    def name(self) -> str:
        return size(self.samples) if self.traces == 1 else f"{self.traces} x {self.samples}"

    def reduced(self, share: int) -> Case:
        """The case with fewer samples, and fewer levels to suit."""
        return replace(self, samples=self.samples // share, level=min(self.level, 5))


CASES = (Case(1, Mi), Case(1, 64 * Ki), Case(256, 4096))
QUICK_SHARE = 16


def _thresholds(median: ArrayLike, case: Case) -> Floats:
    """Universal thresholds (levels, traces): white noise fades by sqrt 2 from one level to the next."""
    sigma = MAD_TO_SIGMA * np.atleast_1d(median)[None] / np.sqrt(2.0 ** np.arange(case.level))[:, None]
    return np.asarray(sigma * np.sqrt(2 * np.log(case.samples)))


def pywavelets_denoise(x: Array, case: Case) -> Array:
    """What a user of PyWavelets writes: swt, median of the finest details, soft threshold, iswt."""
    coefficients = pywt.swt(x, WAVELET, case.level, trim_approx=True, norm=True)
    thresholds = _thresholds(np.median(np.abs(coefficients[-1]), axis=-1), case)
    for i in range(1, case.level + 1):
        value = thresholds[case.level - i].astype(x.dtype)
        coefficients[i] = pywt.threshold(coefficients[i], value[:, None] if x.ndim == 2 else value[0], "soft")
    return np.asarray(pywt.iswt(coefficients, WAVELET, norm=True))


def numba_denoise(x: Array, case: Case, mode: str = "periodic") -> Array:
    backend = NumbaCPU()
    pyramid = backend.decompose(x, MODWT.analysis(pywt.Wavelet(WAVELET), mode, case.level))
    median = backend.statistics([pyramid], "trace").median_abs([1])[0]
    return backend.reconstruct(pyramid, Shrinkage("soft", _thresholds(median, case)))


def measure(case: Case, repeats: int) -> Row:
    """Times of a case in milliseconds. Raises Mismatch if the results differ."""
    x = signal(case.traces, case.samples)
    single = x[0] if case.traces == 1 else x
    error = difference(numba_denoise(x, case), np.atleast_2d(pywavelets_denoise(single, case)))
    if not error <= TOLERANCE:
        raise Mismatch(f"{case.name}: results differ by {error:.1e} of their norm")
    backend, bank = NumbaCPU(), pywt.Wavelet(WAVELET)
    pyramid = backend.decompose(x, MODWT.analysis(bank, "periodic", case.level))
    calls = {
        "pywavelets": lambda: pywavelets_denoise(single, case),
        "numba": lambda: numba_denoise(x, case),
        "symmetric": lambda: numba_denoise(x, case, "symmetric"),
        "forward": lambda: backend.decompose(x, MODWT.analysis(bank, "periodic", case.level)),
        "inverse": lambda: backend.reconstruct(pyramid),
    }
    times = dict(zip(calls, turns(list(calls.values()), repeats), strict=True))
    ratio = times["pywavelets"]["median"] / times["numba"]["median"]
    return {"name": case.name, **asdict(case), "error": error, **times, "ratio": ratio, "met": ratio >= case.target}


_FIRST = """
import time
import numpy as np, pywt
start = time.perf_counter()
from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.transforms import MODWT
backend = NumbaCPU()
backend.reconstruct(backend.decompose(np.ones((1, 1024), "f4"), MODWT.analysis(pywt.Wavelet("db8"), "periodic", 3)))
print(time.perf_counter() - start)
"""


def crossover(repeats: int) -> dict[str, float]:
    """From how many samples times taps times levels a process that has loaded no kernels should load them."""
    backend, bank, x, level = PyWavelets(), pywt.Wavelet(WAVELET), signal(1, 256 * Ki), 5
    call = lambda: backend.reconstruct(backend.decompose(x, MODWT.analysis(bank, "symmetric", level)))  # noqa: E731
    return crossover_of(_FIRST, call, x.size * bank.dec_len * level, repeats)


def run(quick: bool = False, repeats: int = 15) -> Row:
    """Measure every case; ``quick`` takes a sixteenth of the samples and no more than 3 repeats."""
    repeats = min(repeats, 3) if quick else repeats
    cases = [case.reduced(QUICK_SHARE) if quick else case for case in CASES]
    return {
        "environment": environment(),
        "quick": quick,
        "repeats": repeats,
        "wavelet": WAVELET,
        "cases": [measure(case, repeats) for case in cases],
        "memory": {case.name: peak_beyond(numba_denoise, signal(case.traces, case.samples), case) for case in cases},
        "crossover": crossover(min(repeats, 5)),
    }


TABLE = Table(
    "MODWT denoising in milliseconds, median (quartiles): {wavelet}, float32, {environment[processor]}, "
    "{environment[threads]} threads, PyWavelets {environment[versions][PyWavelets]}",
    {
        "samples,|levels": "{name}, {level}",
        "PyWavelets|swt": "{pywavelets:quartiles}",
        "numba|periodic": "{numba:quartiles}",
        "|ratio": "{ratio:.1f}",
        "numba|symmetric": "{symmetric[median]:n}",
        "forward|alone": "{forward[median]:n}",
        "inverse|alone": "{inverse[median]:n}",
        "memory,|inputs": "{memory:.1f}",
    },
    lambda result: ({**case, "memory": result["memory"][case["name"]]} for case in result["cases"]),
)


if __name__ == "__main__":
    main(run, TABLE)
