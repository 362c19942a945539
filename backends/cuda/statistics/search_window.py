"""The search for the middle value of a band: its window, and what the threads of a block do for it together.

A *window* is `BINS` bins of 2^shift consecutive bit patterns of non-negative floats, which order like their bits. Its
histogram is searched by rank; sums have a fixed order.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import bin_of

BINS = 2048
WORKSPACE = 514
"""Elements of shared memory by which a rank is located."""
DONE = -1
LOW, SHIFT, BELOW, NEXT, LISTED, BASE, TICKET, FIELDS = range(8)
"""Fields of a segment's state: window, values below it, whether the next larger value is still wanted, length of the
list of values in the first window, values below all of that list, blocks that have finished the pass."""
NOT_YET = -1  # the list and the values below it are still to be counted


def first_shift(itemsize: int) -> int:
    """Shift of the window that holds every value of so many bytes."""
    return itemsize * 8 - 1 - 11


def magnitudes(itemsize: int) -> int:
    """The bits of a value without its sign, and greater than all bits of a finite value."""
    return (1 << (8 * itemsize - 1)) - 1


@device
def less(a, b, c, d, bottom):
    """How many of four values lie below ``bottom``."""
    first = (1 if abs(a) < bottom else 0) + (1 if abs(b) < bottom else 0)
    return first + (1 if abs(c) < bottom else 0) + (1 if abs(d) < bottom else 0)


@device
def within(a, b, c, d, bottom, top):
    """Which of four values lie between two, as bits."""
    first = (1 if bottom <= abs(a) <= top else 0) | (2 if bottom <= abs(b) <= top else 0)
    return first | (4 if bottom <= abs(c) <= top else 0) | (8 if bottom <= abs(d) <= top else 0)


@device
def room(stride):
    """Values that fit in the list of a row whose details take ``stride`` elements: an eighth of them."""
    return stride >> 5 << 2


@device
def count_in_bin(bits, low, shift, histogram):
    """Count a value in its bin of a histogram, if it has one."""
    place = bin_of(bits, low, shift)
    if place < np.uint64(BINS):
        cuda.atomic.add(histogram, place, 1)


@device
def lay(state, edge_keys, segment, low, shift, top):
    """Lay a window up to ``top`` at most, and its two ends as values, which are compared faster than bits."""
    state[segment * FIELDS + LOW], state[segment * FIELDS + SHIFT] = low, shift
    edge_keys[2 * segment] = low
    edge_keys[2 * segment + 1] = min(low + (BINS << shift) - 1, top)


@device
def ended(state, segment):
    """Whether a segment's middle values are found."""
    return state[segment * FIELDS + SHIFT] == DONE and state[segment * FIELDS + NEXT] == 0


@device
def last_of(parts, state, field, tally):
    """Whether this block is the last of those that work on a segment; then it sees what the others wrote."""
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        tally[2] = 1 if cuda.atomic.add(state, field + TICKET, 1) == parts - 1 else 0
        if tally[2] == 1:
            state[field + TICKET] = 0
    cuda.syncthreads()
    cuda.threadfence()
    return tally[2] == 1


@cache
def histogram(threads: int) -> tuple[DeviceFunction, DeviceFunction, DeviceFunction, DeviceFunction]:
    """Device functions of a block for its histogram: ``clear``, ``add``, ``locate`` and ``find``."""
    each, groups_each = BINS // threads, -(-256 // threads)
    # constant numbers of rounds, so that no warp computes when to stop

    @device
    def clear(histogram, base):
        """Set all bins from ``base`` on to 0."""
        for j in range(each):
            i = j * threads + cuda.threadIdx.x
            histogram[base + i] = 0

    @device
    def add(histogram, counts, segment):
        """Add it to that of its segment."""
        for j in range(each):
            i = j * threads + cuda.threadIdx.x
            if histogram[i] > 0:
                cuda.atomic.add(counts, segment * BINS + i, np.int64(histogram[i]))

    @device
    def accumulate(histogram, base, workspace):
        """Running counts of every eight bins in the first half of the workspace."""
        thread = cuda.threadIdx.x
        for j in range(groups_each):
            i = j * threads + thread
            if i < 256:
                group = 0
                for k in range(8):
                    group += histogram[base + 8 * i + k]
                workspace[i] = group
        cuda.syncthreads()
        for k in range(8):  # twice as far each time, from one half of the workspace to the other
            source, step = 256 * (k & 1), 1 << k
            for j in range(groups_each):
                i = j * threads + thread
                if i < 256:
                    before = workspace[source + i - step] if i >= step else 0
                    workspace[256 - source + i] = workspace[source + i] + before
            cuda.syncthreads()

    @device
    def find(histogram, base, rank, workspace):
        """The bin of a rank (-1 if none holds it) and the number of values before it, once counts are accumulated."""
        if cuda.threadIdx.x == 0:
            workspace[512] = -1
        cuda.syncthreads()
        for j in range(groups_each):
            i = j * threads + cuda.threadIdx.x
            if i < 256:
                before = workspace[i - 1] if i > 0 else 0
                if before <= rank < workspace[i]:
                    place = base + 8 * i
                    while before + histogram[place] <= rank:
                        before += histogram[place]
                        place += 1
                    workspace[512], workspace[513] = place - base, before
        cuda.syncthreads()
        return np.int64(workspace[512]), np.int64(workspace[513])

    @device
    def locate(histogram, base, rank, workspace):
        """`find` with counts that are not accumulated yet."""
        accumulate(histogram, base, workspace)
        return find(histogram, base, rank, workspace)

    return clear, add, locate, find


@cache
def summing(threads: int) -> DeviceFunction:
    """Device function: the sum of one value a thread, in a fixed order, in ``values[0]``."""

    @device
    def total(values, thread):
        cuda.syncthreads()
        step = 1
        while step < threads:
            if thread % (2 * step) == 0 and thread + step < threads:
                values[thread] += values[thread + step]
            step *= 2
            cuda.syncthreads()

    return total


@cache
def narrowing(dtype: str, threads: int) -> DeviceFunction:
    """Device function: after a pass, a segment's next window, or its two middle values."""
    infinity, widest = magnitudes(np.dtype(dtype).itemsize), first_shift(np.dtype(dtype).itemsize)
    greatest = int(np.array(np.inf, dtype).view(f"i{np.dtype(dtype).itemsize}"))
    clear, _, locate, _ = histogram(threads)

    @device
    def narrower(sizes, state, counts, edge_keys, middle, segment, workspace):
        base, field = segment * BINS, segment * FIELDS
        low, shift, n = state[field + LOW], state[field + SHIFT], sizes[segment]
        below = state[field + BELOW] + max(state[field + BASE], 0)
        rank = (n - 1) // 2 - below
        place, before = locate(counts, base, rank, workspace)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            state[field + BELOW] = 0
            if rank < 0 or place < 0:  # the window missed: begin again with the widest, on all values
                state[field + LISTED], state[field + BASE] = 0, NOT_YET
                lay(state, edge_keys, segment, 0, widest, greatest)
            elif shift > 0:
                if state[field + LISTED] > 0 and state[field + BASE] == NOT_YET:
                    state[field + BASE] = below  # from now on values of the list alone are counted
                finer = shift - 11 if shift > 11 else 0
                lay(state, edge_keys, segment, low + (place << shift), finer, greatest)
            else:
                high = place
                if n % 2 == 0 and rank + 1 >= before + counts[base + place]:
                    high += 1
                    while high < BINS and counts[base + high] == 0:
                        high += 1
                if high == BINS:  # beyond the window: one more pass
                    state[field + NEXT] = 1
                middle[2 * segment] = low + place
                middle[2 * segment + 1] = low + high if high < BINS else infinity
                state[field + LOW], state[field + SHIFT] = low + place, DONE
        cuda.syncthreads()
        clear(counts, base)

    return narrower


@cache
def next_value(dtype: str, threads: int) -> DeviceFunction:
    """Device function: the smallest value above ``low``, where it is smaller than what was found so far."""
    infinity = mask = magnitudes(np.dtype(dtype).itemsize)

    @device
    def next_above(keys, source, first, last, low, least, middle, segment):
        if cuda.threadIdx.x == 0:
            least[0] = infinity
        cuda.syncthreads()
        closest = np.int64(infinity)
        for i in range(first + cuda.threadIdx.x, last, threads):
            k = np.int64(keys[source + i]) & mask
            if low < k < closest:
                closest = k
        cuda.atomic.min(least, 0, closest)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.atomic.min(middle, 2 * segment + 1, least[0])

    return next_above
