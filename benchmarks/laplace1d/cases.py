"""Who computes the 1-D Laplace operator y[i] = x[i+1] - 2 x[i] + x[i-1] with periodic ends, in float32.

The host loop of the document of 2008 was compiled C on one core. Here it is one Python function: run as it stands,
compiled by numba for one core, and spread over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.comparison import COPY, on_device
from wavefilt.benchmarks.common.implementation import Implementation, Prepared
from wavefilt.benchmarks.common.measuring import signal
from wavefilt.threads import parallel

ORACLE = "NumPy's shifted copies in float64"
GRAIN = 1 << 14
"""Samples that a thread takes at least."""
LAUNCHES = 20
"""Launches of a kernel in a graph: one alone takes less time than Python needs for the next event."""


@dataclass(frozen=True)
class Problem:
    """One float32 row to be filtered. Raises ValueError for fewer than two samples."""

    samples: int

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError(f"samples={self.samples} must be at least 2: a sample needs a neighbour")

    def __str__(self) -> str:
        return f"1-D Laplace operator, {self.samples} samples"

    @cached_property
    def x(self) -> Array:
        row: Array = signal(1, self.samples)[0]
        return row

    def expected(self, oracle: str) -> Array:
        x = self.x.astype(np.float64)
        return x if oracle == COPY else np.roll(x, -1) - 2 * x + np.roll(x, 1)


def interior(x: Array, y: Array) -> None:
    """y[k] = x[k+2] - 2 x[k+1] + x[k] for all of y, which is two samples shorter than x."""
    two = x.dtype.type(2)
    for k in range(len(y)):
        y[k] = x[k + 2] - two * x[k + 1] + x[k]


@cache
def compiled() -> Any:
    """`interior` compiled, which LLVM makes vector instructions of."""
    from wavefilt.backends.numba_cpu.compiler import jit

    return jit(interior)


def with_ends(loop: Callable[[Array, Array], object], x: Array, y: Array) -> Array:
    two = np.float32(2)
    loop(x, y[1:-1])
    y[0] = x[1] - two * x[0] + x[-1]
    y[-1] = x[0] - two * x[-1] + x[-2]
    return y


def by_one_thread(x: Array, y: Array) -> Array:
    return with_ends(compiled(), x, y)


def by_all_threads(x: Array, y: Array) -> Array:
    loop = compiled()

    def spread(x: Array, y: Array) -> None:
        parallel(lambda first, last: loop(x[first : last + 2], y[first:last]), len(y), GRAIN)

    return with_ends(spread, x, y)


def by_numpy(x: Array, y: Array) -> Array:
    """In three passes and without a temporary array."""
    np.multiply(x, -2, out=y)
    y[1:] += x[:-1]
    y[:-1] += x[1:]
    y[0] += x[-1]
    y[-1] += x[0]
    return y


def copied(x: Array, y: Array) -> Array:
    np.copyto(y, x)
    return y


def _cpu(filtered: Callable[[Array, Array], Array], problem: Problem) -> Prepared:
    return Prepared(partial(filtered, problem.x, np.empty_like(problem.x)))


def _gpu(kernel: str | None, problem: Problem) -> Prepared:
    """A kernel, or the copy, on data in device memory."""
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.laplace1d.kernels import launch

    x = cuda.to_device(problem.x)
    y = cuda.device_array_like(x)
    if kernel is None:
        return on_device(lambda stream: y.copy_to_device(x, stream=stream), y, launches=LAUNCHES)
    return on_device(partial(launch, kernel, x, y), y, launches=LAUNCHES)


_NUMBA = partial(backends.get, "numba")
_host = partial(Implementation, require=lambda: None, host=8, oracle=ORACLE, reference=44, tolerance=1e-6)
_cuda = partial(_host, require=partial(backends.get, "cuda"), device=8)
GPU = {
    "naive": ("naive", "a thread a sample, three loads from global memory"),
    "readonly": ("read-only", "the same loads through the read-only path, where textures were"),
    "shared": ("shared", "one load into a tile in shared memory, a barrier, three loads from it"),
    "barrier": ("barrier", "as read-only, with a needless barrier between loads and arithmetic"),
}
_AS_IS = "the loop as Python runs it, sample by sample"
_COMPILED = "the same loop compiled by numba, one thread: the host of all ratios"
_PASSES = "three passes over whole arrays, no temporary ones"
_SPREAD = "the compiled loop, parts of the row spread over all threads"
_ON_HOST = "np.copyto, one thread: as many bytes as the operator needs"
_ON_DEVICE = "the same from device memory to device memory"
IMPLEMENTATIONS = (
    _host("python", ("Python", "loop"), _AS_IS, partial(_cpu, partial(with_ends, interior))),
    _host("loop", ("compiled", "loop"), _COMPILED, partial(_cpu, by_one_thread), require=_NUMBA),
    _host("numpy", ("NumPy", "1 core"), _PASSES, partial(_cpu, by_numpy)),
    _host("numba", ("numba", "all cores"), _SPREAD, partial(_cpu, by_all_threads), require=_NUMBA),
    *(_cuda(f"gpu_{kernel}", ("GPU", head), what, partial(_gpu, kernel)) for kernel, (head, what) in GPU.items()),
)
COPIES = (
    _host("host_copy", ("NumPy", "copy"), _ON_HOST, partial(_cpu, copied), oracle=COPY),
    _cuda("gpu_copy", ("GPU", "copy"), _ON_DEVICE, partial(_gpu, None), oracle=COPY),
)
"""What the times are compared with: 8 bytes a sample."""
