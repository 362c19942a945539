"""The forward kernel: a tile of one row through several levels in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt import boundary

from .geometry import ROWS, Filter, forward_tiling, up4
from .target import cuda
from .wide import filters, load4, store


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
def forward(
    lo: tuple[float, ...], hi: tuple[float, ...], periodized: bool, dtype: str, levels: int, tile: int, threads: int,
    fastmath: bool,
) -> Any:  # fmt: skip
    """Kernel of ``levels`` levels for the filters ``lo`` and ``hi``, compiled with everything as constants.

    Even and odd samples lie apart in shared memory, so that a filter steps through neighbours and no two threads of
    a warp meet in a bank. A thread computes four consecutive coefficients, read and written 16 bytes at a time.
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

    def interior_level(level: int) -> Any:
        """Device function: one level of an interior tile, with every size and place a constant."""
        coarser = levels - level
        size, start = tile >> level, lead4 * ((1 << coarser) - 1)
        groups = (start + size + lag * ((1 << coarser) - 1) + 3) >> 2
        first_group, last_group = start >> 2, (start + size) >> 2
        even, odd, next_even, next_odd = places if level % 2 else places[2:] + places[:2]
        begins = (left << coarser) - size - start

        @cuda.jit(device=True, inline="always")
        def step(buffer, details, begin, approximation, n, row, rows, index):
            n = (n + 1) >> 1 if periodized else (n + taps - 1) >> 1
            stride = (n + 3) & ~3
            target = row * stride + index * size + begins
            for v in range(cuda.threadIdx.x, groups, threads):
                s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, even + 4 * v, odd + 4 * v)
                if coarser > 0:
                    store(buffer, next_even + 2 * v, (s0, s2))
                    store(buffer, next_odd + 2 * v, (s1, s3))
                if first_group <= v < last_group:
                    store(details, begin + target + 4 * v, (d0, d1, d2, d3))
                    if coarser == 0:
                        store(approximation, target + 4 * v, (s0, s1, s2, s3))
            return begin + rows * stride, n

        if coarser == 0:
            return step
        rest = interior_level(level + 1)

        @cuda.jit(device=True, inline="always")
        def steps(buffer, details, begin, approximation, n, row, rows, index):
            begin, n = step(buffer, details, begin, approximation, n, row, rows, index)
            cuda.syncthreads()
            return rest(buffer, details, begin, approximation, n, row, rows, index)

        return steps

    halo = lead4 * ((1 << levels) - 1)
    quads = (halo + tile + lag * ((1 << levels) - 1) + 3) >> 2
    origin = (left << levels) - tile - halo
    interior = interior_level(1)

    @cuda.jit(device=True, inline="always")
    def both_ends(buffer, x, source, aligned, details, begin, approximation, table, first, n, row, rows, tiles):
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
            begin += rows * stride
            even, next_even = next_even, even
            odd, next_odd = next_odd, odd

    @cuda.jit(fastmath=fastmath)
    def forward_kernel(x, pitch, aligned, details, offset, approximation, table, first, samples, rows, tiles):
        """Details of level l begin at ``offset`` + those of finer levels, rows at multiples of four elements."""
        buffer = cuda.shared.array(shared, number)
        index = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        source = row * pitch
        if index == 0:
            both_ends(
                buffer, x, source, aligned, details, offset, approximation, table, first, samples, row, rows, tiles
            )
            return
        source += index * tile + origin
        if aligned:
            for v in range(cuda.threadIdx.x, quads, threads):
                a0, b0, a1, b1 = load4(x, source + 4 * v)
                store(buffer, 2 * v, (a0, a1))
                store(buffer, finest_half + 2 * v, (b0, b1))
        else:
            for v in range(cuda.threadIdx.x, 2 * quads, threads):
                buffer[v] = x[source + 2 * v]
                buffer[finest_half + v] = x[source + 2 * v + 1]
        cuda.syncthreads()
        interior(buffer, details, offset, approximation, samples, row, rows, index)

    return forward_kernel
