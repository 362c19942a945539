"""The numba backend and PyWavelets, side by side: `wavefilt bench cpu`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import pywt

import wavefilt
from wavefilt import threads
from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import peak_beyond, seconds_in_turn, summary
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.benchmarks.cpu import by_threads, loops
from wavefilt.thresholding.rules import MAD_TO_SIGMA
from wavefilt.transforms import DWT
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
            return replace(self, traces=max(self.traces // share, 1))
        return replace(self, samples=max(self.samples // share, 64 * Ki))


Ki, Mi = 1 << 10, 1 << 20
CASES = (
    Case("denoise 16 Mi", 16 * Mi, 10),
    Case("denoise 16 Mi, bayes, sigma per level", 16 * Mi, 8, rule="bayes", sigma="level"),
    Case("denoise 1 Mi", Mi, 8),
    Case("denoise 64 Ki", 64 * Ki, 3),
    Case("denoise 24 x 1024", Ki, 5, traces=24, level=5, rule="bayes", sigma="level"),
    Case("denoise 4096 x 4096", 4096, 8, traces=4096),
    Case("denoise 4096 x 4096, bayes, sigma per level", 4096, 8, traces=4096, rule="bayes", sigma="level"),
    Case("denoise 16 Mi float64", 16 * Mi, 5, dtype="float64"),
    *(Case(f"denoise 16 Mi {name}", 16 * Mi, 4, wavelet=name) for name in ("db2", "sym8", "coif5", "bior4.4", "db20")),
    Case("forward 16 Mi", 16 * Mi, 8, work="forward"),
    Case("inverse 16 Mi", 16 * Mi, 8, work="inverse"),
)
LOOPS = ("denoise 16 Mi", "denoise 1 Mi", "denoise 64 Ki", "denoise 24 x 1024", "denoise 4096 x 4096")
"""Cases that are measured in a user's loop too."""
QUICK_SHARE = 16  # --quick divides the larger cases by this
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def pywavelets_denoise(x: Array, case: Case) -> Array:
    """What a user of PyWavelets writes: decompose, median, threshold, reconstruct."""
    coefficients = pywt.wavedec(x, case.wavelet, "symmetric", case.level)
    estimated = case.level if case.sigma == "level" else 1
    medians = [np.median(np.abs(d), axis=-1, keepdims=True) for d in coefficients[-1:0:-1][:estimated]]
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


def numba_denoise(x: Array, case: Case) -> Array:
    options: Row = {"level": case.level, "rule": case.rule, "sigma": case.sigma}
    return np.asarray(wavefilt.denoise(x, case.wavelet, backend="numba", **options))


def _pair(case: Case, x: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
    """The case as PyWavelets and as this library do it."""
    single = x[0] if case.traces == 1 else x
    backend, bank = NumbaCPU(), pywt.Wavelet(case.wavelet)
    if case.work == "denoise":
        return lambda: pywavelets_denoise(single, case), lambda: numba_denoise(x, case)
    coefficients = pywt.wavedec(single, bank, "symmetric", case.level)
    pyramid = backend.decompose(x, DWT.analysis(bank, "symmetric", case.level))
    if case.work == "inverse":
        return lambda: pywt.waverec(coefficients, bank, "symmetric"), lambda: backend.reconstruct(pyramid)
    return (
        lambda: pywt.wavedec(single, bank, "symmetric", case.level)[-1],
        lambda: backend.decompose(x, DWT.analysis(bank, "symmetric", case.level)).coefficients[-1],
    )


def _measure(case: Case, repeats: int) -> Row:
    x = np.random.default_rng(7).standard_normal((case.traces, case.samples)).astype(case.dtype)
    theirs, ours = _pair(case, x)
    error = agreement(ours(), np.atleast_2d(theirs()), TOLERANCE[case.dtype], case.name)
    repeats = max(repeats, min(50, 32 * Mi // x.size))  # short cases are cheap to repeat
    ours()  # a second array of a shape is the first that takes the short way
    calls: dict[str, Callable[[], object]] = {
        "pywavelets": theirs,
        "numba": ours,
        "copy": partial(np.copyto, np.empty_like(x), x),
    }
    times = {name: summary(seconds) for name, seconds in seconds_in_turn(calls, repeats).items()}
    reference, own, copy = (times[name]["median"] for name in calls)
    started = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        ours()
    elapsed, used = time.perf_counter() - started[0], time.process_time() - started[1]
    gigabytes = 2e-9 * x.nbytes  # input and output, each once
    return {
        **asdict(case),
        "error": error,
        "pywavelets": times["pywavelets"],
        "numba": times["numba"],
        "ratio": reference / own,
        "met": reference / own >= case.target,
        "cores": used / elapsed,
        "gigabytes_per_second": gigabytes / own,
        "copy_gigabytes_per_second": gigabytes / copy,
        "share_of_copy": copy / own,
    }


def _loop(case: Case, repeats: int) -> Row:
    def theirs(x: Array) -> Array:
        return pywavelets_denoise(x[0] if case.traces == 1 else x, case)

    sides = {"pywavelets": theirs, "numba": lambda x: numba_denoise(x, case)}
    return loops.measure(case.name, (case.traces, case.samples), case.dtype, sides, repeats)


_START = """
import time
import numpy as np, wavefilt
x = np.random.default_rng(7).standard_normal((1, 1 << 14))
wavefilt.denoise(x, level=3, backend="pywavelets")  # loads all but numba
times = [time.perf_counter()]
import wavefilt.backends.numba_cpu
times.append(time.perf_counter())
for name, dtype in {calls}:
    wavefilt.denoise(x.astype(dtype), name, level=3, backend="numba")
    times.append(time.perf_counter())
print(*np.diff(times))
"""

FIRST_CALLS = (("db4", "float32"), ("db8", "float32"), ("db20", "float32"), ("coif17", "float32"), ("db8", "float64"))


def _start(calls: Sequence[tuple[str, str]], **variables: str) -> dict[str, float]:
    """Seconds of the import and of each first call, in a new process with these environment variables."""
    command = [sys.executable, "-c", _START.format(calls=calls)]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
    return dict(zip(["import", *map(" ".join, calls)], map(float, done.stdout.split()), strict=True))


def first_calls() -> dict[str, dict[str, float]]:
    """Seconds of the import and of each first call, in a process without and one with a cache on disk."""
    with tempfile.TemporaryDirectory() as folder:
        return {state: _start(FIRST_CALLS, NUMBA_CACHE_DIR=folder) for state in ("cold", "cached")}


def load_seconds(repeats: int = 5) -> float:
    """Import and first call of float32 kernels from the cache on disk, as in `first_calls`; median of processes."""
    runs = [sum(_start(FIRST_CALLS[1:2]).values()) for _ in range(repeats + 1)]
    return float(np.median(runs[1:]))  # the first may compile


def run(quick: bool = False, repeats: int = 7) -> Row:
    """Measure every case; ``quick`` takes smaller arrays, for a test of the benchmark rather than of the library.

    Raises Mismatch if the two results of a case differ.
    """
    share = QUICK_SHARE if quick else 1
    whole = Case("memory", 16 * Mi // share, 0, rule="bayes", sigma="level")
    x = np.random.default_rng(7).standard_normal((1, whole.samples)).astype(whole.dtype)
    numbers = sorted({1, threads.get_num_threads()})
    return {
        "environment": environment(),
        "caches": by_threads.caches(),
        "copy": by_threads.bandwidth(numbers, by_threads.COPIED // share, repeats),
        "quick": quick,
        "repeats": repeats,
        "cases": [_measure(case.reduced(share), repeats) for case in CASES],
        "loops": [_loop(case.reduced(share), 3 if quick else 5 * repeats) for case in CASES if case.name in LOOPS],
        "memory": peak_beyond(numba_denoise, x, whole),
        "first_calls": {} if quick else first_calls(),
    }


def _title(result: Row) -> str:
    where = result["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items() if version)
    return (
        f"The numba backend and PyWavelets (quartiles in brackets): {where['processor']}, {where['threads']} "
        f"threads, load {where['load']:.1f}, {versions}"
    )


TABLE = Table(
    _title,
    {
        "case": "{name}",
        "PyWavelets|ms": "{pywavelets:quartiles in ms}",
        "numba|ms": "{numba:quartiles in ms}",
        "ratio": "{ratio:n}",
        "target": "{target:g}",
        "met": lambda case: "" if case["quick"] else "yes" if case["met"] else "NO",
        "cores|busy": "{cores:.1f}",
        "GB/s": "{gigabytes_per_second:.1f}",
        "of|copy": "{share_of_copy:.0%}",
    },
    lambda result: ({**case, "quick": result["quick"]} for case in result["cases"]),
)


def report(result: Row) -> Report:
    """A row a case, users' loops, the peak of memory and the seconds of first calls."""
    sheets = [TABLE(result), *([loops.TABLE(result)] if "loops" in result else [])]
    notes = by_threads.machine(result) if "copy" in result else []
    notes += ["In a user's loop results are memory that is new to the process, but not to the system."]
    notes += [f"Peak memory beyond input and output: {result['memory']:.2f} of the input."]
    for state, seconds in result["first_calls"].items():
        notes.append(f"{state} seconds: {', '.join(f'{name} {s:.2f}' for name, s in seconds.items())}".capitalize())
    return Report(sheets, notes)


def first_calls_told(result: Row) -> str:
    """Compile and load times of the CPU kernels in a sentence."""
    cold, cached = result["first_calls"]["cold"], result["first_calls"]["cached"]
    return (
        f"The first call compiles: {cold['db4 float32']:.0f} s for float32, {cold['db8 float64']:.0f} s for float64,\n"
        "once for all wavelets. From the cache on disk a new process takes "
        f"{1e3 * cached['import']:.0f} ms to import the\n"
        f"backend and {1e3 * cached['db4 float32']:.0f} ms for its first call."
    )
