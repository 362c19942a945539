"""Device functions by which blocks of the forward kernel search the finest details while they compute them.

``search`` is a tuple: counts (below, listed) and the list of this block in shared memory, where its list goes and the
window's bins, the details, the states and bins of all segments and which is this block's, where its list begins and how
long it may be, and the window's two ends.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import bin_of, bits_of, compare
from wavefilt.backends.cuda.statistics.search_window import (
    BELOW,
    BINS,
    FIELDS,
    LISTED,
    LOW,
    SHIFT,
    room,
)

STAGE = 512  # values a block lists: 5 % of what it computes are expected


@device
def _put(wanted, d, i, staged):
    if wanted != 0:
        if i < STAGE:
            staged[i] = abs(d)
        return i + 1
    return i


@device
def tally(a, b, c, d, search):
    """List those of four values that lie in the window; how many lie below."""
    counts, staged, _, _, _, _, _, _, _, bottom, top = search
    below, inside = compare((a, b, c, d), bottom, top)
    if inside != 0:
        i = cuda.atomic.add(counts, 1, cuda.popc(inside))
        i = _put(inside & 1, a, i, staged)
        i = _put(inside & 2, b, i, staged)
        i = _put(inside & 4, c, i, staged)
        i = _put(inside & 8, d, i, staged)
    return below


@cache
def reserving(threads: int) -> DeviceFunction:
    """Device function: after a barrier, a place for this block's list, by a thread of the last warp.

    One too long for the stage makes the whole list too long.
    """

    @device
    def reserve(search):
        counts, _, place, _, state, _, segment, _, longest, _, _ = search
        field = segment * FIELDS
        if cuda.threadIdx.x == threads - 1:
            place[1], place[2] = state[field + LOW], state[field + SHIFT]
            place[0] = cuda.atomic.add(state, field + LISTED, counts[1] if counts[1] <= STAGE else longest + 1)
            cuda.atomic.add(state, field + BELOW, counts[0])

    return reserve


@cache
def listing(threads: int) -> DeviceFunction:
    """Device function: after another barrier, this block's list to its place, and each value to its bin.

    The last threads begin, who have nothing to do for the coarsest level.
    """

    @device
    def deliver(search):
        counts, staged, place, coefficients, _, bins, segment, start, longest, _, _ = search
        target = place[0]
        for i in range(threads - 1 - cuda.threadIdx.x, min(counts[1], STAGE), threads):
            own = bin_of(bits_of(staged[i]), place[1], place[2])
            if own < np.uint64(BINS):  # not with fast-math, where tiny values compare as 0
                cuda.atomic.add(bins, segment * BINS + np.int64(own), 1)
            if target + i < longest:
                coefficients[start + target + i] = staged[i]

    return deliver


@cache
def begun(dtype: str) -> DeviceFunction:
    """Device function: ``search``, of a block that begins to take part."""
    number = np.dtype(dtype).type

    @device
    def begin(details, ends, stride, row, state, bins, edges):
        counts = cuda.shared.array(2, np.int32)
        staged = cuda.shared.array(STAGE, number)
        place = cuda.shared.array(3, np.int64)
        if cuda.threadIdx.x < 2:
            counts[cuda.threadIdx.x] = 0
        start, longest, bottom, top = ends + room(row * stride), room(stride), edges[2 * row], edges[2 * row + 1]
        return counts, staged, place, details, state, bins, row, start, longest, bottom, top

    return begin
