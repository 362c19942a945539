"""How a trace is cut into tiles, how many levels a launch fuses, and where coefficients lie in memory.

A row of n samples is covered by interior tiles of S samples, which need no boundary at all, and by one *boundary* block
that does both its ends: it transforms the shorter row that is left when the middle is cut out (a multiple of
2^levels samples, so every level keeps its parity), and drops the few coefficients that the seam affects. A short row
is a boundary block with nothing cut out. Lengths below are in samples of a launch's finest level; those named
"unit" are in samples of its coarsest, 2^levels times less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from wavefilt.backends.cuda.runtime.interfaces import Build
from wavefilt.wavelets.boundary import first_input
from wavefilt.wavelets.filters import detail_length

TILE_BYTES = 15 << 10  # 3840 float32 with the halo of db8 take 256 threads four rounds of 16 bytes, not five
MOST_LEVELS = 4  # 8 levels as 4 + 4: 5 % faster than 5 + 3, 3 + 3 + 2 or with more threads, on an H200
FEW_SAMPLES, MOST_BYTES = 1 << 24, 21 << 10
"""Samples up to which the five levels of the default are one launch, and bytes of those of its block.

With 16 Mi samples one launch takes 0.94 of the time of two, with 64 Mi 1.01 to 1.04. A block needs twice these bytes.
"""
MANY_ROWS = 528
"""Rows that fill an H200 if each takes a block as large as for a whole tile."""
UNFINISHED, NOT_FINITE, FLAGS = range(3)
"""Flags of kernels: a search that needs more passes (the rest is then void); NaN, infinity,
a run of equal samples, a dead trace of a record or section."""
ROWS = 1 << 15  # rows along the second axis of a grid, which CUDA limits to 65535; the rest go along the third


def up4(n: int) -> int:
    """``n`` rounded up to the four elements of a wide access."""
    return (n + 3) & ~3


def grid(blocks: int, rows: int) -> tuple[int, int, int]:
    """A grid of ``blocks`` blocks for each of the rows."""
    return blocks, min(rows, ROWS), -(-rows // ROWS)


@dataclass(frozen=True)
class Filter:
    """The reach of a filter with ``taps`` taps in forward and inverse direction, periodized or not.

    Coefficient o sees samples 2o - lead to 2o + 1 + lag; the sample pair p sees coefficients p - low to p + high.
    """

    taps: int
    periodized: bool

    @cached_property
    def lead(self) -> int:
        return -first_input(self.taps, self._mode)

    @property
    def _mode(self) -> str:
        return "periodization" if self.periodized else "symmetric"  # the other modes have the same lengths

    @property
    def lag(self) -> int:
        return self.taps - 2 - self.lead

    @property
    def tops(self) -> tuple[int, int]:
        """Last coefficient, from p, under the even and the odd sample of the pair."""
        return self.lead // 2, (self.lead + 1) // 2

    @property
    def low(self) -> int:
        return self.taps // 2 - 1 - self.tops[0]

    @property
    def high(self) -> int:
        return self.tops[1]

    def length(self, n: int) -> int:
        return detail_length(n, self.taps, self._mode)


@dataclass(frozen=True)
class FusedLevels:
    """The constants of the kernels of a launch of ``levels``, with the taps of its direction."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    periodized: bool
    build: Build
    levels: int
    tile: int

    @cached_property
    def filter(self) -> Filter:
        return Filter(len(self.lo), self.periodized)


@dataclass(frozen=True)
class Tiling:
    """Sizes that a kernel of ``levels`` fused levels has compiled in; see the module's docstring.

    The boundary block keeps ``left`` units at the left end, joins the two ends at ``seam`` and drops ``margin`` there;
    ``right`` units beyond the interior tiles are left to it.
    """

    tile: int
    levels: int
    left: int
    seam: int
    margin: int
    right: int

    @property
    def capacity(self) -> int:
        """The longest row of a boundary block."""
        return self.tile + (self.left + self.margin + self.right << self.levels)

    def interior(self, n: int) -> int:
        """Return the interior tiles of a row of n samples."""
        return max(n - (self.left + self.right << self.levels), 0) // self.tile

    def gap(self, n: int) -> int:
        """Return the samples of the row that are not in the boundary block's row."""
        tiles = self.interior(n)
        return tiles * self.tile - (self.margin << self.levels) if tiles else 0


def forward_tiling(f: Filter, tile: int, levels: int) -> Tiling:
    left = max(up4(f.lead), 4)
    right = up4(max(f.lag, f.taps // 2))  # the extension at the right end reaches back by the taps, a level finer
    return Tiling(tile, levels, left, left + up4(f.lag), up4(f.lag) + up4(f.lead), right)


def inverse_tiling(f: Filter, tile: int, levels: int) -> Tiling:
    left, right = max(2 * up4(f.low), 4), up4(2 * f.high)
    return Tiling(tile, levels, left, left + right, right + up4(2 * f.low), right)


def launches(f: Filter, level: int, tile: int, most: int = MOST_LEVELS) -> list[int]:
    """Return the levels of each launch, finest first: fewer for long filters, whose ends would outgrow the tile."""
    fused = 1
    while fused < most and tile >> fused + 1 >= 4 and _overlap(f, tile, fused + 1) <= tile // 2:
        fused += 1
    count = -(-level // fused) if level else 0
    return [min(fused, level - i * fused) for i in range(count)]


def suited_tile(f: Filter, tile: int, levels: int, n: int, rows: int) -> int:
    """Return the tile, or a quarter of it if that holds each of many rows of n samples, so that more blocks run."""
    small = tile // 4
    cut = forward_tiling(f, small, levels), inverse_tiling(f, small, levels)
    return small if rows >= MANY_ROWS and small % (4 << levels) == 0 and not any(c.interior(n) for c in cut) else tile


def at_once(f: Filter, level: int, tile: int, itemsize: int, samples: int) -> bool:
    """Return whether one launch computes all levels, one more than usual, of ``samples`` in all rows."""
    if level != MOST_LEVELS + 1 or tile >> level < 4 or samples > FEW_SAMPLES:
        return False
    overlap = _overlap(f, tile, level)
    return 8 * overlap <= 5 * tile and itemsize * (tile + overlap) <= MOST_BYTES


def _overlap(f: Filter, tile: int, levels: int) -> int:
    return max(forward_tiling(f, tile, levels).capacity, inverse_tiling(f, tile, levels).capacity) - tile
