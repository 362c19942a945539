"""MODWT denoising against PyWavelets' SWT, side by side: ``python -m wavefilt.benchmarks.cpu.modwt [--quick]``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np
import pywt

import wavefilt
from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import peak_beyond, signal, turns
from wavefilt.benchmarks.common.tables import Row, Table, size
from wavefilt.benchmarks.cpu.crossover import first_use
from wavefilt.thresholding.rules import MAD_TO_SIGMA
from wavefilt.transforms import MODWT
from wavefilt.vocabulary import Mode

Ki, Mi = 1 << 10, 1 << 20
WAVELET = "db8"
BANK = pywt.Wavelet(WAVELET)
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


def pywavelets_denoise(x: Array, case: Case) -> Array:
    """What a user of PyWavelets writes: swt, median of the finest details, universal soft thresholds, iswt."""
    coefficients = pywt.swt(x, WAVELET, case.level, trim_approx=True, norm=True)
    finest = MAD_TO_SIGMA * np.median(np.abs(coefficients[-1]), axis=-1, keepdims=True)
    for i in range(1, case.level + 1):  # white noise fades by sqrt 2 from one level to the next
        value = finest * np.sqrt(2 * np.log(case.samples) / 2 ** (case.level - i))
        coefficients[i] = pywt.threshold(coefficients[i], value.astype(x.dtype), "soft")
    return np.asarray(pywt.iswt(coefficients, WAVELET, norm=True))


def numba_denoise(x: Array, case: Case, mode: Mode = "periodic") -> Array:
    options: Row = {"transform": "modwt", "rule": "universal", "sigma": "global", "backend": "numba"}
    return np.asarray(wavefilt.denoise(x, WAVELET, mode=mode, level=case.level, **options))


def measure(case: Case, repeats: int) -> Row:
    """Times of a case in milliseconds. Raises Mismatch if the results differ."""
    x = signal(case.traces, case.samples)
    single = x[0] if case.traces == 1 else x
    error = agreement(numba_denoise(x, case), np.atleast_2d(pywavelets_denoise(single, case)), TOLERANCE, case.name)
    backend, analysis = NumbaCPU(), MODWT.analysis(BANK, "periodic", case.level)
    pyramid = backend.decompose(x, analysis)
    calls: dict[str, Callable[[], object]] = {
        "pywavelets": lambda: pywavelets_denoise(single, case),
        "numba": lambda: numba_denoise(x, case),
        "symmetric": lambda: numba_denoise(x, case, "symmetric"),
        "forward": lambda: backend.decompose(x, analysis),
        "inverse": lambda: backend.reconstruct(pyramid),
    }
    times = turns(calls, repeats)
    ratio = times["pywavelets"]["median"] / times["numba"]["median"]
    return {"name": case.name, **asdict(case), "error": error, **times, "ratio": ratio, "met": ratio >= case.target}


def run(quick: bool = False, repeats: int = 15) -> Row:
    """Measure every case; ``quick`` takes a sixteenth of the samples and no more than 3 repeats."""
    repeats = min(repeats, 3) if quick else repeats
    cases = [case.reduced(QUICK_SHARE) if quick else case for case in CASES]
    x = signal(1, 1 << 18)
    return {
        "environment": environment(),
        "quick": quick,
        "repeats": repeats,
        "wavelet": WAVELET,
        "cases": [measure(case, repeats) for case in cases],
        "memory": {case.name: peak_beyond(numba_denoise, signal(case.traces, case.samples), case) for case in cases},
        "crossover": first_use(MODWT, WAVELET, x, 5, 5 * x.size * BANK.dec_len, min(repeats, 5)),
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
