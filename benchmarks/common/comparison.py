"""Studies of one problem: times, ratios to one implementation, shares of a copy's speed, estimates of the kernels.

The implementations include the copies "host_copy" and "gpu_copy".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wavefilt.benchmarks.common import gpu_timing
from wavefilt.benchmarks.common.columns import estimated, labels, not_run, place, recorded
from wavefilt.benchmarks.common.implementation import Implementation, Prepared, Problem, measured, missing
from wavefilt.benchmarks.common.tables import Column, Report, Row, Table
from wavefilt.benchmarks.ske.baselines import classic
from wavefilt.ske.calibrated import Launch, estimate
from wavefilt.ske.devices import Calibration

COPY = "copy"
"""The oracle of copies."""
GPU_TIME = f"on the GPU, resident data and the average of {gpu_timing.LAUNCHES} launches in a graph between two events"
MODELS: dict[str, Callable[[Launch, Calibration], float]] = {
    "calibrated": lambda launch, device: estimate(launch, device).seconds,
    "classic": classic,
}
Progress = Callable[[Sequence[Implementation]], Iterable[Implementation]]


def calibration(device: str | None, no_gpu: str | None) -> tuple[Calibration | None, str | None]:
    """Return the calibration for the estimates, or None and why there is none.

    The default is that of this GPU, and without a GPU the shipped default. Raises ValueError or OSError for a
    calibration that is unknown or of another device than this GPU.
    """
    from wavefilt.ske import devices as shipped

    if no_gpu:  # the counts need neither a GPU nor a compiler
        return shipped.default() if device is None else shipped.load(device), None
    from wavefilt.benchmarks.ske.calibration import Device

    here = Device.current().name
    if device is not None:
        chosen = shipped.load(device)
        chosen.require(here)
        return chosen, None
    try:
        return shipped.of(here), None
    except shipped.WrongDevice as error:
        return None, str(error)


def on_device(work: Callable[[Any], None], y: Any, host: Callable[[Any], Any]) -> Prepared:
    """Prepare ``work(stream)``, which writes ``y`` in device memory; it is timed in graphs of several launches."""
    from wavefilt.backends.cuda.runtime.target import cuda

    def call() -> Any:
        work(0)  # the default stream
        cuda.synchronize()
        return y

    return Prepared(call, host, lambda repeats, warm: gpu_timing.measured(work, repeats=repeats).milliseconds)


def compare(
    problem: Problem,
    implementations: Sequence[Implementation],
    itemsize: int,
    launches: Mapping[str, Launch],
    base: str,
    average: str,
    repeats: int,
    budget: float,
    device: str | None,
    progress: Progress,
) -> tuple[Row, Row]:
    """Measure a study: return its row, and the facts about its columns and estimates.

    A sample has ``itemsize`` bytes; ``launches`` are estimated for ``device``, as `wavefilt ske estimate` takes
    it; ratios are to ``base``, of means or medians as ``average`` says. ``progress`` shows the implementations in turn.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    why = {one.name: missing(one) for one in implementations}
    chosen, reason = calibration(device, why["gpu_copy"])
    running = [one for one in implementations if not why[one.name]]
    times, skipped = measured(problem, progress(running), repeats, budget)
    estimates = {}
    if chosen is not None:
        for name, launch in launches.items():
            estimates[name] = {model: 1e3 * seconds(launch, chosen) for model, seconds in MODELS.items()}
    row: Row = {"samples": problem.samples, "bytes": 2 * itemsize * problem.samples}
    row |= {"times": times, "skipped": skipped, "estimates": estimates}
    columns = recorded(implementations, why, lambda one: "its input" if one.oracle == COPY else one.oracle)
    facts = {"columns": columns, "estimates": {"calibration": chosen and chosen.name, "missing": reason}}
    return row | derived(row, base, average), facts


def derived(row: Row, base: str, average: str) -> Row:
    """Return ratios to the base, GB/s of the copies, shares of a copy's speed, errors of the estimates."""
    times = {name: times[average] for name, times in row["times"].items()}
    copy = {name: times.get("gpu_copy" if name.startswith("gpu_") else "host_copy") for name in times}
    return {
        "ratios": {name: times[base] / time for name, time in times.items() if base in times},
        "copy": {name: 1e-6 * row["bytes"] / times[name] for name in ("host_copy", "gpu_copy") if name in times},
        "shares": {name: copy[name] / time for name, time in times.items() if copy[name]},
        "estimate errors": {
            name: {model: value / times[name] - 1 for model, value in models.items()}
            for name, models in row["estimates"].items()
            if name in times
        },
    }


def report(
    result: Row,
    title: str,
    columns: Mapping[str, Column],
    method: str,
    then: Mapping[str, Column] | None = None,
) -> Report:
    """Return a table with a row for every implementation, and notes: the method, descriptions, what is missing.

    ``columns`` are formats of the entries that the result's only row has of an implementation; estimates stand
    between ``columns`` and ``then``.
    """
    (row,), label = result["rows"], labels(result)
    by_name = {key: entry for key, entry in row.items() if isinstance(entry, dict)}
    lines = [{"label": one} | {key: e.get(name) for key, e in by_name.items()} for name, one in label.items()]
    every = dict(columns)
    for model in MODELS if row["estimates"] else ():
        every[f"SKE|{model}"] = f"?{{estimates[{model}]:n}}"
        if row["estimate errors"]:
            every[f"|error#{model}"] = f"?{{estimate errors[{model}]:+.0%}}"
    notes = [place(result), method]
    for name, column in result["columns"].items():
        speed = f": {row['copy'][name]:.1f} GB/s" if name in row["copy"] else ""
        notes.append(f"{label[name]}: {column['what']}{speed}.")
    notes += not_run(result)
    notes += [f"Skipped: {label[name]}: {why}." for name, why in row["skipped"].items()]
    return Report([Table(title, every | dict(then or {}))({"rows": lines})], [*notes, estimated(result)])
