"""The scaling study: one denoising run at the sizes of a thesis of 2010, by every library that can do it here.

Each output is compared before it is timed. `wavefilt bench scaling -o FILE --plot FOLDER` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from wavefilt.benchmarks.common.columns import (
    Implementation,
    estimated,
    estimates,
    grouped,
    labels,
    measured,
    not_run,
    opened,
    place,
)
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import gpu_time
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, Table, size
from wavefilt.benchmarks.ske.counts import denoise
from wavefilt.benchmarks.ske.estimate import problem as estimated_problem

from .implementations import IMPLEMENTATIONS, LEVEL, Problem

KI, MI = 1 << 10, 1 << 20
_CPU = (12, 26, 81, 159, 319, 677, 1401, 2855, 5964, 11979, 31802)
_GPU = (67, 67, 61, 73, 85, 97, 133, 209, 355, 638, 1350)
DOCUMENT = {64 * KI << i: times for i, times in enumerate(zip(_CPU, _GPU, strict=True))}
"""Milliseconds of 2010 on a Core 2 Duo E2200 and a GeForce 9800 GT, including transfers; `db4`."""
WAVELETS = ("db4", "db8")
QUICK = (64 * KI, 256 * KI, MI)
REPEATS, BUDGET, QUICK_BUDGET = 25, 3.0, 0.1
"""Most runs of a column at one size, and the seconds they may take."""
Step = tuple[str, int, Implementation]
"""Wavelet, samples, implementation."""


def run(
    sizes: Sequence[int] = tuple(DOCUMENT),
    wavelets: Sequence[str] = WAVELETS,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[Row], None] = lambda result: None,
) -> Row:
    """Return the milliseconds of every implementation at every size, as a table for JSON.

    ``device`` is the calibration for the estimates, as `wavefilt ske estimate` takes it; by default that of this
    GPU. ``progress`` shows the steps in turn; ``keep`` is given the table after each of its rows.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    compared = "wavefilt.denoise, backend pywavelets, "
    running, chosen, facts = opened(IMPLEMENTATIONS, device, lambda one: compared + one.oracle)
    no_gpu = facts["columns"]["cuda"]["missing"]
    found = result(
        "scaling",
        unit="ms",
        method=f"{LEVEL} levels, universal soft threshold, noise by the MAD of the finest level",
        **facts,
        floors={"missing": no_gpu and "backend cuda, which measures them, does not run here"},
        rows=[],
    )
    found["most repeats"] = repeats
    steps = [(wavelet, samples, i) for wavelet in wavelets for samples in sizes for i in running]
    for (wavelet, samples), group in groupby(progress(steps), key=itemgetter(0, 1)):
        problem = Problem(wavelet, samples)
        times, skipped = measured(problem, map(itemgetter(2), group), repeats, budget)
        row: Row = {"wavelet": wavelet, "taps": problem.taps, "samples": samples}
        row |= {"times": times, "skipped": skipped}
        if not no_gpu:
            row["floors"] = _floors(samples, repeats)
        if chosen is not None:
            launches = denoise(estimated_problem(wavelet, samples, level=LEVEL))
            row["estimates"] = estimates(launches, chosen)
        found["rows"].append(row | derived(row))
        keep(found)
    return found


def _floors(samples: int, repeats: int) -> dict[str, float]:
    """Time the transfers of pinned samples, and 12 bytes a sample (read, read again, write) at a copy's bandwidth."""
    from wavefilt.backends.cuda.runtime.target import cuda

    host = cuda.pinned_array(samples, "float32")
    x, y = (cuda.device_array(samples, "float32") for _ in range(2))
    work = {
        "up": lambda stream: x.copy_to_device(host, stream=stream),
        "down": lambda stream: x.copy_to_host(host, stream=stream),
        "copy": lambda stream: y.copy_to_device(x, stream=stream),
    }
    times = {name: gpu_time(copy, 4, repeats)["median"] for name, copy in work.items()}
    return times | {"transfer": times["up"] + times["down"], "memory": 12 / 8 * times["copy"]}


def derived(row: Row) -> Row:
    """Return the ratios of the measured times, the errors of the estimates, and the times of 2010."""
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


FIRST: dict[str, Column] = {"|samples": "{samples:size}"}
LIMITS: tuple[tuple[str, dict[str, Column]], ...] = (
    ("estimates", {"SKE|calibrated": "?{estimates[calibrated]:n}", "|error#1": "?{estimate errors[calibrated]:+.0%}"}),
    ("estimates", {"SKE|classic": "?{estimates[classic]:n}", "|error#2": "?{estimate errors[classic]:+.0%}"}),
    ("floors", {"lower bound:|12n bytes": "?{floors[memory]:n}", "kernels|over it": "?{over[memory]:.2f}"}),
    ("floors", {"lower bound:|transfers": "?{floors[transfer]:n}", "pinned|over it": "?{over[transfer]:.2f}"}),
)
"""Columns of estimates and lower bounds, by the section of a row that they need."""


def report(result: Row) -> Report:
    return Report([*sheets(result)], notes(result))


def sheets(result: Row) -> Iterator[Sheet]:
    """Yield tables of times, limits and speed-up for each wavelet, and those of 2010."""
    heads = {name: "|".join(column["heads"]) for name, column in result["columns"].items()}
    for (wavelet, taps), group in groupby(result["rows"], key=lambda row: (row["wavelet"], row["taps"])):
        rows = [row | {"over": _over(row)} for row in group]
        names, about, of = _measured(result, rows), f"{wavelet} ({taps} taps)", {"rows": rows}
        columns = FIRST | {heads[name]: f"?{{times[{name}]:spread}}" for name in names}
        yield Table(f"{about}: run time in ms, ± half the interquartile range", columns)(of)
        limits = [more for section, more in LIMITS if any(section in row for row in rows)]
        if limits:
            columns = FIRST | {head: column for more in limits for head, column in more.items()}
            yield Table(f"{about}: estimates and lower bounds of the CUDA columns, ms", columns)(of)
        others = [name for name in names if name != "pywavelets"]
        if "pywavelets" in names and others:
            columns = FIRST | {heads[name]: f"?{{ratios[pywavelets][{name}]:n}}" for name in others}
            yield Table(f"{about}: speed-up over PyWavelets on 1 core", columns)(of)
        if any("document" in row for row in rows):
            yield _document(about, [row for row in rows if "document" in row], names)


def _measured(result: Row, rows: Sequence[Row]) -> list[str]:
    """Return the names of the columns that have a time."""
    return [name for name in result["columns"] if any(name in row["times"] for row in rows)]


def _over(row: Row) -> dict[str, float]:
    """Return how many times longer than its lower bound a time is."""
    floors, times = row.get("floors", {}), row["times"]
    compared = {"memory": "cuda_kernels", "transfer": "cuda_pinned"}
    return {k: times[name]["median"] / floors[k] for k, name in compared.items() if k in floors and name in times}


def _document(about: str, rows: list[Row], names: list[str]) -> Sheet:
    """Return the table of 2010 and now: the sequential CPU, the GPU with its transfers, and their ratio."""
    cpu, label = ("gsl", "GSL") if "gsl" in names else ("pywavelets", "PyWavelets")
    columns = FIRST | {"CPU|2010": "{document[cpu]}", "GPU|2010": "{document[gpu]}"}
    columns["ratio|2010"] = "{document[ratio]:.2f}"
    here = {name: head for name, head in ((cpu, label), ("cuda", "CUDA")) if name in names}
    columns |= {f"{head}|now": f"?{{times[{name}][median]:n}}" for name, head in here.items()}
    columns |= {"ratio|now": f"?{{ratios[{cpu}][cuda]:n}}"} if len(here) == 2 else {}
    title = f"{about}: the thesis of 2010 (GSL on a Core 2 Duo E2200, GeForce 9800 GT, with transfers), ms"
    return Table(title, columns)({"rows": rows})


def notes(result: Row) -> list[str]:
    """Return notes: where it was measured, the references, and which columns are missing and why."""
    columns, label = result["columns"], labels(result)
    found = [place(result), f"{result['method']}."]
    references = {name: columns[name]["compared with"] for name in _measured(result, result["rows"])}
    for reference, group in grouped(references).items():
        worst = max(row["times"][n]["error"] for row in result["rows"] for n in group if n in row["times"])
        names = ", ".join(label[n] for n in group)
        found.append(f"Compared with {reference}: {names}; largest difference {worst:.0e} of the norm.")
    found += not_run(result)
    if result["floors"]["missing"]:
        found.append(f"No lower bounds: {result['floors']['missing']}.")
    found.append(estimated(result))
    for row in result["rows"]:
        at = f"{row['wavelet']}, {size(row['samples'])}"
        found += [f"Skipped: {label[name]}, {at}: {why}." for name, why in row["skipped"].items()]
    return found
