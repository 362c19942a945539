"""One level of the inverse of both axes, of details shrunk as they are loaded; see `forward`."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import filters, store
from wavefilt.backends.cuda.thresholding import shrink

from . import columns
from .columns import STEP, PanelLevel, tile_of


def registers(dtype: str, taps: int, periodized: bool, function: str) -> int | None:
    """Registers for a thread: as few as spill nothing, so that four blocks fit a multiprocessor."""
    heavy = function in ("garrote", "firm") and taps > 8  # spills four registers at 64
    return None if dtype == "float64" or taps > 16 or heavy else 56 if taps <= 8 and not periodized else 64


@cache
def _shrinking(dtype: str, function: str) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: a coefficient shrunk, or one of the approximation, whose threshold is 0, as it is; 2 x 4."""
    threshold = shrink(function, dtype)

    @device
    def shrunk(d, t):
        return threshold(d, t) if d == d else d  # what is not finite has to stay so

    @device
    def both(low, high, s, t):
        a, b, c, d = low
        p, q, r, u = high
        return (
            shrunk(a, s),
            shrunk(b, s),
            shrunk(c, s),
            shrunk(d, s),
            shrunk(p, t),
            shrunk(q, t),
            shrunk(r, t),
            shrunk(u, t),
        )

    return shrunk, both


@device
def _within(i, n, periodized):
    """A coefficient of the row or column going round, or one that is there though it is not used."""
    if i < 0 or i >= n:
        return (i + n) % n if periodized else min(max(i, 0), n - 1)
    return i


@cache
def _edge(of: PanelLevel, function: str) -> DeviceFunction:
    """Device function: coefficients of four rows at an edge, shrunk, by way of the places of what comes of them."""
    half, round_down = of.build.threads // 2, of.periodized[0]
    (shrunk, _), load = _shrinking(of.build.dtype, function), columns.column(2 * STEP)

    @device
    def edge(buffer, target, bands, low, low_pitch, high, high_pitch, s, t, row, rows):
        for i in range(STEP):
            r = _within(row + i, rows, round_down)
            buffer[target + i * half] = shrunk(bands[low + r * low_pitch], s)
            buffer[target + (i + STEP) * half] = shrunk(bands[high + r * high_pitch], t)
        return load(buffer, target, half)

    return edge


@cache
def _along_rows(of: PanelLevel) -> DeviceFunction:
    """Device function: pairs of samples along ``here`` rows of a tile, the last column's a ``single`` one.

    It returns their sum, in which it shows if one is not finite.
    """
    g, number, half = of.axes[1], np.dtype(of.build.dtype).type, of.build.threads // 2
    last, taps = 2 * of.height * half, range(g.taps // 2)
    terms = [
        [(h[2 * j + (g.lead + s) % 2], w, g.low + top - j) for j in taps for w, h in enumerate(of.numbered[2:])]
        for s, top in enumerate(g.tops)
    ]
    synthesise, put_one, put_pair = filters(terms, 1), columns.put([0]), columns.put([0, 1])

    @device
    def along_rows(buffer, y, window, at, pitch, aligned, single, here):
        total = number(0)
        for _ in range(here):
            p, q = synthesise(buffer, (window, window + last))
            total += p + q
            if aligned:  # the rows of an approximation have room for a pair more than they need
                store(y, at, (p, q))
            elif single:
                put_one(y, at, (p,))
            else:
                put_pair(y, at, (p, q))
            at += pitch
            window += half
        return total

    return along_rows


@cache
def inverse(of: PanelLevel, function: str) -> Kernel:
    """Kernel of one level; a thread has a column of two bands, then of pairs of samples, which ``height`` counts."""
    (f, g), threads, height, steps = of.axes, of.build.threads, of.height, of.height // STEP
    number, half, width, low_along = np.dtype(of.build.dtype).type, threads // 2, of.inverse_width, g.low
    kept = f.low + f.high
    warm = -(-kept // STEP)
    above = f.low + warm * STEP - kept
    outputs = columns.synthesis(of.numbered[0], of.numbered[1], f)
    blank, load = (number(0),) * (len(outputs) + 2 * kept), columns.column(STEP)
    fill, step = (columns.slide(outputs, (kept, kept), STEP, computing) for computing in (False, True))
    last = 2 * height * half  # elements of what came of A and H; then of V and D
    shared, keeps, round_along = 2 * last, function == "keep", of.periodized[1]
    put = columns.put([i * half for i in range(2 * STEP)])
    (_, both), edge, along_rows = _shrinking(of.build.dtype, function), _edge(of, function), _along_rows(of)
    limit = registers(of.build.dtype, of.taps, any(of.periodized), function)

    @kernel(of.build, of.structure, function, taps=sum(of.numbered, ()), registers=limit)
    def panels_inverse_kernel(
        bands, layout, sizes, panels, first_panel, tiling, thresholds, first, y, begin, samples, aligned, flags, checks
    ):
        """Samples go to ``target`` and on, ``plane`` and ``pitch`` apart; ``checks`` if they are finite."""
        stride, band, lowpass, lowpass_plane = layout
        (lowpass_pitch, rows_in, across_in), (tiles, turns) = sizes, tiling
        (target, plane), (pitch, rows, across) = begin, samples
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        panel = first_panel + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        first_row, first_pair = tile_row * turns * height, tile * width
        top, left = first_row - above, first_pair - low_along
        part = thread // half
        u = thread - part * half
        low, low_pitch = lowpass + panel * lowpass_plane, lowpass_pitch  # A and H, or V and D
        high = panel * stride
        if part:
            low, low_pitch = high + band, across_in
        else:
            high += 2 * band
        s, t = number(0), number(0)
        if not keeps:
            i = first + panel
            if part:
                s, t = thresholds[i + panels], thresholds[i]
            else:
                t = thresholds[i + 2 * panels]
        place, row = 2 * (first_pair + u), 2 * first_row + part * height
        at = target + panel * plane + row * pitch + place
        window = part * height * half + u
        total = number(0)
        state = blank
        interior = top >= 0 and left >= 0 and left + half <= across_in and 2 * (first_row + turns * height) <= rows
        if interior and top + warm * STEP + turns * height <= rows_in:
            low += top * low_pitch + left + u
            high += top * across_in + left + u
            for _ in range(warm):
                state = fill(state, both(load(bands, low, low_pitch), load(bands, high, across_in), s, t))
                low += STEP * low_pitch
                high += STEP * across_in
            for _ in range(turns):
                start = part * last + u
                for _ in range(steps):
                    state = step(state, both(load(bands, low, low_pitch), load(bands, high, across_in), s, t))
                    low += STEP * low_pitch
                    high += STEP * across_in
                    put(buffer, start, state)
                    start += 2 * STEP * half
                cuda.syncthreads()
                if u < width:
                    total += along_rows(buffer, y, window, at, pitch, aligned, False, height)
                at += 2 * height * pitch
                cuda.syncthreads()
        else:
            i = _within(left + u, across_in, round_along)
            low += i
            high += i
            start = part * last + u
            for _ in range(warm):
                state = fill(state, edge(buffer, start, bands, low, low_pitch, high, across_in, s, t, top, rows_in))
                top += STEP
            stop = min(2 * (first_row + turns * height), rows)
            while 2 * first_row < stop:
                start = part * last + u
                for _ in range(steps):
                    state = step(state, edge(buffer, start, bands, low, low_pitch, high, across_in, s, t, top, rows_in))
                    top += STEP
                    put(buffer, start, state)
                    start += 2 * STEP * half
                cuda.syncthreads()
                if u < width and place < across:
                    here = min(height, rows - row)
                    total += along_rows(buffer, y, window, at, pitch, aligned, place + 1 == across, here)
                at += 2 * height * pitch
                row += 2 * height
                first_row += height
                cuda.syncthreads()
        if checks and total - total != 0:
            flags[NOT_FINITE] = 1

    return panels_inverse_kernel
