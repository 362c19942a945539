"""How a transform is cut up: which levels are fused, and the tiles of each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wavefilt.wavelets.filters import detail_length

TILE = 1 << 15
"""Samples of a tile: two of its approximations fit the second-level cache."""

HALO_SHARE = 16  # levels are fused while the samples computed twice stay below this share of a tile


@dataclass(frozen=True)
class Launch:
    """Levels ``first`` to ``first + depth`` of every row, done tile by tile.

    Tiles are counted in coefficients of the deepest of these levels: tile 0 is both ends of the row,
    [0, left) and [right, end), since a boundary mode may join them; the others lie between, ``step`` each.
    A row of one tile has left = right = 0.
    """

    first: int
    lengths: NDArray[np.int64]
    left: int
    right: int
    step: int
    tiles: int
    scratch: int

    @property
    def depth(self) -> int:
        return len(self.lengths) - 1

    @property
    def work(self) -> int:
        """Samples of a tile."""
        return int(self.lengths[0]) // self.tiles

    @property
    def arguments(self) -> tuple[NDArray[np.int64], int, int, int, int, int]:
        """What every kernel is told of it."""
        return self.lengths, self.left, self.right, self.step, self.tiles, self.scratch


@lru_cache(maxsize=256)
def lengths(samples: int, taps: int, mode: str, level: int) -> tuple[int, ...]:
    """Samples, and coefficients of every level, finest first."""
    found = [samples]
    for _ in range(level):
        found.append(detail_length(found[-1], taps, mode))
    return tuple(found)


@lru_cache(maxsize=256)
def outputs(samples: int, taps: int, mode: str, level: int, tile: int) -> tuple[int, ...]:
    """Lengths of what a forward transform writes: details, finest first, and the approximation of every launch."""
    last = (int(launch.lengths[-1]) for launch in launches(samples, taps, mode, level, tile))
    return (*lengths(samples, taps, mode, level)[1:], *last)


@lru_cache(maxsize=256)
def launches(samples: int, taps: int, mode: str, level: int, tile: int) -> tuple[Launch, ...]:
    """The launches of a forward transform, in order; an inverse takes them in reverse.

    Raises ValueError where PyWavelets does: a single sample cannot be reflected about itself.
    """
    lengths = [samples]
    for _ in range(level):
        if lengths[-1] == 1 and mode in ("reflect", "antireflect"):
            raise ValueError(
                f"mode={mode!r} needs more than one sample at every level; use a lower level or another mode"
            )
        lengths.append(detail_length(lengths[-1], taps, mode))
    tile = max(tile, HALO_SHARE * taps)
    found, first = [], 0
    while first < level:
        if lengths[first] <= 2 * tile:
            depth, left, right, step, tiles = level - first, 0, 0, 0, 1
            scratch = lengths[first + 1]
        else:
            depth = 1
            while first + depth < level and HALO_SHARE * (taps - 1) * ((2 << depth) - 1) <= tile:
                depth += 1
            step = tile >> depth
            left = step // 2
            right = (lengths[first] >> depth) - left
            tiles = 1 + -(-(right - left) // step)
            scratch = tile // 2 + ((taps + 4) << depth)
        table = np.array(lengths[first : first + depth + 1], dtype=np.int64)
        found.append(Launch(first, table, left, right, step, tiles, scratch))
        first += depth
    return tuple(found)
