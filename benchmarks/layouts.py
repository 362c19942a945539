"""Padding and fast math of the GPU's kernels, each on and off: `wavefilt bench cuda --layouts`."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.columns import release
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import gpu_time, signal
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.benchmarks.ske.counts import PAIRS, Problem, analysis_cost, synthesis_cost

KI, MI = 1 << 10, 1 << 20
SHAPES = ((1, 64 * KI), (1, MI), (1, 64 * MI), (24, 1024), (4096, 16 * KI))
CASES = [("dwt", wavelet, shape) for wavelet in ("db4", "db8") for shape in SHAPES] + [("modwt", "db4", (1, MI))]
WAYS = [(padding, fastmath) for padding in (True, False) for fastmath in (False, True)]
LEVEL, BANKS, LAUNCHES, REPEATS = 5, 32, 8, 15


class Access(NamedTuple):
    """Accesses of four elements: where those of the threads of a warp begin, and how many there are in a launch."""

    places: list[int]
    times: float


def extra_wavefronts(places: list[int]) -> int:
    """Return the wavefronts of a warp's access of 16 bytes a thread beyond the four that it takes without conflicts."""
    extra = 0
    for first in range(0, len(places), 8):  # a quarter of a warp at a time
        banks = [place // 4 % (BANKS // 4) for place in {*places[first : first + 8]}]
        extra += max(map(banks.count, banks)) - 1
    return extra


def quads(padding: bool) -> list[int]:
    """Return where the first 64 quads of a level begin, with the halves 16 banks apart."""
    return [(16 if v & 1 else 0) + 4 * (v >> 1) if padding else 4 * v for v in range(64)]


def conflicts(problem: Problem, padding: bool) -> dict[str, float]:
    """Return the extra wavefronts in shared memory of the forward and the inverse transform of all interior tiles.

    The layout is `wavefilt.backends.cuda.dwt.kernels.Layout`: even and odd quads apart, or one after the other.
    """
    warp, places = range(32), quads(padding)
    window = [places[2 * v] for v in warp]
    _, loads = analysis_cost(problem.filter)
    _, both = synthesis_cost(problem.filter, PAIRS)
    found = {"forward": 0.0, "inverse": 0.0}
    for level, n in enumerate(problem.lengths[:-1]):
        forward, inverse = (problem.rows * n / elements / 32 for elements in (8, 2 * PAIRS))
        accesses = {"forward": [Access(window, forward * loads)], "inverse": [Access(places[:32], inverse * both)]}
        accesses["forward"].append(Access(places[:32], forward))
        if level:  # the finest samples go to device memory
            accesses["inverse"] += [Access([places[2 * v + i] for v in warp], inverse) for i in range(2)]
        for name, own in accesses.items():
            found[name] += sum(access.times * extra_wavefronts(access.places) for access in own)
    return found


def run(quick: bool = False, repeats: int = REPEATS) -> Row:
    """Measure every case in every way. Raises BackendUnavailable without a GPU."""
    backends.get("cuda")
    rows = []
    for transform, wavelet, (count, samples) in CASES[:: 4 if quick else 1]:
        shape = (count, min(samples, 64 * KI)) if quick else (count, samples)
        for padding, fastmath in WAYS:
            rows.append(_measured(transform, wavelet, shape, padding, fastmath, 3 if quick else repeats))
            release()
    return result("cuda_layouts", quick=quick, repeats=repeats, rows=rows)


def _measured(transform: str, wavelet: str, shape: tuple[int, int], padding: bool, fastmath: bool, repeats: int) -> Row:
    """Measure one case in one way: milliseconds, conflicts counted by the model, and the error against float64."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.options import KernelOptions
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.plans import FAMILIES
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.options import Options

    method = Options(wavelet, level=LEVEL, transform=transform, rule="universal", sigma="global")
    host = signal(*shape).astype(np.float32)
    own = Shape.of(method.analysis(LEVEL), "float32", shape[0], shape[1:])
    plan = FAMILIES[transform](own, KernelOptions(padding, fastmath))
    denoiser, x = Denoiser(plan, method, False), cuda.to_device(host.reshape(-1))
    y = cuda.device_array_like(x)
    work: dict[str, Any] = {
        "forward": lambda stream: plan.forward(x, stream),
        "inverse": lambda stream: plan.inverse(y, stream),
        "denoise": partial(denoiser.run, x, y),
    }
    times = {name: gpu_time(one, LAUNCHES, repeats) for name, one in work.items()}
    denoiser.run(x, y, plan.own_stream)
    plan.own_stream.synchronize()
    row: Row = {"transform": transform, "wavelet": wavelet, "shape": shape, "padding": padding, "fastmath": fastmath}
    row |= {"times": times, "error": _error(y.copy_to_host().reshape(shape), _expected(method, host))}
    plan.release()
    if transform == "dwt":
        taps = pywt.Wavelet(wavelet).dec_len
        row["conflicts"] = conflicts(Problem(taps, shape[1], shape[0], LEVEL), padding)
    return row


def _expected(method: Any, x: Array) -> Array:
    """Return the result in float64."""
    from wavefilt import engine

    return np.asarray(engine.denoise(x.astype(np.float64), method, backends.get("numba"), LEVEL)[0])


def _error(y: Array, expected: Array) -> float:
    return float(np.linalg.norm(y - expected) / np.linalg.norm(expected))


TIMES = Table(
    "Kernels of the GPU with and without padding and fast math, ms; extra wavefronts in shared memory by the model",
    {
        "samples": "{wavelet} {transform} {shape[0]} x {shape[1]}",
        "padding": "{padding}",
        "fast|math": "{fastmath}",
        "forward|ms": "{times[forward][median]:.4f}",
        "inverse|ms": "{times[inverse][median]:.4f}",
        "denoise|ms": "{times[denoise][median]:.4f}",
        "conflicts|forward": "?{conflicts[forward]:.3g}",
        "conflicts|inverse": "?{conflicts[inverse]:.3g}",
        "error": "{error:.2e}",
    },
)


def report(found: Row) -> Report:
    """Return the table of `run`."""
    return Report([TIMES(found)], ["Errors are those of float32 against float64, relative to the norm of the result."])
