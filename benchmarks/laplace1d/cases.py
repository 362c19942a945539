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
from wavefilt.benchmarks.common.implementation import Implementation, Prepared
from wavefilt.benchmarks.common.measuring import events, signal
from wavefilt.threads import parallel

COPY = "copy"
"""The oracle of copies; the other one is the operator."""
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
        """The operator in float64 by shifted copies, or x itself."""
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


def spread(x: Array, y: Array) -> None:
    """`interior`, compiled, by all threads."""
    loop = compiled()
    parallel(lambda first, last: loop(x[first : last + 2], y[first:last]), len(y), GRAIN)


def vectorised(x: Array, y: Array) -> None:
    """All of y in three passes of NumPy and without a temporary array."""
    np.multiply(x, -2, out=y)
    y[1:] += x[:-1]
    y[:-1] += x[1:]
    y[0] += x[-1]
    y[-1] += x[0]


def _loop(of: Callable[[], Callable[[Array, Array], None]], problem: Problem) -> Prepared:
    """A loop over the interior, and the two ends."""
    x, y, loop, two = problem.x, np.empty_like(problem.x), of(), np.float32(2)

    def call() -> Array:
        loop(x, y[1:-1])
        y[0] = x[1] - two * x[0] + x[-1]
        y[-1] = x[0] - two * x[-1] + x[-2]
        return y

    return Prepared(call)


def _whole(function: Callable[[Array, Array], None], problem: Problem) -> Prepared:
    """A function of x and all of y."""
    x, y = problem.x, np.empty_like(problem.x)

    def call() -> Array:
        function(x, y)
        return y

    return Prepared(call)


def _gpu(kernel: str | None, problem: Problem) -> Prepared:
    """A kernel, or the copy, on data in device memory, timed by events."""
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.laplace1d.kernels import launch

    x = cuda.to_device(problem.x)
    y = cuda.device_array_like(x)

    def work(stream: Any) -> None:
        if kernel is None:
            y.copy_to_device(x, stream=stream)
        else:
            launch(kernel, x, y, stream)

    def several(stream: Any) -> None:
        for _ in range(LAUNCHES):
            work(stream)

    def call() -> Any:
        work(0)  # the default stream
        cuda.synchronize()
        return y

    def clock(repeats: int, warm: int) -> dict[str, float]:
        return {name: time / LAUNCHES for name, time in events(several, repeats).items()}

    return Prepared(call, lambda done: done.copy_to_host(), clock)


def _copy(x: Array, y: Array) -> None:
    np.copyto(y, x)


_numba = partial(backends.get, "numba")
_host = partial(Implementation, host=8, reference=44, tolerance=1e-6)
_cuda = partial(_host, require=lambda: backends.get("cuda"), device=8)
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
IMPLEMENTATIONS = (
    _host("python", ("Python", "loop"), _AS_IS, partial(_loop, lambda: interior), lambda: None),
    _host("loop", ("compiled", "loop"), _COMPILED, partial(_loop, compiled), _numba),
    _host("numpy", ("NumPy", "1 core"), _PASSES, partial(_whole, vectorised), lambda: None),
    _host("numba", ("numba", "all cores"), _SPREAD, partial(_loop, lambda: spread), _numba),
    *(_cuda(f"gpu_{kernel}", ("GPU", head), what, partial(_gpu, kernel)) for kernel, (head, what) in GPU.items()),
)
_ON_HOST = "np.copyto, one thread: as many bytes as the operator needs"
_ON_DEVICE = "the same from device memory to device memory"
COPIES = (
    _host("host_copy", ("NumPy", "copy"), _ON_HOST, partial(_whole, _copy), lambda: None, oracle=COPY),
    _cuda("gpu_copy", ("GPU", "copy"), _ON_DEVICE, partial(_gpu, None), oracle=COPY),
)
"""What the times are compared with: 8 bytes a sample."""
