"""How kernels are launched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES

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

The first shapes of the SKE ranking (`wavefilt.benchmarks.ske.estimate.ranked`) were measured against the fixed one on
an H200; here is the ranking's choice where it is at least as good. For
longer rows, longer filters and float64 the shape stays as it is.
"""


@dataclass(frozen=True)
class KernelOptions:
    """What a user of the backend may choose; the tests choose small tiles."""

    fastmath: bool = False
    tile: int = 0  # samples a block covers; 0: what suits the dtype
    threads: int = THREADS
    select: int = 512  # threads of a block that samples, or goes through a list
    scan: int = 256  # threads of a block that counts
    row: int = 0  # threads of a block that finishes a band of a row alone; 0: what suits their number

    def row_threads(self, blocks: int) -> int:
        """Threads of each of so many blocks that finish a band of a row alone: many where a GPU is not filled by them.

        On an H200 a row of 64 Ki is denoised in 45 us with 512 threads, and in 84 with 128.
        """
        return self.row or (ROW[0] if blocks <= FULL else ROW[1])

    def tile_for(self, dtype: str) -> int:
        return self.tile or TILE_BYTES // np.dtype(dtype).itemsize

    def suited(self, taps: int, dtype: str, rows: int, samples: int) -> KernelOptions:
        """With the block and tile that suit the rows of a DWT, unless they were chosen."""
        if self.tile or self.threads != THREADS or dtype != "float32":
            return self
        for *limits, threads, tile in SHAPES:
            if all(low < n <= most for n, (low, most) in zip((taps, samples, rows * samples), limits, strict=True)):
                return replace(self, threads=threads, tile=tile)
        return self
