"""Padding and fast math of the GPU's kernels, each on and off: `wavefilt bench cuda --layouts`."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.columns import release
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import gpu_time, signal
from wavefilt.benchmarks.common.tables import Report, Row, Table, scaled
from wavefilt.benchmarks.ske.counts import PAIRS, Problem, analysis_cost, forward, inverse, synthesis_cost
from wavefilt.ske import devices
from wavefilt.ske.calibrated import Launch, estimate
from wavefilt.ske.devices import Calibration

KI, MI = 1 << 10, 1 << 20
SHAPES = ((1, 64 * KI), (1, MI), (1, 64 * MI), (24, 1024), (4096, 16 * KI))
CASES = [("dwt", wavelet, shape) for wavelet in ("db4", "db8") for shape in SHAPES] + [("modwt", "db4", (1, MI))]
WAYS = [(padding, fastmath) for padding in (True, False) for fastmath in (False, True)]
LEVEL, BANKS, LAUNCHES, REPEATS = 5, 32, 8, 15
METRIC = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
"""Counter of Nsight Compute."""


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
        down, up = (problem.rows * n / elements / 32 for elements in (8, 2 * PAIRS))
        accesses = {"forward": [Access(window, down * loads)], "inverse": [Access(places[:32], up * both)]}
        accesses["forward"].append(Access(places[:32], down))
        if level:  # the finest samples go to device memory
            accesses["inverse"] += [Access([places[2 * v + i] for v in warp], up) for i in range(2)]
        for name, own in accesses.items():
            found[name] += sum(access.times * extra_wavefronts(access.places) for access in own)
    return found


def estimated(problem: Problem, extra: Mapping[str, float], device: Calibration) -> dict[str, float]:
    """Return the milliseconds of both transforms by the SKE model, with the ``extra`` wavefronts of conflicts."""
    found = {}
    for name, counted in {"forward": forward, "inverse": inverse}.items():
        launches = counted(problem)
        total = sum(one.instructions["wavefront"] * one.blocks * one.threads / 32 for one in launches)
        more = 1 + extra[name] / total
        found[name] = 1e3 * sum(estimate(_with_wavefronts(one, more), device).seconds for one in launches)
    return found


def _with_wavefronts(launch: Launch, factor: float) -> Launch:
    wavefronts = factor * launch.instructions["wavefront"]
    return replace(launch, instructions={**launch.instructions, "wavefront": wavefronts})


def run(quick: bool = False, repeats: int = REPEATS) -> Row:
    """Measure every case in every way. Raises BackendUnavailable without a GPU."""
    backends.get("cuda")
    rows = []
    for transform, wavelet, shape in _cases(quick):
        for padding, fastmath in WAYS:
            rows.append(_measured(transform, wavelet, shape, padding, fastmath, 3 if quick else repeats))
            release()
    counted = _profiled(quick)
    for row in rows:
        case = f"{row['wavelet']} {tuple(row['shape'])} {row['padding']}"
        if row["transform"] == "dwt" and case in counted:
            row["profiled"] = counted[case]
    return result("cuda_layouts", quick=quick, repeats=repeats, profiler=bool(counted), rows=rows)


def _cases(quick: bool) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield transform, wavelet and shape of each case."""
    for transform, wavelet, (count, samples) in CASES[:: 4 if quick else 1]:
        yield transform, wavelet, (count, min(samples, 64 * KI)) if quick else (count, samples)


def _plan(transform: str, wavelet: str, shape: tuple[int, int], padding: bool, fastmath: bool) -> tuple[Any, Any]:
    """Return the options of a run and the plan of its kernels."""
    from wavefilt.backends.cuda.options import KernelOptions
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.plans import FAMILIES
    from wavefilt.options import Options

    options = Options(wavelet, level=LEVEL, transform=transform, rule="universal", sigma="global")
    own = Shape.of(options.analysis(LEVEL), "float32", shape[0], shape[1:])
    return options, FAMILIES[transform](own, KernelOptions(padding, fastmath))


def _profiled(quick: bool) -> dict[str, dict[str, float]]:
    """Return the bank conflicts that Nsight Compute counts in each DWT, by case; empty without ``ncu``."""
    ncu = shutil.which("ncu")
    if ncu is None:
        return {}
    program = [sys.executable, "-m", "wavefilt.benchmarks.layouts", *(["--quick"] if quick else [])]
    command = [ncu, "--clock-control", "none", "--csv", "--metrics", METRIC, *program]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, dict[str, float]] = {}
    case = ""
    for line in lines:
        if line.startswith("case "):
            case = line.removeprefix("case ")
            found[case] = {"forward": 0.0, "inverse": 0.0}
    names, kernels = list(found), csv.DictReader(line for line in lines if line.startswith('"'))
    order = [(name, which) for name in names for which in ("forward", "inverse")]
    previous, place = "", -1
    for kernel in kernels:
        which = "forward" if "forward" in kernel["Kernel Name"] else "inverse"
        place += which != previous
        previous = which
        name, expected = order[place]
        if which != expected:
            raise RuntimeError(f"the profiler listed {which} kernels where {expected} ones were launched")
        found[name][which] += float(kernel["Metric Value"].replace(",", ""))
    return found


def profile(quick: bool) -> None:
    """Launch forward and inverse transform of every DWT case once, for a profiler."""
    from wavefilt.backends.cuda.runtime.target import cuda

    for transform, wavelet, shape in _cases(quick):
        for padding in (True, False) if transform == "dwt" else ():
            _, plan = _plan(transform, wavelet, shape, padding, False)
            x = cuda.to_device(signal(*shape).astype(np.float32).reshape(-1))
            print(f"case {wavelet} {shape} {padding}", flush=True)
            stream = plan.own_stream
            plan.forward(x, stream)
            plan.inverse(x, stream)
            stream.synchronize()
            plan.release()


def _measured(transform: str, wavelet: str, shape: tuple[int, int], padding: bool, fastmath: bool, repeats: int) -> Row:
    """Measure one case in one way: milliseconds, conflicts counted by the model, and the error against float64."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.runtime.target import cuda

    options, plan = _plan(transform, wavelet, shape, padding, fastmath)
    host = signal(*shape).astype(np.float32)
    denoiser, x = Denoiser(plan, options, False), cuda.to_device(host.reshape(-1))
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
    row |= {"times": times, "error": _error(y.copy_to_host().reshape(shape), _expected(options, host))}
    own = plan.options
    plan.release()
    if transform == "dwt":
        problem = Problem(pywt.Wavelet(wavelet).dec_len, shape[1], shape[0], LEVEL, own.tile, own.threads)
        extra = conflicts(problem, padding)
        row["conflicts"] = extra | {"inverse": conflicts(problem, False)["inverse"]}
        extra["inverse"] = 0.0  # the calibration is of the inverse as it is
        row["estimates"] = estimated(problem, extra, devices.default())
    return row


def _expected(options: Any, x: Array) -> Array:
    """Return the result in float64."""
    from wavefilt import engine

    return np.asarray(engine.denoise(x.astype(np.float64), options, backends.get("numba"), LEVEL)[0])


def _error(y: Array, expected: Array) -> float:
    return float(np.linalg.norm(y - expected) / np.linalg.norm(expected))


def _pair(path: str, factor: float, *layouts: str) -> Callable[[Row], str]:
    """Return a column with the values of a ``path`` for padded and plain tiles, or for the ``layouts`` given."""
    column = scaled(path, factor)

    def cell(row: Row) -> str:
        first, second = (column(row[layout]) for layout in layouts or ("padded", "plain"))
        return first if first == second == "-" else f"{first} / {second}"

    return cell


def _by_layout(found: Row) -> list[Row]:
    """Return a row for each case: the results with ``padded`` and ``plain`` tiles, and those with ``fast`` math."""
    cases: dict[str, Row] = {}
    for row in found["rows"]:
        name = f"{row['wavelet']} {row['transform']} {row['shape'][0]} x {row['shape'][1]}"
        layout = ("" if row["padding"] else "plain ") + ("fast" if row["fastmath"] else "")
        cases.setdefault(name, {"name": name})[layout.strip() or "padded"] = row
    return list(cases.values())


TIMES = Table(
    "Kernels of the GPU: padded tiles / plain tiles; times in microseconds",
    {
        "samples": "{name}",
        "forward": _pair("times[forward][median]", 1e3),
        "forward|by SKE": _pair("estimates[forward]", 1e3),
        "inverse": _pair("times[inverse][median]", 1e3),
        "inverse|by SKE": _pair("estimates[inverse]", 1e3),
        "denoising": _pair("times[denoise][median]", 1e3),
        "denoising,|fast math": _pair("times[denoise][median]", 1e3, "fast", "plain fast"),
        "thousand conflicts,|forward": _pair("profiled[forward]", 1e-3),
        "by the|model": _pair("conflicts[forward]", 1e-3),
        "thousand conflicts,|inverse": _pair("profiled[inverse]", 1e-3),
        "by the|model#2": _pair("conflicts[inverse]", 1e-3),
        "error": "{padded[error]:.1e}",
    },
    _by_layout,
)


def report(found: Row) -> Report:
    """Return the table of `run`."""
    notes = ["Errors compare float32 with float64, relative to the norm of the result; all four are equal."]
    counter = METRIC if found.get("profiler") else "ncu was not found"
    return Report([TIMES(found)], [*notes, f"Bank conflicts: {counter}; the model counts interior tiles."])


if __name__ == "__main__":
    profile("--quick" in sys.argv)
