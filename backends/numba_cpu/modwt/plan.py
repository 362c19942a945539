"""How a MODWT is cut up: which levels are fused, and the tiles of each row."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavefilt.backends.numba_cpu.dwt.plan import BLOCK
from wavefilt.backends.numba_cpu.launching import Launch
from wavefilt.backends.numba_cpu.native import Constant
from wavefilt.backends.numba_cpu.target import GROUP_BYTES
from wavefilt.wavelets import boundary

HALO_SHARE = 8  # levels are fused while the samples that only the windows need stay below this share of a tile


@lru_cache(maxsize=256)
def lengths(samples: int, taps: int, mode: str, level: int, start_level: int) -> tuple[int, ...]:
    """Coefficients of every level, finest first."""
    return tuple(boundary.modwt_length(samples, taps, mode, j, start_level) for j in range(1, level + 1))


@lru_cache(maxsize=256)
def launches(
    samples: int, taps: int, mode: str, level: int, start_level: int, tile: int, inverse: bool
) -> tuple[Launch, ...]:
    """The launches of a forward transform in order, or of an inverse, which takes them in reverse.

    Kernels are told the distance of the first level's taps, the samples, the margins (depth + 2, 2) of what the first
    level reads, of each level's details and of the last approximation, the samples and number of the tiles, and the
    elements of the longest buffer.
    """
    found, first = [], 0
    while first < level:
        step, depth = 1 << start_level + first, 1
        while first + depth < level and HALO_SHARE * step * ((2 << depth) - 1) * (taps - 1) <= tile:
            depth += 1
        last, span = first + depth, step * ((1 << depth) - 1) * (taps - 1)
        if inverse:
            above, below = (boundary.modwt_kept(taps, mode, i, start_level) for i in (first, last))
        else:
            above, below = (boundary.modwt_needed(taps, mode, i, level, start_level) for i in (first, last))
            above = above if first else (0, 0)  # the samples are extended when they are read
        table = [above, *(boundary.modwt_kept(taps, mode, i, start_level) for i in range(first + 1, last + 1)), below]
        count = -(-samples // max(tile, span))
        size = -(-samples // count)
        count = -(-samples // size)
        scratch = size + sum(above if inverse else below) + span + GROUP_BYTES
        arguments = Constant(step, samples, np.array(table, dtype=np.int64), size, count, scratch)
        columns, rest = samples + sum(above), samples + sum(below)
        more = 4 * GROUP_BYTES
        found.append(Launch(arguments, count, depth * size, first, depth, columns, rest, 2 * scratch + 3 * BLOCK, more))
        first = last
    return tuple(found)
