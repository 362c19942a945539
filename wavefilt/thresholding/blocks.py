"""The rules blockjs and neighblock, which shrink details block by block.

A block of L details with noise σ is multiplied by max(0, 1 - λ L σ²/Σd²), where λ is the root of λ - ln λ = 3 (Cai,
Annals of Statistics 27, 1999). BlockJS sums over the block, of ⌊ln n⌋ details for n samples. NeighBlock sums over a
block of ⌊ln(n)/2⌋ details and its neighbours on both sides (Cai and Silverman, Sankhyā 63, 2001). Rows are periodic
here: the last block of a row is completed from its beginning, which Cai calls augmented.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wavefilt.arrays import Array

ROOT = 4.505241453127829
"""λ with λ - ln λ = 3."""


@dataclass(frozen=True)
class Blocks:
    """Block shrinkage of a trace with this number of ``samples``, by a block's own energy or with its neighbours'."""

    neighbours: bool
    samples: int = 1

    word: ClassVar[str] = "block"

    @property
    def core(self) -> int:
        """Details of a block."""
        return max(int(math.log(self.samples) / (2 if self.neighbours else 1)), 1)

    @property
    def reach(self) -> int:
        """Details on either side of a block whose energy is counted too."""
        return max(self.core // 2, 1) if self.neighbours else 0

    def shrink(self, data: Array, value: Any) -> Array:
        """Multiply rows of details (rows, details) by max(0, 1 - value²/mean(d²)) of their blocks.

        ``value`` broadcasts against (rows, 1): σ √λ, the root mean square below which a block is set to 0; with 0
        nothing is changed. A row shorter than the neighbourhood is a single block.
        """
        length = data.shape[-1]
        core, reach = min(self.core, length), self.reach if self.core + 2 * self.reach <= length else 0
        first = np.arange(0, length, core)
        around = (first[:, None] + np.arange(-reach, core + reach)) % length
        gains = np.empty((len(data), len(first)))
        for gain, row, limit in zip(gains, data, np.broadcast_to(value, (len(data), 1)), strict=True):
            power = np.square(np.abs(row), dtype=np.float64)[around].mean(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                gain[:] = np.where(power > limit**2, 1 - np.minimum(limit**2 / power, 1), limit == 0)
        return np.asarray(data * np.repeat(gains, core, axis=1)[:, :length].astype(data.real.dtype))
