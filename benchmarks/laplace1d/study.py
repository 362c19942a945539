"""The 1-D Laplace operator of a lesson of 2008 on textures: host loops, and four ways of a sample to a GPU's thread.

Each output is compared before it is timed. `wavefilt bench laplace1d --json FILE` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.implementation import Implementation, measured, missing
from wavefilt.benchmarks.laplace1d.cases import COPIES, COPY, IMPLEMENTATIONS, LAUNCHES, Problem
from wavefilt.benchmarks.laplace1d.counts import SAMPLE, launches
from wavefilt.benchmarks.scaling.limits import calibration

SAMPLES, REPEATS = 1 << 20, 503
"""Those of the document."""
BUDGET, QUICK_BUDGET = 5.0, 0.1
"""Seconds that the runs of an implementation may take."""
BASE = "loop"
"""The implementation that ratios are to."""
DOCUMENT = {
    "loop": (5.62, 1.0), "gpu_naive": (0.246, 22.9), "gpu_readonly": (0.117, 48.0), "gpu_shared": (0.166, 33.9),
    "gpu_barrier": (0.156, 36.0),
}  # fmt: skip
"""Milliseconds of 2008 for `SAMPLES` and ratio to the host loop: one core of an E8400, and a GTX 260 whose texture
cache was the read-only path."""


def run(
    samples: int = SAMPLES, repeats: int = REPEATS, budget: float = BUDGET, device: str | None = None,
    progress: Callable[[Sequence[Implementation]], Iterable[Implementation]] = iter,
) -> dict[str, Any]:  # fmt: skip
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
    row: dict[str, Any] = {"samples": samples, "times": times, "skipped": skipped, "bytes": 2 * SAMPLE * samples}
    if chosen is not None:
        row["estimates"] = _estimates(samples, chosen)
    return {
        "study": "laplace1d", "date": date.today().isoformat(), "unit": "ms",
        "method": f"Mean, median and quartiles of up to {repeats} runs in {budget:g} s; on the GPU a run is the "
                  f"average of {LAUNCHES} launches in a graph between two events, the data resident",
        "environment": environment(),
        "columns": {
            i.name: {"heads": i.heads, "what": i.what, "missing": why[i.name], "tolerance": i.tolerance,
                     "compared with": "its input" if i.oracle == COPY else "NumPy's shifted copies in float64"}
            for i in every
        },
        "estimates": {"calibration": getattr(chosen, "name", None), "missing": reason},
        "rows": [row | _derived(row)],
    }  # fmt: skip


def _estimates(samples: int, device: Any) -> dict[str, dict[str, float]]:
    """Milliseconds of every kernel by the SKE model, calibrated and classic."""
    from wavefilt.ske.baselines import classic
    from wavefilt.ske.calibrated import estimate

    return {
        f"gpu_{name}": {"calibrated": 1e3 * estimate(launch, device).seconds, "classic": 1e3 * classic(launch, device)}
        for name, launch in launches(samples).items()
    }


def _derived(row: dict[str, Any]) -> dict[str, Any]:
    """Ratios to the host loop, bandwidths and shares of a copy's, errors of the estimates: all of the means."""
    means = {name: times["mean"] for name, times in row["times"].items()}
    copy = {name: means.get("gpu_copy" if name.startswith("gpu_") else "host_copy") for name in means}
    found: dict[str, Any] = {
        "ratios": {name: means[BASE] / mean for name, mean in means.items() if BASE in means},
        "shares": {name: copy[name] / mean for name, mean in means.items() if copy[name]},
    }
    for entry, name in (("copy", "gpu_copy"), ("host copy", "host_copy")):
        if name in means:
            found[entry] = row["bytes"] / means[name] * 1e-6  # GB/s
    if "estimates" in row:
        found["estimate errors"] = {
            name: {model: value / means[name] - 1 for model, value in models.items()}
            for name, models in row["estimates"].items() if name in means
        }  # fmt: skip
    if row["samples"] == SAMPLES:
        found["document"] = {name: {"ms": ms, "ratio": ratio} for name, (ms, ratio) in DOCUMENT.items()}
    return found
