"""Measured times of the library's own launches, for the validation of the SKE model."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pywt

from wavefilt.backends.cuda.dwt.plan import DwtPlan
from wavefilt.backends.cuda.dwt.tiling import Filter
from wavefilt.backends.cuda.dwt.tiling import launches as fused_levels
from wavefilt.backends.cuda.dwt2.plan import PanelPlan
from wavefilt.backends.cuda.modwt.plan import ModwtPlan
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.plan import Plan, Shape, Shrinking
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.statistics.selection import Selection
from wavefilt.backends.cuda.work_counts.statistics import ROW
from wavefilt.benchmarks.common.gpu_timing import LAUNCHES, REPEATS, WARM, measured
from wavefilt.benchmarks.common.tables import Row
from wavefilt.method import Method
from wavefilt.transforms import DWT, DWT2, MODWT, Transform

from .cases import LEVEL, Case
from .microkernels import kernels

Work = Callable[[Any], None]
LARGEST = 1 << (12 if SIMULATED else 26)
"""Samples of the noise that cases share; a larger one has its own."""
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
        what = f"{case.what:24} {case.rows:>5} x {case.samples:<9}"
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
        if not case.single and not SIMULATED:
            before = 0.0
            for count, launch in enumerate(seen, 1):
                until = measured(partial(_only, ready.work, count), launches, repeats, WARM).seconds
                launch["seconds"], before = until - before, until
        return {"seconds": timing.seconds, "spread": timing.spread, "launches": seen}
    finally:
        ready.plan.release()


def _only(work: Work, count: int, stream: Any) -> None:
    """The first launches of the work; their times are differences of these."""
    left = [count]
    configure: Any = type(kernel()(lambda: None)).__getitem__

    def some(self: Any, configuration: Any) -> Callable[..., None]:
        left[0] -= 1
        return configure(self, configuration) if left[0] >= 0 else lambda *arguments: None

    with patch.object(type(kernel()(lambda: None)), "__getitem__", some):
        work(stream)


class Ready(NamedTuple):
    """A plan, what launches the case on a stream, and the flat device array of its result."""

    plan: Plan
    work: Work
    y: Any


PLANS: dict[str, tuple[Transform, type[Plan]]] = {
    "dwt": (DWT, DwtPlan),
    "dwt2": (DWT2, PanelPlan),
    "modwt": (MODWT, ModwtPlan),
}


def prepare(case: Case) -> Ready:
    """A case ready to be launched."""
    wavelet = pywt.Wavelet(case.wavelet)
    options = Options(tile=case.tile, threads=case.threads, row=ROW)
    if SIMULATED:
        options = replace(options, scan=8, select=8, row=8)
    kind, planned = PLANS[case.transform]
    level = case.level or (2 if SIMULATED else LEVEL)
    if not case.level and case.single:
        level = fused_levels(Filter(wavelet.dec_len, case.mode == "periodization"), LEVEL, case.tile)[0]
    plan: Plan = planned(Shape.of(kind.analysis(wavelet, case.mode, level), case.dtype, case.rows, case.size), options)
    size = case.rows * prod(case.size)
    x, y = _on_device(max(size, LARGEST), case.dtype)[:size], cuda.device_array(size, case.dtype)
    stream = cuda.stream()
    plan.forward(x, stream)
    stream.synchronize()
    work: Work
    if case.kernel == "forward":
        work = partial(plan.forward_launch, case.launch, x)
    elif case.kernel == "inverse":
        thresholds = cuda.to_device(np.full(plan.shape.level * case.rows, THRESHOLD, case.dtype))
        work = partial(plan.inverse_launch, case.launch, y, by=Shrinking(case.function, thresholds))
    elif case.kernel == "denoise":
        from wavefilt.backends.cuda.denoiser import Denoiser

        plan.early = 0  # nothing on a second stream: launches follow one another
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


@lru_cache(maxsize=1)
def _on_device(size: int, dtype: str) -> Any:
    """Noise that cases share."""
    return cuda.to_device(noise(size).astype(dtype, copy=False))


def arguments_of(work: Work) -> list[tuple[Any, tuple[Any, ...]]]:
    """The kernels of the library that the work would launch, and their arguments."""
    found: list[tuple[Any, tuple[Any, ...]]] = []

    def noted(self: Any, _: Any) -> Callable[..., None]:
        return lambda *arguments: found.append((self, arguments))

    with patch.object(type(kernel()(lambda: None)), "__getitem__", noted):
        work(cuda.stream())
    return found


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
    compiled = next(reversed(dispatcher.overloads.values()), None)
    if compiled is not None:
        sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
        facts |= {"registers": int(compiled.regs_per_thread), "shared": int(compiled.shared_mem_per_block)}
        facts["local"] = int(compiled.local_mem_per_thread)
        facts["resident"] = int(compiled.max_cooperative_grid_blocks(threads)) // sms
    return facts
