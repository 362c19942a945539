"""What both kernels of a level of both axes share: which filters, modes and tiles they are compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import Filter
from wavefilt.backends.cuda.runtime.target import device

from .columns import STEP

Bank = tuple[tuple[float, ...], tuple[float, ...]]
"""Low-pass and high-pass taps."""


@dataclass(frozen=True)
class PanelLevel:
    """A level with the filters ``down`` the columns and ``along`` the rows, and the tiles that its kernels cut it into.

    ``periodized`` says which axes are, ``several`` which extend by more than one sample, ``height`` how many rows of
    coefficients a tile has.
    """

    down: Bank
    along: Bank
    periodized: tuple[bool, bool]
    several: tuple[bool, bool]
    dtype: str
    height: int
    threads: int

    @cached_property
    def axes(self) -> tuple[Filter, Filter]:
        return Filter(len(self.down[0]), self.periodized[0]), Filter(len(self.along[0]), self.periodized[1])

    @property
    def taps(self) -> int:
        return max(f.taps for f in self.axes)

    @property
    def steps(self) -> int:
        """Steps down a tile."""
        return self.height // STEP

    @property
    def forward_width(self) -> int:
        """Coefficients across a tile whose samples are one a thread."""
        f = self.axes[1]
        return (self.threads - f.lead - f.lead % 2 - f.lag) // 2

    @property
    def inverse_width(self) -> int:
        """Pairs of samples across a tile whose coefficients are one for every second thread."""
        f = self.axes[1]
        return self.threads // 2 - f.low - f.high


@device
def tile_of(index, tiles):
    """Row and column of a tile, of which so many lie side by side; LLVM divides unsigned numbers in 32 bits."""
    row = np.uint32(index) // np.uint32(tiles)
    return np.int64(row), np.int64(index) - np.int64(row) * tiles
