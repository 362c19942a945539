"""What transforms of two dimensions have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pywt

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.errors import OptionError, options
from wavefilt.thresholding.local_shrinkage import Local
from wavefilt.wavelets import modwt_boundary

from .base import Analysis, Transform

if TYPE_CHECKING:
    from wavefilt.method import Method


class PlaneTransform(Transform):
    """A transform of panels, whose coefficients are arrays (batch, rows, columns)."""

    dimensions = 2
    shrinks_approximation = False

    def check(self, method: Method) -> None:
        refused = {
            "spins": method.spins > 1,
            "sigma": isinstance(method.sigma, tuple),
            "rule": method.spec.blocks is not None,
            "detrend": method.detrend is not None,
        }
        for option, wrong in refused.items():
            if wrong:
                raise OptionError(options(**{option: vars(method)[option]}), " is for traces, not for two dimensions")

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(c.reshape(len(c), -1) for c in coefficients[:0:-1])

    def shrunk_together(
        self,
        function: Local,
        coefficients: tuple[Array, ...],
        thresholds: Floats,
        analysis: Analysis,
        shape: tuple[int, ...],
    ) -> list[Array]:
        return [coefficients[0], *function.shrink_planes(coefficients[:0:-1], thresholds, self.parts)[::-1]]

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """The transform of the mask by the squared filters."""
        wavelets, modes = [], []
        for wavelet, mode in zip(analysis.wavelets, analysis.modes, strict=True):
            squares = [np.square(taps) / np.sum(np.square(taps)) for taps in wavelet.filter_bank]
            wavelets.append(pywt.Wavelet("", filter_bank=squares))
            modes.append(mode if mode in modwt_boundary.ROUND else "symmetric")
        own = replace(analysis, wavelets=tuple(wavelets), modes=tuple(modes))
        return self.counted(self.analyse(live[None].astype(np.float32), own), own, live.shape)
