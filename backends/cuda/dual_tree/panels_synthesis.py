"""One level of both axes back in one pass over tiles, with coefficients shrunk as they are loaded.

Of the threads, half compute down the columns what is low-pass along the rows, the others what is high-pass.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE
from wavefilt.backends.cuda.dwt2 import columns
from wavefilt.backends.cuda.dwt2.columns import tile_of
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import filters, store

from .filters import HALF, Along, Level, Sliding, Terms, inside, repeated

STEP = 4
"""Rows of coefficients, both trees counted, that a step down the columns loads."""
OUT = 8
"""Rows of samples that are computed along the rows together."""
GROUP = 4
"""Samples of a row that a thread computes."""


def rows_in(of: Level) -> int:
    """Rows of coefficients that become `OUT` rows."""
    return 2 * OUT // of.wide


@cache
def _along(of: Level) -> Along:
    return Along(repeated_both(of, GROUP // of.wide), 2 * GROUP // of.wide)


def repeated_both(of: Level, times: int) -> list[list[Terms]]:
    """Terms in the low-pass and in the high-pass window of so many times `Level.wide` samples."""
    low, high = (repeated([output[w] for output in of.synthesis], times, 2) for w in range(2))
    return [list(both) for both in zip(low, high, strict=True)]


def tile_width(of: Level) -> int:
    """Samples of a row that a tile computes, with a coefficient a thread."""
    return _along(of).width(of.build.threads) * of.wide // 2


@cache
def _pairing(of: Level, weighed: bool) -> DeviceFunction:
    """Device function: what a step loads of one column of real coefficients, from two opposite directions.

    ``odd`` says which column of two it is. Coefficients are multiplied by gains if they are ``weighed``.
    """
    half = np.dtype(of.build.dtype).type(HALF)
    load, load_gains = columns.pairs(STEP // 2), columns.column(STEP // 2)

    @device
    def turned(p, q, r, s, odd, sign):
        if odd:
            return (q + s) * half, (p - r) * sign
        return (p + r) * half, (q - s) * sign

    @device
    def one(bands, gains, first, second, odd, pitch, sign, row, size):
        r = inside(row, size)
        i, j = first + (r >> 1) * pitch, second + (r >> 1) * pitch
        a, b, c, d = bands[i], bands[i + 1], bands[j], bands[j + 1]
        if weighed:
            v, w = gains[i >> 1], gains[j >> 1]
            a, b, c, d = a * v, b * v, c * w, d * w
        a, b = turned(a, b, c, d, odd, sign)
        return b if r & 1 else a

    @device
    def real(bands, gains, first, second, odd, pitch, sign, row, size, interior):
        if interior:
            first += (row >> 1) * pitch
            second += (row >> 1) * pitch
            a, b, c, d = load(bands, first, pitch)
            p, q, r, s = load(bands, second, pitch)
            if weighed:
                v, w = load_gains(gains, first >> 1, pitch >> 1)
                a, b, c, d = a * v, b * v, c * w, d * w
                v, w = load_gains(gains, second >> 1, pitch >> 1)
                p, q, r, s = p * v, q * v, r * w, s * w
            return turned(a, b, p, q, odd, sign) + turned(c, d, r, s, odd, sign)
        return (
            one(bands, gains, first, second, odd, pitch, sign, row, size),
            one(bands, gains, first, second, odd, pitch, sign, row + 1, size),
            one(bands, gains, first, second, odd, pitch, sign, row + 2, size),
            one(bands, gains, first, second, odd, pitch, sign, row + 3, size),
        )

    return real


@cache
def _plain() -> DeviceFunction:
    """Device function: what a step loads of one column of low-pass coefficients."""
    load = columns.column(STEP)

    @device
    def plain(x, here, pitch, row, size, interior):
        if interior:
            return load(x, here + row * pitch, pitch)
        return (
            x[here + inside(row, size) * pitch],
            x[here + inside(row + 1, size) * pitch],
            x[here + inside(row + 2, size) * pitch],
            x[here + inside(row + 3, size) * pitch],
        )

    return plain


def registers(of: Level, weighed: bool) -> int | None:
    """So that two blocks fit, but where that many spill: the later levels without gains."""
    return 96 if of.build.dtype == "float32" and len(of.low) <= 19 and (weighed or of.first) else None


@cache
def synthesis(of: Level, weighed: bool) -> Kernel:
    """Kernel of one level for twice as many threads: a thread has a column of coefficients, then groups of samples."""
    number, threads, rows_a_turn = np.dtype(of.build.dtype).type, of.build.threads, rows_in(of)
    sliding, along = Sliding(repeated_both(of, STEP // 2), STEP), _along(of)
    outputs, steps = len(sliding.outputs), rows_a_turn // STEP
    width, each = along.width(threads), 2 * GROUP // of.wide  # coefficients of a tile, and of a group
    across, ratio, lead, last = width // each, of.wide // 2, along.lead, OUT * threads
    blank = (number(0),) * (outputs + sum(sliding.kept))
    fill, step = (columns.slide(sliding.outputs, sliding.kept, STEP, run) for run in (False, True))
    put, put_one = columns.put([i * threads for i in range(outputs)]), columns.put([0])
    synthesise = filters(along.outputs, each)
    real, plain = _pairing(of, weighed), _plain()
    top_low, top_high, end, warm = sliding.top(0), sliding.top(1), max(sliding.after), sliding.warm
    half, shared, all_threads = number(HALF), 2 * last, 2 * threads

    @kernel(of.build, of, weighed, registers=registers(of, weighed))
    def dual_tree_synthesis_kernel(
        lowpass,
        low_begin,
        bands,
        band_begin,
        squares,
        gains,
        tiling,
        first_panel,
        y,
        begin,
        rows,
        across_size,
        aligned,
        flags,
        checks,
    ):
        """Samples go to ``target`` and on, ``plane`` and ``pitch`` apart; ``checks`` if they are finite.

        The rest is as in the kernel of the analysis.
        """
        (target, plane, pitch), (tiles, turns), (band_rows, band_columns) = begin, tiling, squares
        (low_source, low_plane, low_pitch), (band, stride, apart) = low_begin, band_begin
        (there, _), (there_across, _) = rows, across_size
        buffer = cuda.shared.array(shared, number)
        panel = first_panel + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        row, first = tile_row * turns * rows_a_turn, tile * width
        part = cuda.threadIdx.x // threads
        thread = cuda.threadIdx.x - part * threads
        size = 2 * band_rows, 2 * band_rows
        column = inside(first - lead + thread, (2 * band_columns, 2 * band_columns))
        odd = column & 1
        sign = -half if odd else half
        # what is low-pass along the rows: the low-pass coefficients, and bands 0 and 5; else bands 2 and 3, 1 and 4
        kinds = (1, 4, 2, 3) if part else (0, 5, 0, 5)
        at = band + panel * stride + (column >> 1)
        first_high, second_high = 2 * (at + kinds[0] * apart), 2 * (at + kinds[1] * apart)
        first_low, second_low = 2 * (at + kinds[2] * apart), 2 * (at + kinds[3] * apart)
        band_pitch, here = 2 * band_columns, low_source + panel * low_plane + column
        low, high = row + top_low, row + top_high
        interior = min(low, high) >= 0 and row + turns * rows_a_turn + end <= 2 * band_rows
        target += panel * plane
        state, total = blank, number(0)
        for k in range(turns * steps + warm):
            above = real(bands, gains, first_high, second_high, odd, band_pitch, sign, high, size, interior)
            if part:
                left = real(bands, gains, first_low, second_low, odd, band_pitch, sign, low, size, interior)
            else:
                left = plain(lowpass, here, low_pitch, low, size, interior)
            low += STEP
            high += STEP
            if k < warm:
                state = fill(state, left + above)
                continue
            state = step(state, left + above)
            place = (k - warm) % steps
            put(buffer, part * last + place * outputs * threads + thread, state)
            if place + 1 == steps:
                cuda.syncthreads()
                for item in range(cuda.threadIdx.x, OUT * across, all_threads):
                    r = item // across
                    i = item - r * across
                    window = r * threads + each * i
                    p, q, e, f = synthesise(buffer, (window, window + last))
                    r += row * ratio
                    c = (first + each * i) * ratio
                    if r < there and c < there_across:
                        at = target + r * pitch + c
                        if aligned:
                            total += (p + q) + (e + f)
                            store(y, at, (p, q, e, f))
                        else:
                            total += p
                            put_one(y, at, (p,))
                            if c + 1 < there_across:
                                total += q
                                put_one(y, at + 1, (q,))
                            if c + 2 < there_across:
                                total += e
                                put_one(y, at + 2, (e,))
                            if c + 3 < there_across:
                                total += f
                                put_one(y, at + 3, (f,))
                cuda.syncthreads()
                row += rows_a_turn
        if checks and total - total != 0:
            flags[NOT_FINITE] = 1

    return dual_tree_synthesis_kernel
