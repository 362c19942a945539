"""How a transform is cut up: which levels are fused, and the tiles of each row."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavefilt.backends.numba_cpu.launching import Launch
from wavefilt.backends.numba_cpu.native import Constant
from wavefilt.backends.numba_cpu.target import GROUP_BYTES
from wavefilt.wavelets.filters import detail_lengths

TILE = 1 << 15
"""Samples of a tile: two of its approximations fit the second-level cache."""

LEAST = 1 << 13
"""The smallest that a tile becomes so that there are enough for all threads."""
SHARES = 4  # tiles for each thread: one more than the others have makes a call longer by a quarter of it

BLOCK = 512
"""Coefficients computed at a time: their inputs and sums stay in the first-level cache."""
PADDING = 80
"""Elements more than a power of two: buffers a multiple of 4 KiB apart would evict each other."""

HALO_SHARE = 16  # levels are fused while the samples computed twice stay below this share of a tile


@lru_cache(maxsize=256)
def lengths(samples: int, taps: int, mode: str, level: int) -> tuple[int, ...]:
    """Samples, and coefficients of every level, finest first.

    Raises ValueError where PyWavelets does: a single sample cannot be reflected about itself.
    """
    found = (samples, *detail_lengths(samples, taps, mode, level))
    if 1 in found[:-1] and mode in ("reflect", "antireflect"):
        raise ValueError(f"mode={mode!r} needs more than one sample at every level; use a lower level or another mode")
    return found


def fitting(tile: int, samples: int, number: int) -> int:
    """The size of tiles of so many samples in all, for a number of threads."""
    while number > 1 and tile > LEAST and samples < SHARES * number * tile:
        tile //= 2
    return tile


@lru_cache(maxsize=256)
def outputs(samples: int, taps: int, mode: str, level: int, tile: int) -> tuple[int, ...]:
    """Lengths of what a forward transform writes: details, finest first, and the approximation of every launch."""
    rest = (launch.rest for launch in launches(samples, taps, mode, level, tile))
    return (*lengths(samples, taps, mode, level)[1:], *rest)


@lru_cache(maxsize=256)
def launches(samples: int, taps: int, mode: str, level: int, tile: int) -> tuple[Launch, ...]:
    """The launches of a forward transform, in order; an inverse takes them in reverse.

    Tiles are counted in coefficients of a launch's deepest level: tile 0 is both ends of the row, [0, left) and
    [right, end), since a boundary mode may join them; the others lie between, ``step`` each. A row of one tile has
    left = right = 0.
    """
    sizes = lengths(samples, taps, mode, level)
    tile = max(tile, HALO_SHARE * taps)
    found, first = [], 0
    while first < level:
        if sizes[first] <= 2 * tile:
            depth, left, right, step, tiles = level - first, 0, 0, 0, 1
            scratch = sizes[first + 1]
        else:
            depth = 1
            while first + depth < level and HALO_SHARE * (taps - 1) * ((2 << depth) - 1) <= tile:
                depth += 1
            step = tile >> depth
            left = step // 2
            right = (sizes[first] >> depth) - left
            tiles = 1 + -(-(right - left) // step)
            scratch = tile // 2 + ((taps + 4) << depth)
        own = sizes[first : first + depth + 1]
        arguments = Constant(np.array(own, dtype=np.int64), left, right, step, tiles, scratch)
        # four blocks of coefficients, two levels of two pieces, where all these begin and end, and boundary tables
        elements = 4 * (BLOCK + taps // 2 + scratch + 2 * PADDING)
        more = 4 * GROUP_BYTES + 32 * (depth + 1) + 32 * (taps + 1) * depth
        found.append(Launch(arguments, tiles, own[0] // tiles, first, depth, own[0], own[-1], elements, more))
        first += depth
    return tuple(found)
