"""One level of both axes in one pass over tiles: down the columns in registers, along the rows from shared memory.

Interior tiles check nothing; those at the edges look up how rows and columns go on. The bands of a level lie in one
array: D, V and H of all panels, their rows close together, then the approximation, whose rows begin at multiples of
four elements.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import Filter
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import filters

from . import columns
from .columns import STEP, PanelLevel, tile_of

ROWS_NEW = 2 * STEP
"""Rows of samples that a step down the columns reads."""


def registers(dtype: str, taps: int) -> int | None:
    """Registers for a thread: as few as spill nothing, so that five blocks fit a multiprocessor."""
    return None if dtype == "float64" or taps > 16 else 48 if 4 <= taps <= 8 else 56


@cache
def _places(f: Filter, several: bool) -> DeviceFunction:
    """Device function: the samples, and their factors, that row or column ``i`` of the extension is the sum of."""
    lead, last = f.lead, f.lead + f.taps - 1

    @device
    def place(table, begin, i, n):
        j, a, k, b, m, c = i, 1, i, 0, i, 0
        if i < 0 or i >= n:
            entry = begin + 6 * (max(i + lead, 0) if i < 0 else min(i - n + lead, last))
            j, a = table[entry], table[entry + 1]
            k, m = j, j
            if several:
                k, b, m, c = table[entry + 2], table[entry + 3], table[entry + 4], table[entry + 5]
        return j, a, k, b, m, c

    return place


@cache
def _edge(of: PanelLevel) -> DeviceFunction:
    """Device function: samples of eight rows of the extension, in a column given by what it is the sum of.

    They go by way of the places that what is computed of them will take.
    """
    number, threads, last = np.dtype(of.build.dtype).type, of.build.threads, of.height * of.build.threads
    (several_down, several_along), place_down = of.several, _places(of.axes[0], of.several[0])
    load = columns.column(STEP)

    @device
    def in_row(x, start, j, a, k, b, m, c):
        value = number(a) * x[start + j]
        if several_along:
            value += number(b) * x[start + k] + number(c) * x[start + m]
        return value

    @device
    def extended(x, source, pitch, row, n, table, begin, j, a, k, b, m, c):
        p, d, q, e, r, f = place_down(table, begin, row, n)
        value = number(d) * in_row(x, source + p * pitch, j, a, k, b, m, c)
        if several_down:
            value += number(e) * in_row(x, source + q * pitch, j, a, k, b, m, c)
            value += number(f) * in_row(x, source + r * pitch, j, a, k, b, m, c)
        return value

    @device
    def edge(buffer, target, x, source, pitch, r, n, table, begin, column):
        j, a, k, b, m, c = column
        for i in range(ROWS_NEW):
            at = target + (i % STEP) * threads + i // STEP * last
            buffer[at] = extended(x, source, pitch, r + i, n, table, begin, j, a, k, b, m, c)
        return load(buffer, target, threads) + load(buffer, target + last, threads)

    return edge


@cache
def _along_rows(of: PanelLevel) -> DeviceFunction:
    """Device function: both filters along ``here`` rows of a tile, from shared memory to two bands."""
    g, threads = of.axes[1], of.build.threads
    lead = g.lead + g.lead % 2
    analyse = filters([[(h[::-1][k], 0, lead - g.lead + k) for k in range(g.taps)] for h in of.numbered[2:]], 2)
    put = columns.put([0])

    @device
    def along_rows(buffer, bands, window, low, low_pitch, high, high_pitch, here):
        for _ in range(here):
            lowpass, detail = analyse(buffer, (window,))
            put(bands, low, (lowpass,))
            put(bands, high, (detail,))
            low += low_pitch
            high += high_pitch
            window += threads

    return along_rows


@cache
def forward(of: PanelLevel) -> Kernel:
    """Kernel of one level; a thread has a column of samples, then a column of two bands."""
    (f, g), threads, height, steps = of.axes, of.build.threads, of.height, of.height // STEP
    number, half, width = np.dtype(of.build.dtype).type, threads // 2, of.forward_width
    kept = f.taps - 2
    warm = -(-kept // ROWS_NEW)  # steps that fill the window
    above = f.lead + warm * ROWS_NEW - kept  # the first row read, before the first under the tile
    f_lag, lead = f.lag, g.lead + g.lead % 2
    outputs = columns.analysis(*of.numbered[:2])
    blank, load = (number(0),) * (len(outputs) + kept), columns.column(ROWS_NEW)
    fill, step = (columns.slide(outputs, (kept,), ROWS_NEW, computing) for computing in (False, True))
    shared, last = 2 * height * threads, height * threads
    put = columns.put([i * threads + w * last for i in range(STEP) for w in range(2)])
    place_along, edge, along_rows = _places(g, of.several[1]), _edge(of), _along_rows(of)

    @kernel(of.build, of.structure, taps=sum(of.numbered, ()), registers=registers(of.build.dtype, of.taps))
    def panels_forward_kernel(x, begin, samples, bands, layout, sizes, first_panel, tiling, table, entries):
        """Samples are from ``source`` on, ``plane`` from panel to panel, ``pitch`` from row to row.

        Bands are ``band`` apart, their panels ``stride``; the approximation is from ``lowpass`` on. A block goes down
        ``turns`` of ``tiles`` side by side.
        """
        (source, plane), (pitch, rows, across), (tiles, turns) = begin, samples, tiling
        stride, band, lowpass, lowpass_plane = layout
        (lowpass_pitch, rows_out, across_out), (begin_down, begin_along) = sizes, entries
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        panel = first_panel + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        first_row, first = tile_row * turns * height, tile * width
        top, left = 2 * first_row - above, 2 * first - lead
        source += panel * plane
        part = thread // half
        u = thread - part * half
        low, low_pitch = lowpass + panel * lowpass_plane, lowpass_pitch
        high = panel * stride + band  # A and V, or H and D
        if part:
            low, low_pitch, high = high + band, across_out, high - band
        low += first_row * low_pitch + first + u
        high += first_row * across_out + first + u
        window = part * last + 2 * u
        interior = top >= 0 and left >= 0 and left + threads <= across
        state = blank
        if interior and 2 * (first_row + turns * height) + f_lag <= rows:
            at = source + top * pitch + left + thread
            for _ in range(warm):
                state = fill(state, load(x, at, pitch))
                at += ROWS_NEW * pitch
            for _ in range(turns):
                target = thread
                for _ in range(steps):
                    state = step(state, load(x, at, pitch))
                    at += ROWS_NEW * pitch
                    put(buffer, target, state)
                    target += STEP * threads
                cuda.syncthreads()
                if u < width:
                    along_rows(buffer, bands, window, low, low_pitch, high, across_out, height)
                low += height * low_pitch
                high += height * across_out
                cuda.syncthreads()
            return
        column = place_along(table, begin_along, left + thread, across)
        for _ in range(warm):
            state = fill(state, edge(buffer, thread, x, source, pitch, top, rows, table, begin_down, column))
            top += ROWS_NEW
        stop = min(first_row + turns * height, rows_out)
        while first_row < stop:
            target = thread
            for _ in range(steps):
                state = step(state, edge(buffer, target, x, source, pitch, top, rows, table, begin_down, column))
                top += ROWS_NEW
                put(buffer, target, state)
                target += STEP * threads
            cuda.syncthreads()
            if u < width and first + u < across_out:
                along_rows(buffer, bands, window, low, low_pitch, high, across_out, min(height, stop - first_row))
            low += height * low_pitch
            high += height * across_out
            first_row += height
            cuda.syncthreads()

    return panels_forward_kernel
