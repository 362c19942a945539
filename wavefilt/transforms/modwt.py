"""The maximal overlap discrete wavelet transform in NumPy, one filter tap after another.

What it is: `wavefilt.decomposition`; which coefficients beyond the samples are kept:
`wavefilt.wavelets.modwt_boundary`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pywt

from wavefilt.arrays import Array
from wavefilt.errors import OptionError, options
from wavefilt.thresholding.local_shrinkage import REACH, Grid, details_first, low_pass_lag
from wavefilt.thresholding.rules import Rule
from wavefilt.wavelets import modwt_boundary
from wavefilt.wavelets.extension import extended

from .base import Analysis, Transform
from .dwt import reach

AT_ONCE = 1 << 14
"""Sums computed at a time: they and their terms fit the second-level cache."""

if TYPE_CHECKING:
    from wavefilt.options import Options


class _MODWT(Transform):
    name = word = "modwt"
    workspace = 2.0

    def check(self, method: Options) -> None:
        spins = options("spins")
        if method.spins > 1:
            raise OptionError(options(transform="modwt"), " does not depend on shifts: leave ", spins, " out")
        if method.rule.blocks:
            what = (" shrinks blocks of ", options(transform="dwt"), "; use ", spins, " for shifts of it")
            raise OptionError(options(rule=method.rule.option), *what)

    def deepest(self, shape: tuple[int, ...], bank: pywt.Wavelet) -> int:
        """log2 of the length: above, the taps would lie more than half of the samples apart."""
        return max(shape[0], 1).bit_length() - 1

    def noise_exponent(self, level: int) -> float:
        """Filters are scaled by 2^{-j/2} at level j (Percival and Walden 2000, chapter 5)."""
        return -0.5 * level

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        return [shape[0]] * analysis.level

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        wavelet, mode, level, start_level = parts(analysis)
        modwt_boundary.check(x.shape[-1], mode)
        samples, half = x.shape[-1], wavelet.dec_len // 2
        before, after = modwt_boundary.needed(wavelet.dec_len, mode, 0, level, start_level)
        v, details = outside(x, mode, before, after), []
        for j in range(1, level + 1):
            step = 1 << start_level + j - 1
            if mode in modwt_boundary.ROUND:
                v = outside(v, mode, step * (half - 1), step * half)
            v, detail = filtered(v, wavelet.dec_lo, step), filtered(v, wavelet.dec_hi, step)
            first, _ = modwt_boundary.needed(wavelet.dec_len, mode, j, level, start_level)
            before, after = modwt_boundary.kept(wavelet.dec_len, mode, j, start_level)
            details.append(detail[:, first - before : first + samples + after])
        return (v, *reversed(details))

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        wavelet, mode, level, start_level = parts(analysis)
        v, half = approximation, wavelet.rec_len // 2
        for j, detail in zip(range(level, 0, -1), details, strict=True):
            step = 1 << start_level + j - 1
            if mode in modwt_boundary.ROUND:
                v, detail = (outside(c, mode, step * half, step * (half - 1)) for c in (v, detail))
            v = filtered(v, wavelet.rec_lo, step) + filtered(detail, wavelet.rec_hi, step)
        return np.ascontiguousarray(v)

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Those of the samples, without the boundary coefficients."""
        finest_first = coefficients[:0:-1]
        if analysis.modes[0] in modwt_boundary.ROUND:
            return finest_first
        starts = (self.margin(analysis, j) for j in range(1, analysis.level + 1))
        return tuple(d[:, a : a + shape[0]] for d, a in zip(finest_first, starts, strict=True))

    def counted_approximation(self, approximation: Array, analysis: Analysis, shape: tuple[int, ...]) -> Array:
        first = self.margin(analysis, analysis.level)
        return approximation[:, first : first + shape[0]]

    def margin(self, analysis: Analysis, level: int) -> int:
        wavelet, mode, _, start_level = parts(analysis)
        return modwt_boundary.kept(wavelet.dec_len, mode, level, start_level)[0]

    def on_device(self, spec: Rule) -> bool:
        return spec.together is None or spec.local

    def spacing(self, level: int) -> int:
        return 0

    def halo(self, taps: int, level: int) -> int:
        return reach(taps, level)

    def grids(self, analysis: Analysis, shape: tuple[int, ...]) -> tuple[Grid, ...]:
        wavelet, mode, level, start_level = parts(analysis)
        found, periodic = [], mode in modwt_boundary.ROUND
        for j in range(1, level + 1):
            before, after = modwt_boundary.kept(wavelet.dec_len, mode, j, start_level)
            first = details_first(start_level + j, 0.5) - before
            found.append(Grid(before + shape[0] + after, 1, first, 1 << start_level + j, REACH, periodic))
        lag = round(math.ldexp(low_pass_lag(wavelet.dec_lo), start_level + level))
        return (*found, replace(found[-1], first=found[-1].first + lag))


MODWT = _MODWT()


def parts(analysis: Analysis) -> tuple[pywt.Wavelet, str, int, int]:
    """Its one wavelet and mode, and its levels."""
    return analysis.wavelets[0], analysis.modes[0], analysis.level, analysis.start_level


def outside(x: Array, mode: str, before: int, after: int, axis: int = -1) -> Array:
    """Samples with so many before and after them along an axis; no sample is repeated in periodization."""
    name = "periodic" if mode in modwt_boundary.ROUND else mode
    return np.moveaxis(extended(np.moveaxis(x, axis, -1), name, before, after), -1, axis)


def filtered(x: Array, taps: list[float], step: int) -> Array:
    """The filter over sqrt 2, its taps ``step`` apart, at every place where it finds all of its samples.

    Summed in float64: this is the reference, and sums of many float32 products are off by several of their digits.
    """
    count = x.shape[-1] - step * (len(taps) - 1)
    wide = x.astype(np.result_type(x.dtype, np.float64), copy=False)
    out, width = np.empty((len(x), count), x.dtype), max(AT_ONCE // max(len(x), 1), 1)
    for first in range(0, count, width):
        total = np.zeros((len(x), min(width, count - first)), wide.dtype)
        part, columns = np.empty_like(total), total.shape[1]
        for q, tap in enumerate(reversed(taps)):
            begin = first + step * q
            total += np.multiply(wide[:, begin : begin + columns], tap / 2**0.5, out=part)
        out[:, first : first + columns] = total
    return out
