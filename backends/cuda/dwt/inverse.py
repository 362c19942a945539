"""The inverse kernel: coefficients of a tile, shrunk as they are loaded, through several levels in shared memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, registers_for
from wavefilt.backends.cuda.runtime.wide import filters, load4, store, store_many
from wavefilt.backends.cuda.thresholding.functions import shrink

from .tiling import NOT_FINITE, ROWS, Filter, inverse_tiling, up4

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

    @device
    def check(total, flags):
        """Details that overflowed make samples that are not finite; one sum tells for all of a thread's."""
        if total - total != 0:
            flags[NOT_FINITE] = 1

    @device
    def copy(x, y, start, stop, flags):
        for i in range(start + cuda.threadIdx.x, stop, threads):
            y[i] = x[i]
            check(x[i], flags)

    @device
    def both_ends(
        buffer, approximation, details, offset, thresholds, first, y, pitch, aligned, samples, row, rows, tiles, flags
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
                    check(y0 + y1 + y2 + y3, flags)
                    continue
                for i in range(min(count - u, 4)):
                    value = y0 if i == 0 else y1 if i == 1 else y2 if i == 2 else y3
                    y[at + i] = value
                    check(value, flags)
            cuda.syncthreads()
            if periodized and finer > 0:
                for t in range(thread, 2 * before + after, threads):
                    m = t - 2 * before if t < 2 * before else length + t - 2 * before
                    buffer[output + 2 * before + m] = buffer[output + 2 * before + m % length]
                cuda.syncthreads()

    def loading(parts: list[tuple[int, int, int]]) -> Any:
        """Device function: groups of four details into shared memory, shrunk, and the approximation.

        A part is a level, its first group and how many there are, at most one a thread. All loads come before the
        first store, so that they are under way together.
        """
        (level, first_group, groups), *later = parts
        coarser, this, size = levels - level, level - 1, tile >> level
        place = sum(sizes[:this])
        smooth = first_smooth if level % 2 else second_smooth
        begins = (left << coarser) - size - 2 * before
        others: Any = loading(later) if later else None

        @device
        def load(buffer, approximation, details, begin, stride, thresholds, first, row, rows, index):
            v = cuda.threadIdx.x + first_group
            coarse = row * stride[this] + index * size + begins + 4 * v
            d0 = d1 = d2 = d3 = a0 = a1 = a2 = a3 = number(0)
            if groups == threads or cuda.threadIdx.x < groups:
                d0, d1, d2, d3 = load4(details, begin[this] + coarse)
                if coarser == 0:
                    a0, a1, a2, a3 = load4(approximation, coarse)
            if others is not None:
                others(buffer, approximation, details, begin, stride, thresholds, first, row, rows, index)
            t = number(0) if keeps else thresholds[(first + this) * rows + row]
            if groups == threads or cuda.threadIdx.x < groups:
                store(buffer, place + 4 * v, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
                if coarser == 0:
                    store(buffer, smooth + 4 * v, (a0, a1, a2, a3))

        return load

    def inner_level(level: int) -> Any:
        """Device function: the levels from the coarsest to this one, all but the finest of the launch."""
        place = sum(sizes[: level - 1])
        smooth, output = (first_smooth, second_smooth) if level % 2 else (second_smooth, first_smooth)
        groups = -(-((tile >> (level - 1)) + 2 * before + after) // (2 * pairs))
        rounds, rest = groups // threads, groups % threads

        @device
        def group(buffer, v):
            store_many(buffer, output + 2 * pairs * v, synthesise_many(buffer, smooth + pairs * v, place + pairs * v))

        @device
        def step(buffer):
            for j in range(rounds):
                group(buffer, cuda.threadIdx.x + j * threads)
            if cuda.threadIdx.x < rest:
                group(buffer, cuda.threadIdx.x + rounds * threads)
            cuda.syncthreads()

        if level == levels:
            return step
        coarser = inner_level(level + 1)

        @device
        def steps(buffer):
            coarser(buffer)
            step(buffer)

        return steps

    quads = [((tile >> level) + 2 * before + after) >> 2 for level in range(1, levels + 1)]
    load = loading([(i + 1, v, min(n - v, threads)) for i, n in enumerate(quads) for v in range(0, n, threads)])
    inner: Any = inner_level(2) if levels > 1 else None
    groups = tile // (2 * pairs)
    rounds, rest = groups // threads, groups % threads

    @device
    def finest(buffer, y, at, aligned, flags, v):
        values = synthesise_many(buffer, first_smooth + before + pairs * v, before + pairs * v)
        y0, y1, y2, y3, y4, y5, y6, y7 = values
        check((y0 + y1) + (y2 + y3) + (y4 + y5) + (y6 + y7), flags)
        if aligned:
            store_many(y, at + 2 * pairs * v, values)
        else:
            for i in range(2 * pairs):
                y[at + 2 * pairs * v + i] = values[i]

    @kernel(
        lo, hi, periodized, dtype, levels, tile, threads, function,
        registers=registers_for(dtype, taps, periodized, function), fastmath=fastmath,
    )  # fmt: skip
    def inverse_kernel(
        approximation, details, begin, stride, thresholds, first, y, pitch, aligned, samples, rows, tiles, flags, x,
        live, copies,
    ):  # fmt: skip
        """Details of the levels here are from ``begin``, a row takes ``stride``; ``first`` is their first threshold.

        With ``copies`` rows that are not ``live``, all of whose thresholds are 0, come from ``x``, bit for bit.
        """
        buffer = cuda.shared.array(shared, number)
        thread, index = cuda.threadIdx.x, cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        at = row * pitch + (left << levels) + (index - 1) * tile
        if copies and live[row] == 0:
            if index == 0:
                last = at + (1 + tiles) * tile
                copy(x, y, row * pitch, min(at + tile, (row + 1) * pitch), flags)
                copy(x, y, last, (row + 1) * pitch, flags)
            else:
                copy(x, y, at, at + tile, flags)
            return
        if index == 0:
            both_ends(
                buffer, approximation, details, begin[0], thresholds, first, y, pitch, aligned, samples, row, rows,
                tiles, flags,
            )  # fmt: skip
            return
        load(buffer, approximation, details, begin, stride, thresholds, first, row, rows, index)
        cuda.syncthreads()
        if levels > 1:
            inner(buffer)
        for j in range(rounds):
            finest(buffer, y, at, aligned, flags, thread + j * threads)
        if thread < rest:
            finest(buffer, y, at, aligned, flags, thread + rounds * threads)

    return inverse_kernel
