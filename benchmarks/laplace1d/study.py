"""The 1-D Laplace operator of a lesson of 2008 on textures: host loops, and GPU kernels that read samples differently.

Each output is compared before it is timed. `wavefilt bench laplace1d --json FILE` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from wavefilt.benchmarks.common.columns import recorded
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Implementation, measured, missing
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.laplace1d.cases import COPIES, COPY, IMPLEMENTATIONS, LAUNCHES, Problem
from wavefilt.benchmarks.laplace1d.counts import SAMPLE, launches
from wavefilt.benchmarks.scaling.limits import calibration
from wavefilt.ske.calibration import Calibration

SAMPLES, REPEATS = 1 << 20, 503
"""Those of the document."""
BUDGET, QUICK_BUDGET = 5.0, 0.1
"""Seconds that the runs of an implementation may take."""
BASE = "loop"
"""The implementation that ratios are to."""
DOCUMENT = {
    "loop": (5.62, 1.0),
    "gpu_naive": (0.246, 22.9),
    "gpu_readonly": (0.117, 48.0),
    "gpu_shared": (0.166, 33.9),
    "gpu_barrier": (0.156, 36.0),
}
"""Milliseconds of 2008 for `SAMPLES` and ratio to the host loop: one core of an E8400, and a GTX 260 whose texture
cache was the read-only path."""


def run(
    samples: int = SAMPLES,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Callable[[Sequence[Implementation]], Iterable[Implementation]] = iter,
) -> Row:
    """Times in milliseconds of every implementation, as a table for JSON.

    ``device`` is the calibration for the estimates, as `wavefilt ske estimate` takes it; by default that of this
    GPU. ``progress`` shows the implementations as they are taken.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration or
    fewer than two samples.
    """
    problem, every = Problem(samples), (*IMPLEMENTATIONS, *COPIES)
    why = {i.name: missing(i) for i in every}
    chosen, reason = calibration(device, why["gpu_copy"])
    times, skipped = measured(problem, progress([i for i in every if not why[i.name]]), repeats, budget)
    row: Row = {"samples": samples, "times": times, "skipped": skipped, "bytes": 2 * SAMPLE * samples}
    if chosen is not None:
        row["estimates"] = _estimates(samples, chosen)
    method = f"Mean, median and quartiles of up to {repeats} runs in {budget:g} s; on the GPU a run is the average of "
    return result(
        "laplace1d",
        unit="ms",
        method=f"{method}{LAUNCHES} launches in a graph between two events, the data resident",
        columns=recorded(
            every, why, lambda one: "its input" if one.oracle == COPY else "NumPy's shifted copies in float64"
        ),
        estimates={"calibration": chosen and chosen.name, "missing": reason},
        rows=[row | _derived(row)],
    )


def _estimates(samples: int, device: Calibration) -> dict[str, dict[str, float]]:
    """Milliseconds of every kernel by the SKE model, calibrated and classic."""
    from wavefilt.benchmarks.ske.baselines import classic
    from wavefilt.ske.calibrated import estimate

    return {
        f"gpu_{name}": {"calibrated": 1e3 * estimate(launch, device).seconds, "classic": 1e3 * classic(launch, device)}
        for name, launch in launches(samples).items()
    }


def _derived(row: Row) -> Row:
    """Ratios to the host loop, bandwidths and shares of a copy's, errors of the estimates: all of the means."""
    means = {name: times["mean"] for name, times in row["times"].items()}
    copy = {name: means.get("gpu_copy" if name.startswith("gpu_") else "host_copy") for name in means}
    found: Row = {
        "ratios": {name: means[BASE] / mean for name, mean in means.items() if BASE in means},
        "shares": {name: copy[name] / mean for name, mean in means.items() if copy[name]},
    }
    for entry, name in (("copy", "gpu_copy"), ("host copy", "host_copy")):
        if name in means:
            found[entry] = row["bytes"] / means[name] * 1e-6  # GB/s
    if "estimates" in row:
        found["estimate errors"] = estimate_errors(row["estimates"], means)
    if row["samples"] == SAMPLES:
        found["document"] = {name: {"ms": ms, "ratio": ratio} for name, (ms, ratio) in DOCUMENT.items()}
    return found


def estimate_errors(estimates: Row, measured: dict[str, float]) -> Row:
    """Relative errors of the estimates of what was measured, by name and model."""
    return {
        name: {model: value / measured[name] - 1 for model, value in models.items()}
        for name, models in estimates.items()
        if name in measured
    }
