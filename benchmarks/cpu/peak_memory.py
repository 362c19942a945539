"""Memory and time of a call, by blocks of traces or not: ``python -m wavefilt.benchmarks.cpu.peak_memory``."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np

import wavefilt
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import peak_beyond, turns
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.denoising import pipeline, repeated

TRACES, PANELS = (4096, 4096), (16, 1024, 1024)
CASES: tuple[tuple[tuple[int, ...], Row], ...] = (
    (TRACES, {}),
    ((32768, 512), {}),
    (TRACES, {"rule": "js"}),
    (TRACES, {"rule": "ebayes"}),
    (TRACES, {"spins": 4}),
    (TRACES, {"transform": "modwt"}),
    (TRACES, {"transform": "modwt", "rule": "js"}),
    (TRACES, {"transform": "dtcwt"}),
    ((4096, 1024), {"transform": "wp"}),
    (PANELS, {"axes": (-2, -1)}),
    (PANELS, {"axes": (-2, -1), "rule": "js"}),
    (PANELS, {"axes": (-2, -1), "transform": "dtcwt"}),
    ((1, 1 << 24), {}),
    ((1, 1 << 24), {"rule": "js"}),
    ((1, 1 << 24), {"transform": "modwt"}),
    ((1, *TRACES), {"axes": (-2, -1)}),
)
"""Shapes, the last a single trace or panel, which is a block; and options."""
WAYS = ("whole", "blocks")


def _denoised(x: Array, case: tuple[Row, str]) -> Array:
    """With some options, in one of the ways; by itself the second call would take the short way of repeated ones."""
    options, way = case
    blocks = 1 if way == "whole" else pipeline.BLOCKS
    with patch.object(pipeline, "BLOCKS", blocks), patch.object(repeated, "_known", {}):
        return np.asarray(wavefilt.denoise(x, backend="numba", **options))


def run(quick: bool = False, repeats: int = 7) -> Row:
    """Peak memory beyond input and output, in units of the input, and milliseconds of both ways in turn."""
    rows = []
    for shape, options in CASES:
        own = (*shape[:-1], shape[-1] // 8) if quick else shape
        x = np.random.default_rng(7).standard_normal(own, dtype=np.float32)
        cases = {way: (options, way) for way in WAYS}
        times = turns({way: partial(_denoised, x, case) for way, case in cases.items()}, 2 if quick else repeats)
        peaks = {way: peak_beyond(_denoised, x, case) for way, case in cases.items()}
        words = ", ".join(f"{name}={value!r}" for name, value in options.items())
        rows.append({"shape": " x ".join(map(str, own)), "options": words or "defaults", "peak": peaks, "ms": times})
    return result("peak memory", rows=rows)


TABLE = Table(
    "Peak memory beyond input and output, in units of the input, and milliseconds (quartiles in brackets)",
    {
        "samples": "{shape}",
        "options": "{options}",
        "all at once|memory": "{peak[whole]:.2f}",
        "in blocks|memory": "{peak[blocks]:.2f}",
        "all at once|ms": "{ms[whole]:quartiles}",
        "in blocks|ms": "{ms[blocks]:quartiles}",
        "ratio": lambda row: f"{row['ms']['blocks']['median'] / row['ms']['whole']['median']:.2f}",
    },
)


def report(found: Row) -> Report:
    """A row a case."""
    where = found["environment"]
    return Report([TABLE(found)], [f"{where['processor']}, {where['threads']} threads; float32, backend numba."])


if __name__ == "__main__":
    main(run, report)
