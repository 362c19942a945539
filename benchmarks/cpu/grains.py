"""How many threads pay for so many samples: ``python -m wavefilt.benchmarks.cpu.grains``.

What `backends.numba_cpu.grains` says is taken from its results, `benchmarks/results/grains.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np

from wavefilt import threads
from wavefilt.backends.numba_cpu import grains, memory
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.measuring import signal
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.benchmarks.cpu.by_threads import denoised, in_turn

NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
KINDS: dict[str, Row] = {
    "dwt": {},
    "modwt": {"transform": "modwt", "level": 5},
    "dwt2": {"axes": (0, 1), "level": 3},
}
SIZES = tuple(1 << k for k in range(15, 23))
WORTH = 0.03
"""Share of the time that more threads have to save."""


def run(quick: bool = False, repeats: int = 60) -> Row:
    """Seconds of each transform and size by numbers of threads, the fewest of which are not slower than any other."""
    numbers, rows, before = [n for n in NUMBERS if n <= threads.available_cpus()], [], threads.get_num_threads()
    try:
        with patch.dict(grains.SAMPLES, dict.fromkeys(grains.SAMPLES, 1 << 12)):
            for kind, options in KINDS.items():
                for size in SIZES[:: 4 if quick else 1]:
                    memory.trim()
                    height = 1 << int(np.log2(size)) // 2 if kind == "dwt2" else 1
                    x = signal(height, size // height)
                    times = in_turn(denoised(x, options), numbers, 2 if quick else max(repeats >> (size >> 19), 7))
                    best = min(times[n]["median"] for n in numbers)
                    fewest = min(n for n in numbers if times[n]["median"] <= (1 + WORTH) * best)
                    rows += [
                        {"transform": kind, "samples": size, "threads": n, "seconds": times[n], "fewest": fewest}
                        for n in numbers
                    ]
    finally:
        threads.set_num_threads(before)
        memory.trim()
    return {"study": "grains", "environment": environment(), "rows": rows}


def _sizes(result: Row) -> Iterator[Row]:
    """A row for each transform and size."""
    for kind, size in dict.fromkeys((row["transform"], row["samples"]) for row in result["rows"]):
        own = {row["threads"]: row for row in result["rows"] if (row["transform"], row["samples"]) == (kind, size)}
        fewest = own[min(own)]["fewest"]
        times = ", ".join(f"{1e3 * row['seconds']['median']:.3f}" for row in own.values())
        yield {"transform": kind, "samples": size, "times": times, "fewest": fewest, "each": size // fewest}


TABLE = Table(
    lambda result: "Milliseconds by " + ", ".join(map(str, dict.fromkeys(r["threads"] for r in result["rows"]))),
    {
        "transform": "{transform}",
        "samples": "{samples:size}",
        "ms": "{times}",
        "threads that pay": "{fewest}",
        "samples|for each": "{each:size}",
    },
    _sizes,
)


def report(result: Row) -> Report:
    """A row a transform and size."""
    return Report([TABLE(result)], [f"Samples for each thread in use: {grains.SAMPLES}."])


if __name__ == "__main__":
    main(run, report)
