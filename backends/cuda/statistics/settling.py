"""The end of a search: passes over lists of the values in its first window alone, and windows shared by batches."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4

from . import histograms
from . import search_window as window
from .histograms import BINS, WORKSPACE
from .layout import OFFSET, PITCH, PLACES


@device
def bin_or_below(bits, low, shift, histogram):
    """Count a listed value in its bin; 1 if it lies below the window."""
    window.count_in_bin(bits, low, shift, histogram)
    return 1 if np.int64(bits) < low else 0  # of |d|: there is no sign to mask


@cache
def settle(dtype: str, threads: int) -> Kernel:
    """Kernel of a pass over the lists alone, ``parts`` blocks for each: the next window, or the middle values."""
    infinity = window.magnitudes(np.dtype(dtype).itemsize)
    clear, add = histograms.clearing(threads), histograms.adding(threads)
    next_above, narrower = window.next_value(dtype, threads), window.narrowing(dtype, threads)

    @kernel(dtype, threads)
    def settle(keys, bands, ends, rows, groups, parts, sizes, state, counts, edge_keys, middle):
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int64)
        least = cuda.shared.array(1, np.int64)
        tally = cuda.shared.array(3, np.int32)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        band, part = cuda.blockIdx.x // parts, cuda.blockIdx.x % parts
        pitch = bands[band * PLACES + PITCH]
        segment = band * groups + (row if groups > 1 else 0)
        field = segment * window.FIELDS
        low, shift, listed = state[field + window.LOW], state[field + window.SHIFT], state[field + window.LISTED]
        if (shift == window.DONE and state[field + window.NEXT] == 0) or listed == 0 or listed > window.room(pitch):
            return
        source = ends + window.room(bands[band * PLACES + OFFSET] + row * pitch)
        chunk = ((listed + parts - 1) // parts + 3) & ~3
        first, last = part * chunk, min((part + 1) * chunk, listed)
        if shift == window.DONE:
            next_above(keys, source, first, last, low, least, middle, segment)
            if window.last_of(parts, state, field, tally) and thread == 0 and middle[2 * segment + 1] < infinity:
                state[field + window.NEXT] = 0
            return
        clear(histogram, 0)
        if thread == 0:
            tally[0] = 0
        cuda.syncthreads()
        smaller = 0
        for i in range(first + 4 * thread, last, 4 * threads):
            k0, k1, k2, k3 = load4(keys, source + i)
            smaller += bin_or_below(k0, low, shift, histogram)
            if i + 1 < last:
                smaller += bin_or_below(k1, low, shift, histogram)
            if i + 2 < last:
                smaller += bin_or_below(k2, low, shift, histogram)
            if i + 3 < last:
                smaller += bin_or_below(k3, low, shift, histogram)
        cuda.atomic.add(tally, 0, smaller)
        cuda.syncthreads()
        add(histogram, counts, segment)
        if thread == 0:
            cuda.atomic.add(state, field + window.BELOW, np.int64(tally[0]))
        if window.last_of(parts, state, field, tally):
            narrower(sizes, state, counts, edge_keys, middle, segment, workspace)

    return settle


@cache
def narrow(dtype: str, threads: int) -> Kernel:
    """Kernel, after a pass over several batches: every segment's next window, or its two middle values."""
    narrower = window.narrowing(dtype, threads)

    @kernel(dtype, threads)
    def narrow(sizes, state, counts, edge_keys, middle):
        workspace = cuda.shared.array(WORKSPACE, np.int64)
        if state[cuda.blockIdx.x * window.FIELDS + window.SHIFT] != window.DONE:
            narrower(sizes, state, counts, edge_keys, middle, cuda.blockIdx.x, workspace)
        elif cuda.threadIdx.x == 0:
            state[cuda.blockIdx.x * window.FIELDS + window.NEXT] = 0

    return narrow
