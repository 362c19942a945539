"""What the studies measure with: their signal, timers by the clock and by the GPU's events, quartiles, memory."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from wavefilt.arrays import Array

Case = TypeVar("Case")
Name = TypeVar("Name")
POOL = 64
"""Arrays that stand for those that a user's loop meets once."""
BUSY = 200_000
"""Clock cycles of waiting before a short time is taken: 0.1 ms, longer than Python takes to queue it."""


def signal(rows: int, samples: int) -> Array:
    """A sweep in noise, different in every trace."""
    rng = np.random.default_rng(7)
    t = np.linspace(0, 1, samples, dtype=np.float32)
    return np.asarray(np.sin(40 * t**2)[None] + 0.3 * rng.standard_normal((rows, samples), dtype=np.float32))


def difference(y: Array, reference: Array) -> float:
    """Norm of the difference over that of the reference."""
    return float(np.linalg.norm(y.astype(np.float64) - reference) / np.linalg.norm(reference.astype(np.float64)))


def summary(times: list[float]) -> dict[str, float]:
    """Median, quartiles and mean."""
    low, median, high = np.percentile(times, [25, 50, 75])
    return {"median": float(median), "low": float(low), "high": float(high), "mean": float(np.mean(times))}


def walls(call: Callable[[], object], repeats: int, warm: int = 4) -> dict[str, float]:
    """Milliseconds of a call by the clock, after some that are not timed."""
    for _ in range(warm):
        call()
    return turns({"": call}, repeats)[""]


def different(x: Array, limit: int, most: int = 40, least: int = 5) -> list[Array]:
    """Shifts of a trace, as many as take so many bytes: the arrays of a user's loop, which no cache has seen."""
    return [np.roll(x, 997 * i) for i in range(max(min(most, limit // x.nbytes), least))]


def loop(call: Callable[[Array], object], arrays: Sequence[Array], kept: bool, warm: int = 3) -> dict[str, float]:
    """Milliseconds of a call, each with the next array, after some that are not timed; results are kept or dropped."""
    results, times = [], []
    for x in [*arrays[:warm], *arrays]:
        start = time.perf_counter()
        y = call(x)
        times.append(1e3 * (time.perf_counter() - start))
        if kept:
            results.append(y)
    return summary(times[warm:])


def seconds_in_turn(calls: Mapping[Name, Callable[[], object]], repeats: int) -> dict[Name, list[float]]:
    """Seconds of each, called in turn so that other work on the machine falls on all."""
    times: dict[Name, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


def turns(calls: Mapping[Name, Callable[[], object]], repeats: int) -> dict[Name, dict[str, float]]:
    """Median and quartiles of the milliseconds of each, called in turn."""
    return {name: summary([1e3 * x for x in times]) for name, times in seconds_in_turn(calls, repeats).items()}


def first_call(code: str, repeats: int) -> float:
    """Median of the seconds that code prints in a new process, after one that may compile."""
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(repeats + 1)]
    return float(np.median([float(run.stdout) for run in runs[1:]]))


def peak_beyond(denoise: Callable[[Array, Case], Array], x: Array, case: Case) -> float:
    """Peak memory of a call beyond input and output, in units of the input; the backend's pool is emptied first."""
    from wavefilt.backends.numba_cpu import memory

    denoise(x, case)
    memory.trim()
    tracemalloc.start()
    y = denoise(x, case)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - y.nbytes) / x.nbytes


def events(work: Callable[[Any], None], repeats: int, before: Callable[[Any], None] | None = None) -> dict[str, float]:
    """Milliseconds of GPU time of the launches of ``work``, captured as a graph so that Python is not measured.

    ``before`` is what each run must come after, and is not timed; otherwise that is the same work once more.
    """
    from wavefilt.backends.cuda.runtime.graph import Graph
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.ske.microkernels import kernels

    stream = cuda.default_stream()
    before = before or work
    before(stream)
    work(stream)
    stream.synchronize()
    graph, earlier, busy = Graph(work), Graph(before), kernels().spin
    times = []
    for _ in range(repeats + 3):
        start, stop = cuda.event(), cuda.event()
        earlier.launch(stream)
        busy[1, 1, stream](BUSY)  # while the events and the next launch are queued
        start.record(stream)
        graph.launch(stream)
        stop.record(stream)
        stop.synchronize()
        times.append(cuda.event_elapsed_time(start, stop))
    return summary(times[3:])


def on_gpu_in_turn(x: Any) -> Iterator[Any]:
    """Arrays on the GPU with the samples of ``x``, which is there too: each is met again only after all others.

    There are `POOL`, or as many as a quarter of the free memory has room for.
    """
    from wavefilt.backends.cuda.runtime.target import cuda

    room = int(cuda.current_context().get_memory_info().free // (4 * x.nbytes))
    arrays = [cuda.device_array_like(x) for _ in range(max(min(POOL, room), 2))]
    for array in arrays:
        array.copy_to_device(x)
    return cycle(arrays)


def free_memory() -> int | None:
    """Bytes of host memory that are available; None where the system does not report it."""
    found = []
    try:
        with open("/proc/meminfo") as lines:
            found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            found.append(int(most) - int((group / "memory.current").read_text()))
    except OSError:
        pass
    return min(found, default=None)
