"""The maximal overlap transform of both axes of panels: each level filters one axis after the other.

The bands of a level are "D", "V" and "H", as those of `wavefilt.transforms.dwt2`, each with a coefficient for every
sample. Along either axis filters and boundary coefficients are those of `wavefilt.transforms.modwt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from wavefilt.arrays import Array, Mask
from wavefilt.thresholding.local_shrinkage import Grid
from wavefilt.thresholding.rules import Rule
from wavefilt.wavelets import modwt_boundary

from .base import Analysis
from .modwt import MODWT, filtered, outside, parts
from .planes import PlaneTransform, separable_grids


class _MODWT2(PlaneTransform):
    name, word, band_names = "modwt2", "modwt", "DVH"
    workspace = 5.0

    def deepest(self, shape: tuple[int, ...], bank: Any) -> int:
        return min(MODWT.deepest((n,), bank) for n in shape)

    def noise_exponent(self, level: int) -> float:
        """Filters are scaled by 2^{-j/2} at level j along either axis."""
        return -float(level)

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        return [prod(shape)] * (3 * analysis.level)

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        along, details = axes(analysis), list[Array]()
        for axis, own in enumerate(along, 1):
            x = extended_samples(x, own, axis)
        for j in range(1, analysis.level + 1):
            low, high = _split(x, along[1], 2, j)
            (x, horizontal), (vertical, diagonal) = (_split(c, along[0], 1, j) for c in (low, high))
            rows, columns = (kept_part(c, own, j) for c, own in zip(diagonal.shape[1:], along, strict=True))
            details += [np.ascontiguousarray(c[:, rows, columns]) for c in (diagonal, vertical, horizontal)]
        return (np.ascontiguousarray(x), *reversed(details))

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        x, along = approximation, axes(analysis)
        bands = zip(details, details, details, strict=True)  # the same iterator: three at a time
        for j, (horizontal, vertical, diagonal) in zip(range(analysis.level, 0, -1), bands, strict=True):
            low = _joined(x, horizontal, along[0], 1, j)
            high = _joined(vertical, diagonal, along[0], 1, j)
            x = _joined(low, high, along[1], 2, j)
        return np.ascontiguousarray(x)

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Those of the samples, without the boundary coefficients."""
        found = []
        for i, band in enumerate(coefficients[:0:-1]):
            first, second = (MODWT.margin(own, i // 3 + 1) for own in axes(analysis))
            found.append(band[:, first : first + shape[0], second : second + shape[1]].reshape(len(band), -1))
        return tuple(found)

    def plane_grids(self, analysis: Analysis, shape: tuple[int, ...]) -> Sequence[tuple[Grid, Grid]]:
        return separable_grids(MODWT, analysis, shape)

    def on_device(self, spec: Rule) -> bool:
        return False

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        shares = super().live_shares(live, analysis)  # of filters over sqrt 2, a pair of them a level
        return tuple(share * 2.0 ** (i // 3 + 1) for i, share in enumerate(shares))


MODWT2 = _MODWT2()


def axes(analysis: Analysis) -> list[Analysis]:
    """The transform along each axis."""
    pairs = zip(analysis.wavelets, analysis.modes, strict=True)
    return [Analysis(MODWT, (wavelet,), (mode,), analysis.level, analysis.start_level) for wavelet, mode in pairs]


def extended_samples(x: Array, analysis: Analysis, axis: int) -> Array:
    """Samples with all of their extension that the coefficients are of; as they are in the periodic modes."""
    wavelet, mode, level, start_level = parts(analysis)
    modwt_boundary.check(x.shape[axis], mode)
    return outside(x, mode, *modwt_boundary.needed(wavelet.dec_len, mode, 0, level, start_level), axis)


def kept_part(length: int, analysis: Analysis, level: int) -> slice:
    """Of so many coefficients of a level those that the inverse needs."""
    wavelet, mode, deepest, start_level = parts(analysis)
    needed = modwt_boundary.needed(wavelet.dec_len, mode, level, deepest, start_level)
    kept = modwt_boundary.kept(wavelet.dec_len, mode, level, start_level)
    return slice(needed[0] - kept[0], length - (needed[1] - kept[1]))


def _split(x: Array, analysis: Analysis, axis: int, level: int) -> tuple[Array, Array]:
    """Low-pass and high-pass coefficients of a level along an axis."""
    wavelet, mode, _, start_level = parts(analysis)
    step, half = 1 << start_level + level - 1, wavelet.dec_len // 2
    if mode in modwt_boundary.ROUND:
        x = outside(x, mode, step * (half - 1), step * half, axis)
    return _along(x, wavelet.dec_lo, step, axis), _along(x, wavelet.dec_hi, step, axis)


def _joined(low: Array, high: Array, analysis: Analysis, axis: int, level: int) -> Array:
    """The inverse of `_split`."""
    wavelet, mode, _, start_level = parts(analysis)
    step, half = 1 << start_level + level - 1, wavelet.rec_len // 2
    if mode in modwt_boundary.ROUND:
        low, high = (outside(c, mode, step * half, step * (half - 1), axis) for c in (low, high))
    return _along(low, wavelet.rec_lo, step, axis) + _along(high, wavelet.rec_hi, step, axis)


def _along(x: Array, taps: list[float], step: int, axis: int) -> Array:
    moved = np.moveaxis(x, axis, -1)
    found = filtered(moved.reshape(-1, moved.shape[-1]), taps, step)
    return np.moveaxis(found.reshape(*moved.shape[:-1], found.shape[-1]), -1, axis)
