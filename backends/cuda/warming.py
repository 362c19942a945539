"""Kernels compiled before they are needed, by several processes, of which none needs a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from wavefilt.backends.cuda.denoiser import Denoiser
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import Shape
from wavefilt.backends.cuda.plans import FAMILIES
from wavefilt.backends.cuda.runtime import compiler, graph, rehearsal
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.options import Options
from wavefilt.threads import available_cpus

SHAPES: dict[int, list[tuple[int, tuple[int, ...]]]] = {
    1: [
        *((1, (1 << 16,)), (1, (1 << 20,)), (1, (1 << 24,))),
        *((24, (1024,)), (240, (1 << 13,)), (64, (1 << 14,)), (4096, (1 << 14,))),
    ],
    2: [(1, (512, 512))],
}
"""Traces of some lengths, and panels: their kernels have blocks and tiles of all sizes that are chosen."""
MOST = 12
"""Processes: there are no more kernels that take long."""
INTERVAL = 0.2
"""Seconds between two looks at what is done."""
PROGRAM = "import sys; sys.path[:] = {path!r}; from wavefilt.backends.cuda import warming; warming.work(*{share!r})"


def warm_up(
    methods: Sequence[Mapping[str, object]],
    dtypes: Sequence[str] = ("float32",),
    capability: tuple[int, int] | None = None,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Compile everything that `denoise` runs by these options of `Options`, for samples of these dtypes.

    It goes to the cache on disk: for GPUs of a compute capability such as (9, 0), or for the current one. ``advance``
    is called several times a second. Raises RuntimeError with what a process says that fails.
    """
    if capability is None:
        major, minor = cuda.get_current_device().compute_capability[:2]
        capability = int(major), int(minor)
    count = min(available_cpus(), MOST)
    work = [(json.dumps(list(map(dict, methods))), list(dtypes), capability, i, count) for i in range(count)]
    programs = [PROGRAM.format(path=sys.path, share=share) for share in work]
    running = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for code in programs]
    try:
        while any(process.poll() is None for process in running):
            advance()
            time.sleep(INTERVAL)
        for process in running:
            _, error = process.communicate()
            if process.returncode:
                raise RuntimeError(f"kernels were not compiled: {error.strip()[-2000:]}")
    finally:  # an interrupt ends them
        for process in running:
            process.kill()
            process.wait()


def work(methods: str, dtypes: Sequence[str], capability: tuple[int, int], first: int, step: int) -> None:
    """In a process that does nothing else: compile every so many of the kernels."""
    for kernel, types in needed(methods, dtypes, capability)[first::step]:
        kernel.compile(types)


def needed(methods: str, dtypes: Sequence[str], capability: tuple[int, int]) -> Sequence[compiler.Launch]:
    """Kernels that `denoise` launches, those that take longest to compile first. For a process that does nothing else.

    ``methods`` are options of `Options`, as JSON.
    """
    rehearsal.begin(capability)
    for options in json.loads(methods):
        method = Options(**options)
        for dtype in dtypes:
            for rows, size in SHAPES[method.dimensions]:
                _rehearse(method, dtype, rows, size)
    return sorted(rehearsal.launches, key=lambda launch: -len(launch[1]))


def _rehearse(method: Options, dtype: str, rows: int, size: tuple[int, ...]) -> None:
    """All launches of a denoise, and those that it makes if a search has not ended."""
    shape = Shape.of(method.analysis(method.level_for(*size)), dtype, rows, size)
    plan = FAMILIES[shape.transform](shape, KernelOptions())
    denoiser = Denoiser(plan, method, False)
    x, y = (cuda.device_array(rows * shape.samples, dtype) for _ in range(2))
    stream = graph.stream()
    denoiser.run(x, y, stream)
    denoiser.make_all_passes()
    denoiser.run(x, y, stream)
