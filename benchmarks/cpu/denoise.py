"""The numba backend against PyWavelets, side by side: ``python -m wavefilt.benchmarks.cpu.denoise [--quick]``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.numba_cpu import NumbaCPU, memory
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.measuring import summary
from wavefilt.denoising.traces import run as denoise_rows
from wavefilt.method import Method
from wavefilt.thresholding.rules import MAD_TO_SIGMA
from wavefilt.vocabulary import Rule, Sigma


@dataclass(frozen=True)
class Case:
    """One row of the table: what is computed, on what, and how many times faster than PyWavelets it should be."""

    name: str
    samples: int
    target: float
    traces: int = 1
    dtype: str = "float32"
    wavelet: str = "db8"
    rule: Rule = "universal"
    sigma: Sigma = "global"
    work: str = "denoise"
    level: int = 8

    def reduced(self, share: int) -> Case:
        """The case with fewer traces or samples."""
        if self.traces > 1:
            return replace(self, traces=self.traces // share)
        return replace(self, samples=max(self.samples // share, 64 * Ki))

    @property
    def bytes(self) -> int:
        """Input and output, each once."""
        return 2 * self.traces * self.samples * np.dtype(self.dtype).itemsize


Ki, Mi = 1 << 10, 1 << 20
CASES = (
    Case("denoise 16 Mi", 16 * Mi, 10),
    Case("denoise 16 Mi, bayes, sigma per level", 16 * Mi, 8, rule="bayes", sigma="level"),
    Case("denoise 1 Mi", Mi, 8),
    Case("denoise 64 Ki", 64 * Ki, 3),
    Case("denoise 4096 x 4096", 4096, 8, traces=4096),
    Case("denoise 4096 x 4096, bayes, sigma per level", 4096, 8, traces=4096, rule="bayes", sigma="level"),
    Case("denoise 16 Mi float64", 16 * Mi, 5, dtype="float64"),
    *(Case(f"denoise 16 Mi {name}", 16 * Mi, 4, wavelet=name) for name in ("db2", "sym8", "coif5", "bior4.4", "db20")),
    Case("forward 16 Mi", 16 * Mi, 8, work="forward"),
    Case("inverse 16 Mi", 16 * Mi, 8, work="inverse"),
)
QUICK_SHARE = 16  # --quick divides the larger cases by this
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def pywavelets_denoise(x: NDArray[Any], case: Case) -> NDArray[Any]:
    """What a user of PyWavelets writes: decompose, median, threshold, reconstruct."""
    coefficients = pywt.wavedec(x, case.wavelet, "symmetric", case.level)
    medians = [np.median(np.abs(d), axis=-1, keepdims=True) for d in coefficients[-1:0:-1][: _estimated(case)]]
    sigmas = [MAD_TO_SIGMA * m for m in medians] * (case.level // len(medians))
    for d, sigma, i in zip(coefficients[:0:-1], sigmas, range(case.level, 0, -1), strict=True):
        if case.rule == "universal":
            t = sigma * np.sqrt(2 * np.log(case.samples))
        else:
            power = np.mean(d**2, axis=-1, keepdims=True, dtype=np.float64)
            with np.errstate(divide="ignore"):
                signal = np.sqrt(np.maximum(power - sigma**2, 0))
                t = np.fmin(sigma**2 / signal, 2 * np.sqrt(power * d.shape[-1]))
        coefficients[i] = pywt.threshold(d, t.astype(d.dtype), "soft")
    return np.asarray(pywt.waverec(coefficients, case.wavelet, "symmetric"))


def _estimated(case: Case) -> int:
    """Levels whose median is taken."""
    return case.level if case.sigma == "level" else 1


def numba_denoise(x: NDArray[Any], case: Case) -> NDArray[Any]:
    method = Method(case.wavelet, case.level, rule=case.rule, sigma=case.sigma)
    return denoise_rows(x, method, "numba").samples


def _pair(case: Case, x: NDArray[Any]) -> tuple[Callable[[], NDArray[Any]], Callable[[], NDArray[Any]]]:
    """The case as PyWavelets and as this library do it."""
    single = x[0] if case.traces == 1 else x
    backend, bank = NumbaCPU(), pywt.Wavelet(case.wavelet)
    if case.work == "denoise":
        return lambda: pywavelets_denoise(single, case), lambda: numba_denoise(x, case)
    coefficients = pywt.wavedec(single, bank, "symmetric", case.level)
    pyramid = backend.decompose(x, bank, "symmetric", case.level)
    if case.work == "inverse":
        return lambda: pywt.waverec(coefficients, bank, "symmetric"), lambda: backend.reconstruct(pyramid)
    return (
        lambda: pywt.wavedec(single, bank, "symmetric", case.level)[-1],
        lambda: backend.decompose(x, bank, "symmetric", case.level).coefficients[-1],
    )


def _seconds(functions: list[Callable[[], Any]], repeats: int) -> list[list[float]]:
    """Times of each, taken in turn so that a busy spell of the machine falls on all."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, record in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return times


def _measure(case: Case, repeats: int) -> dict[str, Any]:
    x = np.random.default_rng(7).standard_normal((case.traces, case.samples)).astype(case.dtype)
    theirs, ours = _pair(case, x)
    expected, found = theirs(), ours()
    error = np.linalg.norm(expected - found) / np.linalg.norm(expected)
    if not error <= TOLERANCE[case.dtype]:
        raise RuntimeError(f"{case.name}: results differ by {error:.1e} of their norm")
    del expected, found
    repeats = max(repeats, min(50, 8 * Mi // x.size))  # short cases are cheap to repeat
    copied = np.empty_like(x)
    times = _seconds([theirs, ours, lambda: np.copyto(copied, x)], repeats)
    reference, own, copy = map(summary, times)
    started = time.perf_counter(), time.process_time()
    ours()
    elapsed, used = time.perf_counter() - started[0], time.process_time() - started[1]
    ratio = reference["median"] / own["median"]
    return {
        **asdict(case),
        "error": float(error),
        "pywavelets": reference,
        "numba": own,
        "ratio": ratio,
        "met": ratio >= case.target,
        "cores": used / elapsed,
        "gigabytes_per_second": case.bytes / own["median"] / 1e9,
        "copy_gigabytes_per_second": case.bytes / copy["median"] / 1e9,
        "share_of_copy": copy["median"] / own["median"],
    }


def _memory(samples: int) -> float:
    """Peak of a whole denoise beyond its input and output, in units of the input."""
    case = Case("memory", samples, 0, rule="bayes", sigma="level")
    x = np.random.default_rng(7).standard_normal((1, samples)).astype(case.dtype)
    numba_denoise(x, case)
    memory.trim()
    tracemalloc.start()
    y = numba_denoise(x, case)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - y.nbytes) / x.nbytes


_START = """
import time
import numpy as np, pywt, wavefilt
from wavefilt.rules import bayes, noise
from wavefilt.shrinkage import Shrinkage
times = [time.perf_counter()]
from wavefilt.backends.numba_cpu import NumbaCPU, memory
times.append(time.perf_counter())
for name, dtype in {calls}:
    x = np.random.default_rng(7).standard_normal((1, 1 << 14)).astype(dtype)
    backend = NumbaCPU()
    pyramid = backend.decompose(x, pywt.Wavelet(name), "symmetric", 3)
    statistics = backend.statistics([pyramid], "trace")
    thresholds = bayes(statistics, noise(statistics, "level"), 1 << 14)
    backend.reconstruct(pyramid, Shrinkage("soft", thresholds))
    times.append(time.perf_counter())
print(*np.diff(times))
"""

FIRST_CALLS = (("db4", "float32"), ("db8", "float32"), ("db20", "float32"), ("coif17", "float32"), ("db8", "float64"))


def first_calls() -> dict[str, dict[str, float]]:
    """Seconds of the import and of each first call, in a process without and one with a cache on disk."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for state in ("cold", "cached"):
            output = subprocess.run(
                [sys.executable, "-c", _START.format(calls=FIRST_CALLS)],
                env=os.environ | {"NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            names = ["import", *(f"{name} {dtype}" for name, dtype in FIRST_CALLS)]
            found[state] = dict(zip(names, map(float, output.split()), strict=True))
    return found


def load_seconds(repeats: int = 5) -> float:
    """Import and first call of float32 kernels from the cache on disk, as in `first_calls`; median of processes."""
    code = _START.format(calls=(FIRST_CALLS[1],))
    runs = [
        sum(
            map(
                float,
                subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split(),
            )
        )
        for _ in range(repeats + 1)
    ]
    return float(np.median(runs[1:]))  # the first may compile


def run(quick: bool = False, repeats: int = 7) -> dict[str, Any]:
    """Measure every case; ``quick`` takes smaller arrays, for a test of the benchmark rather than of the library.

    Raises RuntimeError if the two results of a case differ.
    """
    share = QUICK_SHARE if quick else 1
    cases = [c.reduced(share) for c in CASES]
    return {
        "environment": environment(),
        "quick": quick,
        "repeats": repeats,
        "cases": [_measure(case, repeats) for case in cases],
        "memory": _memory(16 * Mi // share),
        "first_calls": {} if quick else first_calls(),
    }


def _milliseconds(times: dict[str, float]) -> str:
    """Median and quartiles."""
    median, low, high = (1e3 * times[name] for name in ("median", "low", "high"))
    return f"{median:.2f} ({low:.2f}-{high:.2f})"


def table(result: dict[str, Any]) -> str:
    """The result as text, one line a case."""
    where = result["environment"]
    lines = [
        f"{where['processor']}, {where['threads']} threads, load {where['load']:.1f}, "
        + ", ".join(f"{name} {version}" for name, version in where["versions"].items() if version),
        f"{'case':<44}{'PyWavelets ms':>21}{'numba ms':>21}{'ratio':>7}{'target':>7}{'':>5}{'cores':>6}"
        f"{'GB/s':>6}{'of copy':>8}",
    ]
    for c in result["cases"]:
        theirs, ours = (_milliseconds(c[side]) for side in ("pywavelets", "numba"))
        met = "" if result["quick"] else "yes" if c["met"] else "NO"
        lines.append(
            f"{c['name']:<44}{theirs:>21}{ours:>21}{c['ratio']:>7.1f}{c['target']:>7.0f}{met:>5}{c['cores']:>6.1f}"
            f"{c['gigabytes_per_second']:>6.1f}{c['share_of_copy']:>8.0%}"
        )
    lines.append(f"peak memory beyond input and output: {result['memory']:.2f} of the input")
    for state, seconds in result["first_calls"].items():
        lines.append(f"{state} seconds: " + ", ".join(f"{name} {s:.2f}" for name, s in seconds.items()))
    return "\n".join(lines)


if __name__ == "__main__":
    outcome = run("--quick" in sys.argv)
    if "--json" in sys.argv:
        print(json.dumps(outcome, indent=1))
    else:
        print(table(outcome))
