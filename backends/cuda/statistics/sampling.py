"""The first window of a search, laid around the middle of a sample of the values."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4

from . import search_window as window
from .layout import LENGTH, OFFSET, PITCH, PLACES
from .search_window import BINS, WORKSPACE


@cache
def bracketing(
    dtype: str, drawn: int, threads: int, deviations: float = 4.5, share: float = window.MEDIAN, wide: bool = False
) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: a window around the middle of a sample from ``begin`` on, and its last value; ``bracket``.

    It reaches so many standard deviations of the sample's median rank to both sides. ``refine`` is the same of a sample
    that the histogram has in the widest bins. ``wide`` if the sample begins at a multiple of 16 bytes.
    """
    widest = window.first_shift(np.dtype(dtype).itemsize)
    spread, middle = int(0.5 * deviations * drawn**0.5) + 1, int(drawn * share)  # of other ranks it is less
    first, last = max(middle - spread, 0), min(middle + spread, drawn - 1)
    quads = drawn // (4 * threads) if wide else 0
    rest = drawn // threads - 4 * quads
    clear, _, _, locate_both = window.histogram(threads)

    @device
    def count(values, begin, histogram, low, shift):
        for j in range(quads):
            k0, k1, k2, k3 = load4(values, begin + 4 * (j * threads + cuda.threadIdx.x))
            window.count_in_bin(k0, low, shift, histogram)
            window.count_in_bin(k1, low, shift, histogram)
            window.count_in_bin(k2, low, shift, histogram)
            window.count_in_bin(k3, low, shift, histogram)
        for j in range(rest):
            i = (4 * quads + j) * threads + cuda.threadIdx.x
            window.count_in_bin(values[begin + i], low, shift, histogram)

    @device
    def refine(values, begin, histogram, workspace):
        low_place, low_before, high_place = locate_both(histogram, 0, first, last, workspace)
        fine = widest - 11  # then the bins between the two, all at once
        while (high_place - low_place + 1) << (widest - fine) > BINS:
            fine += 1
        clear(histogram, 0)
        cuda.syncthreads()
        count(values, begin, histogram, low_place << widest, fine)
        cuda.syncthreads()
        low, _, high = locate_both(histogram, 0, first - low_before, last - low_before, workspace)
        low = (low_place << widest) + (low << fine)
        high = (low_place << widest) + ((high + 1) << fine)
        shift = 0
        while (high - low) >> shift >= BINS:
            shift += 1
        return low, shift, high - 1

    @device
    def bracket(values, begin, histogram, workspace):
        clear(histogram, 0)
        cuda.syncthreads()
        count(values, begin, histogram, 0, widest)
        cuda.syncthreads()
        return refine(values, begin, histogram, workspace)

    return bracket, refine


@device
def _begin(state, edge_keys, segment, low, shift, top, nothing):
    """Lay the first window of a search; ``nothing`` is greater than all bits."""
    if cuda.threadIdx.x == 0:
        window.lay(state, edge_keys, segment, low, shift, top)
        for field in (window.BELOW, window.NEXT, window.LISTED, window.TICKET, window.INSIDE, window.UNDER):
            state[segment * window.FIELDS + field] = 0
        state[segment * window.FIELDS + window.BASE] = window.NOT_YET
        state[segment * window.FIELDS + window.ABOVE] = nothing


@cache
def scattering(drawn: int) -> DeviceFunction:
    """Device function: a place in the i-th of ``drawn`` stretches of n values; it changes, so as to meet no period."""

    @device
    def scattered(i, n):
        return i * n // drawn + ((((i * 2654435761) & 0xFFFFFFFF) * (n // drawn)) >> 32)

    return scattered


@cache
def _concluding(dtype: str, drawn: int, threads: int, share: float = window.MEDIAN) -> DeviceFunction:
    """Device function: the last of some blocks that have drawn a sample into ``keys`` lays the window of a segment.

    Each has counted its own values in the widest bins of ``histogram``.
    """
    each, nothing = BINS // threads, window.magnitudes(np.dtype(dtype).itemsize)
    (_, refine), (_, add, _, _) = bracketing(dtype, drawn, threads, share=share, wide=True), window.histogram(threads)

    @device
    def conclude(keys, begin, parts, segment, histogram, workspace, tally, state, counts, coarse, edge_keys):
        cuda.syncthreads()
        if parts > 1:
            add(histogram, coarse, segment)
            if not window.last_of(parts, state, segment * window.FIELDS, tally):
                return
        for j in range(each):
            i = j * threads + cuda.threadIdx.x
            if parts > 1:
                histogram[i] = coarse[segment * BINS + i]
                coarse[segment * BINS + i] = 0
            counts[segment * BINS + i] = 0
        cuda.syncthreads()
        low, shift, top = refine(keys, begin, histogram, workspace)
        _begin(state, edge_keys, segment, low, shift, top, nothing)

    return conclude


@cache
def sample(dtype: str, drawn: int, threads: int, share: float = window.MEDIAN) -> Kernel:
    """Kernel of ``parts`` blocks for every row and band, which lay a first window from values of the band itself.

    ``drawn_keys`` has room for samples, ``pitch`` elements from one to the next, and ``coarse`` for their bins, which are
    0 before and after.
    """
    widest = window.first_shift(np.dtype(dtype).itemsize)
    conclude, scattered = _concluding(dtype, drawn, threads, share), scattering(drawn)
    clear, _, _, _ = window.histogram(threads)

    @kernel(dtype, drawn, threads, share)
    def sample(keys, bands, rows, parts, drawn_keys, pitch, state, counts, coarse, edge_keys):
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        tally = cuda.shared.array(3, np.int32)
        band, part = cuda.blockIdx.x // parts, cuda.blockIdx.x % parts
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        clear(histogram, 0)
        cuda.syncthreads()
        n, segment = bands[band * PLACES + LENGTH], band * rows + row
        source, target = bands[band * PLACES + OFFSET] + row * bands[band * PLACES + PITCH], segment * pitch
        for i in range(part * threads + cuda.threadIdx.x, drawn, parts * threads):
            bits = keys[source + scattered(i, n)]
            drawn_keys[target + i] = bits
            window.count_in_bin(bits, 0, widest, histogram)
        conclude(drawn_keys, target, parts, segment, histogram, workspace, tally, state, counts, coarse, edge_keys)

    return sample
