"""From what size the GPU takes less time than the CPU for arrays in host memory: what `backend="auto"` goes by.

python -m wavefilt.benchmarks.gpu.crossover --json benchmarks/results/cuda_crossover.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import wavefilt
from wavefilt import backends
from wavefilt.benchmarks.common.environment import environment

SIZES = [1 << k for k in range(10, 27)]
WAVELETS = ("db1", "db8", "db20")
FIRST_CALL = """
import sys, time
import numpy as np
import wavefilt
x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
start = time.perf_counter()
wavefilt.denoise(x, "db8", backend=sys.argv[1])
print(time.perf_counter() - start)
"""


def run(sizes: list[int] = SIZES, repeats: int = 15) -> dict[str, Any]:
    """Medians in seconds: calls with everything loaded, and the first call of a process, without and with a cache."""
    first = {}
    for name in ("cuda, compiling", "cuda", "numba, compiling", "numba"):
        of = name.partition(",")[0]
        command = [sys.executable, "-c", FIRST_CALL, of]
        first[name] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rows = []
    for wavelet in WAVELETS:
        for n in sizes:
            x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
            measured = {name: _median(x, wavelet, name, repeats) for name in ("cuda", "numba", "pywavelets")
                        if name != "pywavelets" or n <= 1 << 16}  # fmt: skip
            rows.append({"wavelet": wavelet, "samples": n, **measured})
    return {
        "date": date.today().isoformat(), "device": backends.get("cuda").describe(), "cores": os.cpu_count(),
        "environment": environment(), "first": first, "calls": rows,
    }  # fmt: skip


def crossover(result: dict[str, Any]) -> tuple[int, int]:
    """Samples from which the GPU wins whatever the filter, with its kernels loaded and in a process's first call.

    The smallest measured if it always does.
    """
    loaded = min(row["samples"] for row in result["calls"])
    for row in result["calls"]:
        if row["cuda"] >= min(row["numba"], row.get("pywavelets", np.inf)):
            loaded = max(loaded, 2 * row["samples"])
    largest = max(row["samples"] for row in result["calls"])
    gain = min((row["numba"] - row["cuda"]) / row["samples"] for row in result["calls"] if row["samples"] == largest)
    return loaded, int((result["first"]["cuda"] - result["first"]["numba"]) / gain)


def table(result: dict[str, Any]) -> str:
    lines = [
        f"{result['device']}; {result['cores']} cores; {result['date']}; milliseconds, NumPy array in and out",
        "first calls of a process: " + ", ".join(f"{k} {v:.2f} s" for k, v in result["first"].items()),
        f"{'wavelet':8} {'samples':>10} {'cuda':>9} {'numba':>9} {'pywavelets':>10}",
    ]
    for row in result["calls"]:
        reference = f"{1e3 * row['pywavelets']:10.3f}" if "pywavelets" in row else ""
        lines.append(
            f"{row['wavelet']:8} {row['samples']:10} {1e3 * row['cuda']:9.3f} {1e3 * row['numba']:9.3f} {reference}"
        )
    loaded, first = crossover(result)
    return "\n".join([*lines, f"the GPU wins from {loaded} samples, in a first call from {first}"])


def _median(x: np.ndarray[Any, Any], wavelet: str, backend: str, repeats: int) -> float:
    times = []
    for _ in range(repeats + 3):
        start = time.perf_counter()
        wavefilt.denoise(x, wavelet, backend=backend)
        times.append(time.perf_counter() - start)
    return statistics.median(times[3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="save the measurements here")
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    result = run(repeats=arguments.repeats)
    print(table(result))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
