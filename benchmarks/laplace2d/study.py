"""The study of a course of 2017 on heterogeneous computing: a 5x5 Laplace filter on an RGB image, by CPU and GPU.

Each output is compared, exactly, before it is timed. `wavefilt bench laplace2d --json FILE` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from wavefilt.benchmarks.common.columns import recorded
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Implementation, measured, missing
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.laplace1d.study import estimate_errors
from wavefilt.benchmarks.laplace2d.cases import COPIES, COPY, IMPLEMENTATIONS, Problem
from wavefilt.benchmarks.laplace2d.counts import explained, launch
from wavefilt.benchmarks.laplace2d.variants import CHANNELS, COMPILED_FOR, VARIANTS, Variant
from wavefilt.benchmarks.scaling.limits import calibration
from wavefilt.benchmarks.ske.baselines import classic
from wavefilt.ske import CAPABILITIES
from wavefilt.ske.calibrated import estimate
from wavefilt.ske.calibration import Calibration

QUICK_SIZE = (640, 480)
REPEATS, BUDGET, QUICK_BUDGET = 25, 3.0, 0.1
"""Most runs of an implementation, and the seconds they may take."""
BASE = "plain"
"""The implementation that ratios are to."""


def run(
    problem: Problem,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Callable[[Sequence[Implementation]], Iterable[Implementation]] = iter,
) -> Row:
    """Times in milliseconds of every implementation, as a table for JSON.

    ``device`` is the calibration for the estimates, as `wavefilt ske estimate` takes it; by default that of this
    GPU. ``progress`` shows the implementations as they are taken.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    every = (*IMPLEMENTATIONS, *COPIES)
    why = {i.name: missing(i) for i in every}
    chosen, reason = calibration(device, why["gpu_copy"])
    times, skipped = measured(problem, progress([i for i in every if not why[i.name]]), repeats, budget)
    shape = {"width": problem.width, "height": problem.height, "samples": problem.samples}
    row: Row = {"image": problem.name, **shape, "bytes": 2 * CHANNELS * problem.samples}
    row |= {"times": times, "skipped": skipped, "estimates": {}, "explained": {}}
    capability = _capability(chosen, why["gpu_copy"])
    for variant in VARIANTS:
        registers = _registers(variant) if variant.name in times else None
        counted = launch(variant, problem.width, problem.height, registers)
        row["explained"][variant.name] = explained(variant, counted, problem.width, capability)
        if chosen is not None:
            found = estimate(counted, chosen)
            models = {"calibrated": 1e3 * found.seconds, "classic": 1e3 * classic(counted, chosen)}
            row["estimates"][variant.name] = models
            row["explained"][variant.name]["mostly"] = found.resource
    method = (
        "5x5 Laplace filter (all -1, centre 24) on interleaved RGB bytes, zeros beyond the edges, clamped to 0..255; "
    )
    method += f"median and quartiles of up to {repeats} runs in {budget:g} s, on the GPU by device events around the "
    return result(
        "laplace2d",
        unit="ms",
        method=f"{method}kernel, the image resident",
        columns=recorded(every, why, lambda one: "its input" if one.oracle == COPY else one.oracle),
        estimates={"calibration": chosen and chosen.name, "missing": reason},
        capability=capability,
        rows=[row | _derived(row)],
    )


def _capability(chosen: Calibration | None, no_gpu: str | None) -> str:
    """The compute capability for the occupancy: the calibration's, this GPU's, or that of the registers."""
    if chosen is not None:
        return str(chosen.capability)
    if no_gpu:
        return COMPILED_FOR
    from wavefilt.benchmarks.ske.calibration import Device

    here = Device.current().capability
    return here if here in CAPABILITIES else COMPILED_FOR


def _registers(variant: Variant) -> int | None:
    """Registers of a thread as compiled for this GPU; None in the simulator."""
    from wavefilt.backends.cuda.runtime.target import SIMULATED
    from wavefilt.benchmarks.laplace2d.kernels import kernel

    return None if SIMULATED else int(next(reversed(kernel(variant).overloads.values())).regs_per_thread)


def _derived(row: Row) -> Row:
    """Of the medians: pixels a second, ratios to the plain loop, shares of a copy's bandwidth, errors of estimates."""
    medians = {name: times["median"] for name, times in row["times"].items()}
    copy = {name: medians.get("gpu_copy" if name.startswith("gpu_") else "host_copy") for name in medians}
    return {
        "megapixels a second": {name: 1e-3 * row["samples"] / median for name, median in medians.items()},
        "ratios": {name: medians[BASE] / median for name, median in medians.items() if BASE in medians},
        "copy": {name: 1e-6 * row["bytes"] / medians[name] for name in ("host_copy", "gpu_copy") if name in medians},
        "shares": {name: copy[name] / median for name, median in medians.items() if copy[name]},
        "estimate errors": estimate_errors(row["estimates"], medians),
    }
