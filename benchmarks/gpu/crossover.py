"""From what size the GPU takes less time than the CPU for arrays in host memory: what `backend="auto"` uses.

Timed as in a user's loop: different arrays, with the results kept.

``python -m wavefilt.benchmarks.gpu.crossover -o benchmarks/results/cuda_crossover.json``
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np

import wavefilt
from wavefilt import backends
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import different, loop
from wavefilt.benchmarks.common.tables import Report, Row, Table

SIZES = [1 << k for k in range(10, 27)]
BYTES = 2 << 30
"""Of the arrays of a loop."""
WAVELETS = ("db1", "db8", "db20")
EQUAL = 0.03
"""Share of the time by which medians of one machine differ from run to run."""
FIRST_CALL = """
import sys, time
import numpy as np
import wavefilt
x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
start = time.perf_counter()
wavefilt.denoise(x, "db8", backend=sys.argv[1])
print(time.perf_counter() - start)
"""


def run(sizes: list[int] = SIZES, repeats: int = 15) -> Row:
    """Medians in seconds: calls with everything loaded, and the first call of a process, without and with a cache."""
    first = {}
    for name in ("cuda, compiling", "cuda", "numba, compiling", "numba"):
        of = name.partition(",")[0]
        command = [sys.executable, "-c", FIRST_CALL, of]
        first[name] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rows = []
    for wavelet in WAVELETS:
        for n in sizes:
            arrays = different(np.random.default_rng(n).standard_normal(n).astype(np.float32), BYTES, repeats)
            row: Row = {"wavelet": wavelet, "samples": n}
            for name in ("cuda", "numba", "pywavelets") if n <= 1 << 16 else ("cuda", "numba"):
                call = partial(wavefilt.denoise, wavelet=wavelet, backend=name)
                row[name] = 1e-3 * loop(call, arrays, kept=True)["median"]
            rows.append(row)
    device = backends.get("cuda").describe()
    return result("cuda crossover", device=device, cores=os.cpu_count(), first=first, calls=rows)


def crossover(found: Row) -> tuple[int, int]:
    """Samples from which the GPU wins whatever the filter, with its kernels loaded and in a process's first call.

    The smallest measured if it always does, or takes no longer than `EQUAL` says.
    """
    loaded = min(row["samples"] for row in found["calls"])
    for row in found["calls"]:
        if row["cuda"] > (1 + EQUAL) * min(row["numba"], row.get("pywavelets", np.inf)):
            loaded = max(loaded, 2 * row["samples"])
    largest = max(row["samples"] for row in found["calls"])
    gain = min((row["numba"] - row["cuda"]) / row["samples"] for row in found["calls"] if row["samples"] == largest)
    return loaded, int((found["first"]["cuda"] - found["first"]["numba"]) / gain)


TABLE = Table(
    "NumPy array in and out, ms of a call in a loop over different arrays whose results are kept",
    {
        "wavelet": "{wavelet}",
        "samples": "{samples:size}",
        "cuda": "{cuda:ms}",
        "numba": "{numba:ms}",
        "pywavelets": "?{pywavelets:ms}",
    },
    "calls",
)


def report(found: Row) -> Report:
    """Every call, the first calls of a process, and the crossovers."""
    loaded, first = crossover(found)
    notes = [
        "first calls of a process: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found["first"].items()),
        f"the GPU wins from {loaded} samples, in a first call from {first}",
    ]
    return Report([TABLE(found)], notes)


if __name__ == "__main__":
    main(lambda quick: run(SIZES[::4] if quick else SIZES), report)
