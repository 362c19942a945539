"""A user's loop over arrays on a GPU, each met once: ``python -m wavefilt.benchmarks.gpu.fresh_arrays [-o FILE]``.

With a profile of what a call does on the host.
"""

from __future__ import annotations

import cProfile
import gc
import io
import pstats
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wavefilt
from wavefilt import backends
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import events, signal, summary
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.method import Method

KI, MI = 1 << 10, 1 << 20
SHAPES = ((1, 64 * KI), (1, MI), (24, KI))
METHODS: dict[str, Row] = {"the defaults": {}, "universal": {"rule": "universal", "sigma": "global"}}
POOL, GATHERS = 60, 1000
"""Different arrays of a case, and gathers of the last shape in a row."""
THREADS = (128, 256, 512)
"""Of a block that searches a row alone."""
TOLERANCE = 1e-5

Make = Callable[[Any], Any]


def libraries() -> dict[str, tuple[Make, Make]]:
    """By name, of those installed: what makes an array on the GPU of one of NumPy's, and the way back."""
    from wavefilt.backends.cuda.runtime.target import cuda

    found: dict[str, tuple[Make, Make]] = {"numba": (cuda.to_device, lambda x: x.copy_to_host())}
    try:
        import cupy

        found["cupy"] = cupy.asarray, lambda x: x.get()
    except ImportError:
        pass
    try:
        import torch

        found["torch"] = (lambda x: torch.as_tensor(x, device="cuda")), lambda x: x.cpu().numpy()
    except ImportError:
        pass
    return found


def run(quick: bool = False, shapes: Sequence[tuple[int, int]] = SHAPES) -> Row:
    """Microseconds of a call. Raises Mismatch for a wrong result."""
    backends.get("cuda")
    gc.collect()
    gc.freeze()  # what the compiler left is not gone through again
    pool, gathers = (6, 20) if quick else (POOL, GATHERS)
    rows, profile = [], ""
    for name, (make, host) in libraries().items():
        for what, options in METHODS.items():
            for shape in shapes:
                rows.append({"library": name, "method": what, **_case(shape, make, host, options, pool)})
            rows[-1]["loop"] = _loop(shapes[-1], make, options, gathers, pool)
            if name == "cupy" or not profile:
                profile = _profile(shapes[-1], make, options, gathers)
    alone = [
        {"method": what, "shape": list(shape), "times": {f"{n} threads": _gpu_time(shape, options, n) for n in THREADS}}
        for what, options in METHODS.items()
        for shape in shapes
    ]
    facts = {"alone": alone, "arrays": pool, "gathers": gathers}
    return result("arrays met once", unit="us", **facts, rows=rows, profile=profile)


def _case(shape: tuple[int, int], make: Make, host: Make, options: Row, pool: int) -> Row:
    """Each of some arrays once, the last of them again and again, and each once without waiting for any.

    The library has room for the results, as after the first turns of a loop; then each once in memory that is new.
    """
    samples = [np.roll(signal(*shape), i, axis=1) for i in range(pool)]
    if shape[0] == 1:
        samples = [x[0] for x in samples]
    warm, (*fresh,) = make(samples[0]), map(make, samples)
    for wait in (True, False):
        for _ in range(4):
            y = wavefilt.denoise(warm, wait=wait, **options)
    error = agreement(host(y), wavefilt.denoise(samples[0], backend="pywavelets", **options), TOLERANCE, shape)
    room = [make(x) for x in samples]
    del room  # to the library, which keeps it if it has a pool
    once, kept = _times(fresh, options)
    expected = wavefilt.denoise(samples[-1], backend="pywavelets", **options)
    error = max(error, agreement(host(kept[-1]), expected, TOLERANCE, shape))
    kept.clear()
    again, kept = _times([warm] * pool, options)
    new, _ = _times(fresh, options)
    kept.clear()
    begun = _begun(fresh, options)
    found = {"once": once, "again": again, "in new memory": new, "not waited for": begun}
    return {"shape": list(shape), "error": error, **found}


def _times(arrays: Sequence[Any], options: Row) -> tuple[dict[str, float], list[Any]]:
    """Of calls that wait for the result; the results are kept."""
    times, kept = [], []
    for x in arrays:
        start = time.perf_counter()
        y = wavefilt.denoise(x, **options)
        times.append(1e6 * (time.perf_counter() - start))
        kept.append(y)
    return summary(times), kept


def _begun(arrays: Sequence[Any], options: Row) -> dict[str, float]:
    """The median of a call that does not wait, and the mean with what is waited for in the end."""
    backend: Any = backends.get("cuda")
    backend.check()
    begun = time.perf_counter()
    times, kept = _times(arrays, options | {"wait": False})
    backend.check()
    return {"host": times["median"], "done": 1e6 * (time.perf_counter() - begun) / len(kept)}


def _gpu_time(shape: tuple[int, int], options: Row, threads: int) -> float:
    """Microseconds of the GPU alone, with so many threads for a row that one block searches."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.options import Options
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.plans import FAMILIES
    from wavefilt.backends.cuda.runtime.target import cuda

    method = Method(**options)
    own = Shape.of(method.analysis(method.level_for(shape[1])), "float32", shape[0], shape[1:])
    plan = FAMILIES["dwt"](own, Options(row=threads))
    denoiser = Denoiser(plan, method, False)
    x = cuda.to_device(signal(*shape).ravel())
    y = cuda.device_array_like(x)
    return 1e3 * events(lambda stream: denoiser.run(x, y, stream), 25)["median"]


def _loop(shape: tuple[int, int], make: Make, options: Row, gathers: int, pool: int) -> dict[str, float]:
    """Many gathers in a row, of a pool of arrays, results not kept."""
    fresh = [make(np.roll(signal(*shape), i, axis=1)) for i in range(pool)]
    found = {}
    backend: Any = backends.get("cuda")
    for name, wait in (("waited for", True), ("not waited for", False)):
        backend.check()
        start = time.perf_counter()
        for i in range(gathers):
            wavefilt.denoise(fresh[i % pool], wait=wait, **options)
        backend.check()
        found[name] = 1e6 * (time.perf_counter() - start) / gathers
    return found


def _profile(shape: tuple[int, int], make: Make, options: Row, gathers: int) -> str:
    """Functions by the time of their own, of calls that do not wait."""
    fresh, profile = [make(np.roll(signal(*shape), i, axis=1)) for i in range(16)], cProfile.Profile()
    profile.enable()
    for i in range(gathers):
        wavefilt.denoise(fresh[i % 16], wait=False, **options)
    profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(25)
    return text.getvalue()


TABLE = Table(
    "{arrays} arrays on the GPU, each denoised once, us of a call: {environment[gpu]}",
    {
        "library": "{library}",
        "method": "{method}",
        "samples": "{shape[0]} x {shape[1]}",
        "each once": "{once:quartiles}",
        "the same|again": "{again:quartiles}",
        "each once,|in new memory": "{in new memory:quartiles}",
        "without waiting|host": "{not waited for[host]:n}",
        "without waiting|until done": "{not waited for[done]:n}",
        "many in a row|waiting": "?{loop[waited for]:n}",
        "many in a row|not waiting": "?{loop[not waited for]:n}",
    },
)


ALONE = Table(
    "GPU time alone, us, by the threads of a block that searches a row alone",
    {"method": "{method}", "samples": "{shape[0]} x {shape[1]}"}
    | {f"{n}": f"{{times[{n} threads]:n}}" for n in THREADS},
    "alone",
)


def report(found: Row) -> Report:
    return Report([TABLE(found), ALONE(found)], found["profile"].splitlines())


if __name__ == "__main__":
    main(run, report)
