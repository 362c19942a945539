"""From what size the numba backend pays (`backends.numba_crossover`): python -m wavefilt.benchmarks.crossover."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.backends.pywavelets import PyWavelets
from wavefilt.benchmarks.cpu import environment
from wavefilt.filters import max_level
from wavefilt.rules import bayes, noise
from wavefilt.shrinkage import Shrinkage

WAVELETS = ("db2", "db8", "db20")
SIZES = tuple(1 << k for k in range(6, 21, 2))


def denoise(backend: backends.Backend, x: Any, bank: pywt.Wavelet) -> Any:
    """The defaults of `wavefilt.denoise`, for rows without gaps."""
    level = min(5, max_level(x.shape[1], bank))
    pyramid = backend.decompose(x, bank, "symmetric", level)
    statistics = backend.statistics([pyramid], "trace")
    thresholds = bayes(statistics, noise(statistics, "level"), x.shape[1])
    return backend.reconstruct(pyramid, Shrinkage("soft", thresholds))


def _median(function: Callable[[], Any], repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def load_seconds(repeats: int = 5) -> float:
    """Import of numba and first use of kernels that lie in the cache, in a process that has numpy and pywt."""
    code = (
        "import time, numpy as np, pywt, wavefilt, wavefilt.backends.pywavelets\n"
        "from wavefilt.rules import bayes, noise\n"
        "from wavefilt.shrinkage import Shrinkage\n"
        "start = time.perf_counter()\n"
        "from wavefilt.backends.numba_cpu import NumbaCPU\n"
        "backend, x, bank = NumbaCPU(), np.ones((1, 256), 'f4'), pywt.Wavelet('db2')\n"
        "pyramid = backend.decompose(x, bank, 'symmetric', 3)\n"
        "statistics = backend.statistics([pyramid], 'trace')\n"
        "thresholds = bayes(statistics, noise(statistics, 'level'), 256)\n"
        "backend.reconstruct(pyramid, Shrinkage('soft', thresholds))\n"
        "print(time.perf_counter() - start)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(repeats + 1)
    ]
    return float(np.median(runs[1:]))  # the first may compile


def run(repeats: int = 15) -> dict[str, Any]:
    """Seconds of both backends by filter and size, and the samples from which numba is faster.

    ``loaded`` counts from kernels in memory, ``first`` from a fresh process and kernels in the cache on disk; the
    latter extends the times of the largest size in proportion.
    """
    seconds: dict[str, dict[str, list[float]]] = {}
    found: dict[str, dict[int, int]] = {"loaded": {}, "first": {}}
    load = load_seconds()
    for name in WAVELETS:
        bank = pywt.Wavelet(name)
        rows = {n: np.random.default_rng(5).standard_normal((1, n)).astype("f4") for n in SIZES if max_level(n, bank)}
        times = {
            backend.name: [_median(partial(denoise, backend, x, bank), repeats) for x in rows.values()]
            for backend in (PyWavelets(), NumbaCPU())
        }
        theirs, ours = times.values()
        slower = [n for n, a, b in zip(rows, theirs, ours, strict=True) if a < b]
        found["loaded"][bank.dec_len] = 2 * max(slower) if slower else 0
        gain = (theirs[-1] - ours[-1]) / SIZES[-1]
        found["first"][bank.dec_len] = round(load / gain)
        seconds[name] = times
    return {"environment": environment(), "sizes": SIZES, "load": load, "seconds": seconds, **found}


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
