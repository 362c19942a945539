"""Test signal, and timers for the CPU and the GPU."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from wavefilt.arrays import Array

Name = TypeVar("Name")
LAUNCHES, WARM, REPEATS = 20, 5, 30
"""Launches of a graph, graphs that are not timed, and graphs that are."""


def signal(rows: int, samples: int) -> Array:
    """Return a sweep with noise, different in every trace."""
    rng = np.random.default_rng(7)
    t = np.linspace(0, 1, samples, dtype=np.float32)
    return np.asarray(np.sin(40 * t**2)[None] + 0.3 * rng.standard_normal((rows, samples), dtype=np.float32))


def difference(y: Array, reference: Array) -> float:
    """Return the norm of the difference relative to that of the reference."""
    return float(np.linalg.norm(y.astype(np.float64) - reference) / np.linalg.norm(reference.astype(np.float64)))


def summary(times: Sequence[float]) -> dict[str, float]:
    """Return median, quartiles and mean."""
    low, median, high = np.percentile(times, [25, 50, 75])
    return {"median": float(median), "low": float(low), "high": float(high), "mean": float(np.mean(times))}


def walls(call: Callable[[], object], repeats: int, warm: int = 4) -> dict[str, float]:
    """Return the milliseconds of a call by the clock; the first ``warm`` calls are not timed."""
    for _ in range(warm):
        call()
    return turns({"": call}, repeats)[""]


def different(x: Array, limit: int, most: int = 40, least: int = 5) -> list[Array]:
    """Return shifted copies of an array, of ``limit`` bytes in total: the new arrays of a user's loop."""
    return [np.roll(x, 997 * i, axis=-1) for i in range(max(min(most, limit // x.nbytes), least))]


def loop(call: Callable[[Any], Any], arrays: Sequence[Any], warm: int = 3) -> dict[str, float]:
    """Return the milliseconds of a call, each with the next array; the results are kept.

    The first ``warm`` calls are made twice, and timed the second time.
    """
    kept, times = [], []
    gc.collect()
    for x in [*arrays[:warm], *arrays]:
        start = time.perf_counter()
        y = call(x)
        times.append(1e3 * (time.perf_counter() - start))
        kept.append(y)
    return summary(times[len(arrays[:warm]) :])


def turns(calls: Mapping[Name, Callable[[], object]], repeats: int) -> dict[Name, dict[str, float]]:
    """Return the milliseconds of each call, made in turn so that other work on the machine affects all alike."""
    times: dict[Name, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: summary(own) for name, own in times.items()}


def gpu_time(
    work: Callable[[Any], None], launches: int = LAUNCHES, repeats: int = REPEATS, warm: int = WARM
) -> dict[str, float]:
    """Return the milliseconds of one ``work(stream)``, from CUDA graphs of ``launches`` of them between two events.

    This excludes Python and its jitter. The simulator has no graphs; its times only show that the work ran.
    """
    from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda

    def several(on: Any) -> None:
        for _ in range(launches):
            work(on)

    if SIMULATED:
        return summary([walls(lambda: several(cuda.stream()), 1, 0)["median"] / launches for _ in range(repeats)])
    from wavefilt.backends.cuda.runtime.graph import Graph, stream

    on = stream()
    work(on)  # compiles, and allocates buffers for later launches
    on.synchronize()
    graph = Graph(several)
    for _ in range(warm):
        graph.launch(on)
    on.synchronize()
    start, stop, times = cuda.event(), cuda.event(), []
    for _ in range(repeats):
        graph.launch(on)  # the GPU is busy while the events and the next graph are queued
        start.record(on)
        graph.launch(on)
        stop.record(on)
        stop.synchronize()
        times.append(cuda.event_elapsed_time(start, stop) / launches)
    return summary(times)
