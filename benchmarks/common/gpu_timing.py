"""GPU time of launches, recorded as a CUDA graph between two events, which excludes Python and its jitter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LAUNCHES, WARM, REPEATS = 20, 5, 30


@dataclass(frozen=True)
class Timing:
    """Seconds of one launch: the median over repeats, and the quartiles."""

    seconds: float
    low: float
    high: float
    mean: float = 0.0

    @property
    def spread(self) -> float:
        """Distance of the quartiles relative to the median."""
        return (self.high - self.low) / self.seconds if self.seconds else 0.0

    @property
    def milliseconds(self) -> dict[str, float]:
        """The numbers by the names that the studies use."""
        ms = {"median": self.seconds, "low": self.low, "high": self.high, "mean": self.mean}
        return {name: 1e3 * seconds for name, seconds in ms.items()}

    @staticmethod
    def of(values: Any) -> Timing:
        low, median, high = np.percentile(np.asarray(values, np.float64), [25, 50, 75])
        return Timing(float(median), float(low), float(high), float(np.mean(values)))


def measured(work: Callable[[Any], None], launches: int = LAUNCHES, repeats: int = REPEATS, warm: int = WARM) -> Timing:
    """Return the time of one ``work(stream)``, from graphs of ``launches`` of them."""
    from wavefilt.backends.cuda.runtime.target import SIMULATED

    return (_by_clock if SIMULATED else _by_events)(work, launches, repeats, warm)


def _by_events(work: Callable[[Any], None], launches: int, repeats: int, warm: int) -> Timing:
    from wavefilt.backends.cuda.runtime.graph import Graph, stream
    from wavefilt.backends.cuda.runtime.target import cuda

    def several(on: Any) -> None:
        for _ in range(launches):
            work(on)

    on = stream()
    work(on)  # compiles, and allocates what is kept
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
        times.append(1e-3 * cuda.event_elapsed_time(start, stop) / launches)
    return Timing.of(times)


def _by_clock(work: Callable[[Any], None], launches: int, repeats: int, warm: int) -> Timing:
    """Time the work in the simulator, where times only show that it ran."""
    from wavefilt.backends.cuda.runtime.target import cuda

    on, times = cuda.stream(), []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(launches):
            work(on)
        times.append((time.perf_counter() - start) / launches)
    return Timing.of(times)
