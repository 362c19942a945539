"""One level of both axes in one pass over tiles: down the columns in registers, along the rows from shared memory.

Interior tiles check nothing; those at the edges look up how rows and columns go on. The bands of a level lie in one
array: D, V and H of all sections, their rows close together, then the smooths, whose rows begin at multiples of four
elements.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, Filter
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import filters, store
from wavefilt.backends.cuda.thresholding.functions import shrink
from wavefilt.vocabulary import Mode

from . import columns
from .columns import STEP

Bank = tuple[tuple[float, ...], tuple[float, ...]]
"""Low-pass and high-pass taps."""


def filter_of(taps: int, mode: str) -> Filter:
    return Filter(taps, mode == "periodization")


def extrapolates(mode: Mode | str) -> bool:
    """Whether the extension takes more than one sample."""
    return mode in ("smooth", "antireflect")


def forward_registers(dtype: str, taps: int) -> int | None:
    """Registers for a thread: as few as spill nothing, so that five blocks fit a multiprocessor."""
    return None if dtype == "float64" or taps > 16 else 48 if 4 <= taps <= 8 else 56


def inverse_registers(dtype: str, taps: int, periodized: bool, function: str) -> int | None:
    """As `forward_registers`; four blocks."""
    heavy = function in ("garrote", "firm") and taps > 8  # spills four registers at 64
    return None if dtype == "float64" or taps > 16 or heavy else 56 if taps <= 8 and not periodized else 64


def forward_width(f: Filter, threads: int) -> int:
    """Coefficients across a tile whose samples are one a thread."""
    return (threads - f.lead - f.lead % 2 - f.lag) // 2


def inverse_width(f: Filter, threads: int) -> int:
    """Pairs of samples across a tile whose coefficients are one for every second thread."""
    return threads // 2 - f.low - f.high


@device
def tile_of(index, tiles):
    """Row and column of a tile, of which so many lie side by side; LLVM divides unsigned numbers in 32 bits."""
    row = np.uint32(index) // np.uint32(tiles)
    return np.int64(row), np.int64(index) - np.int64(row) * tiles


@cache
def _places(f: Filter, several: bool) -> Any:
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
def forward(
    down: Bank, along: Bank, modes: tuple[bool, bool], several: tuple[bool, bool], dtype: str, height: int,
    threads: int, fastmath: bool,
) -> Any:  # fmt: skip
    """Kernel of one level with the filters ``down`` the columns and ``along`` the rows.

    ``modes`` says which axes are periodized, ``several`` which extend by more than one sample, ``height`` how many rows
    of coefficients a tile has. A thread has a column of samples; then a column of two bands.
    """
    f, g = (Filter(len(bank[0]), periodized) for bank, periodized in zip((down, along), modes, strict=True))
    number = np.dtype(dtype).type
    kept, rows_new, half = f.taps - 2, 2 * STEP, threads // 2
    warm = -(-kept // rows_new)  # steps that fill the window
    above = f.lead + warm * rows_new - kept  # the first row read, before the first under the tile
    f_lag, lead, width = f.lag, g.lead + g.lead % 2, forward_width(g, threads)
    outputs = columns.analysis(*down)
    blank, load = columns.blank(len(outputs) + kept), columns.column(rows_new)
    load_half = columns.column(STEP)
    fill, step = (columns.slide(outputs, kept, rows_new, 1, computing) for computing in (False, True))
    analyse = filters([[(h[::-1][k], 0, lead - g.lead + k) for k in range(g.taps)] for h in along], 2)
    shared, last = 2 * height * threads, 2 * height * threads // 2
    steps = height // STEP
    put = columns.put([i * threads + w * last for i in range(STEP) for w in range(2)])
    put_one = columns.put([0])
    place_down, place_along = _places(f, several[0]), _places(g, several[1])
    several_down, several_along = several

    @device
    def in_row(x, start, j, a, k, b, m, c):
        value = number(a) * x[start + j]
        if several_along:
            value += number(b) * x[start + k] + number(c) * x[start + m]
        return value

    @device
    def extended(x, source, pitch, row, n, table, begin, j, a, k, b, m, c):
        """A sample of the extension: a column of it, given by what it is the sum of."""
        p, d, q, e, r, f = place_down(table, begin, row, n)
        value = number(d) * in_row(x, source + p * pitch, j, a, k, b, m, c)
        if several_down:
            value += number(e) * in_row(x, source + q * pitch, j, a, k, b, m, c)
            value += number(f) * in_row(x, source + r * pitch, j, a, k, b, m, c)
        return value

    @device
    def edge(buffer, target, x, source, pitch, r, n, table, begin, j, a, k, b, m, c):
        """Samples of eight rows of the extension, by way of the places that what is computed of them will take."""
        for i in range(rows_new):
            at = target + (i % STEP) * threads + i // STEP * last
            buffer[at] = extended(x, source, pitch, r + i, n, table, begin, j, a, k, b, m, c)
        return load_half(buffer, target, threads) + load_half(buffer, target + last, threads)

    @device
    def along_rows(buffer, bands, window, low, low_pitch, high, high_pitch, here):
        for _ in range(here):
            smooth, detail = analyse(buffer, window, window)
            put_one(bands, low, (smooth,))
            put_one(bands, high, (detail,))
            low += low_pitch
            high += high_pitch
            window += threads

    @kernel(
        down, along, modes, several, dtype, height, threads,
        registers=forward_registers(dtype, max(f.taps, g.taps)), fastmath=fastmath,
    )  # fmt: skip
    def sections_forward_kernel(
        x, source, plane, pitch, rows, across, bands, stride, band, smooth, smooth_plane, smooth_pitch, rows_out,
        across_out, first_section, tiles, turns, table, begin_down, begin_along,
    ):  # fmt: skip
        """Samples are from ``source`` on, ``plane`` from section to section, ``pitch`` from row to row.

        Bands are ``band`` apart, their sections ``stride``; smooths are from ``smooth`` on. A block goes down ``turns``
        of ``tiles`` side by side.
        """
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        section = first_section + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        first_row, first = tile_row * turns * height, tile * width
        top, left = 2 * first_row - above, 2 * first - lead
        source += section * plane
        part = thread // half
        u = thread - part * half
        low, low_pitch = smooth + section * smooth_plane, smooth_pitch
        high = section * stride + band  # A and V, or H and D
        if part:
            low, low_pitch, high = high + band, across_out, high - band
        low += first_row * low_pitch + first + u
        high += first_row * across_out + first + u
        window = part * last + 2 * u
        interior = top >= 0 and left >= 0 and left + threads <= across
        state = blank(x)
        if interior and 2 * (first_row + turns * height) + f_lag <= rows:
            at = source + top * pitch + left + thread
            for _ in range(warm):
                state = fill(state, load(x, at, pitch))
                at += rows_new * pitch
            for _ in range(turns):
                target = thread
                for _ in range(steps):
                    state = step(state, load(x, at, pitch))
                    at += rows_new * pitch
                    put(buffer, target, state)
                    target += STEP * threads
                cuda.syncthreads()
                if u < width:
                    along_rows(buffer, bands, window, low, low_pitch, high, across_out, height)
                low += height * low_pitch
                high += height * across_out
                cuda.syncthreads()
            return
        j, a, k, b, m, c = place_along(table, begin_along, left + thread, across)
        for _ in range(warm):
            state = fill(state, edge(buffer, thread, x, source, pitch, top, rows, table, begin_down, j, a, k, b, m, c))
            top += rows_new
        stop = min(first_row + turns * height, rows_out)
        while first_row < stop:
            target = thread
            for _ in range(steps):
                samples = edge(buffer, target, x, source, pitch, top, rows, table, begin_down, j, a, k, b, m, c)
                state = step(state, samples)
                top += rows_new
                put(buffer, target, state)
                target += STEP * threads
            cuda.syncthreads()
            if u < width and first + u < across_out:
                along_rows(buffer, bands, window, low, low_pitch, high, across_out, min(height, stop - first_row))
            low += height * low_pitch
            high += height * across_out
            first_row += height
            cuda.syncthreads()

    return sections_forward_kernel


@cache
def inverse(
    down: Bank, along: Bank, modes: tuple[bool, bool], dtype: str, height: int, threads: int, function: str,
    fastmath: bool,
) -> Any:  # fmt: skip
    """Kernel of one level of the inverse, of details shrunk as they are loaded; see `forward`.

    A thread has a column of two bands; then one of pairs of samples. ``height`` counts pairs of rows.
    """
    f, g = (Filter(len(bank[0]), periodized) for bank, periodized in zip((down, along), modes, strict=True))
    number = np.dtype(dtype).type
    kept, half = f.low + f.high, threads // 2
    warm = -(-kept // STEP)
    above = f.low + warm * STEP - kept
    low_along, width = g.low, inverse_width(g, threads)
    outputs = columns.synthesis(*down, f)
    blank, load = columns.blank(len(outputs) + 2 * kept), columns.column(STEP)
    load_both = columns.column(2 * STEP)
    fill, step = (columns.slide(outputs, kept, STEP, 2, computing) for computing in (False, True))
    terms = [
        [(h[2 * j + (g.lead + s) % 2], w, g.low + top - j) for j in range(g.taps // 2) for w, h in enumerate(along)]
        for s, top in enumerate(g.tops)
    ]
    synthesise = filters(terms, 1)
    last = 2 * height * half  # elements of what came of A and H; then of V and D
    shared, steps = 2 * last, height // STEP
    put = columns.put([i * half for i in range(2 * STEP)])
    put_one, put_pair = columns.put([0]), columns.put([0, 1])
    round_down, round_along = modes
    threshold = shrink(function, dtype)
    keeps = function == "keep"

    @device
    def shrunk(d, t):
        """Smooths come here as well, with threshold 0: what is not finite has to stay so."""
        return threshold(d, t) if d == d else d

    @device
    def both(low, high, s, t):
        """Eight coefficients, shrunk."""
        a, b, c, d = low
        p, q, r, u = high
        return (
            shrunk(a, s), shrunk(b, s), shrunk(c, s), shrunk(d, s), shrunk(p, t), shrunk(q, t), shrunk(r, t),
            shrunk(u, t),
        )  # fmt: skip

    @device
    def within(i, n, periodized):
        """A coefficient of the row or column going round, or one that is there though it is not used."""
        if i < 0 or i >= n:
            return (i + n) % n if periodized else min(max(i, 0), n - 1)
        return i

    @device
    def edge(buffer, target, bands, low, low_pitch, high, high_pitch, s, t, row, rows):
        """Coefficients of four rows, shrunk, by way of the places that what is computed of them will take."""
        for i in range(STEP):
            r = within(row + i, rows, round_down)
            buffer[target + i * half] = shrunk(bands[low + r * low_pitch], s)
            buffer[target + (i + STEP) * half] = shrunk(bands[high + r * high_pitch], t)
        return load_both(buffer, target, half)

    @device
    def along_rows(buffer, y, window, at, pitch, aligned, single, here):
        """Pairs of samples, the last column's a ``single`` one; their sum, in which it shows if one is not finite."""
        total = number(0)
        for _ in range(here):
            p, q = synthesise(buffer, window, window + last)
            total += p + q
            if aligned:  # the rows of smooths have room for a pair more than they need
                store(y, at, (p, q))
            elif single:
                put_one(y, at, (p,))
            else:
                put_pair(y, at, (p, q))
            at += pitch
            window += half
        return total

    @kernel(
        down, along, modes, dtype, height, threads, function,
        registers=inverse_registers(dtype, max(f.taps, g.taps), any(modes), function), fastmath=fastmath,
    )  # fmt: skip
    def sections_inverse_kernel(
        bands, stride, band, smooth, smooth_plane, smooth_pitch, rows_in, across_in, first_section, sections, tiles,
        turns, thresholds, first_threshold, y, target, plane, pitch, rows, across, aligned, flags, checks,
    ):  # fmt: skip
        """Samples go to ``target`` and on, ``plane`` and ``pitch`` apart; ``checks`` if they are finite."""
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        section = first_section + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        first_row, first = tile_row * turns * height, tile * width
        top, left = first_row - above, first - low_along
        part = thread // half
        u = thread - part * half
        low, low_pitch = smooth + section * smooth_plane, smooth_pitch  # A and H, or V and D
        high = section * stride
        if part:
            low, low_pitch = high + band, across_in
        else:
            high += 2 * band
        s, t = number(0), number(0)
        if not keeps:
            i = first_threshold + section
            if part:
                s, t = thresholds[i + sections], thresholds[i]
            else:
                t = thresholds[i + 2 * sections]
        place, row = 2 * (first + u), 2 * first_row + part * height
        at = target + section * plane + row * pitch + place
        window = part * height * half + u
        total = number(0)
        state = blank(bands)
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
            i = within(left + u, across_in, round_along)
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
                    rows_of = edge(buffer, start, bands, low, low_pitch, high, across_in, s, t, top, rows_in)
                    state = step(state, rows_of)
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

    return sections_inverse_kernel
