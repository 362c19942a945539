"""GPU kernels of the 1-D Laplace operator, with one thread per sample. They differ in how a thread reads samples."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda, device
from wavefilt.benchmarks.laplace.rows import BLOCK

if SIMULATED:

    def load_readonly(array: Any, index: Any) -> Any:
        return array[index]

else:
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def load_readonly(typing: Any, array: Any, index: Any) -> Any:
        """Load a float32 of global memory, which the kernel does not write, through the read-only path."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(array)(context, builder, arguments[0]).data
            address = builder.ptrtoint(builder.gep(data, [arguments[1]]), ir.IntType(64))
            kind = ir.FunctionType(ir.FloatType(), [ir.IntType(64)])
            # a side effect, so that the compiler leaves it on its side of a barrier
            load = ir.InlineAsm(kind, "ld.global.nc.f32 $0, [$1];", "=f,l", side_effect=True)
            return builder.call(load, [address])

        return types.float32(array, types.int64), generate


@cache
def kernels(block: int = BLOCK) -> SimpleNamespace:
    """Return all kernels by name, for blocks of ``block`` threads.

    Each takes C-contiguous float32 arrays x and y of the same length.
    """
    index, single, zero, two, tile_size = np.uint32, np.float32, np.float32(0), np.float32(2), block + 2

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
            y[i] = load_readonly(x, right) - two * load_readonly(x, i) + load_readonly(x, left)

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

    @cuda.jit
    def barrier(x, y):
        """Do as ``readonly``, with a needless barrier between the loads and the arithmetic.

        The assembler moves a plain barrier ahead of the loads. This one reduces a predicate of them, so it waits.
        """
        i, n = place(), index(x.size)
        before = middle = after = zero
        if i < n:
            left, right = neighbours(i, n)
            after, middle, before = load_readonly(x, right), load_readonly(x, i), load_readonly(x, left)
        cuda.syncthreads_or(np.int32((after == middle) & (middle == before)))
        if i < n:
            y[i] = after - two * middle + before

    return SimpleNamespace(naive=naive, readonly=readonly, shared=shared, barrier=barrier)


def launch(name: str, x: Any, y: Any, stream: Any = 0, block: int = BLOCK) -> None:
    """Compute y, the Laplace operator of x, both in device memory, by the kernel of this name."""
    getattr(kernels(block), name)[-(-x.size // block), block, stream](x, y)
