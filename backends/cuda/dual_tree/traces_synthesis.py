"""Some levels of rows back in one pass over tiles in shared memory, with coefficients shrunk as they are loaded."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import filters, load4, store

from .filters import inside
from .shrinking import GAINS, shrinking
from .tiles import GROUP, Fused
from .traces_analysis import loading, mending


@cache
def _loading(of: Fused, i: int, function: str, target: int) -> DeviceFunction:
    """Device function: coefficients that a tile needs of the i-th level into shared memory, shrunk."""
    level, (before, after), tile = of.levels[i], of.back[i], of.tiles[i + 1]
    threads, length = level.build.threads, tile + before + after
    rounds, shrunk = -(-(length // GROUP) // threads), shrinking(level.build.dtype, function)

    @device
    def load(buffer, bands, gains, start, count, begin, t):
        first = cuda.threadIdx.x
        if begin >= 0 and begin + length <= count:
            for j in range(rounds):
                v = 4 * min(first + j * threads, length // GROUP - 1)  # some read the last again rather than to branch
                p, q, r, s = load4(bands, start + begin + v)
                at = start + begin + v >> 1
                p, q = shrunk(p, q, t, gains, at)
                r, s = shrunk(r, s, t, gains, at + 1)
                store(buffer, target + v, (p, q, r, s))
        else:
            size = count, count
            for v in range(2 * first, length, 2 * threads):
                k = start + (inside(begin + v, size) & ~1)
                p, q = shrunk(bands[k], bands[k + 1], t, gains, k >> 1)
                if inside(begin + v, size) & 1:  # beyond an end the trees change over
                    p, q = q, p
                buffer[target + v], buffer[target + v + 1] = p, q

    return load


@cache
def _level(of: Fused, i: int, function: str, centred: bool, places: tuple[int, int, int]) -> DeviceFunction:
    """Device function: the i-th level of a tile, from two places in shared memory to a third.

    There lie the low-pass and the high-pass coefficients that it needs, and goes what the next finer level needs.
    """
    level, along, (source, high, target) = of.levels[i], of.up[i], places
    threads, ratio, tile, coarse = level.build.threads, level.wide // 2, of.tiles[i], of.tiles[i + 1]
    before, after = of.back[i - 1] if i else (0, 0)
    inputs, items, wide, back = GROUP // ratio, (tile + before + after) // GROUP, level.wide, of.back[i][0]
    skip = back - along.lead - before // ratio
    synthesise, load, mend = filters(along.outputs, inputs), _loading(of, i, function, high), mending(threads)
    number, keeps = np.dtype(level.build.dtype).type, function in ("keep", GAINS)

    @device
    def final(y, at, there, aligned, mean, values):
        p, q, r, s = values
        if centred:
            p, q, r, s = p + mean, q + mean, r + mean, s + mean
        if aligned and there >= 4:
            store(y, at, (p, q, r, s))
            return (p + q) + (r + s)
        total = p - p
        if there > 0:
            y[at] = p
            total += p
        if there > 1:
            y[at + 1] = q
            total += q
        if there > 2:
            y[at + 2] = r
            total += r
        if there > 3:
            y[at + 3] = s
            total += s
        return total

    @device
    def step(buffer, bands, gains, levels, thresholds, first, y, begin, aligned, row, rows, block, mean, flags, checks):
        start, pitch, size = levels[i]
        own, t = block * tile, number(0) if keeps else thresholds[first + i * rows + row]
        load(buffer, bands, gains, start + row * pitch, 2 * size[1] // wide, block * coarse - back, t)
        cuda.syncthreads()
        total = number(0)
        for item in range(cuda.threadIdx.x, items, threads):
            o, window = item * GROUP - before, skip + item * inputs
            values = synthesise(buffer, (source + window, high + window))
            if i:
                store(buffer, target + before + o, values)
            else:
                total += final(y, begin[0] + row * begin[1] + own + o, size[0] - own - o, aligned, mean, values)
        if i:
            mend(buffer, target + before - own, own - before, own + tile + after, size[1])
        elif checks and total - total != 0:
            flags[NOT_FINITE] = 1

    return step


@cache
def synthesis(of: Fused, function: str, weighs_lowpass: bool, centred: bool) -> Kernel:
    """Kernel of some levels of the inverse, ``function`` as for `shrinking`; low-pass ones may have gains too.

    If ``centred``, the mean is added to samples again.
    """
    dtype, threads, last = of.levels[0].build.dtype, of.levels[0].build.threads, of.count - 1
    number = np.dtype(dtype).type
    room = [of.tiles[i + 1] + sum(of.back[i]) for i in range(of.count)]
    low = 0, max(room[::2])  # the low-pass coefficients of even levels, and of odd ones
    high = low[1] + max([0, *room[1::2]])
    shared = high + max(room)
    (before, after), tile = of.back[last], of.tiles[last + 1]
    load = loading(threads, tile + before + after)
    load_weighed = _loading(of, last, GAINS, low[last % 2])
    steps = (_level(of, i, function, centred, (low[i % 2], high, low[1 - i % 2])) for i in reversed(range(of.count)))
    compute, begin_of_low = in_turn(*steps), low[last % 2]

    @kernel(of.build, of, function, weighs_lowpass, centred)
    def dual_tree_traces_synthesis_kernel(
        lowpass,
        low_place,
        low_count,
        bands,
        gains,
        levels,
        thresholds,
        first,
        y,
        begin,
        aligned,
        rows,
        means,
        flags,
        checks,
    ):
        """The finest level has the ``first`` of its thresholds; low-pass coefficients of a row are ``low_count``."""
        buffer = cuda.shared.array(shared, number)
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        mean = means[row] if centred else number(0)
        block, start = cuda.blockIdx.x, low_place[0] + row * low_place[1]
        if weighs_lowpass:
            load_weighed(buffer, lowpass, gains, start, low_count, block * tile - before, number(0))
        else:
            load(buffer, begin_of_low, lowpass, start, block * tile - before, (low_count, low_count), True, number(0))
        compute(
            buffer, bands, gains, levels, thresholds, first, y, begin, aligned, row, rows, block, mean, flags, checks
        )

    return dual_tree_traces_synthesis_kernel
