"""Details shrunk block by block, by the energy of a block or of its neighbourhood: BlockJS and NeighBlock.

A block of L details of noise σ is multiplied by max(0, 1 - λ L σ²/Σd²), with λ the root of λ - ln λ = 3 (Cai, Annals
of Statistics 27, 1999). BlockJS sums over the block, of ⌊ln n⌋ details for n samples. NeighBlock sums over a block of
⌊ln(n)/2⌋ and its neighbours on both sides (Cai and Silverman, Sankhyā 63, 2001). Rows are periodic here: the last
block of a row is filled up from its beginning, which Cai calls augmented.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = 4.505241453127829
"""λ of λ - ln λ = 3."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of ``core`` details, whose energy is that of ``reach`` more on either side as well."""

    core: int
    reach: int = 0

    @staticmethod
    def js(samples: int) -> Blocks:
        """Of BlockJS for a trace of so many samples."""
        return Blocks(max(int(math.log(samples)), 1))

    @staticmethod
    def neighbour(samples: int) -> Blocks:
        """Of NeighBlock for a trace of so many samples."""
        core = max(int(math.log(samples) / 2), 1)
        return Blocks(core, max(core // 2, 1))

    def shrink(self, data: NDArray[Any], value: Any) -> NDArray[Any]:
        """Rows of details times max(0, 1 - value²/mean(d²)) of their blocks.

        ``data`` has shape (rows, details), ``value`` broadcasts against (rows, 1): σ √λ, the root mean square below
        which a block goes; 0 changes nothing. A row shorter than the neighbourhood is one itself.
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
