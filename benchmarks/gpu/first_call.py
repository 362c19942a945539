"""What a first `denoise` on a GPU compiles, and how long it takes.

``python -m wavefilt.benchmarks.gpu.first_call``

No GPU is needed, nor used: kernels are compiled for a compute capability, each case in a process of its own with the
cache that the cases before left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Row, Table

CASES: dict[str, dict[str, object]] = {
    "db8 bayes, the defaults": {},
    "the same again": {},
    "further rule, universal": {"rule": "universal"},
    "filter of the same length, sym8": {"wavelet": "sym8"},
    "filter of another length, db4": {"wavelet": "db4"},
    "modwt": {"transform": "modwt"},
}
CAPABILITY = 9, 0
SHAPE = 1, (1 << 20,)
PROGRAM = """
import json, sys
sys.path[:] = {path!r}
from wavefilt.benchmarks.gpu import first_call
print(json.dumps(first_call.measure({options!r})))
"""


def run(cases: Mapping[str, dict[str, object]] = CASES) -> Row:
    """For every case its kernels and the seconds of compilation, by stage; CPU seconds beside those on the clock."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        for name, options in cases.items():
            command = [sys.executable, "-c", PROGRAM.format(path=sys.path, options=options)]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            rows.append({"case": name, **json.loads(done.stdout)})
    return result("first calls on a GPU", capability=CAPABILITY, shape=SHAPE, rows=rows)


def measure(options: dict[str, object]) -> Row:
    """One case, in this process, which has no other use."""
    began = time.perf_counter()
    from wavefilt.backends.cuda import warming
    from wavefilt.backends.cuda.runtime import compiler

    imported = time.perf_counter()
    warming.SHAPES[1] = [SHAPE]
    launches = warming.needed(json.dumps([options]), ["float32"], CAPABILITY)
    from numba.cuda.codegen import CUDACodeLibrary

    times = {"front end of numba": 0.0, "NVVM": 0.0, "all": 0.0}

    def timed(owner: object, name: str, stage: str) -> None:
        plain = vars(owner)[name]

        def call(*arguments: object, **named: object) -> object:
            start = time.perf_counter()
            try:
                return plain(*arguments, **named)
            finally:
                times[stage] += time.perf_counter() - start

        setattr(owner, name, call)

    timed(compiler, "_Kernel", "front end of numba")
    timed(CUDACodeLibrary, "get_ltoir", "NVVM")
    timed(CUDACodeLibrary, "get_cubin", "all")
    start, before = time.perf_counter(), time.process_time()
    compiler.together(launches)
    return {
        "kernels": [kernel.py_func.__name__ for kernel, _ in launches],
        "import_seconds": imported - began,
        "compile_seconds": time.perf_counter() - start,
        "compile_cpu_seconds": time.process_time() - before,
        "front_end_seconds": times["front end of numba"],
        "nvvm_seconds": times["NVVM"],
        "link_seconds": times["all"] - times["NVVM"],
    }


TABLE = Table(
    "Kernels compiled for sm_90 by a first denoise of 1 Mi float32 samples, each case after those above: "
    "{environment[processor]}, load {environment[load]:.1f}",
    {
        "|case": "{case}",
        "|kernels": lambda row: str(len(row["kernels"])),
        "CPU|seconds": "{compile_cpu_seconds:.1f}",
        "numba's front end,|share": lambda row: f"{row['front_end_seconds'] / row['compile_seconds']:.0%}",
        "NVVM and linker,|share": (
            lambda row: f"{(row['nvvm_seconds'] + row['link_seconds']) / row['compile_seconds']:.0%}"
        ),
    },
)


if __name__ == "__main__":
    main(lambda quick: run(dict(list(CASES.items())[:2]) if quick else CASES), TABLE)
