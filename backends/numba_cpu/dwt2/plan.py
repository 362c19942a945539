"""How one level of a transform of both axes is cut into tiles."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavefilt.backends.numba_cpu.dwt.plan import PADDING
from wavefilt.backends.numba_cpu.launching import Launch
from wavefilt.backends.numba_cpu.native import Constant
from wavefilt.backends.numba_cpu.target import GROUP_BYTES

SCRATCH = 1 << 19
"""Bytes of a tile's filtered rows: half of a second-level cache."""
HEIGHT = 32  # rows of coefficients of a tile at least, and no fewer than twice the taps: its halo is filtered twice
MARGIN = 64  # bytes between rows of the scratch: rows 4 KiB apart would evict each other


@lru_cache(maxsize=256)
def launch(
    sizes: tuple[int, int, int, int], places: tuple[int, int], taps: tuple[int, int], itemsize: int, inverse: bool
) -> Launch:
    """The tiles of one level, of ``sizes`` (rows, columns, those of its bands), for all panels.

    ``places`` are coefficients, or pairs of samples, down and across; ``taps`` likewise. Kernels are told the sizes,
    and of tiles their height and width, how many lie down and across a panel, and elements between rows of the scratch.
    """
    taps_down, taps_across = taps
    height = min(max(HEIGHT, 2 * taps_down), places[0])
    group = GROUP_BYTES // itemsize
    scratch_rows = height + taps_down // 2 - 1 if inverse else 2 * height + taps_down - 2
    wide = 2 if inverse else 1  # elements of the scratch for each place across
    width = max(SCRATCH // (2 * itemsize * wide * scratch_rows) // group, 1) * group
    width = min(width, -(-places[1] // group) * group)
    across = -(-places[1] // width)
    width = -(-places[1] // across // group) * group  # alike
    down, across = -(-places[0] // height), -(-places[1] // width)
    pitch = wide * width + MARGIN // itemsize
    tile = np.array([height, width, down, across, pitch], np.int64)
    # blocks of a row, the filtered rows, and six rows more to add up
    elements = 2 * (width + taps_across // 2 + PADDING) + (6 + 2 * scratch_rows) * pitch
    arguments = Constant(np.array(sizes, np.int64), tile)
    work = sizes[0] * sizes[1] // (down * across)
    return Launch(arguments, down * across, work, elements=elements, more=8 * GROUP_BYTES)
