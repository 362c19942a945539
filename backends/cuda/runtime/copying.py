"""Kernels that copy rows from one array on the device to another."""

from __future__ import annotations

from functools import cache

from wavefilt.backends.cuda.dwt.tiling import ROWS, grid

from .compiler import kernel
from .interfaces import DeviceArray, Kernel, Stream
from .target import cuda

MOST_BLOCKS = 64  # a row: of a kernel that mostly has nothing to do


@cache
def leaving(dtype: str, threads: int) -> Kernel:
    """Kernel that copies the rows of ``x`` that are not ``live`` to ``y``."""

    @kernel(dtype, threads)
    def leave_kernel(x, y, samples, rows, live):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or live[row] != 0:
            return
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        while i < samples:
            y[row * samples + i] = x[row * samples + i]
            i += threads * cuda.gridDim.x

    return leave_kernel


def leave(
    x: DeviceArray, y: DeviceArray, samples: int, rows: int, live: DeviceArray, threads: int, stream: Stream
) -> None:
    """Copy the rows of ``x`` from which nothing is removed to ``y``."""
    blocks = min(-(-samples // threads), MOST_BLOCKS)
    leaving(y.dtype.name, threads)[grid(blocks, rows), threads, stream](x, y, samples, rows, live)
