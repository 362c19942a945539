"""One level of both axes in one pass over tiles: down the columns in registers, along the rows from shared memory.

Beside the complex coefficients, as pairs of real and imaginary parts, it writes their magnitudes, which rules count.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt2 import columns
from wavefilt.backends.cuda.dwt2.columns import tile_of
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import filters, store

from .filters import HALF, Along, Level, Sliding, inside, repeated, scaled

NEW = 8
"""Rows that a step down the columns reads."""
OUT = 8
"""Rows of low-pass coefficients that are filtered along the rows together, and of high-pass ones."""
GROUP = 4
"""Elements of a row that a thread takes to coefficients, with those around them."""


def registers(of: Level) -> int | None:
    return 80 if of.build.dtype == "float32" and len(of.low) <= 16 else None


@cache
def _along(of: Level) -> Along:
    """Filters along rows; that of both outputs is the reach of the longer one."""
    low, high = (repeated(part, GROUP // of.wide, of.wide) for part in of.analysis)
    return Along([[terms] for terms in low + high], GROUP)


def tile_width(of: Level) -> int:
    """Elements of a row that a tile takes to coefficients, one a thread with those around them."""
    return _along(of).width(of.build.threads)


def turn(of: Level) -> int:
    """Rows of a tile that become `OUT` rows of low-pass coefficients."""
    return OUT * of.wide // 2


@cache
def _filtering(of: Level, low_factor: float) -> DeviceFunction:
    """Device function: of two rows of shared memory, low-pass coefficients of both, then high-pass ones."""
    low, high = (repeated(part, GROUP // of.wide, of.wide) for part in of.analysis)
    lead = _along(of).lead
    both = (scaled(low, low_factor), scaled(high, HALF))
    rows = [(row, part) for part in both for row in range(2)]
    return filters([[(tap, row, place + lead) for tap, place in terms] for row, part in rows for terms in part], 4)


@cache
def _writing(of: Level) -> DeviceFunction:
    """Device function: two opposite directions of the squares of four coefficients in two rows."""
    each = GROUP // of.wide  # squares of a thread, side by side

    @device
    def one(bands, magnitudes, first, second, a, b, c, d):
        p, q, r, s = a - d, b + c, a + d, b - c
        store(bands, 2 * first, (p, q))
        store(bands, 2 * second, (r, s))
        magnitudes[first] = math.sqrt(p * p + q * q)
        magnitudes[second] = math.sqrt(r * r + s * s)

    @device
    def put_one(bands, magnitudes, first, second, there, even, values):
        a, b, c, d = values
        one(bands, magnitudes, first, second, a, b, c, d)

    @device
    def put_two(bands, magnitudes, first, second, there, even, values):
        a, b, e, f, c, d, g, h = values
        if even:
            p, q, r, s = a - d, b + c, a + d, b - c
            t, u, v, w = e - h, f + g, e + h, f - g
            store(bands, 2 * first, (p, q, t, u))
            store(bands, 2 * second, (r, s, v, w))
            store(magnitudes, first, (math.sqrt(p * p + q * q), math.sqrt(t * t + u * u)))
            store(magnitudes, second, (math.sqrt(r * r + s * s), math.sqrt(v * v + w * w)))
        else:
            one(bands, magnitudes, first, second, a, b, c, d)
            if there > 1:
                one(bands, magnitudes, first + 1, second + 1, e, f, g, h)

    return put_two if each == 2 else put_one


@cache
def _parting(of: Level) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: what `_filtering` found of both rows together, and of the first kind of each row alone."""
    if of.first:
        return device(lambda found: (found[0:8], found[8:16])), device(lambda found: (found[0:4], found[4:8]))
    return device(lambda found: (found[0:4], found[4:8])), device(lambda found: (found[0:2], found[2:4]))


@cache
def _loading() -> DeviceFunction:
    """Device function: eight rows of a column, from ``top`` on."""
    load = columns.column(NEW)

    @device
    def rows_of(x, here, pitch, top, size, interior):
        if interior:
            return load(x, here + top * pitch, pitch)
        return (
            x[here + inside(top, size) * pitch],
            x[here + inside(top + 1, size) * pitch],
            x[here + inside(top + 2, size) * pitch],
            x[here + inside(top + 3, size) * pitch],
            x[here + inside(top + 4, size) * pitch],
            x[here + inside(top + 5, size) * pitch],
            x[here + inside(top + 6, size) * pitch],
            x[here + inside(top + 7, size) * pitch],
        )

    return rows_of


@cache
def analysis(of: Level) -> Kernel:
    """Kernel of one level; a thread has a column, then squares of four coefficients of each kind."""
    number, threads, wide = np.dtype(of.build.dtype).type, of.build.threads, of.wide
    low, high = (repeated(part, NEW // wide, wide) for part in of.analysis)
    sliding, along, width = Sliding([[terms] for terms in low + high], NEW), _along(of), tile_width(of)
    lead, each, across, rows_a_turn = along.lead, GROUP // wide, width // GROUP, turn(of)
    steps, last = rows_a_turn // NEW, OUT * threads
    outputs, (kept,) = len(sliding.outputs), sliding.kept
    blank = (number(0),) * (outputs + kept)
    fill, step = (columns.slide(sliding.outputs, sliding.kept, NEW, computing) for computing in (False, True))
    put = columns.put([w * last + i * threads for w in range(2) for i in range(outputs // 2)])
    top_of_all, after, warm, load = sliding.top(0), sliding.after[0], sliding.warm, _loading()
    filter_low, filter_high, write = _filtering(of, 1.0), _filtering(of, HALF), _writing(of)
    pairs, shared, advance, (kinds, rows_of) = OUT // 2, 2 * last, outputs // 2 * threads, _parting(of)

    @kernel(of.build, of, registers=registers(of))
    def dual_tree_analysis_kernel(
        x, begin, rows, across_size, tiling, first_panel, lowpass, low_begin, bands, magnitudes, band_begin, squares
    ):
        """Samples are from ``source`` on, ``plane`` from panel to panel, ``pitch`` from row to row.

        A band's coefficients, of which ``squares`` says how many rows and columns there are, lie ``apart`` from the
        next one's, and those of the next panel ``stride``. A block goes down ``turns`` of ``tiles`` side by side.
        """
        (source, plane, pitch), (tiles, turns), (rows_out, across_out) = begin, tiling, squares
        (low_source, low_plane, low_pitch), (band, stride, apart) = low_begin, band_begin
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        panel = first_panel + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        row, column = tile_row * turns * rows_a_turn, tile * width
        here = source + panel * plane + inside(column - lead + thread, across_size)
        top = row + top_of_all
        interior = top >= 0 and row + turns * rows_a_turn + after <= rows[0]
        square_row, square_column = row // wide, column // wide
        low_source += panel * low_plane
        band += panel * stride
        state = blank
        for _ in range(warm):
            state = fill(state, load(x, here, pitch, top, rows, interior))
            top += NEW
        for _ in range(turns):
            start = thread
            for _ in range(steps):
                state = step(state, load(x, here, pitch, top, rows, interior))
                top += NEW
                put(buffer, start, state)
                start += advance
            cuda.syncthreads()
            for item in range(thread, pairs * across, threads):
                pair = item // across
                i = item - pair * across
                r, c = square_row + pair, square_column + i * each
                if r < rows_out and c < across_out:
                    window = 2 * pair * threads + GROUP * i
                    place, there = band + r * across_out + c, across_out - c
                    even = across_out % 2 == 0
                    first, second = kinds(filter_low(buffer, (window, window + threads)))
                    upper, lower = rows_of(first)
                    at = low_source + 2 * r * low_pitch + 2 * c
                    store(lowpass, at, upper)
                    store(lowpass, at + low_pitch, lower)
                    write(bands, magnitudes, place + 2 * apart, place + 3 * apart, there, even, second)
                    first, second = kinds(filter_high(buffer, (window + last, window + last + threads)))
                    write(bands, magnitudes, place, place + 5 * apart, there, even, first)
                    write(bands, magnitudes, place + apart, place + 4 * apart, there, even, second)
            cuda.syncthreads()
            square_row += pairs

    return dual_tree_analysis_kernel
