"""Bands with few coefficients a row: a block for each row does the whole search."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Kernel
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.runtime.wide import load4

from . import search_window as window
from .layout import LENGTH, OFFSET, PITCH, PLACES
from .search_window import BINS, DONE, WORKSPACE, count_in_bin, first_shift, magnitudes


@cache
def whole(dtype: str, threads: int) -> Kernel:
    """Kernel for bands from ``first`` on of every row, a block for each: the two middle values and the sum of squares.

    Medians are those of the ``medians`` finest bands; if ``unfinished``, of those alone whose search has not ended by
    their ``state``, which is left as it is.
    """
    widest, infinity = first_shift(np.dtype(dtype).itemsize), magnitudes(np.dtype(dtype).itemsize)
    total, (clear, _, locate, _) = window.summing(threads), window.histogram(threads)

    @kernel(dtype, threads)
    def whole(coefficients, keys, bands, lists, rows, first, medians, with_energy, middle, energy, state, unfinished):
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        sums = cuda.shared.array(threads, np.float64)
        least = cuda.shared.array(1, np.int64)
        thread, band = cuda.threadIdx.x, first + cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        n = bands[band * PLACES + LENGTH]
        begin = bands[band * PLACES + OFFSET] + row * bands[band * PLACES + PITCH]
        segment = band * rows + row
        if unfinished and window.ended(state, segment):
            return
        if with_energy:
            square = 0.0
            for i in range(thread, n, threads):
                d = np.float64(coefficients[begin + i])
                square += d * d
            sums[thread] = square
            total(sums, thread)
            if thread == 0:
                energy[segment] = sums[0]
        if band >= medians:
            return
        low, shift, rank = 0, widest, (n - 1) // 2
        value, place, before = 0, 0, 0
        while shift >= 0:
            clear(histogram, 0)
            if thread == 0:
                least[0] = infinity
            cuda.syncthreads()
            for v in range(thread, n >> 2, threads):
                k0, k1, k2, k3 = load4(keys, begin + 4 * v)
                count_in_bin(k0, low, shift, histogram)
                count_in_bin(k1, low, shift, histogram)
                count_in_bin(k2, low, shift, histogram)
                count_in_bin(k3, low, shift, histogram)
            for i in range((n >> 2 << 2) + thread, n, threads):
                count_in_bin(keys[begin + i], low, shift, histogram)
            cuda.syncthreads()
            place, before = locate(histogram, 0, rank, workspace)
            rank -= before
            low += place << shift
            if shift == 0:
                value = histogram[place]  # how many have the lower middle value
            shift = shift - 11 if shift > 11 else 0 if shift > 0 else DONE
            cuda.syncthreads()
        high = low
        if n % 2 == 0 and rank + 1 >= value:
            closest = np.int64(infinity)
            for i in range(thread, n, threads):
                k = np.int64(keys[begin + i]) & infinity
                if low < k < closest:
                    closest = k
            cuda.atomic.min(least, 0, closest)
            cuda.syncthreads()
            high = least[0]
        if thread == 0:
            middle[2 * segment] = low
            middle[2 * segment + 1] = high

    return whole
