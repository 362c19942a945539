"""The middle values of a band in a block's shared memory, exactly.

Values are counted in bins of equal width up to a few times what a sample of them suggests, where hardly two threads
meet in one. Those in the bin that holds the wanted rank are listed, and each is compared with all others of the list.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4, value_of

from . import search_window as window
from .search_window import BINS

LISTED = 256
"""Values of a list at most; with more in a bin the search is by `search_window.selecting`."""
FEW = 128
"""Values that are compared with each other at once."""
MANTISSA, BIAS, MASK = 23, 127, (1 << 31) - 1  # of float32
SPAN = 3
"""The last bin ends at so many powers of two above the mean exponent: at three to four deviations of noise."""


@device
def _note(own, less, equal, rank, two, middles, at):
    """Keep a key that so many are less than, and so many equal, if it is one of the middle values."""
    if less <= rank < less + equal:
        middles[at] = own
        if not two:
            middles[at + 1] = own
    if two and less <= rank + 1 < less + equal:
        middles[at + 1] = own


@device
def _rank_listed(listed, n, rank, two, step, middles, at):
    """Each thread compares its keys of a list with all n."""
    i = cuda.threadIdx.x
    while i < n:
        own, less, equal, j = listed[i], np.int32(0), np.int32(0), 0
        while j < n:
            less += np.int32(listed[j] < own)
            equal += np.int32(listed[j] == own)
            j += 1
        _note(own, less, equal, rank, two, middles, at)
        i += step


@device
def few(buffer, keys, begin, n, middles, at):
    """The two middle values of n float32, by one warp; arguments as for `middles`."""
    i, rank, two = cuda.threadIdx.x & 31, (n - 1) >> 1, n & 1 == 0
    while i < n:
        own, less, equal, j = abs(buffer[begin + i]), np.int32(0), np.int32(0), 0
        while j + 3 < n:
            a, b, c, d = load4(buffer, begin + j)
            a, b, c, d = abs(a), abs(b), abs(c), abs(d)
            less += np.int32(a < own) + np.int32(b < own) + np.int32(c < own) + np.int32(d < own)
            equal += np.int32(a == own) + np.int32(b == own) + np.int32(c == own) + np.int32(d == own)
            j += 4
        while j < n:
            a = abs(buffer[begin + j])
            less += np.int32(a < own)
            equal += np.int32(a == own)
            j += 1
        _note(keys[begin + i] & MASK, less, equal, rank, two, middles, at)
        i += 32


@cache
def _counting(threads: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: the values of a band by bin, and the keys of those between two limits."""

    @device
    def count_one(d, scale, histogram):
        place = abs(d) * scale
        if place < np.float32(BINS):
            cuda.atomic.add(histogram, np.int32(place), 1)

    @device
    def count(buffer, begin, n, scale, histogram):
        i = 4 * cuda.threadIdx.x  # no range, whose length would be computed
        while i + 3 < n:
            a, b, c, d = load4(buffer, begin + i)
            count_one(a, scale, histogram)
            count_one(b, scale, histogram)
            count_one(c, scale, histogram)
            count_one(d, scale, histogram)
            i += 4 * threads
        i = (n & ~3) + cuda.threadIdx.x
        if i < n:
            count_one(buffer[begin + i], scale, histogram)

    @device
    def inside(d, low, high):
        return (abs(d) >= low) & (abs(d) < high)

    @device
    def list_one(d, key, low, high, tally, listed):
        if inside(d, low, high):
            listed[cuda.atomic.add(tally, 1, 1)] = key & MASK

    @device
    def list_all(buffer, keys, begin, n, low, high, tally, listed):
        i = 4 * cuda.threadIdx.x
        while i + 3 < n:
            a, b, c, d = load4(buffer, begin + i)
            if inside(a, low, high) | inside(b, low, high) | inside(c, low, high) | inside(d, low, high):  # of few
                list_one(a, keys[begin + i], low, high, tally, listed)
                list_one(b, keys[begin + i + 1], low, high, tally, listed)
                list_one(c, keys[begin + i + 2], low, high, tally, listed)
                list_one(d, keys[begin + i + 3], low, high, tally, listed)
            i += 4 * threads
        i = (n & ~3) + cuda.threadIdx.x
        if i < n:
            list_one(buffer[begin + i], keys[begin + i], low, high, tally, listed)

    return count, list_all


@cache
def middles(threads: int) -> DeviceFunction:
    """Device function: the two middle values of n float32 from ``begin`` on, a multiple of four, as bits to ``found``.

    ``keys`` are the bits in ``buffer``. For tables in shared memory: `BINS` and `WORKSPACE` integers, one of 64 bits,
    `LISTED` keys, and two integers.
    """
    widest = window.first_shift(4)
    bits = threads.bit_length() - 1
    clear, _, locate, _ = window.histogram(threads)
    (count, list_all), ranks = _counting(threads), window.ranking(window.MEDIAN)
    select, following = window.selecting(4, threads, True)

    @device
    def middle(buffer, keys, begin, n, histogram, workspace, least, listed, tally, found, at):
        thread, (rank, two) = cuda.threadIdx.x, ranks(n)
        if thread < 2:
            tally[thread] = 0
        clear(histogram, 0)
        cuda.syncthreads()
        exponent = (keys[begin + ((thread * n) >> bits)] & MASK) >> MANTISSA
        cuda.atomic.add(tally, 0, exponent)
        cuda.syncthreads()
        field = np.int64(max(tally[0] >> bits, SPAN + 6))  # the reciprocal of a smaller number is infinite
        scale = value_of((2 * BIAS + 11 - SPAN - field) << MANTISSA, buffer)
        width = value_of((field + SPAN - 11) << MANTISSA, buffer)
        count(buffer, begin, n, scale, histogram)
        cuda.syncthreads()
        place, before = locate(histogram, 0, rank, workspace)
        here = np.int64(histogram[max(place, 0)])
        if place < 0 or here > LISTED:
            cuda.syncthreads()
            low, high = select(keys, begin, n, np.int64(0), np.int64(widest), rank, two, histogram, workspace, least)
            if thread == 0:
                found[at], found[at + 1] = low, high
            cuda.syncthreads()
            return
        bottom, top = np.float32(place) * width, np.float32(place + 1) * width
        list_all(buffer, keys, begin, n, bottom, top, tally, listed)
        cuda.syncthreads()
        _rank_listed(listed, here, rank - before, two, threads, found, at)
        cuda.syncthreads()
        if two and rank - before + 1 >= here:
            high = following(keys, begin, n, np.int64(found[at]), least)
            if thread == 0:
                found[at + 1] = high
            cuda.syncthreads()

    return middle
