"""The scaling study: one denoise at the sizes of the document of 2010, by everyone who can do it here.

Each output is compared before it is timed. `wavefilt bench scaling -o FILE --csv FILE --plot FOLDER` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from wavefilt.backends.cuda.work_counts.statistics import denoise
from wavefilt.benchmarks.common.columns import recorded
from wavefilt.benchmarks.common.comparison import MODELS, calibration
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Implementation, measured, missing
from wavefilt.benchmarks.common.measuring import events
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.gpu.denoise import LEVEL
from wavefilt.benchmarks.scaling.implementations import IMPLEMENTATIONS, Problem
from wavefilt.benchmarks.ske.estimate import problem as estimated

KI, MI = 1 << 10, 1 << 20
_CPU = (12, 26, 81, 159, 319, 677, 1401, 2855, 5964, 11979, 31802)
_GPU = (67, 67, 61, 73, 85, 97, 133, 209, 355, 638, 1350)
DOCUMENT = {64 * KI << i: times for i, times in enumerate(zip(_CPU, _GPU, strict=True))}
"""Milliseconds of 2010 on a Core 2 Duo E2200 and a GeForce 9800 GT, transfers among them; `db4`."""
WAVELETS = ("db4", "db8")
QUICK = (64 * KI, 256 * KI, MI)
REPEATS, BUDGET, QUICK_BUDGET = 25, 3.0, 0.1
"""Most runs of a column at one size, and the seconds they may take."""
_PAIRS = "numba pywavelets, numba gsl, cuda gsl, cuda pywavelets, cuda numba, cuda_pinned numba, ptwt_gpu ptwt_cpu, "
PAIRS = [pair.split() for pair in f"{_PAIRS}cuda_resident ptwt_gpu".split(", ")]
"""Whose crossovers are given: from what size the first takes less time than the second."""

Step = tuple[str, int, Implementation]
"""Wavelet, samples, who."""


def run(
    sizes: Sequence[int] = tuple(DOCUMENT),
    wavelets: Sequence[str] = WAVELETS,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[Row], None] = lambda result: None,
) -> Row:
    """Times in milliseconds of every implementation at every size, as a table for JSON.

    ``device`` is the calibration for the estimates, as `wavefilt ske estimate` takes it; by default that of this
    GPU. ``progress`` shows the steps as they are taken; ``keep`` is given the table after each of its rows.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    why = {i.name: missing(i) for i in IMPLEMENTATIONS}
    chosen, reason = calibration(device, why["cuda"])
    running = [i for i in IMPLEMENTATIONS if not why[i.name]]
    compared = "wavefilt.denoise, backend pywavelets, "
    found = result(
        "scaling",
        unit="ms",
        method=f"{LEVEL} levels, universal soft threshold, noise by the MAD of the finest level",
        columns=recorded(IMPLEMENTATIONS, why, lambda one: compared + one.oracle),
        floors={"missing": why["cuda"] and "backend cuda, which measures them, does not run here"},
        estimates={"calibration": chosen and chosen.name, "missing": reason},
        rows=[],
        crossovers=[],
    )
    found["most repeats"] = repeats
    steps = [(wavelet, samples, i) for wavelet in wavelets for samples in sizes for i in running]
    for (wavelet, samples), group in groupby(progress(steps), key=itemgetter(0, 1)):
        problem = Problem(wavelet, samples)
        times, skipped = measured(problem, map(itemgetter(2), group), repeats, budget)
        row: Row = {"wavelet": wavelet, "taps": problem.taps, "samples": samples}
        row |= {"times": times, "skipped": skipped}
        if not why["cuda"]:
            row["floors"] = _floors(samples, repeats)
        if chosen is not None:
            launches = denoise(estimated(wavelet, samples, level=LEVEL))
            row["estimates"] = {
                name: 1e3 * sum(seconds(launch, chosen) for launch in launches) for name, seconds in MODELS.items()
            }
        found["rows"].append(row | _derived(row))
        found["crossovers"] = crossovers(found["rows"])
        keep(found)
    return found


def _floors(samples: int, repeats: int) -> dict[str, float]:
    """Pinned samples to the GPU and back, and 12 bytes a sample (read, read again, write) at a copy's bandwidth."""
    from wavefilt.backends.cuda.runtime.target import cuda

    host = cuda.pinned_array(samples, "float32")
    x, y = (cuda.device_array(samples, "float32") for _ in range(2))
    up = events(lambda stream: x.copy_to_device(host, stream=stream), repeats)["median"]
    down = events(lambda stream: x.copy_to_host(host, stream=stream), repeats)["median"]
    copy = events(lambda stream: y.copy_to_device(x, stream=stream), repeats)["median"]
    return {"up": up, "down": down, "copy": copy, "transfer": up + down, "memory": 12 / 8 * copy}


def _derived(row: Row) -> Row:
    """Ratios of the measured times, and errors of the estimates."""
    medians = {name: times["median"] for name, times in row["times"].items()}
    bases = [base for base in ("pywavelets", "gsl") if base in medians]
    ratios = {base: {name: medians[base] / other for name, other in medians.items() if name != base} for base in bases}
    found: Row = {"ratios": ratios}
    if "estimates" in row and "cuda_kernels" in medians:
        found["estimate errors"] = {k: v / medians["cuda_kernels"] - 1 for k, v in row["estimates"].items()}
    if row["samples"] in DOCUMENT and row["wavelet"] == "db4":
        cpu, gpu = DOCUMENT[row["samples"]]
        found["document"] = {"cpu": cpu, "gpu": gpu, "ratio": cpu / gpu}
    return found


def crossovers(rows: list[Row]) -> list[Row]:
    """For every wavelet and each of `PAIRS`, the size from which the first is faster; None if it is not at the last."""
    found = []
    for wavelet in dict.fromkeys(row["wavelet"] for row in rows):
        for fast, slow in PAIRS:
            here = [row for row in rows if row["wavelet"] == wavelet and {fast, slow} <= row["times"].keys()]
            both = [(row["samples"], row["times"][fast]["median"] < row["times"][slow]["median"]) for row in here]
            if both:
                lost = [i for i, (_, faster) in enumerate(both) if not faster]
                first = lost[-1] + 1 if lost else 0
                start = both[first][0] if first < len(both) else None
                pair = {"wavelet": wavelet, "faster": fast, "slower": slow}
                found.append({**pair, "always": not lost, "from": start})
    return found
