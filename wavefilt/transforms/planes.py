"""What transforms of two dimensions have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pywt

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.errors import OptionError, options
from wavefilt.thresholding.bivariate import Together
from wavefilt.thresholding.local_shrinkage import Grid, low_pass_lag
from wavefilt.wavelets import modwt_boundary

from .base import Analysis, Transform

if TYPE_CHECKING:
    from wavefilt.options import Options


class PlaneTransform(Transform):
    """A transform of panels, whose coefficients are arrays (batch, rows, columns)."""

    dimensions = 2
    shrinks_approximation = False

    def check(self, method: Options) -> None:
        check_panels(method)

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(c.reshape(len(c), -1) for c in coefficients[:0:-1])

    def shrunk_together(
        self,
        function: Together,
        coefficients: tuple[Array, ...],
        thresholds: Floats,
        analysis: Analysis,
        shape: tuple[int, ...],
    ) -> list[Array]:
        bands, grids = coefficients[:0:-1], self.plane_grids(analysis, shape)
        directions = len(bands) // analysis.level
        return [coefficients[0], *function.shrink_planes(bands, thresholds, grids, self.parts, directions)[::-1]]

    @abstractmethod
    def plane_grids(self, analysis: Analysis, shape: tuple[int, ...]) -> Sequence[tuple[Grid, Grid]]:
        """Where the coefficients of each band are along both axes, as `Grid.in_plane`, in the order of `bands`."""

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """The transform of the mask by the squared filters."""
        wavelets, modes = [], []
        for wavelet, mode in zip(analysis.wavelets, analysis.modes, strict=True):
            squares = [np.square(taps) / np.sum(np.square(taps)) for taps in wavelet.filter_bank]
            wavelets.append(pywt.Wavelet("", filter_bank=squares))
            modes.append(mode if mode in modwt_boundary.ROUND else "symmetric")
        own = replace(analysis, wavelets=tuple(wavelets), modes=tuple(modes))
        return self.counted(self.analyse(live[None].astype(np.float32), own), own, live.shape)


def check_panels(method: Options, spins: bool = False) -> None:
    """Raise ValueError for options that are for traces, and for ``spins`` unless they are of use."""
    if method.spins > 1 and not spins:
        raise OptionError(
            options(transform=method.transform.word), " depends little on shifts: leave ", options("spins"), " out"
        )
    refused = {
        "sigma": isinstance(method.sigma, tuple),
        "rule": method.rule.blocks is not None,
        "detrend": method.detrend is not None,
    }
    for option, wrong in refused.items():
        if wrong:
            raise OptionError(options(**{option: vars(method)[option]}), " is for traces, not for two dimensions")


def separable_grids(along: Transform, analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[Grid, Grid]]:
    """`PlaneTransform.plane_grids` of bands "DVH" of a transform ``along`` one axis after the other.

    Low-pass coefficients are later than high-pass ones by the lag of their filter.
    """
    high, low = [], []
    for wavelet, mode, samples in zip(analysis.wavelets, analysis.modes, shape, strict=True):
        one = Analysis(along, (wavelet,), (mode,), analysis.level, analysis.start_level)
        details = [grid.in_plane for grid in along.grids(one, (samples,))[:-1]]
        lag = low_pass_lag(wavelet.dec_lo)
        high.append(details)
        low.append([replace(grid, first=grid.first + lag * 2**j) for j, grid in enumerate(details, 1)])
    levels = zip(high[0], high[1], low[0], low[1], strict=True)
    return [pair for rows, columns, a, b in levels for pair in ((rows, columns), (a, columns), (rows, b))]
