"""The 1-D Laplace operator of a lesson of 2008 on textures: host loops, and GPU kernels that read samples differently.

Each output is compared before it is timed. `wavefilt bench laplace1d -o FILE` runs it.
"""

from __future__ import annotations

from wavefilt.benchmarks.common import comparison
from wavefilt.benchmarks.common.comparison import Progress
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Column, Report, Row, size
from wavefilt.benchmarks.laplace1d.cases import COPIES, IMPLEMENTATIONS, LAUNCHES, Problem
from wavefilt.benchmarks.laplace1d.counts import SAMPLE, launches

SAMPLES, REPEATS = 1 << 20, 503
"""Those of the document."""
BUDGET, QUICK_BUDGET = 5.0, 0.1
"""Seconds that the runs of an implementation may take."""
BASE, AVERAGE = "loop", "mean"
"""What ratios are to and of, as in the document."""
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
    progress: Progress = iter,
) -> Row:
    """Times in milliseconds of every implementation, as a table for JSON: see `comparison.compare`.

    Raises ValueError for fewer than two samples too.
    """
    problem, every = Problem(samples), (*IMPLEMENTATIONS, *COPIES)
    made = {f"gpu_{name}": launch for name, launch in launches(samples).items()}
    how = (BASE, AVERAGE, repeats, budget, device, progress)
    row, facts, _ = comparison.compare(problem, every, SAMPLE, lambda times: made, *how)
    if samples == SAMPLES:
        row["document"] = document()
    method = f"Mean, median and quartiles of up to {repeats} runs in {budget:g} s; on the GPU a run is the average of "
    method += f"{LAUNCHES} launches in a graph between two events, the data resident"
    return result("laplace1d", unit="ms", method=method, **facts, rows=[row])


def document() -> Row:
    return {name: {"ms": ms, "ratio": ratio} for name, (ms, ratio) in DOCUMENT.items()}


TIMES: dict[str, Column] = {
    "|1-D Laplace": "{label}",
    "mean|ms": "?{times[mean]:n}",
    "median|ms": "?{times:spread}",
    "|runs": "?{times[repeats]}",
    "times the|host loop": "?{ratios:n}",
    "share of|a copy": "?{shares:.1%}",
    "relative|error": lambda row: "-" if not row["times"] else f"{row['times']['error']:.0e}".replace("0e+00", "0"),
}


def report(result: Row) -> Report:
    """Times, ratios, estimates, and the document of 2008 where its size was measured."""
    (row,) = result["rows"]
    title = f"1-D Laplace operator, {size(row['samples'])} samples, float32"
    method = f"{result['method']}. ± is half the interquartile range."
    then: dict[str, Column] = {}
    if "document" in row:
        then = {"2008|ms": "?{document[ms]:g}", "2008, x the|host loop": "?{document[ratio]:.1f}"}
        method += " 2008: a compiled loop on one core of an E8400, and a GTX 260; its read-only path is textures."
    return comparison.report(result, title, TIMES, method, then)
