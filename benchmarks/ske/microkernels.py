"""Microbenchmark kernels for latencies, instruction rates, bandwidths and barriers.

Kernels with an argument ``cycles`` write the elapsed clock cycles of each block there, so that launch overhead is not
measured.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.runtime.wide import load4, store

UNROLLED = 64
"""Operations in the body of a chain's loop, so that the loop itself costs little."""
LINE = 128
"""Bytes of a cache line, the stride of a pointer chase."""
SHARED_LOADS = 16
"""16-byte loads per thread and turn of ``read_shared``."""

if SIMULATED:
    import time

    def ticks() -> int:
        return time.perf_counter_ns()

else:
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def ticks(typing: Any) -> Any:
        """Return the clock cycles of this multiprocessor."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [])
            return builder.call(ir.InlineAsm(kind, "mov.u64 $0, %clock64;", "=l,~{memory}", side_effect=True), [])

        return types.int64(), generate


OPERATIONS: dict[str, tuple[str, int]] = {
    "fma": ("float32", 1),
    "fma64": ("float64", 1),
    "add and flip": ("uint32", 2),
}
"""Operations of chains: the data type, and the instructions per step."""


@cache
def chain(operation: str) -> Any:
    """Return a kernel in which every thread executes ``turns`` times `UNROLLED` dependent steps."""
    number = np.dtype(OPERATIONS[operation][0]).type
    unrolled = UNROLLED
    half = number(0.5) if number is not np.uint32 else number(3)
    steps = {
        # a literal factor: three register operands would halve the rate, because the banks deliver two per cycle
        "fma": lambda x, a, b: x * half + b,
        "fma64": lambda x, a, b: x * a + b,
        # two pipes: the assembler moves the addition to the pipe of multiplications
        "add and flip": lambda x, a, b: (x + a) ^ b,
    }
    step = cuda.jit(device=True, inline="always")(steps[operation])

    @cuda.jit
    def chain_kernel(values, turns, cycles, out):
        a, b = values[0], values[1]
        x = values[2] + number(cuda.threadIdx.x)
        cuda.syncthreads()
        start = ticks()
        for _ in range(turns):
            for _ in range(unrolled):
                x = number(step(x, a, b))
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cycles[cuda.blockIdx.x] = ticks() - start
        out[cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x] = x

    return chain_kernel


@cache
def kernels() -> SimpleNamespace:
    """Return the other kernels, by name."""
    shared_loads, ring_size, room = SHARED_LOADS, 1024, 4096

    @cuda.jit
    def empty():
        pass

    @cuda.jit
    def ring(following, lines, apart):
        """Link all lines (a power of two) to one cycle in an unpredictable order."""
        first, step = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, cuda.gridDim.x * cuda.blockDim.x
        for i in range(first, lines, step):
            following[i * apart] = ((i * 1664525 + 1013904223) & (lines - 1)) * apart

    @cuda.jit
    def chase(following, first, before, steps, cycles, out):
        """Follow the links with one thread: ``before`` untimed steps, then ``steps`` timed ones."""
        place = following[first]
        for _ in range(before):
            place = following[place]
        start = ticks()
        for _ in range(steps):
            place = following[place]
        out[0] = place  # before the clock is read
        cycles[0] = ticks() - start

    @cuda.jit
    def chase_shared(steps, cycles, out):
        following = cuda.shared.array(ring_size, np.uint32)
        for i in range(cuda.threadIdx.x, ring_size, cuda.blockDim.x):
            following[i] = (i + 33) & (ring_size - 1)
        cuda.syncthreads()
        place = following[cuda.threadIdx.x]
        start = ticks()
        for _ in range(steps):
            place = following[place]
        out[0] = place
        cycles[0] = ticks() - start

    @cuda.jit
    def read_shared(turns, cycles, out):
        """Saturate shared memory with 16-byte loads without bank conflicts."""
        buffer = cuda.shared.array(room, np.float32)
        thread = cuda.threadIdx.x
        for i in range(thread, room, cuda.blockDim.x):
            buffer[i] = i
        a = b = c = d = np.float32(0)
        cuda.syncthreads()
        start = ticks()
        for turn in range(turns):
            for j in range(shared_loads):
                e, f, g, h = load4(buffer, 4 * ((thread + 32 * (turn + j)) & (ring_size - 1)))
                a += e
                b += f
                c += g
                d += h
        cuda.syncthreads()
        if thread == 0:
            cycles[cuda.blockIdx.x] = ticks() - start
        out[cuda.blockIdx.x * cuda.blockDim.x + thread] = (a + b) + (c + d)

    @cuda.jit
    def copy(x, y, chunks, rounds):
        """Copy in 16-byte accesses, four per thread in flight, ``rounds`` times over all chunks.

        A chunk is four accesses of every thread of a block. For several rounds, the numbers of blocks and chunks must
        be coprime, so that a block does not find its own data in its L1 cache.
        """
        width = cuda.blockDim.x
        for item in range(cuda.blockIdx.x, chunks * rounds, cuda.gridDim.x):
            v = 16 * (item % chunks) * width + 4 * cuda.threadIdx.x
            a, b = load4(x, v), load4(x, v + 4 * width)
            c, d = load4(x, v + 8 * width), load4(x, v + 12 * width)
            store(y, v, a)
            store(y, v + 4 * width, b)
            store(y, v + 8 * width, c)
            store(y, v + 12 * width, d)

    @cuda.jit
    def read(x, never, out):
        """Read one chunk per block; the sum is stored only if it is ``never``."""
        width, total = cuda.blockDim.x, np.float32(0)
        for i in range(4):
            a, b, c, d = load4(x, 16 * cuda.blockIdx.x * width + 4 * (cuda.threadIdx.x + i * width))
            total += (a + b) + (c + d)
        if total == never:
            out[0] = total

    @cuda.jit
    def write(y, value):
        """Write one chunk per block."""
        width = cuda.blockDim.x
        for i in range(4):
            store(y, 16 * cuda.blockIdx.x * width + 4 * (cuda.threadIdx.x + i * width), (value, value, value, value))

    @cuda.jit
    def barriers(turns, cycles):
        cuda.syncthreads()
        start = ticks()
        for _ in range(turns):
            cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cycles[cuda.blockIdx.x] = ticks() - start

    every = (empty, ring, chase, chase_shared, read_shared, copy, read, write, barriers)
    return SimpleNamespace(**{f.__name__: f for f in every})
