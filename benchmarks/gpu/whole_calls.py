"""Whole calls of `denoise` on a GPU, whose results are compared with those of the CPU before they are timed."""

from __future__ import annotations

from functools import partial
from typing import Any

import wavefilt
from wavefilt.arrays import Array
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray
from wavefilt.backends.interface import DeviceBackend
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import walls
from wavefilt.benchmarks.common.tables import Row, size
from wavefilt.method import Method

TOLERANCE = 1e-5
COMPARED = 16
"""Traces that are denoised on the CPU too, which takes its time; they are independent."""


def timed(backend: DeviceBackend, host: Array, x: DeviceArray, out: Any, options: Row, repeats: int) -> Row:
    """Milliseconds of calls by these options of `Method`, from ``x`` to ``out`` on the GPU, with ``host`` in ``x``.

    Each waits for its result. Raises Mismatch for a wrong one.
    """
    method = Method(**options)
    call = partial(backend.denoise, x, method, options["level"], False, out=out)
    call()
    expected = wavefilt.denoise(host[:COMPARED], backend="numba", **options)
    what = f"{method.rule}, {host.shape[0]} x {host.shape[1]}"
    error = agreement(out.copy_to_host()[:COMPARED], expected, TOLERANCE, what)
    return walls(call, repeats) | {"error": error}


def shape_of(row: Row) -> str:
    """The samples of a row of results, and the traces if there are several."""
    return size(row["samples"]) if row["traces"] == 1 else f"{row['traces']} x {size(row['samples'])}"
