"""What the threads of a block do together: a histogram cleared and searched by rank, and sums in a fixed order."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import cuda, device

BINS = 2048
WORKSPACE = 514
"""Elements of shared memory by which a rank is located."""


@cache
def clearing(threads: int) -> DeviceFunction:
    """Device function: a histogram from ``base`` on set to 0."""
    each = BINS // threads  # a constant number of rounds, so that no warp computes when to stop

    @device
    def clear(histogram, base):
        for j in range(each):
            i = j * threads + cuda.threadIdx.x
            histogram[base + i] = 0

    return clear


@cache
def adding(threads: int) -> DeviceFunction:
    """Device function: a block's histogram added to that of its segment."""
    each = BINS // threads

    @device
    def add(histogram, counts, segment):
        for j in range(each):
            i = j * threads + cuda.threadIdx.x
            if histogram[i] > 0:
                cuda.atomic.add(counts, segment * BINS + i, np.int64(histogram[i]))

    return add


@cache
def accumulating(threads: int) -> DeviceFunction:
    """Device function: running counts of every eight bins in the first half of the workspace."""
    groups_each = -(-256 // threads)

    @device
    def accumulate(histogram, base, workspace):
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

    return accumulate


@cache
def finding(threads: int) -> DeviceFunction:
    """Device function: the bin of a rank and the number of values before it, once counts are accumulated.

    The bin is -1 if none holds the rank.
    """
    groups_each = -(-256 // threads)

    @device
    def find(histogram, base, rank, workspace):
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

    return find


@cache
def locating(threads: int) -> DeviceFunction:
    """Device function: what `finding` gives, of counts that are not accumulated yet."""
    accumulate, find = accumulating(threads), finding(threads)

    @device
    def locate(histogram, base, rank, workspace):
        accumulate(histogram, base, workspace)
        return find(histogram, base, rank, workspace)

    return locate


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
