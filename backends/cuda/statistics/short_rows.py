"""Bands with few coefficients a row: a block for each row does the whole search."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import lowest, value_of

from . import sampling, scanning
from . import search_window as window
from .layout import LENGTH, OFFSET, PITCH, PLACES
from .search_window import BINS, WORKSPACE, first_shift, magnitudes

ROOMS = (2560, 4096)  # values in shared memory: all of a row, or those of its window; with less room more blocks fit
DRAWN = 1024  # values in the sample of a longer row
DEVIATIONS = 3.0  # of its median rank: 9 % of the row are in the window, and one in 400 is searched anew


def room_for(n: int) -> int:
    """Values in shared memory for rows of n at most."""
    return ROOMS[0] if n <= 8 * ROOMS[0] else ROOMS[1]


@cache
def _listing(dtype: str, threads: int, room: int, drawn: int, share: float) -> DeviceFunction:
    """Device function: the values of a row in a window around their median, to shared memory.

    The window, the values listed and those below it, and this thread's part of the sum of squares. A row of ``room``
    values is listed as it is.
    """
    itemsize, drawn_each = np.dtype(dtype).itemsize, drawn // threads
    mask, widest = magnitudes(itemsize), first_shift(itemsize)
    (bracket, _), scattered = sampling.bracketing(dtype, drawn, threads, DEVIATIONS, share), sampling.scattering(drawn)
    measure = scanning.measuring(dtype, threads)
    compare_all, compare_last = scanning.comparing(dtype, threads, True), scanning.comparing(dtype, threads, False)

    @device
    def fill(coefficients, keys, begin, n, with_energy, values, histogram, workspace, tally):
        thread, square = cuda.threadIdx.x, 0.0
        if n <= room:
            i = thread
            while i < n:  # no range, whose length would be computed
                values[i] = keys[begin + i] & mask
                i += threads
            if with_energy:
                square = measure(coefficients, begin, 0, n)
            return np.int64(0), np.int64(widest), n, np.int64(0), square
        for j in range(drawn_each):
            i = j * threads + thread
            values[i] = keys[begin + scattered(i, n)] & mask
        if thread < 2:
            tally[thread] = 0
        cuda.syncthreads()
        low, shift, last = bracket(values, 0, histogram, workspace)
        bottom, top, smaller = value_of(low, coefficients), value_of(last, coefficients), 0
        cuda.syncthreads()
        for start in range(0, n, 32 * threads):
            if start + 32 * threads <= n:
                square, smaller, inside = compare_all(
                    coefficients, begin, start, n, bottom, top, with_energy, square, smaller
                )
            else:
                square, smaller, inside = compare_last(
                    coefficients, begin, start, n, bottom, top, with_energy, square, smaller
                )
            # every thread, so that a warp adds up before one atomic
            place = np.int32(cuda.atomic.add(tally, 1, np.int32(cuda.popc(inside))))
            at = begin + start + 4 * thread
            while inside != 0 and place < room:
                i = lowest(inside)
                inside = np.uint32(inside & (inside - 1))
                values[np.uint32(place)] = keys[np.uint64(at + (i >> 2) * 4 * threads + (i & 3))] & mask
                place = np.int32(place + 1)
        cuda.atomic.add(tally, 0, smaller)
        cuda.syncthreads()
        return low, np.int64(shift), np.int64(tally[1]), np.int64(tally[0]), square

    return fill


@cache
def whole(dtype: str, threads: int, room: int, drawn: int = DRAWN, share: float = window.MEDIAN) -> Kernel:
    """Kernel for bands from ``first`` on of every row, a block for each: the two middle values and the sum of squares.

    Medians are those of the ``medians`` finest bands. A row is read once, but for a sample of it, unless its window
    missed.
    """
    itemsize = np.dtype(dtype).itemsize
    key, widest, infinity = np.dtype(f"i{itemsize}").type, first_shift(itemsize), magnitudes(itemsize)
    total, measure = window.summing(threads), scanning.measuring(dtype, threads)
    fill, (select, _) = _listing(dtype, threads, room, drawn, share), window.selecting(itemsize, threads, False)
    select_all, following = window.selecting(itemsize, threads, True)

    ranks = window.ranking(share)

    @kernel(dtype, threads, room, drawn, share, registers=56 if dtype == "float32" else None, since=(9, 0))
    def whole(coefficients, keys, bands, lists, rows, first, medians, with_energy, middle, energy):
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        values = cuda.shared.array(room, key)
        sums = cuda.shared.array(threads, np.float64)
        least = cuda.shared.array(1, key)
        tally = cuda.shared.array(2, np.int32)
        thread, band = cuda.threadIdx.x, first + cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        n = bands[band * PLACES + LENGTH]
        begin = bands[band * PLACES + OFFSET] + row * bands[band * PLACES + PITCH]
        segment = band * rows + row
        low, shift, listed, below = np.int64(0), np.int64(widest), np.int64(0), np.int64(0)
        if band < medians:
            low, shift, listed, below, square = fill(
                coefficients, keys, begin, n, with_energy, values, histogram, workspace, tally
            )
        else:
            square = measure(coefficients, begin, 0, n)
        if with_energy:
            sums[thread] = square
            total(sums, thread)
            if thread == 0:
                energy[segment] = sums[0]
        if band >= medians:
            return
        rank, even = ranks(n)
        rank -= below
        if 0 <= rank < listed <= room:
            low, high = select(values, 0, listed, low, shift, rank, even, histogram, workspace, least)
            if high == infinity:
                cuda.syncthreads()
                high = following(keys, begin, n, low, least)
        else:
            low, high = select_all(
                keys, begin, n, np.int64(0), np.int64(widest), rank + below, even, histogram, workspace, least
            )
        if thread == 0:
            middle[2 * segment] = low
            middle[2 * segment + 1] = high

    return whole
