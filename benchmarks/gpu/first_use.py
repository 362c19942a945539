"""How long a user waits for the first `denoise` of a process on a GPU.

``python -m wavefilt.benchmarks.gpu.first_use``: a process for each case, with the cache that those before left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Row, Table
from wavefilt.benchmarks.gpu.first_call import CASES

SAMPLES = 1 << 20
PROGRAM = """
import json, sys, time
sys.path[:] = {path!r}
times = [time.perf_counter()]
import numpy, wavefilt
x = numpy.random.default_rng(0).standard_normal({samples}, dtype="f4")
times.append(time.perf_counter())
from wavefilt.backends.cuda.runtime.target import cuda
times.append(time.perf_counter())
cuda.current_context()
times.append(time.perf_counter())
for _ in range(2):
    wavefilt.denoise(x, backend="cuda", **{options!r})
    times.append(time.perf_counter())
print(json.dumps([b - a for a, b in zip(times, times[1:])]))
"""
PARTS = ("import_seconds", "import_cuda_seconds", "context_seconds", "call_seconds", "again_seconds")


def run(cases: Mapping[str, dict[str, object]] = CASES) -> Row:
    """For every case the seconds of imports, of the GPU's own start, and of a first and a second call."""
    from wavefilt.backends.cuda.runtime import stored

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder, "CUDA_CACHE_PATH": folder}
        for name, options in cases.items():
            program = PROGRAM.format(path=sys.path, samples=SAMPLES, options=options)
            done = subprocess.run(
                [sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            rows.append({"case": name, **dict(zip(PARTS, json.loads(done.stdout), strict=True))})
    return result("first use of a GPU", samples=SAMPLES, released=stored.RELEASED.is_dir(), rows=rows)


TABLE = Table(
    "First denoise of 1 Mi float32 samples in a process, seconds, each case after those above: {environment[gpu]}",
    {
        "|case": "{case}",
        "import|numpy, wavefilt": "{import_seconds:.2f}",
        "import|numba.cuda": "{import_cuda_seconds:.2f}",
        "start of|the GPU": "{context_seconds:.2f}",
        "first|call": "{call_seconds:.2f}",
        "second|call": "{again_seconds:.3f}",
        "|all": lambda row: f"{sum(row[part] for part in PARTS[:-1]):.2f}",
    },
)


if __name__ == "__main__":
    main(lambda quick: run(dict(list(CASES.items())[:2]) if quick else CASES), TABLE)
