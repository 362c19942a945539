"""The study of a course of 2017 on heterogeneous computing: a 5x5 Laplace filter on an RGB image, by CPU and GPU.

Each output is compared, exactly, before it is timed. `wavefilt bench laplace2d -o FILE` runs it.
"""

from __future__ import annotations

from functools import partial

from wavefilt.benchmarks.common import comparison
from wavefilt.benchmarks.common.comparison import Progress
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import missing
from wavefilt.benchmarks.common.tables import Column, Report, Row
from wavefilt.benchmarks.laplace2d.cases import COPIES, IMPLEMENTATIONS, NUMPY, SCIPY, Problem
from wavefilt.benchmarks.laplace2d.counts import explained, launch
from wavefilt.benchmarks.laplace2d.variants import CHANNELS, COMPILED_FOR, VARIANTS, Variant
from wavefilt.ske import CAPABILITIES
from wavefilt.ske.calibrated import Launch, estimate

QUICK_SIZE = (640, 480)
REPEATS, BUDGET, QUICK_BUDGET = 25, 3.0, 0.1
"""Most runs of an implementation, and the seconds they may take."""
BASE, AVERAGE = "plain", "median"
"""What ratios are to and of."""


def run(
    problem: Problem,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Progress = iter,
) -> Row:
    """Times in milliseconds of every implementation, as a table for JSON: see `comparison.compare`."""
    every, counted = (*IMPLEMENTATIONS, *COPIES), partial(_launches, problem)
    how = (BASE, AVERAGE, repeats, budget, device, progress)
    row, facts, chosen = comparison.compare(problem, every, CHANNELS, counted, *how)
    row |= {"image": problem.name, "width": problem.width, "height": problem.height} | megapixels(row)
    capability, made = chosen.capability if chosen else _capability(), counted(row["times"])
    row["explained"] = {v.name: explained(v, made[v.name], problem.width, capability) for v in VARIANTS}
    if chosen:
        for name, explanation in row["explained"].items():
            explanation["mostly"] = estimate(made[name], chosen).resource
    method = (
        "5x5 Laplace filter (all -1, centre 24) on interleaved RGB bytes, zeros beyond the edges, clamped to 0..255; "
    )
    method += f"median and quartiles of up to {repeats} runs in {budget:g} s, on the GPU by device events around the "
    method += "kernel, the image resident"
    return result("laplace2d", unit="ms", method=method, **facts, capability=capability, rows=[row])


def _launches(problem: Problem, times: Row) -> dict[str, Launch]:
    """Those of the kernels, with the registers as compiled here of those that ran."""
    return {
        v.name: launch(v, problem.width, problem.height, _registers(v) if v.name in times else None) for v in VARIANTS
    }


def megapixels(row: Row) -> Row:
    seconds = {name: 1e-3 * times[AVERAGE] for name, times in row["times"].items()}
    return {"megapixels a second": {name: 1e-6 * row["samples"] / time for name, time in seconds.items()}}


def _capability() -> str:
    """The compute capability for the occupancy: this GPU's if it is known, or that of the declared registers."""
    if missing(COPIES[1]):
        return COMPILED_FOR
    from wavefilt.benchmarks.ske.calibration import Device

    here = Device.current().capability
    return here if here in CAPABILITIES else COMPILED_FOR


def _registers(variant: Variant) -> int | None:
    """Registers of a thread as compiled for this GPU; None in the simulator."""
    from wavefilt.backends.cuda.runtime.target import SIMULATED
    from wavefilt.benchmarks.laplace2d.kernels import kernel

    return None if SIMULATED else int(next(reversed(kernel(variant).overloads.values())).regs_per_thread)


TIMES: dict[str, Column] = {
    "|5x5 Laplace": "{label}",
    "|ms": "?{times:spread}",
    "megapixels|a second": "?{megapixels a second:n}",
    "times|plain": "?{ratios:n}",
    "share of|a copy": "?{shares:.0%}",
}


def report(result: Row) -> Report:
    """Times, ratios, and estimates if there are any; notes with what explains each kernel."""
    (row,) = result["rows"]
    title = f"5x5 Laplace filter, {row['width']}x{row['height']} RGB pixels, image {row['image']}; ± is half the "
    title += "interquartile range"
    method = (
        f"{result['method']}. Results are compared exactly, with {SCIPY}; its own with {NUMPY}. "
        f"The kernels by count, for compute capability {result['capability']}: bytes per pixel by memory; "
        "bank conflict degree (1 is none); the limiting resource according to the SKE model."
    )

    def told(name: str) -> str:
        return f": {explanation(row['explained'][name])}" if name in row["explained"] else ""

    return comparison.report(result, title, TIMES, method, told=told)


def explanation(facts: Row) -> str:
    """What a kernel's time is made of, as counted from its accesses and its registers."""
    parts = [f"{facts['instructions']:.0f} instructions per pixel"]
    parts.append(", ".join(f"{value:.3g} bytes {place}" for place, value in facts["bytes"].items()))
    if "conflicts" in facts:
        reads, writes = (facts["conflicts"][access] for access in ("reads", "writes"))
        parts.append(f"bank conflict degree of tile reads {reads['mean']:.3g}, of writes {writes['mean']:.3g}")
    occupancy = f"{facts['warps']} warps, {facts['occupancy']:.0%} ({facts['limit']})"
    parts.append(
        f"{facts['registers']} registers and {facts['shared']} bytes of shared memory allow {occupancy} per SM"
    )
    if "mostly" in facts:
        parts.append(f"limited by {facts['mostly']}")
    return "; ".join(parts)
