"""The decimated transform of both axes of panels: each level filters one axis after the other (Mallat 1989).

The bands of a level are, in the order of thresholds, "D" (high-pass along both axes), "V" (along the second) and "H"
(along the first): cD, cV and cH of PyWavelets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pywt

from wavefilt.arrays import Array
from wavefilt.thresholding.local_shrinkage import Grid
from wavefilt.vocabulary import MODES
from wavefilt.wavelets.filters import detail_lengths

from .base import Analysis
from .dwt import DWT, one_level, synthesis_mode
from .planes import PlaneTransform, check_panels, separable_grids

if TYPE_CHECKING:
    from wavefilt.options import Options


class _DWT2(PlaneTransform):
    name, word, band_names = "dwt2", "dwt", "DVH"

    def check(self, method: Options) -> None:
        check_panels(method, spins=True)

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        return [prod(size) for size in self.planes(analysis, shape)[1:] for _ in self.band_names]

    def planes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shape of a panel and of each of its bands at every level, finest first."""
        lengths = (
            [n, *detail_lengths(n, wavelet.dec_len, mode, analysis.level)]
            for n, wavelet, mode in zip(shape, analysis.wavelets, analysis.modes, strict=True)
        )
        return list(zip(*lengths, strict=True))

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        levels = []
        for _ in range(analysis.level):  # pywt.wavedec2 warns beyond its maximum level
            x, bands = _one_level(x, analysis)
            levels.append(bands)
        found = (band for bands in reversed(levels) for band in bands)
        return tuple(map(np.ascontiguousarray, (x, *found)))

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        y, modes = approximation, tuple(map(synthesis_mode, analysis.modes))
        for bands in zip(details, details, details, strict=True):  # the same iterator: three at a time
            rows, columns = bands[0].shape[1:]
            y = pywt.idwt2((y[:, :rows, :columns], bands), analysis.wavelets, modes)
        return np.ascontiguousarray(y[:, : shape[0], : shape[1]])

    def plane_grids(self, analysis: Analysis, shape: tuple[int, ...]) -> Sequence[tuple[Grid, Grid]]:
        return separable_grids(DWT, analysis, shape)


DWT2 = _DWT2()


def _one_level(x: Array, analysis: Analysis) -> tuple[Array, tuple[Array, Array, Array]]:
    """cA and (cH, cV, cD) of panels (batch, rows, columns)."""
    wavelets, modes = analysis.wavelets, analysis.modes
    if set(modes) <= set(MODES):
        return pywt.dwt2(x, wavelets, modes)  # type: ignore[no-any-return]
    (low, high), (second, mode) = one_level(x, wavelets[0], modes[0], -2), (wavelets[1], modes[1])
    (a, v), (h, d) = one_level(low, second, mode), one_level(high, second, mode)
    return a, (h, v, d)
