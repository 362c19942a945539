"""Some levels of rows in one pass over tiles in shared memory.

The high-pass coefficients of both trees in turn are complex ones: real and imaginary parts. Their magnitudes,
which rules count, are written as well.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import filters, load4, store

from .filters import inside
from .tiles import GROUP, Fused


@cache
def mending(threads: int) -> DeviceFunction:
    """Device function: what lies beyond the ends of a row of n, in a tile that reaches so far, from inside.

    Element e of the row is at ``buffer[origin + e]``, from ``begin`` to ``end``.
    """

    @device
    def mend(buffer, origin, begin, end, n):
        cuda.syncthreads()
        if begin < 0 or end > n:
            for e in range(begin + cuda.threadIdx.x, end, threads):
                if e < 0 or e >= n:
                    buffer[origin + e] = buffer[origin + inside(e, (n, n))]
            cuda.syncthreads()

    return mend


@cache
def loading(threads: int, length: int, centred: bool = False) -> DeviceFunction:
    """Device function: so many elements of a row into shared memory, from element ``begin`` on, beyond its ends too.

    Less their ``mean``, if ``centred``.
    """
    rounds = -(-(length // GROUP) // threads)

    @device
    def load(buffer, target, x, start, begin, size, aligned, mean):
        first = cuda.threadIdx.x
        if aligned and begin >= 0 and begin + length <= size[0]:
            for j in range(rounds):
                v = min(first + j * threads, length // GROUP - 1)  # some read the last again rather than to branch
                a, b, c, d = load4(x, start + begin + 4 * v)
                if centred:
                    a, b, c, d = a - mean, b - mean, c - mean, d - mean
                store(buffer, target + 4 * v, (a, b, c, d))
        else:
            for i in range(first, length, threads):
                a = x[start + inside(begin + i, size)]
                buffer[target + i] = a - mean if centred else a

    return load


@cache
def _writing(wide: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: a group's low-pass and high-pass coefficients apart; as many as there are with magnitudes."""

    @device
    def one(bands, magnitudes, at, there, pairs):
        p, q = pairs[0], pairs[1]
        store(bands, at, (p, q))
        magnitudes[at >> 1] = math.sqrt(p * p + q * q)

    @device
    def two(bands, magnitudes, at, there, pairs):
        if there > 2:
            p, q, r, s = pairs
            store(bands, at, pairs)
            store(magnitudes, at >> 1, (math.sqrt(p * p + q * q), math.sqrt(r * r + s * s)))
        else:
            one(bands, magnitudes, at, there, pairs)

    if wide == 2:
        return device(lambda found: (found[0:4], found[4:8])), two
    return device(lambda found: (found[0:2], found[2:4])), one


@cache
def _level(of: Fused, i: int, coarsest: bool, places: tuple[int, int]) -> DeviceFunction:
    """Device function: the i-th level of a tile, from one place in shared memory to another.

    At a place lies the first element that the level needs.
    """
    level, along, (source, target) = of.levels[i], of.down[i], places
    threads, ratio, tile, last = level.build.threads, level.wide // 2, of.tiles[i + 1], i == of.count - 1
    before, after = of.around[i + 1]
    outputs = GROUP // ratio
    items, begin = (tile + before + after) // outputs, source + of.around[i][0] - along.lead - ratio * before
    analyse, (split, write) = filters(along.outputs, GROUP), _writing(level.wide)
    mend = mending(threads)

    @device
    def step(buffer, bands, magnitudes, levels, lowpass, low_place, row, block):
        start, pitch, size = levels[i]
        own, count = block * tile, size[1] // ratio
        start += row * pitch + own
        for item in range(cuda.threadIdx.x, items, threads):
            o = item * outputs - before
            window = begin + item * GROUP
            low, high = split(analyse(buffer, (window,)))
            if 0 <= o < tile and own + o < count:
                write(bands, magnitudes, start + o, count - own - o, high)
                if last:
                    at = low_place[0] + row * low_place[1] + own + o
                    if coarsest:
                        write(lowpass, magnitudes, at, count - own - o, low)
                    else:
                        store(lowpass, at, low)
            if not last:
                store(buffer, target + before + o, low)
        if last:
            cuda.syncthreads()
        else:
            mend(buffer, target + before - own, own - before, own + tile + after, count)

    return step


@cache
def analysis(of: Fused, coarsest: bool, centred: bool) -> Kernel:
    """Kernel of some levels; those of the ``coarsest`` launch have the low-pass coefficients counted as well.

    If ``centred``, of samples less their mean.
    """
    dtype, threads = of.levels[0].build.dtype, of.levels[0].build.threads
    number, length = np.dtype(dtype).type, of.tile + sum(of.around[0])
    (before, _), place = of.around[0], (0, length)
    shared = length + (of.tiles[1] + sum(of.around[1]) if of.count > 1 else 0)
    load, tile = loading(threads, length, centred), of.tile
    compute = in_turn(*(_level(of, i, coarsest, (place[i % 2], place[1 - i % 2])) for i in range(of.count)))

    @kernel(of.build, of, coarsest, centred)
    def dual_tree_traces_analysis_kernel(x, begin, aligned, rows, levels, bands, magnitudes, lowpass, low_place, means):
        """``levels`` have the place of a band and how far its rows are apart, and an axis as `inside` has it."""
        buffer = cuda.shared.array(shared, number)
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        block, mean = cuda.blockIdx.x, means[row] if centred else number(0)
        load(buffer, 0, x, begin[0] + row * begin[1], block * tile - before, levels[0][2], aligned, mean)
        cuda.syncthreads()
        compute(buffer, bands, magnitudes, levels, lowpass, low_place, row, block)

    return dual_tree_traces_analysis_kernel
