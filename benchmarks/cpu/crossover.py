"""From what size the numba backend pays (`backends.crossover`): ``python -m wavefilt.benchmarks.cpu.crossover``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.measuring import seconds_in_turn
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.benchmarks.cpu.denoise import load_seconds
from wavefilt.thresholding.rules import bayes, noise
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT
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


def denoise(backend: backends.Backend, x: Array, bank: pywt.Wavelet, scope: Scope) -> object:
    """The defaults of `wavefilt.denoise`, for rows without gaps."""
    level = min(5, max_level(x.shape[1], bank))
    pyramid = backend.decompose(x, DWT.analysis(bank, "symmetric", level))
    statistics = backend.statistics([pyramid], scope)
    thresholds = bayes(statistics, noise(statistics, "level"), x.shape[1])
    thresholds = np.broadcast_to(thresholds, (level, len(x)))
    return backend.reconstruct(pyramid, Shrinkage("soft", thresholds))


def forward(backend: backends.Backend, x: Array, bank: pywt.Wavelet) -> object:
    return backend.decompose(x, DWT.analysis(bank, "symmetric", max_level(x.shape[1], bank)))


WORK: dict[str, Callable[[backends.Backend, Array, pywt.Wavelet], object]] = {
    "denoise": partial(denoise, scope="trace"),
    "denoise, scope record": partial(denoise, scope="record"),
    "forward": forward,
}


def _median(function: Callable[[], object], repeats: int) -> float:
    function()
    return float(np.median(seconds_in_turn([function], repeats)))


def _compare(shapes: list[tuple[int, int]], repeats: int) -> list[Row]:
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


def _pairs(measured: list[Row]) -> Iterator[Row]:
    """Every entry shape by shape, with the seconds of PyWavelets and of numba."""
    for entry in measured:
        for (rows, samples), theirs, ours in zip(entry["shapes"], entry["pywavelets"], entry["numba"], strict=True):
            yield {**entry, "rows": rows, "samples": samples, "theirs": theirs, "ours": ours, "ratio": theirs / ours}


def _from(measured: list[Row]) -> int:
    """Samples of a row from which numba is never slower."""
    lost = [one["samples"] for one in _pairs(measured) if one["theirs"] < one["ours"]]
    return 2 * max(lost) if lost else 0


def _first(measured: list[Row], load: float) -> dict[str, int]:
    """By the number of taps, samples from which denoising saves the time to load, of whatever shape.

    Times of one long row and of many of `FIRST_ROW` samples are extended in proportion.
    """
    found: dict[str, int] = {}
    for one in _pairs(measured):
        shape = one["rows"], one["samples"]
        if one["work"] == "denoise" and shape in ((1, SIZES[-1]), (TOTAL // FIRST_ROW, FIRST_ROW)):
            samples = round(load / (one["theirs"] - one["ours"]) * shape[0] * shape[1])
            found[str(one["taps"])] = max(samples, found.get(str(one["taps"]), 0))
    return found


def run(quick: bool = False, repeats: int = 9) -> Row:
    """Seconds of both backends, and what `numba_crossover` takes from them.

    ``row`` counts the samples of each of many rows and ``loaded`` those of one row from which numba is never
    slower, with kernels in memory; ``first`` those in all from which it is faster although it loads kernels that
    lie in the cache on disk, which takes ``load`` seconds.
    """
    load, repeats = load_seconds(), 3 if quick else repeats
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


COLUMNS = {
    "wavelet": "{wavelet}",
    "work": "{work}",
    "rows": "{rows}",
    "samples|of a row": "{samples:size}",
    "PyWavelets|ms": "{theirs:ms}",
    "numba|ms": "{ours:ms}",
    "ratio": "{ratio:n}",
}
ONE = Table("One row: ms of a call", COLUMNS, lambda result: _pairs(result["one row"]))
MANY = Table("Many rows: ms of a call", COLUMNS, lambda result: _pairs(result["many rows"]))


def report(result: Row) -> Report:
    """Every call, and what `numba_crossover` takes from them."""
    first = ", ".join(f"{samples} with {taps} taps" for taps, samples in result["first"].items())
    notes = [
        f"With its kernels in memory numba is never slower from {result['loaded']} samples of one row, "
        f"or {result['row']} of each of many.",
        f"Samples from which it is faster although it loads its kernels, {result['load']:.2f} s: {first}.",
    ]
    return Report([ONE(result), MANY(result)], notes)


if __name__ == "__main__":
    main(run, report)
