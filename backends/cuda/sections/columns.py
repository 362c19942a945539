"""The template of kernels of both axes: a section is cut into tiles, and filters slide down its columns.

    tile   a thread has a column of samples         shared memory       a thread has a column of two bands
           ||||||||||||  in steps of some rows  ->  low-pass rows   ->  along the rows, to memory
           ||||||||||||  window in registers        high-pass rows
           vvvvvvvvvvvv  turn after turn

Windows are in registers, and the filters are unrolled with their taps as constants. A *state* has the results of the
last step, then the rows above that the next step still needs. Neighbouring threads have neighbouring columns, so every
access is to a run of a row, without bank conflicts: there is nothing to pad.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceArray
from wavefilt.backends.cuda.runtime.target import device


class Plane(NamedTuple):
    """Rows of sections in an array: the first element, elements from section to section, and from row to row."""

    array: DeviceArray
    begin: int
    stride: int
    pitch: int


class Tiling(NamedTuple):
    """The first section of a launch, tiles side by side, and tiles that a block goes down."""

    first: int
    tiles: int
    turns: int


@device
def tile_of(index, tiles):
    """Return row and column of a tile; LLVM divides unsigned numbers in 32 bits."""
    row = np.uint32(index) // np.uint32(tiles)
    return np.int64(row), np.int64(index) - np.int64(row) * tiles
