"""The 1-D Laplace operator y[i] = x[i+1] - 2 x[i] + x[i-1] with periodic ends, in float32, of a lesson of 2008.

A host loop, and GPU kernels that read shared samples in different ways; each output is compared before it is timed.
`wavefilt bench laplace 1d -o FILE` runs it. The host loop of 2008 was compiled C on one core; here numba compiles it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import njit

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common import columns
from wavefilt.benchmarks.common.columns import COPY, Implementation, Prepared, Progress, on_device
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import signal
from wavefilt.benchmarks.common.tables import Column, Report, Row, size
from wavefilt.ske.calibrated import Launch

ORACLE = "NumPy's shifted copies in float64"
BLOCK, WARP, SECTOR, SAMPLE = 256, 32, 32, 4
"""Threads of a block and of a warp; bytes of a transaction of L2 and of a sample."""
MOST = 1 << 31
"""Samples that the kernels can count in 32 bits."""
SAMPLES, REPEATS, BUDGET, QUICK_BUDGET = 1 << 20, 503, 5.0, 0.1
"""Samples and most runs as in 2008, and the seconds that the runs of an implementation may take."""
DOCUMENT = {
    "loop": (5.62, 1.0),
    "gpu_naive": (0.246, 22.9),
    "gpu_readonly": (0.117, 48.0),
    "gpu_shared": (0.166, 33.9),
}
"""Milliseconds of 2008 and ratio to the host loop: one core of an E8400, and a GTX 260 whose texture cache was the
read-only path."""


@dataclass(frozen=True)
class Problem:
    """One float32 row to be filtered. Raises ValueError for fewer than two samples, and more than `MOST`."""

    samples: int

    def __post_init__(self) -> None:
        if not 2 <= self.samples <= MOST:
            raise ValueError(f"samples={self.samples} must be at least 2 and at most 2 Gi")

    def __str__(self) -> str:
        return f"1-D Laplace operator, {self.samples} samples"

    @cached_property
    def x(self) -> Array:
        row: Array = signal(1, self.samples)[0]
        return row

    def expected(self, oracle: str) -> Array:
        x = self.x.astype(np.float64)
        return x if oracle == COPY else np.roll(x, -1) - 2 * x + np.roll(x, 1)


@njit(error_model="numpy", nogil=True, cache=True)
def interior(x: Any, y: Any) -> None:
    """Compute y[k] = x[k+2] - 2 x[k+1] + x[k] for all of y, which is two samples shorter than x."""
    two = np.float32(2)
    for k in range(len(y)):
        y[k] = x[k + 2] - two * x[k + 1] + x[k]


def by_one_thread(x: Array, y: Array) -> Array:
    two = np.float32(2)
    interior(x, y[1:-1])
    y[0] = x[1] - two * x[0] + x[-1]
    y[-1] = x[0] - two * x[-1] + x[-2]
    return y


def copied(x: Array, y: Array) -> Array:
    np.copyto(y, x)
    return y


def _cpu(filtered: Callable[[Array, Array], Array], problem: Problem) -> Prepared:
    return Prepared(partial(filtered, problem.x, np.empty_like(problem.x)))


@cache
def load_readonly() -> Any:
    """Return the function that loads a float32 of memory that the kernel does not write, through the read-only path."""
    from wavefilt.backends.cuda.runtime.target import SIMULATED, device

    if SIMULATED:
        return device(lambda array, index: array[index])
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def load(typing, array, index):
        def generate(context, builder, signature, arguments):
            data = context.make_array(array)(context, builder, arguments[0]).data
            address = builder.ptrtoint(builder.gep(data, [arguments[1]]), ir.IntType(64))
            kind = ir.FunctionType(ir.FloatType(), [ir.IntType(64)])
            return builder.call(ir.InlineAsm(kind, "ld.global.nc.f32 $0, [$1];", "=f,l", side_effect=True), [address])

        return types.float32(array, types.int64), generate

    return load


@cache
def kernels(block: int = BLOCK) -> SimpleNamespace:
    """Return all GPU kernels by name, for blocks of ``block`` threads, with one thread per sample.

    Each takes C-contiguous float32 arrays x and y of the same length.
    """
    from wavefilt.backends.cuda.runtime.target import cuda, device

    load, index, single, two, tile_size = load_readonly(), np.uint32, np.float32, np.float32(2), block + 2

    @device
    def place():
        return index(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)

    @device
    def neighbours(i, n):
        """Return the samples before and after one of n, around the ends."""
        after = index(i + 1)
        return index((i if i > 0 else n) - 1), after if after < n else index(0)

    @cuda.jit
    def naive(x, y):
        """Make three loads from global memory."""
        i, n = place(), index(x.size)
        if i < n:
            left, right = neighbours(i, n)
            y[i] = x[right] - two * x[i] + x[left]

    @cuda.jit
    def readonly(x, y):
        """Make the same loads through the read-only path, where textures were."""
        i, n = place(), index(x.size)
        if i < n:
            left, right = neighbours(i, n)
            y[i] = load(x, right) - two * load(x, i) + load(x, left)

    @cuda.jit
    def shared(x, y):
        """Make one load into a tile in shared memory, which has one more sample at either end."""
        tile = cuda.shared.array(tile_size, single)
        t, i, n = np.uint32(cuda.threadIdx.x), place(), index(x.size)
        if i < n:
            left, right = neighbours(i, n)
            tile[np.uint32(t + 1)] = x[i]
            if t == 0:
                tile[0] = x[left]
            if t == block - 1 or right == 0:
                tile[np.uint32(t + 2)] = x[right]
        cuda.syncthreads()
        if i < n:
            y[i] = tile[np.uint32(t + 2)] - two * tile[np.uint32(t + 1)] + tile[t]

    return SimpleNamespace(naive=naive, readonly=readonly, shared=shared)


def run_kernel(name: str, x: Any, y: Any, stream: Any = 0, block: int = BLOCK) -> None:
    """Compute y, the Laplace operator of x, both in device memory, by the kernel of this name."""
    getattr(kernels(block), name)[-(-x.size // block), block, stream](x, y)


def _gpu(kernel: str | None, problem: Problem) -> Prepared:
    return on_device(problem.x, None if kernel is None else partial(run_kernel, kernel))


_host = partial(Implementation, oracle=ORACLE, tolerance=1e-6)
_cuda = partial(_host, require=partial(backends.get, "cuda"))
KERNELS = {
    "naive": ("naive", "a thread a sample, three loads from global memory"),
    "readonly": ("read-only", "the same loads through the read-only path, where textures were"),
    "shared": ("shared", "one load into a tile in shared memory, a barrier, three loads from it"),
}
_COMPILED = "the loop compiled by numba, one thread: the host of all ratios"
_ON_HOST = "np.copyto, one thread: as many bytes as the operator needs"
IMPLEMENTATIONS = (
    _host("loop", ("compiled", "loop"), _COMPILED, partial(_cpu, by_one_thread)),
    *(_cuda(f"gpu_{kernel}", ("GPU", head), what, partial(_gpu, kernel)) for kernel, (head, what) in KERNELS.items()),
)
COPIES = (
    _host("host_copy", ("NumPy", "copy"), _ON_HOST, partial(_cpu, copied), oracle=COPY),
    _cuda("gpu_copy", ("GPU", "copy"), "the same in device memory", partial(_gpu, None), oracle=COPY),
)
"""8 bytes a sample, the least that the operator moves."""

REGISTERS = 16
"""Most registers of a thread."""
ARITHMETIC, ACCESSES = 3, 4
"""2 x is x + x. Three loads and a store of global memory."""
WAVEFRONTS = 6
"""Of a warp: an aligned load and a store of 128 bytes each, and two loads that lie across two lines."""
DIRECT = {"fma": ARITHMETIC, "int": 7, "int mul": 5, "other": 10 + ACCESSES, "wavefront": WAVEFRONTS}
TILED = {"fma": ARITHMETIC, "int": 11, "int mul": 5, "other": 16 + ACCESSES + 6}
"""Six more accesses, to shared memory; those to a tile's ends take a slot in every warp."""


def launches(samples: int, block: int = BLOCK) -> dict[str, Launch]:
    """Return the operation counts of every kernel by its name, for the SKE model.

    They follow from the source; integer and other instructions were read from SASS for sm_90. Tests compare them with
    the compiled kernels.
    """
    blocks, warps = -(-samples // block), -(-block // WARP)
    written = SAMPLE * samples
    read = written + 2 * SECTOR * blocks  # every block reads a sample of both its neighbours

    def launch(name: str, instructions: Mapping[str, float], shared: int = 0, barriers: int = 0) -> Launch:
        loads = {"global": 1, "shared": 1} if shared else {"global": 1}
        counts = (blocks, block, instructions, loads, barriers, read, written, 2 * written)
        return Launch(name, *counts, registers=REGISTERS, shared=shared)

    # x to the tile and three times from it, y: a wavefront each; the tile's ends come twice, once a block
    tiled = TILED | {"wavefront": 6 + 4 / warps}
    return {
        "naive": launch("naive", DIRECT),
        "readonly": launch("readonly", DIRECT),
        "shared": launch("shared", tiled, SAMPLE * (block + 2), 1),
    }


def run(
    samples: int = SAMPLES,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Progress = iter,
) -> Row:
    """Return times in milliseconds of every implementation, as a table for JSON: see `columns.compare`."""
    problem = Problem(samples)
    counted = {f"gpu_{name}": launch for name, launch in launches(samples).items()}
    how = ("loop", "mean", repeats, budget, device, progress)  # ratios are to the loop and of means, as in 2008
    row, facts = columns.compare(problem, (*IMPLEMENTATIONS, *COPIES), SAMPLE, counted, *how)
    if samples == SAMPLES:
        row["document"] = {name: {"ms": ms, "ratio": ratio} for name, (ms, ratio) in DOCUMENT.items()}
    method = f"Mean, median and quartiles of up to {repeats} runs in {budget:g} s; {columns.GPU_TIME}"
    return result("laplace1d", unit="ms", method=method, **facts, rows=[row])


TIMES: dict[str, Column] = {
    "|1-D Laplace": "{label}",
    "mean|ms": "?{times[mean]:n}",
    "median|ms": "?{times:spread}",
    "|runs": "?{times[repeats]}",
    "times the|host loop": "?{ratios:n}",
    "share of|a copy": "?{shares:.1%}",
}


def report(result: Row) -> Report:
    """Return times, ratios, estimates, and the figures of 2008 if their size was measured."""
    (row,) = result["rows"]
    title = f"1-D Laplace operator, {size(row['samples'])} samples, float32; ± is half the interquartile range"
    then = {"2008|ms": "?{document[ms]:g}", "2008, x the|host loop": "?{document[ratio]:.1f}"}
    return columns.report(result, title, TIMES | then if "document" in row else TIMES)
