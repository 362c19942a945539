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

from typing import Any, NamedTuple

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.plan import Plan
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import device

Group = tuple[object, ...]


class Plane(NamedTuple):
    """Rows of sections in an array: the first element, elements from section to section, and from row to row."""

    array: DeviceArray
    begin: int
    stride: int
    pitch: int


class Tiled(NamedTuple):
    """A kernel, its threads per block, and the rows and columns of its tiles, in the units of `launch_tiles`."""

    kernel: Kernel
    threads: int
    rows: int
    columns: int


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


def short(*numbers: int) -> tuple[Any, ...]:
    """Return sizes in 32 bits, with which kernels compute addresses in fewer instructions."""
    return tuple(map(np.int32, numbers))


class SectionsPlan(Plan):
    """A plan with the launches of these kernels.

    Blocks go down several tiles, at most ``most_turns``, where a launch still has ``fewest`` blocks.
    """

    fewest: int
    most_turns: int

    def launch_tiles(self, tiled: Tiled, size: tuple[int, int], stream: Stream, before: Group, after: Group) -> None:
        """Launch a kernel for all tiles of a section, with arguments before and after its `Tiling`.

        ``size`` is the rows and columns of a section, counted as the tiles count: samples, pairs or coefficients.
        """
        down, across, sections = -(-size[0] // tiled.rows), -(-size[1] // tiled.columns), self.shape.rows
        turns = max(min(across * down * sections // self.fewest, self.most_turns), 1)
        for first in range(0, sections, ROWS):
            blocks = across * -(-down // turns), min(sections - first, ROWS)
            launch = tiled.kernel[blocks, tiled.threads, stream]
            launch(*before, Tiling(first, *short(across, turns)), *after)
