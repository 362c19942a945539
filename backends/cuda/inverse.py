"""The inverse kernel: coefficients of a tile, shrunk as they are loaded, through several levels in shared memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .geometry import NOT_FINITE, ROWS, Filter, inverse_tiling, up4
from .shrink import shrink
from .target import cuda
from .wide import filters, load4, store, store_many

PAIRS = 4


@cache
def inverse(
    lo: tuple[float, ...], hi: tuple[float, ...], periodized: bool, dtype: str, levels: int, tile: int, threads: int,
    function: str, fastmath: bool,
) -> Any:  # fmt: skip
    """Kernel of ``levels`` levels for the reconstruction filters ``lo`` and ``hi``; see `forward`.

    A thread computes four pairs of samples at a time: more per index computed and per sample read.
    """
    f = Filter(len(lo), periodized)
    cut = inverse_tiling(f, tile, levels)
    number = np.dtype(dtype).type
    taps, half, pairs = f.taps, f.taps // 2, PAIRS
    left, seam, margin, capacity = cut.left, cut.seam, cut.margin, cut.capacity
    before, after = up4(f.low), up4(2 * f.high)  # a tile's halo at every level is 2 before, after

    def synthesis(pairs: int) -> Any:
        """y[2p + s] = sum over j of rec[2j + parity] c[p + top - j] for some pairs; windows begin at p - before."""
        outputs = []
        for pair in range(pairs):
            for s, top in enumerate(f.tops):
                parity, place = (f.lead + s) % 2, before + pair + top
                terms = [
                    (h[2 * j + parity], w, place - j) for j in reversed(range(half)) for w, h in enumerate((lo, hi))
                ]
                outputs.append(terms)
        return filters(outputs, pairs)

    synthesise, synthesise_many = synthesis(2), synthesis(pairs)
    room = taps + 2 * before + after + 8
    sizes = [up4((capacity >> level) + room) for level in range(1, levels + 1)]
    first_smooth = sum(sizes)
    second_smooth = first_smooth + sizes[0]
    shared = second_smooth + (sizes[1] if levels > 1 else 0)
    shrunk = shrink(function, dtype)
    keeps = function == "keep"

    @cuda.jit(device=True, inline="always")
    def check(total, flag):
        """Details that overflowed make samples that are not finite; one sum tells for all of a thread's."""
        if total - total != 0:
            flag[0] = NOT_FINITE

    @cuda.jit(device=True, inline="always")
    def both_ends(
        buffer, approximation, details, offset, thresholds, first, y, pitch, aligned, samples, row, rows, tiles, flag
    ):
        """The end block: the row without its middle."""
        thread = cuda.threadIdx.x
        gap = tiles * tile - (margin << levels) if tiles > 0 else 0
        n = samples
        place, begin = 0, offset
        for level in range(1, levels + 1):
            n = (n + 1) >> 1 if periodized else (n + taps - 1) >> 1
            stride = (n + 3) & ~3
            coarser = levels - level
            t = number(0) if keeps else thresholds[(first + level - 1) * rows + row]
            smooth = first_smooth if level & 1 else second_smooth
            source = row * stride
            length = n - (gap >> level)
            joint = seam << coarser
            if periodized:
                for v in range(thread, length + 2 * before + after, threads):
                    m = (v - 2 * before) % length
                    at = source + (m if m < joint else m + (gap >> level))
                    buffer[place + v] = shrunk(details[begin + at], t)
                    if coarser == 0:
                        buffer[smooth + v] = approximation[at]
            else:  # no coefficient from beyond the ends is used
                for v in range(thread, (length + 3) >> 2, threads):
                    at = source + 4 * v + (0 if 4 * v < joint else gap >> level)
                    d0, d1, d2, d3 = load4(details, begin + at)
                    q = place + 2 * before + 4 * v
                    store(buffer, q, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
                    if coarser == 0:
                        store(buffer, smooth + 2 * before + 4 * v, load4(approximation, at))
            begin += rows * stride
            place += ((capacity >> level) + room + 3) & ~3
        cuda.syncthreads()

        for level in range(levels, 0, -1):
            finer = level - 1
            place -= ((capacity >> level) + room + 3) & ~3
            smooth = first_smooth if level & 1 else second_smooth
            output = second_smooth if level & 1 else first_smooth
            length = samples
            for _ in range(finer):
                length = (length + 1) >> 1 if periodized else (length + taps - 1) >> 1
            length -= gap >> finer
            count = length
            halo = before
            if finer > 0:
                halo = 0
                count += 2 * before + after
            for v in range(thread, (count + 3) >> 2, threads):
                y0, y1, y2, y3 = synthesise(buffer, smooth + halo + 2 * v, place + halo + 2 * v)
                u = 4 * v
                if finer > 0:
                    store(buffer, output + u, (y0, y1, y2, y3))
                    continue
                at = row * pitch + u
                if tiles > 0 and u >= left << levels:
                    if u < (left + margin) << levels:
                        continue
                    at += gap
                if aligned and u + 3 < count:
                    store(y, at, (y0, y1, y2, y3))
                    check(y0 + y1 + y2 + y3, flag)
                    continue
                for i in range(min(count - u, 4)):
                    value = y0 if i == 0 else y1 if i == 1 else y2 if i == 2 else y3
                    y[at + i] = value
                    check(value, flag)
            cuda.syncthreads()
            if periodized and finer > 0:
                for t in range(thread, 2 * before + after, threads):
                    m = t - 2 * before if t < 2 * before else length + t - 2 * before
                    buffer[output + 2 * before + m] = buffer[output + 2 * before + m % length]
                cuda.syncthreads()

    def load_level(level: int) -> Any:
        """Device function: details of one level and those coarser into shared memory, shrunk; the approximation."""
        coarser, size = levels - level, tile >> level
        quads = (size + 2 * before + after) >> 2
        place = sum(sizes[: level - 1])
        smooth = first_smooth if level % 2 else second_smooth
        begins = (left << coarser) - size - 2 * before

        @cuda.jit(device=True, inline="always")
        def step(buffer, approximation, details, begin, thresholds, first, n, row, rows, index):
            n = (n + 1) >> 1 if periodized else (n + taps - 1) >> 1
            stride = (n + 3) & ~3
            source = row * stride + index * size + begins
            t = number(0) if keeps else thresholds[(first + level - 1) * rows + row]
            for v in range(cuda.threadIdx.x, quads, threads):
                d0, d1, d2, d3 = load4(details, begin + source + 4 * v)
                store(buffer, place + 4 * v, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
                if coarser == 0:
                    store(buffer, smooth + 4 * v, load4(approximation, source + 4 * v))
            return begin + rows * stride, n

        if coarser == 0:
            return step
        rest = load_level(level + 1)

        @cuda.jit(device=True, inline="always")
        def steps(buffer, approximation, details, begin, thresholds, first, n, row, rows, index):
            begin, n = step(buffer, approximation, details, begin, thresholds, first, n, row, rows, index)
            return rest(buffer, approximation, details, begin, thresholds, first, n, row, rows, index)

        return steps

    def inner_level(level: int) -> Any:
        """Device function: the levels from the coarsest to this one, all but the finest of the launch."""
        place = sum(sizes[: level - 1])
        smooth, output = (first_smooth, second_smooth) if level % 2 else (second_smooth, first_smooth)
        groups = -(-((tile >> (level - 1)) + 2 * before + after) // (2 * pairs))

        @cuda.jit(device=True, inline="always")
        def step(buffer):
            for v in range(cuda.threadIdx.x, groups, threads):
                values = synthesise_many(buffer, smooth + pairs * v, place + pairs * v)
                store_many(buffer, output + 2 * pairs * v, values)
            cuda.syncthreads()

        if level == levels:
            return step
        coarser = inner_level(level + 1)

        @cuda.jit(device=True, inline="always")
        def steps(buffer):
            coarser(buffer)
            step(buffer)

        return steps

    load = load_level(1)
    inner: Any = inner_level(2) if levels > 1 else None
    groups = tile // (2 * pairs)

    @cuda.jit(fastmath=fastmath)
    def inverse_kernel(
        approximation, details, offset, thresholds, first, y, pitch, aligned, samples, rows, tiles, flag
    ):
        """``offset`` is where the details of the level finest here begin, ``first`` the row of its thresholds."""
        buffer = cuda.shared.array(shared, number)
        index = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        if index == 0:
            both_ends(
                buffer,
                approximation,
                details,
                offset,
                thresholds,
                first,
                y,
                pitch,
                aligned,
                samples,
                row,
                rows,
                tiles,
                flag,
            )
            return
        load(buffer, approximation, details, offset, thresholds, first, samples, row, rows, index)
        cuda.syncthreads()
        if levels > 1:
            inner(buffer)
        at = row * pitch + (left << levels) + (index - 1) * tile
        for v in range(cuda.threadIdx.x, groups, threads):
            values = synthesise_many(buffer, first_smooth + before + pairs * v, before + pairs * v)
            y0, y1, y2, y3, y4, y5, y6, y7 = values
            check((y0 + y1) + (y2 + y3) + (y4 + y5) + (y6 + y7), flag)
            if aligned:
                store_many(y, at + 2 * pairs * v, values)
            else:
                for i in range(2 * pairs):
                    y[at + 2 * pairs * v + i] = values[i]

    return inverse_kernel
