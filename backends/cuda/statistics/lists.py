"""The passes of a search over lists of the values in its first window."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4

from . import search_window as window
from .layout import LENGTH, OFFSET, PITCH, PLACES
from .search_window import BINS, WORKSPACE


@device
def bin_or_below(bits, low, shift, histogram):
    """Count a listed value in its bin; 1 if it lies below the window."""
    window.count_in_bin(bits, low, shift, histogram)
    return 1 if np.int64(bits) < low else 0  # of |d|: there is no sign to mask


@cache
def settle(dtype: str, threads: int, share: float = window.MEDIAN) -> Kernel:
    """Kernel of a pass over the lists alone, ``parts`` blocks for each: the next window, or the middle values."""
    itemsize = np.dtype(dtype).itemsize
    key, infinity = np.dtype(f"i{itemsize}").type, window.magnitudes(itemsize)
    clear, add, _, _ = window.histogram(threads)
    next_above, narrower = window.next_value(dtype, threads), window.narrowing(dtype, threads, share)

    @kernel(dtype, threads, share)
    def settle(keys, bands, ends, rows, groups, parts, sizes, state, counts, edge_keys, middle):
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int64)
        least = cuda.shared.array(1, key)
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
def finish(dtype: str, threads: int, close: int, share: float = window.MEDIAN) -> Kernel:
    """Kernel of the last pass over the lists, ``parts`` blocks for each: the middle values.

    Those in the window, at most so many, are ``gathered``, and the last block finds the middle of them. Where they are
    more, or the window missed, it searches the whole row, and the ``state`` stays that of a search that has not ended.
    """
    itemsize = np.dtype(dtype).itemsize
    key, widest, infinity = np.dtype(f"i{itemsize}").type, window.first_shift(itemsize), window.magnitudes(itemsize)
    select, _ = window.selecting(itemsize, threads, False)
    select_all, following = window.selecting(itemsize, threads, True)

    @device
    def take(k, low, top, values, tally, closest):
        """Whether a listed value lies below the window, which keeps it if it lies inside; the smallest above it."""
        if k < low:
            return 1, closest
        if k > top:
            return 0, min(closest, np.int64(k))
        i = cuda.atomic.add(tally, 1, 1)
        if i < close:
            values[i] = k
        return 0, closest

    ranks = window.ranking(share)

    @kernel(dtype, threads, close, share)
    def finish(keys, bands, ends, rows, parts, state, gathered, middle):
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        values = cuda.shared.array(close, key)
        least = cuda.shared.array(1, key)
        place = cuda.shared.array(1, np.int64)
        tally = cuda.shared.array(3, np.int32)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        band, part = cuda.blockIdx.x // parts, cuda.blockIdx.x % parts
        n, pitch = bands[band * PLACES + LENGTH], bands[band * PLACES + PITCH]
        source, segment = bands[band * PLACES + OFFSET] + row * pitch, band * rows + row
        field = segment * window.FIELDS
        if window.ended(state, segment):
            return
        low, shift, listed = state[field + window.LOW], state[field + window.SHIFT], state[field + window.LISTED]
        known = 0 < listed <= window.room(pitch)
        wanted, even = ranks(n)
        top = low if shift == window.DONE else low + (BINS << shift) - 1
        if not known:
            listed = np.int64(0)
        if thread == 0:
            least[0], tally[0], tally[1] = infinity, 0, 0
        cuda.syncthreads()
        chunk = ((listed + parts - 1) // parts + 3) & ~3
        first, last = part * chunk, min((part + 1) * chunk, listed)
        here, smaller, closest, below = ends + window.room(source), 0, np.int64(infinity), 0
        i = first + 4 * thread  # no range, whose length would be computed
        while i < last:
            k0, k1, k2, k3 = load4(keys, here + i)  # of |d|: there is no sign to mask
            below, closest = take(k0, low, top, values, tally, closest)
            smaller += below
            if i + 1 < last:
                below, closest = take(k1, low, top, values, tally, closest)
                smaller += below
            if i + 2 < last:
                below, closest = take(k2, low, top, values, tally, closest)
                smaller += below
            if i + 3 < last:
                below, closest = take(k3, low, top, values, tally, closest)
                smaller += below
            i += 4 * threads
        cuda.atomic.add(tally, 0, smaller)
        window.lower(least, closest)
        cuda.syncthreads()
        inside, target = np.int64(tally[1]), segment * close
        if thread == 0:
            cuda.atomic.add(state, field + window.UNDER, np.int64(tally[0]))
            cuda.atomic.min(state, field + window.ABOVE, least[0])
            place[0] = cuda.atomic.add(state, field + window.INSIDE, inside)
        cuda.syncthreads()
        i = thread
        while i < inside and i < close and place[0] + i < close:
            gathered[target + place[0] + i] = values[i]
            i += threads
        if not window.last_of(parts, state, field, tally):
            return
        inside, above = state[field + window.INSIDE], state[field + window.ABOVE]
        rank = wanted - max(state[field + window.BASE], 0) - state[field + window.BELOW] - state[field + window.UNDER]
        done = known and (shift == window.DONE or 0 <= rank < inside <= close)
        high = np.int64(infinity)
        if not done:
            low, high = select_all(
                keys, source, n, np.int64(0), np.int64(widest), wanted, even, histogram, workspace, least
            )
        elif shift != window.DONE:
            i = thread
            while i < inside:
                values[i] = gathered[target + i]
                i += threads
            cuda.syncthreads()
            low, high = select(values, 0, inside, low, shift, rank, even, histogram, workspace, least)
        high = min(high, above) if done else high
        if high == infinity:
            cuda.syncthreads()
            high = following(keys, source, n, low, least)
        if thread == 0:
            middle[2 * segment], middle[2 * segment + 1] = low, high
            if done:
                state[field + window.SHIFT], state[field + window.NEXT] = window.DONE, 0

    return finish
