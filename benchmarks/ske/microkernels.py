"""Kernels that each make one thing of a GPU visible: a latency, a rate, the bandwidth, a barrier.

Those that count clock cycles write them themselves, one number a block, so that no launch is in their time.
"""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.runtime.wide import load4, store

UNROLLED = 64
"""Operations of a chain in one turn of its loop, whose own three instructions are then few."""
LINE = 128
"""Bytes of a cache line: the distance of the places that a pointer chase visits."""
SHARED_LOADS = 16
"""16-byte loads of a thread of ``read_shared`` in one turn."""
ACCESSES = 8
"""Loads of a thread of ``strided``."""

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
        """Clock cycles of this multiprocessor."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [])
            return builder.call(ir.InlineAsm(kind, "mov.u64 $0, %clock64;", "=l,~{memory}", side_effect=True), [])

        return types.int64(), generate


OPERATIONS: dict[str, tuple[str, int]] = {
    "fma": ("float32", 1),
    "fma64": ("float64", 1),
    "int": ("uint32", 2),
    "add and flip": ("uint32", 2),
    "int mul": ("uint32", 1),
    "int div": ("uint32", 1),
    "div": ("float32", 1),
    "sqrt": ("float32", 1),
}
"""What chains are made of: the type, and the instructions that count as one step of the chain."""


@cache
def chain(operation: str) -> Any:
    """Kernel in which every thread makes ``turns`` times `UNROLLED` steps that each need the one before."""
    number = np.dtype(OPERATIONS[operation][0]).type
    unrolled, one = UNROLLED, number(1)

    half = number(0.5) if number is not np.uint32 else number(3)
    steps = {
        # with three registers as operands the rate would be half: their banks give two a cycle
        "fma": lambda x, a, b: x * half + b,
        # two instructions that neither compiler joins, both of the integer pipe
        "int": lambda x, a, b: (x >> one) ^ a,
        # of which the assembler gives the addition to the pipe of the multiplications
        "add and flip": lambda x, a, b: (x + a) ^ b,
        "int div": lambda x, a, b: a // (x | one) + b,
        "div": lambda x, a, b: a / x,
        "sqrt": lambda x, a, b: math.sqrt(x),
    }
    step = cuda.jit(device=True, inline="always")(steps.get(operation, lambda x, a, b: x * a + b))

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
    """The other kernels, by name."""
    accesses, shared_loads, ring_size, room = ACCESSES, SHARED_LOADS, 1024, 4096

    @cuda.jit
    def empty():
        pass

    @cuda.jit
    def spin(cycles):
        """Keep the stream busy for so many cycles."""
        start = ticks()
        while ticks() - start < cycles:
            pass

    @cuda.jit
    def ring(following, lines, apart):
        """One cycle through all lines (a power of two), in an order that nothing can guess."""
        first, step = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, cuda.gridDim.x * cuda.blockDim.x
        for i in range(first, lines, step):
            following[i * apart] = ((i * 1664525 + 1013904223) & (lines - 1)) * apart

    @cuda.jit
    def chase(following, first, before, steps, cycles, out):
        """One thread goes from line to line, ``before`` steps that are not timed and ``steps`` that are."""
        place = following[first]
        for _ in range(before):
            place = following[place]
        start = ticks()
        for _ in range(steps):
            place = following[place]
        out[0] = place  # before the clock is read again
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
        """16-byte loads from shared memory without conflicts, as many as there is room for in the pipe."""
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
    def scale(x, y, n, factor):
        """y = factor x, one load of a thread under way at a time: the store may be where the next load reads."""
        first, step = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, cuda.gridDim.x * cuda.blockDim.x
        for i in range(first, n, step):
            y[i] = factor * x[i]

    @cuda.jit
    def copy(x, y, chunks, rounds):
        """y = x in 16-byte accesses, four of a thread under way at a time, ``rounds`` times over all chunks.

        A chunk is four accesses of every thread of a block. The numbers of blocks and of chunks have no common divisor,
        so that a block does not read again what it has in its own cache.
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
    def strided(x, stride, never, out):
        """Loads of a warp ``stride`` elements apart; their sum is written only if it is ``never``."""
        total = x.dtype.type(0)
        apart = cuda.gridDim.x * cuda.blockDim.x
        first = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        for j in range(accesses):
            total += x[(first + j * apart) * stride]
        if total == never:
            out[0] = total

    @cuda.jit
    def barriers(turns, cycles):
        cuda.syncthreads()
        start = ticks()
        for _ in range(turns):
            cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cycles[cuda.blockIdx.x] = ticks() - start

    every = (empty, spin, ring, chase, chase_shared, read_shared, scale, copy, strided, barriers)
    return SimpleNamespace(**{f.__name__: f for f in every})
