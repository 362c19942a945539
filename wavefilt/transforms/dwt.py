"""The decimated wavelet transform of traces (Mallat 1989), as PyWavelets computes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pywt

from wavefilt.arrays import Array
from wavefilt.thresholding.local_shrinkage import REACH, Grid, details_first, low_pass_lag
from wavefilt.thresholding.rules import Rule
from wavefilt.vocabulary import MODES
from wavefilt.wavelets import boundary
from wavefilt.wavelets.extension import extended
from wavefilt.wavelets.filters import detail_length, detail_lengths

from .base import Analysis, Transform


class _DWT(Transform):
    name = word = "dwt"

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        return detail_lengths(shape[0], analysis.wavelets[0].dec_len, analysis.modes[0], analysis.level)

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        details = []
        for _ in range(analysis.level):  # pywt.wavedec warns beyond its maximum level
            x, detail = one_level(x, analysis.wavelets[0], analysis.modes[0])
            details.append(detail)
        return (x, *reversed(details))

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        y, wavelet, mode = approximation, analysis.wavelets[0], synthesis_mode(analysis.modes[0])
        for detail in details:
            y = pywt.idwt(y[:, : detail.shape[-1]], detail, wavelet, mode)
        return np.ascontiguousarray(y[:, : shape[0]])

    def on_device(self, spec: Rule) -> bool:
        return spec.together is None or spec.local

    def grids(self, analysis: Analysis, shape: tuple[int, ...]) -> tuple[Grid, ...]:
        wavelet, mode, level = analysis.wavelets[0], analysis.modes[0], analysis.level
        middle = boundary.first_input(wavelet.dec_len, mode) + (wavelet.dec_len - 1) / 2
        periodic = mode == "periodization"
        found = [
            Grid(count, 1 << j, details_first(j, middle), 1, REACH, periodic)
            for j, count in enumerate(self.sizes(analysis, shape), 1)
        ]
        lag = round(low_pass_lag(wavelet.dec_lo)) << level
        return (*found, replace(found[-1], first=found[-1].first + lag))

    def halo(self, taps: int, level: int) -> int:
        return reach(taps, level)


DWT = _DWT()


def one_level(x: Array, wavelet: pywt.Wavelet, mode: str, axis: int = -1) -> tuple[Array, Array]:
    """Approximation and detail coefficients along an axis: `pywt.dwt`, also in modes that PyWavelets does not have."""
    if mode in MODES:
        return pywt.dwt(x, wavelet, mode, axis)  # type: ignore[no-any-return]
    taps, samples = int(wavelet.dec_len), x.shape[axis]
    longer = extended(np.moveaxis(x, axis, -1), mode, taps, taps)
    count = detail_length(samples, taps, mode)
    # coefficient k of the signal is k + taps/2 of the extended one, whose own boundary it does not reach
    both = pywt.dwt(np.ascontiguousarray(longer), wavelet, "zero")
    low, high = (np.moveaxis(c[..., taps // 2 : taps // 2 + count], -1, axis) for c in both)
    return low, high


def reach(taps: int, level: int) -> int:
    """`Transform.halo` where a level of analysis and one of synthesis together reach taps - 1 coefficients.

    All levels reach (taps - 1)(2^level - 1) samples, rounded up to a multiple of 2^level.
    """
    return -(-(taps - 1) * ((1 << level) - 1) >> level) << level


def synthesis_mode(mode: str) -> str:
    """A mode of PyWavelets with the same inverse: only periodization has one of its own."""
    return mode if mode in MODES else "symmetric"
