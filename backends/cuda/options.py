"""Options of the backend: how its kernels are compiled and launched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES
from wavefilt.backends.cuda.runtime.interfaces import Build

THREADS = 256
ROW, FULL = (512, 128), 528
"""Threads of `KernelOptions.row_threads`, and blocks of 512 threads that fill an H200."""
KI, MI = 1 << 10, 1 << 20
SHAPES = (
    # taps; samples of a row; samples of all rows, each from above the first number to the second: threads, tile
    ((0, 8), (0, 16 * KI), (2 * MI, 64 * MI), 128, 2048),
    ((8, 16), (0, 16 * KI), (2 * MI, 64 * MI), 128, 3840),
    ((0, 8), (0, 48 * KI), (0, 48 * KI), 256, 1024),
    ((8, 16), (48 * KI, 96 * KI), (0, 96 * KI), 256, 2048),
    ((8, 16), (384 * KI, 1536 * KI), (0, 1536 * KI), 256, 2048),
)
"""Blocks and tiles for rows that are short or many, where the fixed ones are not the fastest.

They were measured on an H200. For longer rows, longer filters and float64 the shape stays as it is.
"""


@dataclass(frozen=True)
class KernelOptions:
    """``padding`` and ``fastmath`` are the user's; the tests choose small tiles, blocks and lists."""

    padding: bool = True
    fastmath: bool = False
    tile: int = 0  # samples of a block; 0: suited to the dtype
    threads: int = THREADS
    one_block: tuple[int, ...] = (128, 256, 512)  # threads of a block that denoises a row alone
    few: int = 128  # values of a band of such a row that are compared with each other
    select: int = 512  # threads of a block that samples, or goes through a list
    scan: int = 256  # threads of a block that counts
    row: int = 0  # threads of a block that finishes a band of a row alone; 0: suited to their number
    whole: int = 36 << 10  # a row's band of at most this many coefficients is finished by one block
    chunk: int = 1 << 13  # coefficients that a block reads
    sample: int = 1 << 15  # bytes of a sample, so that a block has room for them
    stage: int = 3072  # values listed at a time
    sums: tuple[int, int] = (1 << 12, 528)  # samples that a block sums at least, and blocks at most, for a trend
    blocks: tuple[int, int] = (2112, 1056)  # that a launch for sections keeps at least: of the DWT, of the dual tree

    def build(self, dtype: str) -> Build:
        """Return what kernels are compiled for."""
        return Build(dtype, self.threads, self.fastmath, self.padding)

    def row_threads(self, blocks: int) -> int:
        """Return the threads of each block that finishes a band of a row alone: many where a GPU is not filled.

        On an H200 a row of 64 Ki is denoised in 45 us with 512 threads, and in 84 with 128.
        """
        return self.row or (ROW[0] if blocks <= FULL else ROW[1])

    def tile_for(self, dtype: str) -> int:
        """Return the samples of a block."""
        return self.tile or TILE_BYTES // np.dtype(dtype).itemsize

    def suited(self, taps: int, dtype: str, rows: int, samples: int) -> KernelOptions:
        """Return the options with the block and tile that suit the rows of a DWT, unless they were chosen."""
        if self.tile or self.threads != THREADS or dtype != "float32":
            return self
        for *limits, threads, tile in SHAPES:
            if all(low < n <= most for n, (low, most) in zip((taps, samples, rows * samples), limits, strict=True)):
                return replace(self, threads=threads, tile=tile)
        return self
