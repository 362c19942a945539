"""From what size the numba backend pays (`backends.numba_crossover`).

``python -m wavefilt.benchmarks.cpu.crossover > benchmarks/results/crossover.json``
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.cpu.denoise import load_seconds
from wavefilt.thresholding.rules import bayes, noise
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import Scope
from wavefilt.wavelets.filters import max_level

WAVELETS = ("db1", "db2", "db8", "db20")
SIZES = tuple(1 << k for k in range(7, 21))
"""Samples of the one row."""

ROWS = tuple(1 << k for k in range(4, 13))
"""Samples of each of many rows."""

TOTAL = 1 << 20
"""Samples of many rows together."""

FIRST_ROW = 512
"""Shorter rows gain too little to be worth loading for."""


def denoise(backend: backends.Backend, x: Any, bank: pywt.Wavelet, scope: Scope) -> Any:
    """The defaults of `wavefilt.denoise`, for rows without gaps."""
    level = min(5, max_level(x.shape[1], bank))
    pyramid = backend.decompose(x, bank, "symmetric", level)
    statistics = backend.statistics([pyramid], scope)
    thresholds = bayes(statistics, noise(statistics, "level"), x.shape[1])
    thresholds = np.broadcast_to(thresholds, (level, len(x)))
    return backend.reconstruct(pyramid, Shrinkage("soft", thresholds))


def forward(backend: backends.Backend, x: Any, bank: pywt.Wavelet) -> Any:
    return backend.decompose(x, bank, "symmetric", max_level(x.shape[1], bank))


WORK: dict[str, Callable[..., Any]] = {
    "denoise": partial(denoise, scope="trace"),
    "denoise, scope record": partial(denoise, scope="record"),
    "forward": forward,
}


def _median(function: Callable[[], Any], repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _compare(shapes: list[tuple[int, int]], repeats: int) -> list[dict[str, Any]]:
    """Seconds of both backends for every filter and work, on the shapes that have a level."""
    found = []
    for name in WAVELETS:
        bank = pywt.Wavelet(name)
        usable = [shape for shape in shapes if max_level(shape[1], bank)]
        arrays = [np.random.default_rng(5).standard_normal(shape).astype("f4") for shape in usable]
        for work, function in WORK.items():
            seconds = {
                backend.name: [_median(partial(function, backend, x, bank), repeats) for x in arrays]
                for backend in (PyWavelets(), NumbaCPU())
            }
            found.append({"wavelet": name, "taps": bank.dec_len, "work": work, "shapes": usable, **seconds})
    return found


def _from(measured: list[dict[str, Any]]) -> int:
    """Samples of a row from which numba is never slower."""
    lost = [
        shape[1]
        for entry in measured
        for shape, theirs, ours in zip(entry["shapes"], entry["pywavelets"], entry["numba"], strict=True)
        if theirs < ours
    ]
    return 2 * max(lost) if lost else 0


def _first(measured: list[dict[str, Any]], load: float) -> dict[str, int]:
    """By the number of taps, samples from which denoising saves the time to load, of whatever shape.

    Times of one long row and of many of `FIRST_ROW` samples are extended in proportion.
    """
    found: dict[str, int] = {}
    for entry in measured:
        for shape, theirs, ours in zip(entry["shapes"], entry["pywavelets"], entry["numba"], strict=True):
            if entry["work"] == "denoise" and shape in ((1, SIZES[-1]), (TOTAL // FIRST_ROW, FIRST_ROW)):
                samples = round(load / (theirs - ours) * shape[0] * shape[1])
                found[str(entry["taps"])] = max(samples, found.get(str(entry["taps"]), 0))
    return found


def run(repeats: int = 9) -> dict[str, Any]:
    """Seconds of both backends, and what `numba_crossover` takes from them.

    ``row`` counts the samples of each of many rows and ``loaded`` those of one row from which numba is never
    slower, with kernels in memory; ``first`` those in all from which it is faster although it loads kernels that
    lie in the cache on disk, which takes ``load`` seconds.
    """
    load = load_seconds()
    one, many = _compare([(1, n) for n in SIZES], repeats), _compare([(TOTAL // n, n) for n in ROWS], repeats)
    return {
        "environment": environment(),
        "load": load,
        "row": _from(many),
        "loaded": _from(one),
        "first": _first(one + many, load),
        "one row": one,
        "many rows": many,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
