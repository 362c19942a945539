"""Padding and fast math of the GPU's kernels, each on and off: `wavefilt bench cuda --layouts`."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pywt

from wavefilt import backends, engine
from wavefilt.benchmarks.common.columns import release
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import difference, gpu_time, signal
from wavefilt.benchmarks.common.tables import Column, Report, Row, filled, sheet
from wavefilt.benchmarks.ske.counts import PAIRS, Problem, analysis_cost, forward, inverse, synthesis_cost
from wavefilt.ske import devices
from wavefilt.ske.calibrated import Launch, estimate
from wavefilt.ske.devices import Calibration
from wavefilt.vocabulary import Transform

KI, MI = 1 << 10, 1 << 20
SHAPES = ((1, 64 * KI), (1, MI), (1, 64 * MI), (24, 1024), (4096, 16 * KI))
CASES: list[tuple[Transform, str, tuple[int, int]]] = [
    *(("dwt", wavelet, shape) for wavelet in ("db4", "db8") for shape in SHAPES),
    ("modwt", "db4", (1, MI)),
]
WAYS = [(padding, fastmath) for padding in (True, False) for fastmath in (False, True)]
LEVEL, BANKS, LAUNCHES, REPEATS = 5, 32, 8, 15
METRIC = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
"""Counter of Nsight Compute."""


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
    places = quads(padding)
    row, evens, odds = (extra_wavefronts(own) for own in (places[:32], places[::2], places[1::2]))
    _, loads = analysis_cost(problem.filter)
    _, both = synthesis_cost(problem.filter, PAIRS)
    found = {"forward": 0.0, "inverse": 0.0}
    for level, n in enumerate(problem.lengths[:-1]):
        down, up = (problem.rows * n / elements / 32 for elements in (8, 2 * PAIRS))
        found["forward"] += down * loads * evens + down * row
        # the finest samples go to device memory
        found["inverse"] += up * both * row + (up * evens + up * odds if level else 0)
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
    for transform, wavelet, (count, samples) in CASES[:: 4 if quick else 1]:
        shape = count, min(samples, 64 * KI) if quick else samples
        for padding, fastmath in WAYS:
            rows.append(_measured(transform, wavelet, shape, padding, fastmath, 3 if quick else repeats))
            release()
            if transform == "dwt" and not fastmath:
                rows[-1]["profiled"] = _profiled(wavelet, shape, padding)
    return result("cuda_layouts", quick=quick, repeats=repeats, profiler=bool(shutil.which("ncu")), rows=rows)


def _plan(transform: Transform, wavelet: str, shape: tuple[int, int], padding: bool, fastmath: bool) -> tuple[Any, Any]:
    """Return the options of a run and the plan of its kernels."""
    from wavefilt.backends.cuda.options import KernelOptions
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.plans import FAMILIES
    from wavefilt.options import Options

    options = Options(wavelet, level=LEVEL, transform=transform, rule="universal", sigma="global")
    own = Shape.of(options.analysis(LEVEL), "float32", shape[0], shape[1:])
    return options, FAMILIES[transform](own, KernelOptions(padding, fastmath))


def _profiled(wavelet: str, shape: tuple[int, int], padding: bool) -> dict[str, float] | None:
    """Return the bank conflicts that Nsight Compute counts in both transforms of the DWT; None without ``ncu``."""
    ncu = shutil.which("ncu")
    if ncu is None:
        return None
    code = f"from wavefilt.benchmarks import layouts; layouts.launch({wavelet!r}, {shape}, {padding})"
    command = [ncu, "--clock-control", "none", "--csv", "--metrics", METRIC, sys.executable, "-c", code]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {"forward": 0.0, "inverse": 0.0}
    for kernel in csv.DictReader(line for line in lines if line.startswith('"')):
        which = "forward" if "forward" in kernel["Kernel Name"] else "inverse"
        found[which] += float(kernel["Metric Value"].replace(",", ""))
    return found


def launch(wavelet: str, shape: tuple[int, int], padding: bool) -> None:
    """Launch the forward and the inverse DWT once, for a profiler."""
    from wavefilt.backends.cuda.runtime.target import cuda

    _, plan = _plan("dwt", wavelet, shape, padding, False)
    x, stream = cuda.to_device(signal(*shape).astype(np.float32).reshape(-1)), plan.own_stream
    plan.forward(x, stream)
    plan.inverse(x, stream)
    stream.synchronize()


def _measured(
    transform: Transform, wavelet: str, shape: tuple[int, int], padding: bool, fastmath: bool, repeats: int
) -> Row:
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
    expected, _ = engine.denoise(host.astype(np.float64), options, backends.get("numba"), LEVEL)
    row |= {"times": times, "error": difference(y.copy_to_host().reshape(shape), np.asarray(expected))}
    own = plan.options
    plan.release()
    if transform == "dwt":
        problem = Problem(pywt.Wavelet(wavelet).dec_len, shape[1], shape[0], LEVEL, own.tile, own.threads)
        extra = conflicts(problem, padding)
        row["conflicts"] = extra | {"inverse": conflicts(problem, False)["inverse"]}
        extra["inverse"] = 0.0  # the calibration is of the inverse as it is
        row["estimates"] = estimated(problem, extra, devices.default())
    return row


def _pair(value: str, *layouts: str) -> Callable[[Row], str]:
    """Return a column with a ``value`` for padded and plain tiles, or for the ``layouts`` given."""

    def cell(row: Row) -> str:
        first, second = (filled(f"?{{{value}}}", row[layout]) for layout in layouts or ("padded", "plain"))
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


TIMES: dict[str, Column] = {
    "samples": "{name}",
    "forward": _pair("times[forward][median]:us"),
    "forward|by SKE": _pair("estimates[forward]:us"),
    "inverse": _pair("times[inverse][median]:us"),
    "inverse|by SKE": _pair("estimates[inverse]:us"),
    "denoising": _pair("times[denoise][median]:us"),
    "denoising,|fast math": _pair("times[denoise][median]:us", "fast", "plain fast"),
    "thousand conflicts,|forward": _pair("profiled[forward]:thousands"),
    "by the|model": _pair("conflicts[forward]:thousands"),
    "thousand conflicts,|inverse": _pair("profiled[inverse]:thousands"),
    "by the|model#2": _pair("conflicts[inverse]:thousands"),
    "error": "{padded[error]:.1e}",
}


def report(found: Row) -> Report:
    """Return the table of `run`."""
    notes = ["Errors compare float32 with float64, relative to the norm of the result; all four are equal."]
    counter = METRIC if found.get("profiler") else "ncu was not found"
    title = "Kernels of the GPU: padded tiles / plain tiles; times in microseconds"
    notes.append(f"Bank conflicts: {counter}; the model counts interior tiles.")
    return Report([sheet(title, TIMES, _by_layout(found))], notes)
