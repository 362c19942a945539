"""Time of `wavefilt --help` beside a bare `import numpy, click`, and of first calls of `denoise` in a new process.

``python -m wavefilt.benchmarks.cpu.startup``
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

import numpy as np

from wavefilt.benchmarks.common.measuring import seconds_in_turn

COMMANDS = {
    "import numpy, click": ["-c", "import numpy, click"],
    "import wavefilt": ["-c", "import wavefilt"],
    "wavefilt --help": ["-m", "wavefilt.cli", "--help"],
}


FIRST_CALL = (
    "import numpy, wavefilt\n"
    "x = numpy.random.default_rng(0).standard_normal((1, 1 << 16)).astype({dtype!r})\n"
    "wavefilt.denoise(x, backend={backend!r})"
)
IMPORTED = "import numpy; numpy.random.default_rng(0).standard_normal((1, 1 << 16))"


def first_calls(repeats: int = 5, dtype: str = "float32") -> dict[str, dict[str, float]]:
    """Median seconds and CPU seconds of whole processes, those of the compiler's included.

    NumPy alone; a `denoise` by PyWavelets; one by numba with kernels in the cache on disk, and with an empty one.
    """
    codes = {"numpy alone": IMPORTED, "pywavelets": FIRST_CALL.format(dtype=dtype, backend="pywavelets")}
    codes |= dict.fromkeys(("cached", "empty cache"), FIRST_CALL.format(dtype=dtype, backend="numba"))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in codes}
    with tempfile.TemporaryDirectory() as shared:
        for turn in range(repeats + 1):
            for name, code in codes.items():
                folder = shared if name != "empty cache" else tempfile.mkdtemp(dir=shared)
                environment = os.environ | {"NUMBA_CACHE_DIR": folder}
                started, before = time.perf_counter(), _cpu_seconds()
                subprocess.run([sys.executable, "-c", code], env=environment, check=True)
                if turn:  # the first one compiles what is cached from then on
                    found[name].append((time.perf_counter() - started, _cpu_seconds() - before))
    medians = {name: np.median(seconds, axis=0) for name, seconds in found.items()}
    return {name: {"seconds": float(wall), "cpu_seconds": float(cpu)} for name, (wall, cpu) in medians.items()}


def _cpu_seconds() -> float:
    """Of all processes that this one has waited for."""
    used = os.times()
    return used.children_user + used.children_system


def run(repeats: int = 15) -> dict[str, dict[str, float]]:
    """Median seconds of each command, and ratios to the first; the first turn fills caches."""
    call = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
    times = seconds_in_turn({name: partial(call, [sys.executable, *of]) for name, of in COMMANDS.items()}, repeats + 1)
    medians = {name: statistics.median(t[1:]) for name, t in times.items()}
    first = next(iter(medians.values()))
    return {name: {"seconds": median, "ratio": median / first} for name, median in medians.items()}


if __name__ == "__main__":
    print(json.dumps(run() | first_calls(), indent=2))
