"""How a MODWT is cut up: which levels are fused, and the tiles of each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.numba_cpu.vector import GROUP_BYTES
from wavefilt.wavelets import modwt_boundary as margins

HALO_SHARE = 8  # levels are fused while the samples that only the windows need stay below this share of a tile


@dataclass(frozen=True)
class Launch:
    """Levels ``first`` to ``first + depth`` of every row, done tile by tile.

    ``margins`` are those of what the first of these levels reads, of each level's details, and of the last
    approximation, (depth + 2, 2); ``tile`` is in samples of the row, and ``scratch`` the longest buffer in elements.
    """

    first: int
    step: int
    samples: int
    margins: NDArray[np.int64]
    tile: int
    tiles: int
    scratch: int

    @property
    def depth(self) -> int:
        return len(self.margins) - 2

    @property
    def columns(self) -> int:
        """Of the array that a forward launch reads and an inverse one writes."""
        return self.samples + int(self.margins[0].sum())

    @property
    def work(self) -> int:
        """Coefficients of a tile."""
        return self.depth * self.tile

    @property
    def arguments(self) -> tuple[int, int, NDArray[np.int64], int, int, int]:
        """What every kernel is told of it."""
        return self.step, self.samples, self.margins, self.tile, self.tiles, self.scratch


@lru_cache(maxsize=256)
def launches(
    samples: int, taps: int, mode: str, level: int, start_level: int, tile: int, inverse: bool
) -> tuple[Launch, ...]:
    """The launches of a forward transform in order, or of an inverse, which takes them in reverse."""
    found, first = [], 0
    while first < level:
        step, depth = 1 << start_level + first, 1
        while first + depth < level and HALO_SHARE * step * ((2 << depth) - 1) * (taps - 1) <= tile:
            depth += 1
        last, span = first + depth, step * ((1 << depth) - 1) * (taps - 1)
        if inverse:
            above, below = (margins.kept(taps, mode, i, start_level) for i in (first, last))
        else:
            above, below = (margins.needed(taps, mode, i, level, start_level) for i in (first, last))
            above = above if first else (0, 0)  # the samples are extended when they are read
        table = [above, *(margins.kept(taps, mode, i, start_level) for i in range(first + 1, last + 1)), below]
        count = -(-samples // max(tile, span))
        size = -(-samples // count)
        count = -(-samples // size)
        scratch = size + sum(above if inverse else below) + span + GROUP_BYTES
        found.append(Launch(first, step, samples, np.array(table, dtype=np.int64), size, count, scratch))
        first = last
    return tuple(found)
