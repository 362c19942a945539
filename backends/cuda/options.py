"""How kernels are launched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wavefilt.backends.cuda.dwt import launch_shapes
from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES

THREADS = 256


@dataclass(frozen=True)
class Options:
    """What a user of the backend may choose; the tests choose small tiles."""

    fastmath: bool = False
    tile: int = 0  # samples a block covers; 0: what suits the dtype
    threads: int = THREADS
    select: int = 512  # threads of a block that samples
    scan: int = 256  # threads of a block that counts
    row: int = 128  # threads of a block that finishes a band of a row alone

    def tile_for(self, dtype: str) -> int:
        return self.tile or TILE_BYTES // np.dtype(dtype).itemsize

    def suited(self, taps: int, dtype: str, rows: int, samples: int) -> Options:
        """With the block and tile that suit the rows of a DWT, unless they were chosen."""
        found = launch_shapes.suited(taps, dtype, rows, samples)
        if found is None or self.tile or self.threads != THREADS:
            return self
        return replace(self, threads=found[0], tile=found[1])
