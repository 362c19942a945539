"""Measure launches of the library's kernels, for the fit and the tests of the calibrated SKE model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pywt

from wavefilt.backends.cuda.denoiser import Denoiser
from wavefilt.backends.cuda.dwt.plan import DwtPlan
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import Shape, Shrinking
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.statistics.selection import Selection
from wavefilt.benchmarks.common.measuring import LAUNCHES, REPEATS, gpu_time
from wavefilt.benchmarks.common.tables import Row, spread
from wavefilt.options import Options
from wavefilt.transforms import DWT

from .fit import Case

Work = Callable[[Any], None]
LARGEST = 1 << (12 if SIMULATED else 26)
"""Samples of the noise that cases share; larger cases make their own."""
DTYPE, THRESHOLD = "float32", 0.5
"""Type of the samples, and threshold of the inverse transform."""


class Ready(NamedTuple):
    """A plan, its launches on a given stream, the flat device array of the result, and the kernel if it is only one."""

    plan: DwtPlan
    work: Work
    y: Any
    kernel: Any = None


def rows(cases: Iterable[Case], repeats: int = REPEATS, launches: int = LAUNCHES) -> Iterator[Row]:
    """Measure every case: the median time of a launch in seconds, its spread, and the resources of the kernel.

    A case that fails has an ``error`` instead, so that the others are still measured.
    """
    for case in cases:
        row: Row = asdict(case) | {"fit": True}
        try:
            ready = prepare(case)
            try:
                timing = gpu_time(ready.work, launches, repeats)
                row |= {"seconds": 1e-3 * timing["median"], "spread": 2 * spread(timing)}
                row["launches"] = [resources(ready.kernel)] if ready.kernel is not None else []
            finally:
                ready.plan.release()
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        yield row


def prepare(case: Case) -> Ready:
    """Return a case ready to be launched."""
    wavelet, problem = pywt.Wavelet(case.wavelet), case.problem
    options = KernelOptions(tile=case.tile, threads=case.threads or KernelOptions().threads)
    if SIMULATED:
        options = replace(options, scan=8, select=8, row=8)
    analysis = DWT.analysis(wavelet, "symmetric", problem.level)
    plan = DwtPlan(Shape.of(analysis, DTYPE, case.rows, (case.samples,)), options)
    size = case.rows * case.samples
    x, y = _on_device(max(size, LARGEST))[:size], cuda.device_array(size, DTYPE)
    if case.kernel == "one block":
        run = Options(case.wavelet, level=problem.level, rule="universal", sigma="global")
        denoiser = Denoiser(plan, run, False)
        if denoiser.alone is None:
            raise ValueError("these rows take several blocks")
        return Ready(plan, partial(denoiser.run, x, y), y)
    stream = cuda.stream()
    plan.forward(x, stream)
    stream.synchronize()
    if case.kernel == "search":
        selection = Selection([plan.layout], plan.options, 1, False)
        return Ready(plan, lambda on: selection.run(1, False, on, quick=True), selection.middle)
    if case.kernel == "forward":
        return Ready(plan, partial(plan.forward_launch, 0, x), y, plan.forward_kernel(0))
    thresholds = cuda.to_device(np.full(plan.shape.level * case.rows, THRESHOLD, DTYPE))
    work = partial(plan.inverse_launch, 0, y, by=Shrinking("soft", thresholds))
    return Ready(plan, work, y, plan.inverse_kernel(0, "soft"))


def resources(kernel: Any) -> dict[str, int]:
    """Return registers per thread, shared memory per block and local memory per thread, as the driver reports them.

    Empty in the simulator, which compiles nothing.
    """
    if SIMULATED:
        return {}

    def last(values: Any) -> int:
        return int([*values.values()][-1] if isinstance(values, Mapping) else values)

    return {
        "registers": last(kernel.get_regs_per_thread()),
        "shared": last(kernel.get_shared_mem_per_block()),
        "local": last(kernel.get_local_mem_per_thread()),
    }


def noise(size: int) -> Any:
    """Return noise that repeats after 1 Mi samples, which is made quickly."""
    some = np.random.default_rng(7).standard_normal(min(size, 1 << 20), dtype=np.float32)
    return np.resize(some, size)


@lru_cache(maxsize=1)
def _on_device(size: int) -> Any:
    return cuda.to_device(noise(size))
