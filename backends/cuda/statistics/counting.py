"""Counts of details on the device, for rules that need no more: above thresholds, and by bins."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel
from wavefilt.backends.cuda.runtime.target import cuda


@cache
def exceeding(dtype: str, threads: int) -> Kernel:
    """Kernel that adds to ``counts`` of each group how many |d| of a band are at least its threshold.

    ``step`` is 1 if each row is a group, else 0.
    """

    @kernel(dtype, threads)
    def exceeding(details, begin, stride, length, rows, thresholds, step, counts):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        limit, found = thresholds[row * step], np.int64(0)
        for i in range(cuda.blockIdx.x * threads + cuda.threadIdx.x, length, cuda.gridDim.x * threads):
            if abs(np.float64(details[begin + row * stride + i])) >= limit:
                found += 1
        if found:
            cuda.atomic.add(counts, row * step, found)

    return exceeding


@cache
def histogram(dtype: str, threads: int, bins: int) -> Kernel:
    """Kernel that adds to ``counts`` of each group those of |d| times its scale by whole numbers.

    The last is for all beyond; ``step`` as in `exceeding`.
    """

    @kernel(dtype, threads, bins)
    def histogram(details, begin, stride, length, rows, scales, step, counts):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        own = cuda.shared.array(bins, np.int32)
        for i in range(cuda.threadIdx.x, bins, threads):
            own[i] = 0
        cuda.syncthreads()
        for i in range(cuda.blockIdx.x * threads + cuda.threadIdx.x, length, cuda.gridDim.x * threads):
            place = abs(np.float64(details[begin + row * stride + i])) * scales[row * step]
            cuda.atomic.add(own, np.int32(place) if place < bins - 1 else bins - 1, 1)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, bins, threads):
            if own[i]:
                cuda.atomic.add(counts, row * step * bins + i, np.int64(own[i]))

    return histogram


def blocks(length: int, threads: int) -> int:
    """Blocks for a row of so many details: each thread has several to count."""
    return max(min(-(-length // (16 * threads)), 512), 1)


def zeros(size: int) -> DeviceArray:
    """Counts to be added to."""
    return cuda.to_device(np.zeros(size, np.int64))  # type: ignore[no-any-return]
