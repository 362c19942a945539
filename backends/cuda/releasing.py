"""Kernels that a release comes with, so that a first call does not wait for numba.

``python -m wavefilt.backends.cuda.releasing`` compiles them to LLVM IR, which suits every GPU, without needing one. It
writes a file for each number of taps to `stored.RELEASED`, from where they go into the wheel.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeAlias

import pywt

from wavefilt.backends.cuda import warming
from wavefilt.backends.cuda.runtime import rehearsal, stored
from wavefilt.threads import available_cpus

DTYPES = ("float32", "float64")
TRANSFORMS = ("dwt", "modwt")
RULES = ("bayes", "universal", "sure", "minimax")
MOST_TAPS = 40
CAPABILITY = 9, 0
"""Of the GPU that is rehearsed on; LLVM IR is the same for others."""
Job: TypeAlias = "tuple[str, str, bool]"
"""Options of `Options` as JSON, the dtype, and whether kernels without taps are wanted or those with taps."""


def jobs() -> Iterator[Job]:
    """The kernels of all lengths of filters up to `MOST_TAPS`, and those that every filter needs."""
    lengths = {pywt.Wavelet(name).dec_len: name for name in reversed(pywt.wavelist(kind="discrete"))}
    for dtype in DTYPES:
        for length, wavelet in sorted(lengths.items()):
            if length <= MOST_TAPS:
                methods = [{"wavelet": wavelet, "transform": transform} for transform in TRANSFORMS]
                methods.append({"wavelet": wavelet, "sigma": "global"})  # short rows by blocks of more threads
                yield json.dumps(methods), dtype, False
        methods = [{"rule": rule, "transform": transform} for rule in RULES for transform in TRANSFORMS]
        methods += [{"scope": "record"}, {"sigma": 1.0}]
        yield json.dumps(methods), dtype, True


def compiled(job: Job) -> dict[int, dict[str, dict[str, object]]]:
    """The kernels of a job, by their number of taps."""
    methods, dtype, without_taps = job
    rehearsal.launches.clear()
    found: dict[int, dict[str, dict[str, object]]] = defaultdict(dict)
    for kernel, types in warming.needed(methods, [dtype], CAPABILITY):
        taps = kernel.compile.taps
        if (taps == 0) == without_taps:
            name, code = kernel.compile.release(types)
            found[taps][name] = code
    return dict(found)


def main(chosen: Sequence[Job] | None = None) -> None:
    """Compile jobs, or all, and write their files."""
    files: dict[int, dict[str, dict[str, object]]] = defaultdict(dict)
    chosen = list(jobs()) if chosen is None else chosen
    with ProcessPoolExecutor(available_cpus(), get_context("spawn")) as processes:
        for number, done in enumerate(processes.map(compiled, chosen), 1):
            for taps, kernels in done.items():
                files[taps].update(kernels)
            print(f"{number} of {len(chosen)}", file=sys.stderr)
    for taps, kernels in files.items():
        size = stored.write(taps, kernels)
        print(f"{taps} taps: {len(kernels)} kernels, {size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
