"""Calls of the CPU backend beside programs that never wait: ``python -m wavefilt.benchmarks.cpu.busy``.

Such are the threads of OpenMP for some milliseconds after their work. What counts is how often a call is long.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import wavefilt
from wavefilt import backends, threads
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import signal
from wavefilt.benchmarks.common.tables import Row, Table

SIZES = (1 << 16, 1 << 17, 1 << 18, 1 << 20)
PAUSES = (0.0, 0.005)
"""Seconds from one call to the next: in the longer one threads fall asleep."""
SHARES = (50, 75, 90)
"""Per cent of the calls that take at most the time given."""
BUSY = "while True: pass"


def run(quick: bool = False) -> Row:
    """Milliseconds by the number of busy programs, none and one for each processor."""
    numba, rows = backends.get("numba"), []
    arrays = [signal(1, n)[0] for n in (SIZES[:1] if quick else SIZES)]
    for number in (0, threads.available_cpus()):
        with _beside(number):
            for x in arrays:
                for pause in PAUSES:
                    times = _times(x, numba, 10 if quick else 200, pause)
                    quantiles = {f"{share} %": float(np.percentile(times, share)) for share in SHARES}
                    rows.append({"programs": number, "samples": x.size, "pause": pause, "ms": quantiles})
    return result("calls beside busy programs", rows=rows)


@contextmanager
def _beside(number: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(number)]
    try:
        time.sleep(0.5 if running else 0)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def _times(x: Array, backend: backends.Backend, calls: int, pause: float) -> list[float]:
    """Milliseconds of each call, after some that are not timed."""
    times = []
    for _ in range(calls + 5):
        time.sleep(pause)
        start = time.perf_counter()
        wavefilt.denoise(x, backend=backend)
        times.append(1e3 * (time.perf_counter() - start))
    return times[5:]


TABLE = Table(
    "Calls beside busy programs, ms: {environment[processor]}, {environment[threads]} threads",
    {
        "busy programs": "{programs}",
        "samples": "{samples:size}",
        "s between calls": "{pause:g}",
        **{f"{share} %": f"{{ms[{share} %]:n}}" for share in SHARES},
    },
    "rows",
)


if __name__ == "__main__":
    main(run, TABLE)
