"""From what size the numba backend pays (`backends.crossover`): ``python -m wavefilt.benchmarks.cpu.crossover``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pywt

import wavefilt
from wavefilt.arrays import Array
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.measuring import first_call, walls
from wavefilt.benchmarks.common.tables import Column, Report, Row, Table
from wavefilt.benchmarks.cpu.denoise import load_seconds
from wavefilt.transforms import Transform
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

WORK: dict[str, Callable[..., object]] = {
    "denoise": wavefilt.denoise,
    "denoise, scope record": partial(wavefilt.denoise, scope="record"),
    "forward": wavefilt.wavedec,
}


def _compare(shapes: list[tuple[int, int]], repeats: int) -> list[Row]:
    """Seconds of both backends for every filter and work, on the shapes that have a level."""
    found = []
    for name in WAVELETS:
        taps = pywt.Wavelet(name).dec_len
        usable = [shape for shape in shapes if max_level(shape[1], pywt.Wavelet(name))]
        arrays = [np.random.default_rng(5).standard_normal(shape).astype("f4") for shape in usable]
        for work, function in WORK.items():
            seconds = {
                backend: [
                    1e-3 * walls(partial(function, x, name, backend=backend), repeats, 1)["median"] for x in arrays
                ]
                for backend in ("pywavelets", "numba")
            }
            found.append({"wavelet": name, "taps": taps, "work": work, "shapes": usable, **seconds})
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


_FIRST = """
import time
import numpy as np, pywt
from wavefilt import transforms
analysis = transforms.TRANSFORMS["{transform}"].analysis(pywt.Wavelet("{wavelet}"), "symmetric", 2)
start = time.perf_counter()
from wavefilt.backends.numba_cpu import NumbaCPU
backend = NumbaCPU()
backend.reconstruct(backend.decompose(np.ones({shape}, "f4"), analysis))
print(time.perf_counter() - start)
"""


def first_use(transform: Transform, wavelet: str, x: Array, level: int, work: int, repeats: int) -> dict[str, float]:
    """From how much work on loading kernels takes less time than the reference, which has ``work`` in ``x``."""
    backend, analysis = PyWavelets(), transform.analysis(pywt.Wavelet(wavelet), "symmetric", level)
    taken = walls(lambda: backend.reconstruct(backend.decompose(x, analysis)), repeats, 0)["median"]
    shape = (1, *(256 for _ in x.shape[1:]))
    load = first_call(_FIRST.format(transform=transform.name, wavelet=wavelet, shape=shape), repeats)
    return {"load_seconds": load, "reference_ns_per_tap": 1e6 * taken / work, "first": 1e3 * load / taken * work}


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


COLUMNS: dict[str, Column] = {
    "wavelet": "{wavelet}",
    "work": "{work}",
    "rows": "{rows}",
    "samples|of a row": "{samples:size}",
    "PyWavelets|ms": "{theirs:ms}",
    "numba|ms": "{ours:ms}",
    "ratio": "{ratio:n}",
}


def report(result: Row) -> Report:
    """Every call, and what `numba_crossover` takes from them."""
    first = ", ".join(f"{samples} with {taps} taps" for taps, samples in result["first"].items())
    notes = [
        f"With its kernels in memory numba is never slower from {result['loaded']} samples of one row, "
        f"or {result['row']} of each of many.",
        f"Samples from which it is faster although it loads its kernels, {result['load']:.2f} s: {first}.",
    ]
    sheets = [
        Table(f"{name}: ms of a call", COLUMNS)({"rows": _pairs(result[name.lower()])})
        for name in ("One row", "Many rows")
    ]
    return Report(sheets, notes)


if __name__ == "__main__":
    main(run, report)
