"""The search for the median of a band, or another quantile: functions of a block.

A *window* is `BINS` bins of 2^shift consecutive bit patterns of non-negative floats, which order like their bits:

    0 ........ low |bin 0|bin 1| ... |bin of the rank| ... |bin 2047| ........ infinity
                                     |bin 0| ... |bin 2047|              the next window, with a smaller shift

Values are counted by bin, and the bin that holds the wanted rank is the next window, until bins are single values.
`selecting` does that for keys in shared or device memory; `few` compares few values with each other. Counts are
integers and sums have a fixed order, so results do not depend on scheduling.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import bin_of, load4

from .layout import MEDIAN

BINS = 2048
GROUPS = BINS // 8
WORKSPACE = GROUPS + GROUPS // 16 + 4
"""Elements of shared memory by which a rank is located."""
DONE = -1
LOW, SHIFT, BELOW, NEXT, LISTED, BASE, TICKET, INSIDE, ABOVE, UNDER, FIELDS = range(11)
"""Fields of a segment's state: window, values below it, whether the next larger value is still wanted, length of the
list of values in the first window, values below all of that list, blocks that have finished the pass; in the last pass
over a list, values inside the window, the smallest above it, and values of the list below it."""
DEVIATIONS = 4.5
NOT_YET = -1  # the list and the values below it are still to be counted


def first_shift(itemsize: int) -> int:
    """Return the shift of the window that holds every value of ``itemsize`` bytes."""
    return itemsize * 8 - 1 - 11


def magnitudes(itemsize: int) -> int:
    """The bits of a value without its sign, and greater than all bits of a finite value."""
    return (1 << (8 * itemsize - 1)) - 1


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
    edge_keys[2 * segment + 1] = min(low + ((BINS << shift) - 1), top)


@device
def ended(state, segment):
    """Whether a segment's middle values are found."""
    return state[segment * FIELDS + SHIFT] == DONE and state[segment * FIELDS + NEXT] == 0


@device
def last_of(parts, state, field, tally):
    """Return whether this block is the last one that works on a segment; it then sees all results of the others."""
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        tally[2] = 1 if cuda.atomic.add(state, field + TICKET, 1) == parts - 1 else 0
        if tally[2] == 1:
            state[field + TICKET] = 0
    cuda.syncthreads()
    cuda.threadfence()
    return tally[2] == 1


@device
def lower(least, value):
    """Let ``least[0]`` be this value if it is smaller; few threads do, as all wait for each other."""
    if value < least[0]:
        cuda.atomic.min(least, 0, value)


@cache
def histogram(threads: int) -> tuple[DeviceFunction, DeviceFunction, DeviceFunction]:
    """Device functions of a block for its histogram: ``clear``, ``add`` and ``locate``."""
    each, groups_each = BINS // threads, -(-GROUPS // threads)
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
        """Counts of every eight bins in the workspace, and behind them of every sixteen groups."""
        thread = cuda.threadIdx.x
        for j in range(groups_each):
            i = j * threads + thread
            if i < GROUPS:
                group = 0
                for k in range(8):
                    group += histogram[base + 8 * i + k]
                workspace[i % 16 * 16 + i // 16] = group  # in columns, so that no two threads meet in a bank
        cuda.syncthreads()
        i = thread
        while i < GROUPS // 16:
            several = 0
            for k in range(16):
                several += workspace[16 * k + i]
            workspace[GROUPS + i] = several
            i += threads
        cuda.syncthreads()

    @device
    def pick(counts, begin, step, size, rank, before):
        """Return the one of ``size`` counts that holds a rank, and the values before it; loads overlap."""
        place, total = np.int32(0), before
        for i in range(size):
            total = counts.dtype.type(total + counts[np.uint64(begin + step * i)])
            if total <= rank:
                place, before = np.int32(i + 1), total
        return np.int64(place), before

    @device
    def find(histogram, base, rank, other, workspace):
        """For two ranks the bin (-1 if none holds it) and the number of values before it, by a thread each."""
        thread = cuda.threadIdx.x
        if thread < 2:
            # in 32 bits where counts have no more
            rank = workspace.dtype.type(rank if thread == 0 else other)
            column, before = pick(workspace, GROUPS, 1, GROUPS // 16, rank, workspace.dtype.type(0))
            place = np.int64(-1)
            if rank >= 0 and column < GROUPS // 16:
                group, before = pick(workspace, column, 16, 16, rank, before)
                place = 8 * (16 * column + group)
                bin_in_group, before = pick(histogram, base + place, 1, 8, rank, before)
                place += bin_in_group
            found = WORKSPACE - 4 + 2 * thread
            workspace[found], workspace[found + 1] = place, before
        cuda.syncthreads()

    @device
    def locate(histogram, base, rank, other, workspace):
        """Return the bin of a rank (-1 if none holds it), the values before it, and the bin of another rank."""
        accumulate(histogram, base, workspace)
        find(histogram, base, rank, other, workspace)
        place, before, other_place = workspace[WORKSPACE - 4], workspace[WORKSPACE - 3], workspace[WORKSPACE - 2]
        return np.int64(place), np.int64(before), np.int64(other_place)

    return clear, add, locate


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
def ranking(share: float) -> DeviceFunction:
    """Device function: of n values, the rank below which this share of the others lies, and whether the next is wanted.

    That is where the share does not fall on a value: see `wavefilt.statistics.reference.around`.
    """
    if share == MEDIAN:
        return device(lambda n: ((n - 1) // 2, n % 2 == 0))

    @device
    def ranks(n):
        place = share * np.float64(n - 1)
        low = np.int64(place)
        return low, place > np.float64(low)

    return ranks


@cache
def narrowing(dtype: str, threads: int, share: float = MEDIAN) -> DeviceFunction:
    """Device function: after a pass, a segment's next window, or its two middle values."""
    infinity, widest = magnitudes(np.dtype(dtype).itemsize), first_shift(np.dtype(dtype).itemsize)
    greatest = int(np.array(np.inf, dtype).view(f"i{np.dtype(dtype).itemsize}"))
    clear, _, locate = histogram(threads)
    ranks = ranking(share)

    @device
    def narrower(search, segment, workspace):
        sizes, state, counts, edge_keys, middle = (
            search.sizes,
            search.state,
            search.counts,
            search.edge_keys,
            search.middle,
        )
        base, field = segment * BINS, segment * FIELDS
        low, shift, n = state[field + LOW], state[field + SHIFT], sizes[segment]
        below = state[field + BELOW] + max(state[field + BASE], 0)
        rank, two = ranks(n)
        rank -= below
        place, before, _ = locate(counts, base, rank, rank, workspace)
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
                if two and rank + 1 >= before + counts[base + place]:
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
def next_value(itemsize: int, threads: int) -> DeviceFunction:
    """Device function of a block: the smallest magnitude above ``low`` among ``n`` keys from ``begin`` on."""
    infinity = magnitudes(itemsize)

    @device
    def following(keys, begin, n, low, least):
        if cuda.threadIdx.x == 0:
            least[0] = infinity
        cuda.syncthreads()
        closest, i = np.int64(infinity), cuda.threadIdx.x
        while i < n:
            k = np.int64(keys[begin + i]) & infinity
            if low < k < closest:
                closest = k
            i += threads
        lower(least, closest)
        cuda.syncthreads()
        return least[0]

    return following


@cache
def counting(threads: int, wide: bool) -> DeviceFunction:
    """Device function of a block: count ``n`` keys, starting at ``begin``, by the bins of a window.

    ``wide`` if they begin at a multiple of 16 bytes.
    """

    @device
    def count(keys, begin, n, low, shift, bins):
        rest = n >> 2 << 2 if wide else 0
        i = 4 * cuda.threadIdx.x  # no range, whose length would be computed
        while i < rest:
            k0, k1, k2, k3 = load4(keys, begin + i)
            count_in_bin(k0, low, shift, bins)
            count_in_bin(k1, low, shift, bins)
            count_in_bin(k2, low, shift, bins)
            count_in_bin(k3, low, shift, bins)
            i += 4 * threads
        i = rest + cuda.threadIdx.x
        while i < n:
            count_in_bin(keys[begin + i], low, shift, bins)
            i += threads

    return count


@cache
def selecting(itemsize: int, threads: int, wide: bool) -> DeviceFunction:
    """Device function of a block: the two middle values of ``n`` keys from ``begin`` on; ``wide`` as in `counting`.

    The lower has a ``rank`` in a window that holds it; the upper is infinite where it is not among the keys.
    """
    following, (clear, _, locate) = next_value(itemsize, threads), histogram(threads)
    count = counting(threads, wide)

    @device
    def select(keys, begin, n, low, shift, rank, even, bins, workspace, least):
        equal = 0
        while shift >= 0:
            clear(bins, 0)
            cuda.syncthreads()
            count(keys, begin, n, low, shift, bins)
            cuda.syncthreads()
            place, before, _ = locate(bins, 0, rank, rank, workspace)
            rank -= before
            low += place << shift
            if shift == 0:
                equal = bins[place]
            shift = shift - 11 if shift > 11 else 0 if shift > 0 else DONE
            cuda.syncthreads()
        if even and rank + 1 >= equal:
            return low, following(keys, begin, n, low, least)
        return low, low

    return select


@cache
def bracketing(dtype: str, drawn: int, threads: int, share: float = MEDIAN) -> DeviceFunction:
    """Device function: a window around the middle of a sample from ``begin`` on, and its last value.

    The sample begins at a multiple of 16 bytes, and is counted in the widest bins. The window reaches `DEVIATIONS`
    standard deviations of the sample's median rank to both sides.
    """
    widest = first_shift(np.dtype(dtype).itemsize)
    spread, middle = int(0.5 * DEVIATIONS * drawn**0.5) + 1, int(drawn * share)  # of other ranks it is less
    first, last = max(middle - spread, 0), min(middle + spread, drawn - 1)
    count, (clear, _, locate) = counting(threads, True), histogram(threads)

    @device
    def refine(values, begin, histogram, workspace):
        low_place, low_before, high_place = locate(histogram, 0, first, last, workspace)
        fine = widest - 11  # then the bins between the two, all at once
        while (high_place - low_place + 1) << (widest - fine) > BINS:
            fine += 1
        clear(histogram, 0)
        cuda.syncthreads()
        count(values, begin, drawn, low_place << widest, fine, histogram)
        cuda.syncthreads()
        low, _, high = locate(histogram, 0, first - low_before, last - low_before, workspace)
        low = (low_place << widest) + (low << fine)
        high = (low_place << widest) + ((high + 1) << fine)
        shift = 0
        while (high - low) >> shift >= BINS:
            shift += 1
        return low, shift, high - 1

    return refine


@cache
def scattering(drawn: int) -> DeviceFunction:
    """Device function: a place in the i-th of ``drawn`` stretches of n values; it changes, so as to meet no period."""

    @device
    def scattered(i, n):
        return i * n // drawn + ((((i * 2654435761) & 0xFFFFFFFF) * (n // drawn)) >> 32)

    return scattered


MASK = (1 << 31) - 1
"""The bits of a float32 without its sign."""


@device
def few(buffer, keys, begin, n, middles, at):
    """Write the two middle values of n float32 to ``middles`` from ``at`` on, by one warp that compares all of them.

    ``keys`` are the bits in ``buffer``.
    """
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
        key = keys[begin + i] & MASK
        if less <= rank < less + equal:
            middles[at] = key
            if not two:
                middles[at + 1] = key
        if two and less <= rank + 1 < less + equal:
            middles[at + 1] = key
        i += 32
