"""Kernels that make visible what single latencies and rates do not: how parts of a launch go on beside each other.

Tiles that are read and written once, as those of the transforms; few warps with little to do at a time; loads that wait
while other blocks stream; instructions executed for the first time; barriers that wait for one warp.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import load4, store

from .microkernels import ticks

TILE, THREADS = 4096, 256
"""Samples of a one-shot tile, 16 KiB, and threads of its block."""
STREAMS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "read": ((TILE,), ()),
    "write": ((), (TILE,)),
    "1:1": ((TILE,), (TILE,)),
    "1:5": ((TILE,), (TILE // 2, TILE // 4, TILE // 8, TILE // 16, TILE // 16)),
    "5:1": ((TILE // 2, TILE // 4, TILE // 8, TILE // 16, TILE // 16), (TILE,)),
}
"""What a tile reads and writes, in elements of each array: as a transform of four levels 1:5, its inverse 5:1."""
UNROLLED = 64
"""Multiply-adds of `issuing` in one turn of its loop."""
ROOM = 4096
"""Elements of shared memory that `issuing` reads."""

if SIMULATED:

    def fmas(chains: int, count: int) -> DeviceFunction:
        def apply(values, addends):
            held = list(values)
            for i in range(count):
                held[i % chains] = np.float32(0.5) * held[i % chains] + addends[i % 4]
            return tuple(held)

        return apply

else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.cuda.extending import intrinsic

    def fmas(chains: int, count: int) -> DeviceFunction:
        """Device function ``(values, addends) -> values``: so many multiply-adds in all, in independent chains.

        Each adds one of four ``addends``.
        """

        @intrinsic
        def apply(typing, values, addends):
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                held = [builder.extract_value(arguments[0], i) for i in range(chains)]
                added = [builder.extract_value(arguments[1], i) for i in range(4)]
                half = ir.Constant(held[0].type, 0.5)
                for i in range(count):
                    held[i % chains] = builder.fma(held[i % chains], half, added[i % 4])
                return cgutils.pack_array(builder, held)

            return types.UniTuple(types.float32, chains)(values, addends), generate

        return apply  # type: ignore[no-any-return]


def _places(sizes: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Of every array of a stream: elements of a tile, where those of other tiles before it end, rounds, the rest."""
    return [(n, sum(sizes[:i]), n // (4 * THREADS), n % (4 * THREADS) // 4) for i, n in enumerate(sizes)]


@cache
def tiles(stream: str, work: int = 0) -> Any:
    """Kernel of one-shot tiles: loaded, through shared memory, ``work`` multiply-adds for each element, stored.

    The arrays of a stream lie one after the other, each of ``count`` tiles; blocks go round them.
    """
    reads, writes = STREAMS[stream]
    loading = in_turn(*(_load(*place) for place in _places(reads)))
    storing = in_turn(*(_store(*place, 4 * work) for place in _places(writes)))
    through, consuming = bool(reads), not writes

    @cuda.jit
    def tile_kernel(x, y, count, addend):
        buffer = cuda.shared.array(TILE, np.float32)
        thread, tile = cuda.threadIdx.x, cuda.blockIdx.x % count
        if through:
            loading(buffer, x, count, tile, addend)
            cuda.syncthreads()
        else:
            buffer[thread] = addend
        if consuming:
            value = buffer[TILE - 1 - thread]
            if value == addend:
                y[thread] = value
        else:
            storing(buffer, y, count, tile, addend)

    return tile_kernel


def _load(size: int, before: int, rounds: int, rest: int) -> DeviceFunction:
    @device
    def load(buffer, x, count, tile, addend):
        thread, at = cuda.threadIdx.x, before * count + size * tile
        for j in range(rounds):
            v = 4 * (thread + j * THREADS)
            store(buffer, before + v, load4(x, at + v))
        if thread < rest:
            v = 4 * (thread + rounds * THREADS)
            store(buffer, before + v, load4(x, at + v))

    return load


def _store(size: int, before: int, rounds: int, rest: int, work: int) -> DeviceFunction:
    compute = fmas(4, work)

    @device
    def put(buffer, y, count, tile, addend):
        thread, at = cuda.threadIdx.x, before * count + size * tile
        addends = addend, addend, addend, addend
        for j in range(rounds):
            v = 4 * (thread + j * THREADS)
            store(y, at + v, compute(load4(buffer, TILE - 4 - before - v), addends))
        if thread < rest:
            v = 4 * (thread + rounds * THREADS)
            store(y, at + v, compute(load4(buffer, TILE - 4 - before - v), addends))

    return put


SPREAD: dict[int, Any] = {
    1: lambda v: (v,),
    2: lambda v: (v, v + v),
    4: lambda v: (v, v + v, -v, -v - v),
    8: lambda v: (v, v + v, -v, -v - v, v * v, v * v + v, v * v - v, -v * v),
}
"""First values of chains."""


@cache
def issuing(chains: int, apart: int) -> Any:
    """Kernel of independent chains of multiply-adds, a 16-byte load from shared memory every ``apart`` of them (0: no).

    A block writes its cycles.
    """
    loads = UNROLLED // apart if apart else 1
    compute, mask, begun = fmas(chains, UNROLLED // loads), ROOM // 4 - 1, device(SPREAD[chains])

    @cuda.jit
    def issuing_kernel(turns, addend, cycles, out):
        buffer = cuda.shared.array(ROOM, np.float32)
        thread = cuda.threadIdx.x
        for i in range(thread, ROOM, cuda.blockDim.x):
            buffer[i] = addend
        values = begun(addend)
        total = addend - addend
        addends = addend, addend, addend, addend
        cuda.syncthreads()
        start = ticks()
        for turn in range(turns):
            for j in range(loads):
                if apart:
                    addends = load4(buffer, 4 * ((thread + 32 * (turn + j)) & mask))
                values = compute(values, addends)
        cuda.syncthreads()
        if thread == 0:
            cycles[cuda.blockIdx.x] = ticks() - start
        for value in values:
            total += value
        out[cuda.blockIdx.x * cuda.blockDim.x + thread] = total

    return issuing_kernel


@cache
def cold(count: int) -> Any:
    """Kernel of ``count`` multiply-adds in a row, four chains, gone through ``turns`` times.

    A block writes the cycles of the first and of the last turn.
    """
    compute, begun = fmas(4, count), device(SPREAD[4])

    @cuda.jit
    def cold_kernel(turns, addend, cycles, out):
        values, addends = begun(addend), (addend, addend, addend, addend)
        first = last = np.int64(0)
        for turn in range(turns):
            start = ticks()
            values = compute(values, addends)
            last = np.int64(ticks() - start)
            if turn == 0:
                first = last
        if cuda.threadIdx.x == 0:
            cycles[2 * cuda.blockIdx.x] = first
            cycles[2 * cuda.blockIdx.x + 1] = last
        a, b, c, d = values
        out[cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x] = (a + b) + (c + d)

    return cold_kernel


@cache
def unequal(count: int) -> Any:
    """Kernel whose warps take turns to make ``count`` dependent multiply-adds while the others wait at a barrier."""
    compute = fmas(1, count)

    @cuda.jit
    def unequal_kernel(turns, addend, cycles, out):
        thread, warps = cuda.threadIdx.x, max(cuda.blockDim.x // 32, 1)
        values, addends = (addend,), (addend, addend, addend, addend)
        cuda.syncthreads()
        start = ticks()
        for turn in range(turns):
            if thread // 32 == turn % warps:
                values = compute(values, addends)
            cuda.syncthreads()
        if thread == 0:
            cycles[cuda.blockIdx.x] = ticks() - start
        out[cuda.blockIdx.x * cuda.blockDim.x + thread] = values[0]

    return unequal_kernel


@cuda.jit
def loaded(following, first, steps, before, x, y, chunks, most, done, cycles, moved, out):
    """Block 0 goes from line to line after ``before`` cycles; the others copy tiles, ``most`` at most, until it ends.

    It writes its cycles, they how many tiles each has copied.
    """
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    if block == 0:
        if thread == 0:
            start = ticks()
            while ticks() - start < before:
                pass
            place = following[first]
            start = ticks()
            for _ in range(steps):
                place = following[place]
            out[0] = place
            cycles[0] = ticks() - start
            cuda.atomic.add(done, 0, np.int32(1))
        return
    width, others = cuda.blockDim.x, cuda.gridDim.x - 1
    count = 0
    for i in range(most):
        over = np.int32(0)
        if thread == 0:
            over = cuda.atomic.add(done, 0, np.int32(0))
        if cuda.syncthreads_or(over):
            break
        v = 16 * ((block - 1 + i * others) % chunks) * width + 4 * thread
        a, b = load4(x, v), load4(x, v + 4 * width)
        c, d = load4(x, v + 8 * width), load4(x, v + 12 * width)
        store(y, v, a)
        store(y, v + 4 * width, b)
        store(y, v + 8 * width, c)
        store(y, v + 12 * width, d)
        count += 1
    if thread == 0:
        moved[block] = count
