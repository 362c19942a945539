"""Denoising on the GPU as a user meets it, beside other libraries: `wavefilt bench cuda`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import agreement, release, unavailable
from wavefilt.benchmarks.common.measuring import different, first_calls, loop, signal, summary, walls
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.benchmarks.cpu import BAYES, KI, MI, QUICK_SHARE, SECTION, UNIVERSAL, Case, pywavelets
from wavefilt.benchmarks.scaling.implementations import by_ptwt, torch_with_ptwt

HELD = 1 << 30
"""Bytes of the arrays of a loop, but at least four arrays."""
QUEUED = 10
"""Calls that are made without waiting for their results."""
REPEATS = 25
TOLERANCE = 2e-5
JS: Row = BAYES | {"rule": "js"}


_on_gpu = partial(Case, where="device")
CASES = (
    _on_gpu("universal, 64 Mi", (1, 64 * MI), peer=True),
    _on_gpu("universal, db4, 64 Mi", (1, 64 * MI), UNIVERSAL | {"wavelet": "db4"}, peer=True),
    _on_gpu("bayes, 64 Mi", (1, 64 * MI), BAYES),
    _on_gpu("js, 64 Mi", (1, 64 * MI), JS),
    _on_gpu("universal, 4096 x 16384", (4096, 16384)),
    _on_gpu("bayes, 64 Ki", (1, 64 * KI), BAYES),
    _on_gpu("bayes, 1 Mi", (1, MI), BAYES),
    _on_gpu("bayes, 24 x 1024", (24, KI), BAYES | {"level": 5}),
    _on_gpu("universal, MODWT, 16 Mi", (1, 16 * MI), UNIVERSAL | {"transform": "modwt"}),
    _on_gpu("universal, two axes, 8192 x 8192", (8192, 8192), SECTION),
    _on_gpu("js, dtcwt, two axes, 8192 x 8192", (8192, 8192), {"axes": (0, 1), "level": 4, "transform": "dtcwt"}),
    Case("bayes, 256 Ki", (1, 256 * KI), BAYES),
    *(Case(f"bayes, {n} Mi", (1, n * MI), BAYES) for n in (1, 4, 16, 64)),
    Case("universal, 64 Mi", (1, 64 * MI), peer=True),
)
FIRST: Mapping[str, tuple[str, Row]] = {
    "the defaults": ("float32", {}),
    "another rule: universal": ("float32", UNIVERSAL | {"level": 5}),
    "another rule: js": ("float32", JS | {"level": 5}),
    "another transform: dtcwt": ("float32", {"transform": "dtcwt", "level": 5}),
}
"""Calls of a new process, one after the other."""
METHOD = (
    f"whole calls for different arrays, each once and with its result kept, and for the same array again; GPU time is "
    f"a call's share of {QUEUED} that do not wait for each other"
)


def run(quick: bool = False, repeats: int = REPEATS) -> Row:
    """Measure every case; ``quick`` takes smaller arrays, few repeats, no other libraries and no first calls.

    Raises BackendUnavailable without a GPU, and Mismatch if a result differs from that of the CPU.
    """
    backends.get("cuda")
    library, to_gpu = device_arrays()
    cases = [case.reduced(QUICK_SHARE) for case in CASES] if quick else CASES
    rows = []
    for case in cases:
        rows.append(_measured(case, to_gpu, min(repeats, 5) if quick else repeats))
        release()
    first = [] if quick else first_calls("cuda", FIRST)
    return result("cuda", library=library, method=METHOD, quick=quick, repeats=repeats, rows=rows, first=first)


def device_arrays() -> tuple[str, Callable[[Array], Any]]:
    """Return the library of the arrays on the GPU, CuPy if it is installed, and its function that makes one."""
    try:
        import cupy
    except ImportError:
        from wavefilt.backends.cuda.runtime.target import cuda

        return "numba-cuda", cuda.to_device
    return "CuPy", cupy.asarray


def to_host(x: Any) -> Array:
    """Return a NumPy array of an array of CuPy, numba or NumPy."""
    return np.asarray(x.copy_to_host() if hasattr(x, "copy_to_host") else x.get() if hasattr(x, "get") else x)


def _measured(case: Case, to_gpu: Callable[[Array], Any], repeats: int) -> Row:
    """Compare a case with the CPU, then time it; the other libraries follow."""
    host = signal(*case.shape)
    host = host[0] if len(host) == 1 else host
    make: Callable[[Array], Any] = to_gpu if case.where == "device" else np.asarray
    x = make(host)
    call: Callable[..., Any] = partial(wavefilt.denoise, **(case.options | {"backend": "cuda"}))
    expected = np.asarray(wavefilt.denoise(host, **(case.options | {"backend": "numba"})))
    row: Row = {"name": case.name, "shape": case.shape, "where": case.where, "options": case.options}
    row["error"] = agreement(to_host(call(x)), expected, TOLERANCE, case.name)
    del expected
    row["different"] = loop(call, [make(one) for one in different(host, HELD, max(repeats, 40), 4)])
    row["same"] = walls(partial(call, x), repeats)
    if case.where == "device":
        row["gpu"] = _queued(partial(call, x, wait=False), repeats)
    if case.peer:
        row["others"] = _others(case, host, repeats)
    return row


def _queued(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """Return the milliseconds of one of `QUEUED` calls that do not wait for their results."""
    from wavefilt.backends.cuda.runtime.target import cuda

    times = []
    for _ in range(repeats + 2):
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(QUEUED):
            call()
        cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start) / QUEUED)
    return summary(times[2:])


def _others(case: Case, host: Array, repeats: int) -> dict[str, float]:
    """Return the milliseconds of the other libraries: PyWavelets for NumPy arrays, ptwt for those on the GPU."""
    if case.where != "device":
        peer = pywavelets(case.options)
        return {"PyWavelets": walls(partial(peer, host), 1, 0)["median"]} if peer else {}
    if unavailable(partial(torch_with_ptwt, "cuda")):
        return {}
    x = torch_with_ptwt("cuda").as_tensor(host, device="cuda")
    return {"ptwt": walls(partial(by_ptwt, x, case.options["wavelet"]), repeats)["median"]}


TIMES = Table(
    "Denoising on the GPU, ms (quartiles in brackets): {method}",
    {
        "float32 samples": "{name}",
        "arrays": "{where}",
        "different|arrays": "?{different:quartiles}",
        "same|array": "?{same:quartiles}",
        "GPU|time": "?{gpu:quartiles}",
        "PyWavelets|1 core": "?{others[PyWavelets]:n}",
        "ptwt|same GPU": "?{others[ptwt]:n}",
    },
)
FIRST_CALLS = Table(
    "First calls of a new process, seconds",
    {"calls in this order": "{name}", "kernels not compiled": "{empty:.2f}", "compiled and cached": "{cached:.2f}"},
    "first",
)


def report(found: Row) -> Report:
    """Return the tables of `run`."""
    notes = [f"Arrays on the GPU are those of {found['library']}; results are compared with those of the CPU first."]
    return Report([TIMES(found), *([FIRST_CALLS(found)] if found["first"] else [])], notes)
