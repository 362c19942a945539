"""The scaling study: one denoise at the sizes of the document of 2010, by everyone who can do it here.

Each output is compared before it is timed. `wavefilt bench scaling --json FILE --csv FILE --plot FOLDER` runs it.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

from wavefilt import backends
from wavefilt.benchmarks import gsl, scaling_limits
from wavefilt.benchmarks.cpu import environment as cpu_environment
from wavefilt.benchmarks.cuda import LEVEL
from wavefilt.benchmarks.implementations import IMPLEMENTATIONS, PERIODIC, SYMMETRIC, Implementation, Problem
from wavefilt.benchmarks.measuring import commit, difference, free_memory, version
from wavefilt.errors import BackendUnavailable
from wavefilt.threads import available_cpus

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
REPEATS, FEWEST, BUDGET, QUICK_BUDGET = 25, 3, 3.0, 0.1
"""Runs of a column at one size: so many, or what the seconds of the budget allow."""
PAIRS = (("numba", "pywavelets"), ("numba", "gsl"), ("cuda", "gsl"), ("cuda", "pywavelets"), ("cuda", "numba"),
         ("cuda_pinned", "numba"), ("ptwt_gpu", "ptwt_cpu"), ("cuda_resident", "ptwt_gpu"))  # fmt: skip
"""Whose crossovers are told: from what size the first takes less time than the second."""

REFERENCE = {SYMMETRIC: 24, PERIODIC: 48}
"""Bytes a sample to compute what outputs are compared with, and to compare."""

Step = tuple[str, int, Implementation]
"""Wavelet, samples, who."""


class Mismatch(RuntimeError):
    """An implementation computes something else."""


def run(
    sizes: Sequence[int] = tuple(DOCUMENT), wavelets: Sequence[str] = WAVELETS, repeats: int = REPEATS,
    budget: float = BUDGET, device: str | None = None, progress: Callable[[list[Step]], Iterable[Step]] = iter,
) -> dict[str, Any]:  # fmt: skip
    """Times in milliseconds of every implementation at every size, as a table for JSON.

    ``device`` is the calibration for the estimates, as `wavefilt ske estimate` takes it; by default that of this
    GPU. ``progress`` shows the steps as they are taken.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    missing = {i.name: _missing(i) for i in IMPLEMENTATIONS}
    calibration, reason = scaling_limits.calibration(device, missing["cuda"])
    running = [i for i in IMPLEMENTATIONS if not missing[i.name]]
    steps = [(wavelet, samples, i) for wavelet in wavelets for samples in sizes for i in running]
    rows = []
    for (wavelet, samples), group in groupby(progress(steps), key=itemgetter(0, 1)):
        problem = Problem(wavelet, samples)
        row = _row(problem, map(itemgetter(2), group), repeats, budget)
        if not missing["cuda"]:
            row["floors"] = scaling_limits.floors(problem.samples, repeats)
        if calibration is not None:
            row["estimates"] = scaling_limits.estimates(problem, calibration)
        rows.append(row | _derived(row))
    return {
        "study": "scaling", "date": date.today().isoformat(), "unit": "ms",
        "method": f"{LEVEL} levels, universal soft threshold, noise by the MAD of the finest level",
        "most repeats": repeats, "environment": environment(),
        "columns": {
            i.name: {"heads": i.heads, "what": i.what, "missing": missing[i.name], "tolerance": i.tolerance,
                     "compared with": f"wavefilt.denoise, backend pywavelets, {i.ends}"} for i in IMPLEMENTATIONS
        },
        "floors": {"missing": missing["cuda"] and "backend cuda, which measures them, does not run here"},
        "estimates": {"calibration": getattr(calibration, "name", None), "missing": reason},
        "rows": rows, "crossovers": crossovers(rows),
    }  # fmt: skip


def environment() -> dict[str, Any]:
    """What the figures depend on."""
    try:
        gpu = backends.get("cuda").describe()
    except BackendUnavailable:
        gpu = None
    found = cpu_environment()
    versions = {name: version(name) for name in ("numba-cuda", "torch", "ptwt", "wavefilt")}
    found["versions"] |= versions | {"GSL": gsl.version()}
    return found | {"cores": available_cpus(), "gpu": gpu, "commit": commit()}


def _missing(implementation: Implementation) -> str | None:
    """Why it cannot run here."""
    try:
        implementation.require()
    except BackendUnavailable as error:
        return str(error)
    return None


def _row(problem: Problem, implementations: Iterator[Implementation], repeats: int, budget: float) -> dict[str, Any]:
    """Times of one problem, and who was left out for want of memory."""
    times, skipped = {}, {}
    expected: dict[str, Any] = {}
    for implementation in implementations:
        reason = _too_large(problem, implementation)
        try:
            if reason is None:
                times[implementation.name] = _column(problem, implementation, expected, repeats, budget)
        except Exception as error:
            if not isinstance(error, MemoryError) and "out of memory" not in str(error).lower().replace("_", " "):
                raise
            reason = "ran out of memory"
        if reason is not None:
            skipped[implementation.name] = reason
        _release()
    return {
        "wavelet": problem.wavelet, "taps": problem.taps, "samples": problem.samples, "times": times,
        "skipped": skipped,
    }  # fmt: skip


def _column(
    problem: Problem, implementation: Implementation, expected: dict[str, Any], repeats: int, budget: float
) -> dict[str, float]:
    """Compared with what is expected, then timed."""
    ends = implementation.ends
    if ends not in expected:
        expected[ends] = problem.expected(ends)
    prepared = implementation.prepare(problem)
    error = difference(prepared.host(prepared.call()), expected[ends])
    if not error <= implementation.tolerance:
        raise Mismatch(
            f"{implementation.label}, {problem.wavelet}, {problem.samples} samples: "
            f"differs from the reference by {error:.1e} of its norm"
        )
    started = time.perf_counter()
    prepared.call()
    seconds = time.perf_counter() - started
    count = int(min(max(budget / seconds, FEWEST), repeats))
    return prepared.times(count, 3 if seconds < 0.1 else 0) | {"repeats": count, "error": error}


def _too_large(problem: Problem, implementation: Implementation) -> str | None:
    """Why the problem does not fit in memory."""
    places = [("memory", max(implementation.host + 8, REFERENCE[implementation.ends]), free_memory())]
    if implementation.device:
        from wavefilt.backends.cuda.target import cuda

        places.append(("GPU memory", implementation.device, cuda.current_context().get_memory_info().free))
    for what, each, free in places:
        needed = each * problem.samples
        if free is not None and needed > free:
            return f"needs {needed / 2**30:.1f} GiB of {what}, {free / 2**30:.1f} are free"
    return None


def _release() -> None:
    """Let go of what is kept for later calls."""
    gc.collect()
    if "wavefilt.backends.cuda.backend" in sys.modules:
        backend: Any = backends.get("cuda")
        backend.clear()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        sys.modules["torch"].cuda.empty_cache()


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
