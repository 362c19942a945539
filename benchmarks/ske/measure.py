"""Measured times of the library's own launches, for the validation of the SKE model."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pywt

from wavefilt.backends.cuda.dwt.plan import DwtPlan
from wavefilt.backends.cuda.dwt.tiling import Filter
from wavefilt.backends.cuda.dwt.tiling import launches as fused_levels
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.plan import Shape, Shrinking
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.statistics.selection import Selection
from wavefilt.backends.cuda.work_counts.statistics import ROW
from wavefilt.benchmarks.common.gpu_timing import LAUNCHES, REPEATS, WARM, measured
from wavefilt.benchmarks.common.tables import Row
from wavefilt.method import Method
from wavefilt.transforms import DWT

from .cases import LEVEL, Case
from .microkernels import kernels

Work = Callable[[Any], None]
THRESHOLD = 0.5
"""Of the inverse's soft shrinkage."""


def rows(cases: Iterable[Case], repeats: int = REPEATS, launches: int = LAUNCHES) -> Iterator[Row]:
    """Every case with the median time of a launch in seconds, its spread, and the launches it consists of.

    A case that fails has an ``error`` instead, so that the others are still measured.
    """
    for case in cases:
        began = time.perf_counter()
        row: Row = asdict(case)
        try:
            row |= _row(case, repeats, launches)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        row["took"] = round(time.perf_counter() - began, 2)
        what = f"{case.kernel:8} {case.wavelet:6} {case.rows:>5} x {case.samples:<9}"
        timed = row.get("error", "")[:160] or (
            f"{1e6 * row['seconds']:9.2f} us  spread {row['spread']:.1%}  ({row['took']:.1f} s)"
        )
        print(f"{what} t {case.threads:<5}tile {case.tile:<5} {timed}", file=sys.stderr, flush=True)
        yield row


def _row(case: Case, repeats: int, launches: int) -> Row:
    ready = prepare(case)
    try:
        seen = _launched(ready.work)
        timing = measured(ready.work, launches, repeats, WARM)
        return {"levels": ready.plan.fused, "seconds": timing.seconds, "spread": timing.spread, "launches": seen}
    finally:
        ready.plan.release()


class Ready(NamedTuple):
    """A plan, what launches the case on a stream, and the flat device array of its result."""

    plan: DwtPlan
    work: Work
    y: Any


def prepare(case: Case, level: int | None = None) -> Ready:
    """A case ready to be launched; ``level`` instead of the case's own."""
    wavelet, taps = pywt.Wavelet(case.wavelet), pywt.Wavelet(case.wavelet).dec_len
    options = Options(tile=case.tile, threads=case.threads, row=ROW)
    if SIMULATED:
        options = replace(options, scan=8, select=8, row=8)
    single = fused_levels(Filter(taps, False), LEVEL, case.tile)[0]  # the levels of the first launch
    if level is None:
        level = single if case.kernel in ("forward", "inverse") else 2 if SIMULATED else LEVEL
    analysis = DWT.analysis(wavelet, "symmetric", level)
    plan = DwtPlan(Shape.of(analysis, "float32", case.rows, (case.samples,)), options)
    size = case.rows * case.samples
    x, y = cuda.to_device(noise(size)), cuda.device_array(size, np.float32)
    stream = cuda.stream()
    plan.forward(x, stream)
    stream.synchronize()
    work: Work
    if case.kernel == "forward":
        work = partial(plan.forward, x)
    elif case.kernel == "inverse":
        thresholds = cuda.to_device(np.full(level * case.rows, THRESHOLD, np.float32))
        work = partial(plan.inverse, y, by=Shrinking("soft", thresholds))
    elif case.kernel == "denoise":
        from wavefilt.backends.cuda.denoiser import Denoiser

        method = Method(wavelet=case.wavelet, level=level, rule="universal", sigma="global", shrink="soft")
        work = partial(Denoiser(plan, method, False).run, x, y)
    else:
        median = case.kernel == "median"
        whole = Selection([plan.layout], plan.options, 1 if median else level, False)
        work = partial(whole.run, int(median), not median, quick=True)
    return Ready(plan, work, y)


def noise(size: int) -> Any:
    """Noise of at most 1 Mi different samples: the same arithmetic, and made in no time."""
    some = np.random.default_rng(7).standard_normal(min(size, 1 << 20), dtype=np.float32)
    return np.resize(some, size)


def _launched(work: Work) -> list[Row]:
    """The launches that the work makes, in order: kernel, grid, block, and what the driver says of it.

    In the simulator, which compiles nothing, none.
    """
    found: list[tuple[Any, Any, Any]] = []
    dispatcher: Any = type(kernels().empty)
    configure: Any = None if SIMULATED else dispatcher.configure

    def noted(self: Any, griddim: Any, blockdim: Any, *others: Any) -> Any:
        found.append((self, griddim, blockdim))
        return configure(self, griddim, blockdim, *others)

    with nullcontext() if SIMULATED else patch.object(dispatcher, "configure", noted):
        work(cuda.stream())
        cuda.synchronize()
    return [_resources(*launch) for launch in found]


def _resources(dispatcher: Any, grid: Any, block: Any) -> Row:
    threads, blocks = int(np.prod(block)), int(np.prod(grid))
    facts: Row = {"name": dispatcher.py_func.__name__, "blocks": blocks, "threads": threads}
    kernel = next(reversed(dispatcher.overloads.values()), None)
    if kernel is not None:
        sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
        facts |= {"registers": int(kernel.regs_per_thread), "shared": int(kernel.shared_mem_per_block)}
        facts["local"] = int(kernel.local_mem_per_thread)
        facts["resident"] = int(kernel.max_cooperative_grid_blocks(threads)) // sms
    return facts
