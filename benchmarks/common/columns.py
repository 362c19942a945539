"""Studies with a column for every implementation of a problem, compared before it is timed.

What is recorded of the columns, their times and the SKE estimates of kernels, and the notes about them.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.measuring import LAUNCHES, difference, gpu_time, walls
from wavefilt.benchmarks.common.tables import Column, Report, Row, sheet
from wavefilt.errors import BackendUnavailable
from wavefilt.ske import devices
from wavefilt.ske.calibrated import Launch, estimate
from wavefilt.ske.classic import Kernel
from wavefilt.ske.classic import estimate as classic_estimate
from wavefilt.ske.devices import LANES, Calibration, WrongDevice
from wavefilt.ske.occupancy import CAPABILITIES
from wavefilt.ske.tables import INSTRUCTIONS, MEMORIES, Device

FEWEST = 3
"""Runs of an implementation, however long they take."""
COPY = "its input"
"""The oracle of copies."""
GPU_TIME = f"on the GPU, resident data and the average of {LAUNCHES} launches in a graph between two events"
LOAD_STORE = 32
"""L of every SM since compute capability 7.0."""
CYCLES = {"fma": "fma", "int": "add", "int mul": "int mul", "fma64": "fma", "other": "add"}
"""Instruction class of the classic tables for each class of a `Launch`."""


def classic(launch: Launch, device: Calibration) -> float:
    """Return the seconds of the classic model with the cycles of its own tables; global accesses are coalesced."""
    cap = CAPABILITIES[device.capability]
    held = Device(cap, 1 / device.clock, device.multiprocessors, LANES[device.capability][0], LOAD_STORE)
    wide = launch.bytes / 16 / (launch.blocks * launch.threads)  # 16-byte accesses per thread
    computation = sum(launch.instructions.get(name, 0) * INSTRUCTIONS[of] for name, of in CYCLES.items())
    shared = launch.instructions.get("wavefront", 0) / 4
    communication = wide * MEMORIES["global coalesced"].cycles + shared * MEMORIES["shared"].cycles
    kernel = Kernel(computation, communication, round(launch.barriers), registers=launch.registers)
    return classic_estimate(kernel, held, launch.threads, launch.blocks).Tn


MODELS: dict[str, Callable[[Launch, Calibration], float]] = {
    "calibrated": lambda launch, device: estimate(launch, device).seconds,
    "classic": classic,
}


class Mismatch(RuntimeError):
    """An implementation's output differs from the reference."""


def agreement(y: Array, expected: Array, tolerance: float, what: object) -> float:
    """Return the relative difference of a result. Raises Mismatch, naming ``what``, above the tolerance."""
    error = difference(y, expected)
    if not error <= tolerance:
        raise Mismatch(f"{what}: differs from the reference by {error:.1e} of its norm, allowed are {tolerance:.1e}")
    return error


class Problem(Protocol):
    """A problem with a number of samples (pixels), and its expected output by the name of an oracle."""

    @property
    def samples(self) -> int: ...

    def expected(self, oracle: str) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Prepared:
    """``call`` computes and returns when the result is ready; ``host`` converts the result to a NumPy array.

    ``clock(repeats, warm)`` returns quartiles in milliseconds, by default of ``call`` by the clock.
    """

    call: Callable[[], Any]
    host: Callable[[Any], NDArray[Any]] = np.asarray
    clock: Callable[[int, int], dict[str, float]] | None = None

    def times(self, repeats: int, warm: int) -> dict[str, float]:
        return self.clock(repeats, warm) if self.clock else walls(self.call, repeats, warm)


@dataclass(frozen=True)
class Implementation:
    """One column of a study: ``name`` in files, ``heads`` the two lines over its column, ``what`` it is.

    ``require`` raises BackendUnavailable if it cannot run. Its output is compared with the problem's ``oracle``, to a
    ``tolerance`` of the norm.
    """

    name: str
    heads: tuple[str, str]
    what: str
    prepare: Callable[[Any], Prepared]
    require: Callable[[], object] = lambda: None
    oracle: str = ""
    tolerance: float = 1e-5

    @property
    def label(self) -> str:
        return " ".join(self.heads)


Progress = Callable[[Sequence[Implementation]], Iterable[Implementation]]


def unavailable(require: Callable[[], object]) -> str | None:
    """Return why a requirement is not met, in one line; None if it is."""
    try:
        require()
    except BackendUnavailable as error:
        return " ".join(str(error).split())
    return None


def measured(
    problem: Problem, implementations: Iterable[Implementation], repeats: int, budget: float
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return the times of the implementations on one problem, and why any were skipped for lack of memory.

    Each runs ``repeats`` times, or as often as the ``budget`` in seconds allows. Raises Mismatch for a wrong result.
    """
    times, skipped = {}, {}
    expected: dict[str, NDArray[Any]] = {}
    for one in implementations:
        try:
            if one.oracle not in expected:
                expected[one.oracle] = problem.expected(one.oracle)
            times[one.name] = _compared(problem, one, expected[one.oracle], repeats, budget)
        except Exception as error:
            if not isinstance(error, MemoryError) and "out of memory" not in str(error).lower().replace("_", " "):
                raise
            skipped[one.name] = "ran out of memory"
        release()
    return times, skipped


def _compared(
    problem: Problem, implementation: Implementation, expected: NDArray[Any], repeats: int, budget: float
) -> dict[str, float]:
    """Compare the output with the expected one, then time it."""
    prepared = implementation.prepare(problem)
    started = time.perf_counter()
    result = prepared.call()
    seconds = time.perf_counter() - started
    what = f"{implementation.label}, {problem}"
    error = agreement(prepared.host(result), expected, implementation.tolerance, what)
    del result
    if seconds < budget:  # the first call may have compiled
        started = time.perf_counter()
        prepared.call()
        seconds = time.perf_counter() - started
    count = int(min(max(budget / seconds, FEWEST), repeats))
    return prepared.times(count, 3 if seconds < 0.1 else 0) | {"repeats": count, "error": error}


def release() -> None:
    """Free the memory that libraries keep for later calls."""
    gc.collect()
    if "wavefilt.backends.cuda.backend" in sys.modules:
        with suppress(BackendUnavailable):  # its compiler is installed, but there is no GPU
            backend: Any = backends.get("cuda")
            backend.clear()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        sys.modules["torch"].cuda.empty_cache()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()


def gpu() -> str | None:
    """Return the name of this GPU; None without one that can be used."""
    with suppress(BackendUnavailable):
        from wavefilt.benchmarks.ske.calibration import Device

        return Device.current().name
    return None


def calibration(device: str | None, here: str | None) -> Calibration:
    """Return the calibration of this name; by default that of the GPU named ``here``, or without one the bundled one.

    Raises ValueError or OSError for an unknown name, and WrongDevice if there is none of the GPU named ``here``, or the
    calibration is of another one.
    """
    if device is None:
        return devices.of(here) if here else devices.default()
    chosen = devices.load(device)
    if here:
        chosen.require(here)
    return chosen


def on_device(
    x: Array, work: Callable[[Any, Any, Any], None] | None, host: Callable[[Any], Any] = methodcaller("copy_to_host")
) -> Prepared:
    """Prepare ``work(x, y, stream)``, or a copy if it is None, in device memory; it is timed in graphs of launches."""
    from wavefilt.backends.cuda.runtime.target import cuda

    there = cuda.to_device(x)
    y = cuda.device_array_like(there)

    def run(stream: Any) -> None:
        if work is None:
            y.copy_to_device(there, stream=stream)
        else:
            work(there, y, stream)

    def call() -> Any:
        stream = cuda.stream()
        run(stream)
        stream.synchronize()
        return y

    return Prepared(call, host, lambda repeats, warm: gpu_time(run, repeats=repeats))


def opened(
    implementations: Iterable[Implementation], device: str | None, reference: str = ""
) -> tuple[list[Implementation], Calibration | None, Row]:
    """Return the implementations that run here, the calibration for the estimates, and the facts about both for JSON.

    ``device`` is a calibration as `wavefilt ske estimate` takes it; ``reference`` stands for the oracles in notes. The
    last implementation needs the GPU.
    """
    running, columns, why, reason = list[Implementation](), Row(), None, None
    for one in implementations:
        why = unavailable(one.require)
        running += [] if why else [one]
        columns[one.name] = {
            "heads": one.heads,
            "what": one.what,
            "missing": why,
            "tolerance": one.tolerance,
            "compared with": reference or one.oracle,
        }
    chosen = None
    try:
        chosen = calibration(device, None if why else gpu())
    except WrongDevice as error:
        if device is not None:
            raise
        reason = str(error)
    estimates = {"calibration": chosen and chosen.name, "missing": reason}
    return running, chosen, {"columns": columns, "estimates": estimates}


def estimates(launches: Iterable[Launch], device: Calibration) -> dict[str, float | None]:
    """Return the milliseconds of the launches by each model; None if a limit of the device forbids one."""
    found: dict[str, float | None] = {}
    every = list(launches)
    for name, model in MODELS.items():
        try:
            found[name] = 1e3 * sum(model(launch, device) for launch in every)
        except ValueError:
            found[name] = None
    return found


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
    """Measure implementations, copies among them: return the row of the problem, and the facts about its columns.

    A sample has ``itemsize`` bytes; ``launches`` are estimated for ``device``; ratios are to ``base``, of means or
    medians as ``average`` says. ``progress`` shows the implementations in turn.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    running, chosen, facts = opened(implementations, device)
    times, skipped = measured(problem, progress(running), repeats, budget)
    row: Row = {"samples": problem.samples, "bytes": 2 * itemsize * problem.samples}
    row |= {"times": times, "skipped": skipped}
    row["estimates"] = {name: estimates([one], chosen) for name, one in launches.items()} if chosen else {}
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


def report(result: Row, title: str, columns: Mapping[str, Column]) -> Report:
    """Return a table with a row for every implementation, and notes with descriptions of them.

    ``columns`` are formats of the entries that the result's only row has of an implementation; estimates follow.
    """
    (row,), label = result["rows"], labels(result)
    by_name = {key: entry for key, entry in row.items() if isinstance(entry, dict)}
    lines = [{"label": one} | {key: e.get(name) for key, e in by_name.items()} for name, one in label.items()]
    every = dict(columns)
    for model in MODELS if row["estimates"] else ():
        every[f"SKE|{model}"] = f"?{{estimates[{model}]:n}}"
        if row["estimate errors"]:
            every[f"|error#{model}"] = f"?{{estimate errors[{model}]:+.0%}}"
    about = []
    for name, column in result["columns"].items():
        speed = f": {row['copy'][name]:.1f} GB/s" if name in row["copy"] else ""
        about.append(f"{label[name]}: {column['what']}{speed}.")
    return Report([sheet(title, every, lines)], notes(result, *about))


def labels(result: Row) -> dict[str, str]:
    """Return the heads of each column in one line, by name."""
    return {name: " ".join(column["heads"]).strip() for name, column in result["columns"].items()}


def place(result: Row) -> str:
    """Return where and when a result was measured."""
    where = result["environment"]
    return f"{where['processor']}, {where['cores']} cores; {where['gpu'] or 'no GPU'}; {result['date']}."


def grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that share a reason, by reason and in order."""
    return {why: [n for n, other in reasons.items() if other == why] for why in dict.fromkeys(reasons.values())}


def notes(result: Row, *about: str, at: Callable[[Row], str] | None = None) -> list[str]:
    """Return notes: where and how a result was measured, references, missing columns, estimates, and skipped runs.

    ``at`` names a row, if there are several.
    """
    columns, rows, label = result["columns"], result["rows"], labels(result)
    errors = {name: [row["times"][name]["error"] for row in rows if name in row["times"]] for name in columns}
    references = {name: columns[name]["compared with"] for name, measured in errors.items() if measured}
    missing = {name: column["missing"] for name, column in columns.items() if column["missing"]}
    found = [place(result), f"{result['method']}.", *about]
    for reference, names in grouped(references).items():
        worst = max(max(errors[name]) for name in names)
        compared, differ = ", ".join(label[name] for name in names), f"largest difference {worst:.0e} of the norm"
        found.append(f"Compared with {reference}: {compared}; {differ if worst else 'no difference'}.")
    for why, names in grouped(missing).items():
        found.append(f"Not run: {', '.join(label[name] for name in names)}: {why}.")
    device, there = result["estimates"]["calibration"], result["environment"]["gpu"]
    if device:
        found.append(f"Estimates for {device}{'' if there else '; there is no GPU here to measure'}.")
    else:
        found.append(f"No estimates: {result['estimates']['missing']}.")
    for row in rows:
        where = f", {at(row)}" if at else ""
        found += [f"Skipped: {label[name]}{where}: {why}." for name, why in row["skipped"].items()]
    return found
