"""The scaling study: one denoise at the sizes of the document of 2010, by everyone who can do it here.

Each output is compared before it is timed. `wavefilt bench scaling --json FILE --csv FILE --plot FOLDER` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.implementation import Implementation, measured, missing
from wavefilt.benchmarks.gpu.denoise import LEVEL
from wavefilt.benchmarks.scaling.implementations import IMPLEMENTATIONS, Problem

from . import limits

KI, MI = 1 << 10, 1 << 20
DOCUMENT = {
    64 * KI << i: times
    for i, times in enumerate(
        ((12, 67), (26, 67), (81, 61), (159, 73), (319, 85), (677, 97), (1401, 133), (2855, 209), (5964, 355),
         (11979, 638), (31802, 1350))
    )
}  # fmt: skip
"""Milliseconds of 2010 on a Core 2 Duo E2200 and a GeForce 9800 GT, transfers among them; `db4`."""
WAVELETS = ("db4", "db8")
QUICK = (64 * KI, 256 * KI, MI)
REPEATS, BUDGET, QUICK_BUDGET = 25, 3.0, 0.1
"""Most runs of a column at one size, and the seconds they may take."""
PAIRS = (("numba", "pywavelets"), ("numba", "gsl"), ("cuda", "gsl"), ("cuda", "pywavelets"), ("cuda", "numba"),
         ("cuda_pinned", "numba"), ("ptwt_gpu", "ptwt_cpu"), ("cuda_resident", "ptwt_gpu"))  # fmt: skip
"""Whose crossovers are told: from what size the first takes less time than the second."""

Step = tuple[str, int, Implementation]
"""Wavelet, samples, who."""


def run(
    sizes: Sequence[int] = tuple(DOCUMENT), wavelets: Sequence[str] = WAVELETS, repeats: int = REPEATS,
    budget: float = BUDGET, device: str | None = None, progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[dict[str, Any]], None] = lambda result: None,
) -> dict[str, Any]:  # fmt: skip
    """Times in milliseconds of every implementation at every size, as a table for JSON.

    ``device`` is the calibration for the estimates, as `wavefilt ske estimate` takes it; by default that of this
    GPU. ``progress`` shows the steps as they are taken; ``keep`` is given the table after each of its rows.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    why = {i.name: missing(i) for i in IMPLEMENTATIONS}
    calibration, reason = limits.calibration(device, why["cuda"])
    running = [i for i in IMPLEMENTATIONS if not why[i.name]]
    result: dict[str, Any] = {
        "study": "scaling", "date": date.today().isoformat(), "unit": "ms",
        "method": f"{LEVEL} levels, universal soft threshold, noise by the MAD of the finest level",
        "most repeats": repeats, "environment": environment(),
        "columns": {
            i.name: {"heads": i.heads, "what": i.what, "missing": why[i.name], "tolerance": i.tolerance,
                     "compared with": f"wavefilt.denoise, backend pywavelets, {i.oracle}"} for i in IMPLEMENTATIONS
        },
        "floors": {"missing": why["cuda"] and "backend cuda, which measures them, does not run here"},
        "estimates": {"calibration": getattr(calibration, "name", None), "missing": reason},
        "rows": [], "crossovers": [],
    }  # fmt: skip
    steps = [(wavelet, samples, i) for wavelet in wavelets for samples in sizes for i in running]
    for (wavelet, samples), group in groupby(progress(steps), key=itemgetter(0, 1)):
        problem = Problem(wavelet, samples)
        times, skipped = measured(problem, map(itemgetter(2), group), repeats, budget)
        row: dict[str, Any] = {"wavelet": wavelet, "taps": problem.taps, "samples": samples}
        row |= {"times": times, "skipped": skipped}
        if not why["cuda"]:
            row["floors"] = limits.floors(samples, repeats)
        if calibration is not None:
            row["estimates"] = limits.estimates(problem, calibration)
        result["rows"].append(row | _derived(row))
        result["crossovers"] = crossovers(result["rows"])
        keep(result)
    return result


def _derived(row: dict[str, Any]) -> dict[str, Any]:
    """Ratios of the measured times, and errors of the estimates."""
    medians = {name: times["median"] for name, times in row["times"].items()}
    found: dict[str, Any] = {
        "ratios": {
            base: {name: medians[base] / other for name, other in medians.items() if name != base}
            for base in ("pywavelets", "gsl") if base in medians
        }
    }  # fmt: skip
    if "estimates" in row and "cuda_kernels" in medians:
        found["estimate errors"] = {k: v / medians["cuda_kernels"] - 1 for k, v in row["estimates"].items()}
    if row["samples"] in DOCUMENT and row["wavelet"] == "db4":
        cpu, gpu = DOCUMENT[row["samples"]]
        found["document"] = {"cpu": cpu, "gpu": gpu, "ratio": cpu / gpu}
    return found


def crossovers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every wavelet and each of `PAIRS`, the size from which the first is faster; None if it is not at the last."""
    found = []
    for wavelet in dict.fromkeys(row["wavelet"] for row in rows):
        for fast, slow in PAIRS:
            both = [(row["samples"], row["times"][fast]["median"] < row["times"][slow]["median"]) for row in rows
                    if row["wavelet"] == wavelet and fast in row["times"] and slow in row["times"]]  # fmt: skip
            if both:
                lost = [i for i, (_, faster) in enumerate(both) if not faster]
                first = lost[-1] + 1 if lost else 0
                found.append({"wavelet": wavelet, "faster": fast, "slower": slow, "always": not lost,
                              "from": both[first][0] if first < len(both) else None})  # fmt: skip
    return found
