"""The forward kernel: a tile of one row through several levels in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, registers_for
from wavefilt.backends.cuda.runtime.wide import filters, load4, store
from wavefilt.backends.cuda.statistics.search_window import BELOW, FIELDS, LISTED, less, room, within
from wavefilt.wavelets import boundary

from .tiling import ROWS, Filter, forward_tiling, up4

STAGE = 512  # values a block lists: 5 % of what it computes are expected


def extensions(f: Filter, mode: str, lengths: Sequence[int]) -> NDArray[np.int32]:
    """How rows of these lengths, one a level, go on beyond their ends: three (index, factor) for every sample.

    A table made here rather than a map in the kernel, where its divisions would double the registers.
    """
    outside = [[*range(-f.lead, 0), *range(n, n + f.taps)] for n in lengths]
    code = boundary.code(mode)
    return np.array(
        [[boundary.extension(code, i, n) for i in row] for row, n in zip(outside, lengths, strict=True)], np.int32
    ).ravel()


@cache
def riding(threads: int) -> Any:
    """Device functions by which blocks of ``threads`` threads search their details while they compute them.

    The simulator wants functions that use ``cuda`` in the module of their kernel.

    ``search`` is a tuple: counts (below, listed) and the list of this block in shared memory, where its list goes
    in ``coefficients``, a segment's state, where its list begins and how long it may be, and the window's two ends.
    """
    stage = STAGE

    @device
    def put(wanted, d, i, staged):
        if wanted != 0:
            if i < stage:
                staged[i] = abs(d)
            return i + 1
        return i

    @device
    def tally(a, b, c, d, search):
        """List those of four values that lie in the window; how many lie below."""
        counts, staged, _, _, _, _, _, _, bottom, top = search
        inside = within(a, b, c, d, bottom, top)
        if inside != 0:
            i = cuda.atomic.add(counts, 1, cuda.popc(inside))
            i = put(inside & 1, a, i, staged)
            i = put(inside & 2, b, i, staged)
            i = put(inside & 4, c, i, staged)
            i = put(inside & 8, d, i, staged)
        return less(a, b, c, d, bottom)

    @device
    def reserve(search):
        """After a barrier: a place for this block's list; one too long for the stage makes the whole list too long."""
        counts, _, place, _, state, field, _, longest, _, _ = search
        if cuda.threadIdx.x == 0:
            place[0] = cuda.atomic.add(state, field + LISTED, counts[1] if counts[1] <= stage else longest + 1)
            cuda.atomic.add(state, field + BELOW, counts[0])

    @device
    def deliver(search):
        """After another barrier: the list to its place."""
        counts, staged, place, coefficients, _, _, start, longest, _, _ = search
        target = place[0]
        for i in range(cuda.threadIdx.x, min(counts[1], stage), threads):
            if target + i < longest:
                coefficients[start + target + i] = staged[i]

    return SimpleNamespace(tally=tally, reserve=reserve, deliver=deliver)


@cache
def forward(
    lo: tuple[float, ...], hi: tuple[float, ...], periodized: bool, dtype: str, levels: int, tile: int, threads: int,
    fastmath: bool, searching: bool = False,
) -> Any:  # fmt: skip
    """Kernel of ``levels`` levels for the filters ``lo`` and ``hi``, compiled with everything as constants.

    Even and odd samples lie apart in shared memory, so that a filter steps through neighbours and no two threads of
    a warp meet in a bank. A thread computes four consecutive coefficients, read and written 16 bytes at a time.
    With ``searching`` the finest details are counted and listed by the window of a search for their median.
    """
    f = Filter(len(lo), periodized)
    cut = forward_tiling(f, tile, levels)
    number = np.dtype(dtype).type
    taps, lead, lag = f.taps, f.lead, f.lag
    lead4 = up4(lead)
    delta = lead4 - lead  # windows begin here, so that tiles can begin at multiples of four samples
    analyse = filters(
        [
            [(h[::-1][k], (delta + k) % 2, (delta + k) // 2 + i) for k in range(taps)]
            for h in (lo, hi)
            for i in range(4)
        ],
        4,
    )
    left, seam, margin = cut.left, cut.seam, cut.margin
    # elements of one half (even or odd) of the finest level, and of the next
    finest_half = up4((cut.capacity + 2 * taps + 16) // 2)
    next_half = up4(((cut.capacity + taps) // 2 + 2 * taps + 16) // 2)
    shared = 2 * (finest_half + next_half)
    places = (0, finest_half, 2 * finest_half, 2 * finest_half + next_half)
    stage, nothing = STAGE, number(np.nan)
    ride = riding(threads)
    tally, reserve, deliver = ride.tally, ride.reserve, ride.deliver

    def interior_level(level: int) -> Any:
        """Device function: this level and those coarser of an interior tile, every size and place a constant."""
        coarser, this = levels - level, level - 1
        size, start = tile >> level, lead4 * ((1 << coarser) - 1)
        groups = (start + size + lag * ((1 << coarser) - 1) + 3) >> 2
        rounds, rest = groups // threads, groups % threads
        first_group, last_group = start >> 2, (start + size) >> 2
        even, odd, next_even, next_odd = places if level % 2 else places[2:] + places[:2]
        begins = (left << coarser) - size - start
        counting = searching and level == 1

        @device
        def four(buffer, details, target, approximation, coarse, v, search):
            s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, even + 4 * v, odd + 4 * v)
            if coarser > 0:
                store(buffer, next_even + 2 * v, (s0, s2))
                store(buffer, next_odd + 2 * v, (s1, s3))
            if first_group <= v < last_group:
                store(details, target + 4 * v, (d0, d1, d2, d3))
                if coarser == 0:
                    store(approximation, coarse + 4 * v, (s0, s1, s2, s3))
                if counting:
                    return tally(d0, d1, d2, d3, search)
            return 0

        @device
        def step(buffer, details, begin, stride, approximation, row, index, search):
            thread = cuda.threadIdx.x
            coarse = row * stride[this] + index * size + begins
            target = begin[this] + coarse
            smaller = 0
            for j in range(rounds):  # constant, so that no warp computes when to stop
                smaller += four(buffer, details, target, approximation, coarse, thread + j * threads, search)
            if thread < rest:
                smaller += four(buffer, details, target, approximation, coarse, thread + rounds * threads, search)
            if counting:
                cuda.atomic.add(search[0], 0, smaller)
                cuda.syncthreads()
                reserve(search)
            elif coarser > 0:
                cuda.syncthreads()

        if coarser == 0:
            return step
        others = interior_level(level + 1)

        @device
        def steps(buffer, details, begin, stride, approximation, row, index, search):
            step(buffer, details, begin, stride, approximation, row, index, search)
            others(buffer, details, begin, stride, approximation, row, index, search)

        return steps

    halo = lead4 * ((1 << levels) - 1)
    quads = (halo + tile + lag * ((1 << levels) - 1) + 3) >> 2
    rounds, rest = quads // threads, quads % threads
    origin = (left << levels) - tile - halo
    interior = interior_level(1)

    @device
    def both_ends(buffer, x, source, aligned, details, begin, approximation, table, first, n, row, rows, tiles, search):
        """The end block: the row without its middle, extended at both ends level by level."""
        thread = cuda.threadIdx.x
        even, odd = 0, finest_half
        next_even, next_odd = 2 * finest_half, 2 * finest_half + next_half
        gap = tiles * tile - (margin << levels) if tiles > 0 else 0
        length = n - gap  # of the end block's row
        joint = seam << levels
        quads = length >> 2 if aligned else 0
        for v in range(thread, quads, threads):
            i = 4 * v
            a0, b0, a1, b1 = load4(x, source + (i if i < joint else i + gap))
            store(buffer, even + ((i + lead4) >> 1), (a0, a1))
            store(buffer, odd + ((i + lead4) >> 1), (b0, b1))
        for i in range(4 * quads + thread, length, threads):
            t = i + lead4
            buffer[(odd if t & 1 else even) + (t >> 1)] = x[source + (i if i < joint else i + gap)]
        for level in range(1, levels + 1):
            coarser = levels - level
            cuda.syncthreads()
            for t in range(thread, lead + taps, threads):
                i = t - lead if t < lead else length + t - lead
                i += lead4
                entry = 6 * ((first + level - 1) * (lead + taps) + t)
                value = number(0)
                for k in range(entry, entry + 6, 2):
                    j = table[k] + lead4
                    value += number(table[k + 1]) * buffer[(odd if j & 1 else even) + (j >> 1)]
                buffer[(odd if i & 1 else even) + (i >> 1)] = value
            cuda.syncthreads()
            n = (n + 1) >> 1 if periodized else (n + taps - 1) >> 1
            stride = (n + 3) & ~3
            # coefficients below ``kept`` and from ``start`` on are this block's to write
            gap >>= 1
            length = n - gap
            kept = left << coarser
            start = kept + (margin << coarser) if tiles > 0 else kept
            target = row * stride
            for v in range(thread, (length + 3) >> 2, threads):
                s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, even + 4 * v, odd + 4 * v)
                u = 4 * v
                if coarser > 0:
                    store(buffer, next_even + ((u + lead4) >> 1), (s0, s2))
                    store(buffer, next_odd + ((u + lead4) >> 1), (s1, s3))
                if u < kept or u >= start:
                    at = target + (u if u < kept else u + gap)
                    if u + 3 < length:
                        store(details, begin + at, (d0, d1, d2, d3))
                        if coarser == 0:
                            store(approximation, at, (s0, s1, s2, s3))
                    else:
                        for i in range(length - u):
                            details[begin + at + i] = d0 if i == 0 else d1 if i == 1 else d2
                            if coarser == 0:
                                approximation[at + i] = s0 if i == 0 else s1 if i == 1 else s2
            if searching and level == 1:  # apart, so that registers suffice; NaN is neither below a window nor inside
                cuda.syncthreads()
                smaller = 0
                for i in range(thread, length, threads):
                    if i < kept or i >= start:
                        d = details[begin + target + (i if i < kept else i + gap)]
                        smaller += tally(d, nothing, nothing, nothing, search)
                cuda.atomic.add(search[0], 0, smaller)
            begin += rows * stride
            even, next_even = next_even, even
            odd, next_odd = next_odd, odd
        if searching:
            cuda.syncthreads()
            reserve(search)
            cuda.syncthreads()
            deliver(search)

    @device
    def begun(details, ends, stride, row, state, edges):
        """What this block needs to take part in the search: see `window.riding`."""
        counts = cuda.shared.array(2, np.int32)
        staged = cuda.shared.array(stage, number)
        place = cuda.shared.array(1, np.int64)
        if cuda.threadIdx.x < 2:
            counts[cuda.threadIdx.x] = 0
        return (
            counts, staged, place, details, state, row * FIELDS, ends + room(row * stride), room(stride),
            edges[2 * row], edges[2 * row + 1],
        )  # fmt: skip

    @kernel(
        lo, hi, periodized, dtype, levels, tile, threads, searching,
        registers=registers_for(dtype, taps, periodized) if searching else None, fastmath=fastmath,
    )  # fmt: skip
    def forward_kernel(
        x, pitch, aligned, details, begin, stride, approximation, table, first, samples, rows, tiles, state, edges, ends
    ):
        """Details of the levels are from ``begin``, a row takes ``stride`` elements; lists are from ``ends``."""
        buffer = cuda.shared.array(shared, number)
        thread, index = cuda.threadIdx.x, cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        search = begun(details, ends, stride[0], row, state, edges) if searching else None
        source = row * pitch
        if index == 0:
            both_ends(
                buffer, x, source, aligned, details, begin[0], approximation, table, first, samples, row, rows, tiles,
                search,
            )  # fmt: skip
            return
        source += index * tile + origin
        if aligned:
            for j in range(rounds):
                a0, b0, a1, b1 = load4(x, source + 4 * (thread + j * threads))
                store(buffer, 2 * (thread + j * threads), (a0, a1))
                store(buffer, finest_half + 2 * (thread + j * threads), (b0, b1))
            if thread < rest:
                a0, b0, a1, b1 = load4(x, source + 4 * (thread + rounds * threads))
                store(buffer, 2 * (thread + rounds * threads), (a0, a1))
                store(buffer, finest_half + 2 * (thread + rounds * threads), (b0, b1))
        else:
            for v in range(thread, 2 * quads, threads):
                buffer[v] = x[source + 2 * v]
                buffer[finest_half + v] = x[source + 2 * v + 1]
        cuda.syncthreads()
        interior(buffer, details, begin, stride, approximation, row, index, search)
        if searching:
            cuda.syncthreads()
            deliver(search)

    return forward_kernel
