"""The DWT and the MODWT of one axis or two: each level filters one axis after the other.

The bands of a level of a section are, in the order of thresholds, "D" (high-pass along both axes), "V" (along the
second) and "H" (along the first): cD, cV and cH of PyWavelets. The decimated transform (Mallat 1989) is computed by
PyWavelets. The maximal overlap transform (Percival and Walden 2000, chapter 5) is computed in NumPy, one filter tap
after another; its formulas are in `wavefilt.modwt`, its boundary coefficients in `wavefilt.wavelets.boundary`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pywt

from wavefilt.arrays import Array, Mask
from wavefilt.thresholding.local import REACH, Grid, details_first, low_pass_lag
from wavefilt.wavelets import boundary
from wavefilt.wavelets.boundary import ROUND, extended, modwt_kept, modwt_needed
from wavefilt.wavelets.filters import detail_length, detail_lengths

from .base import Analysis, Refusal, Shape, Transform

if TYPE_CHECKING:
    from wavefilt.options import Options

AT_ONCE = 1 << 14
"""Sums computed at a time: they and their terms fit the second-level cache."""


class DecimatedTransform(Transform):
    """The DWT. Each level splits the approximation of the level before along each axis.

    Bands of a level are numbered by the axes along which they are high-pass: 1 for the first, 2 for the second, 3 for
    both.
    """

    word = "dwt"

    order: tuple[int, ...]
    """The axes, counted from 0, in the order in which a level filters them; the inverse takes them in reverse."""

    def __init__(self, ndim: int) -> None:
        self.ndim, self.order = ndim, tuple(range(ndim))
        self.name, self.band_names = (self.word, "D") if ndim == 1 else (f"{self.word}2", "DVH")

    def lengths(self, samples: int, one: Analysis) -> list[int]:
        """Return the number of coefficients of each level along an axis that rules count."""
        return detail_lengths(samples, one.taps, one.modes[0], one.level)

    def split(self, x: Array, one: Analysis, axis: int, level: int) -> tuple[Array, Array]:
        """Return the low-pass and high-pass coefficients of a level along an axis.

        Boundary modes that PyWavelets does not have extend the samples of every level here.
        """
        wavelet, mode = one.wavelets[0], one.modes[0]
        if one.builtin_modes:  # pywt.wavedec warns beyond its maximum level
            return pywt.dwt(x, wavelet, mode, axis)  # type: ignore[no-any-return]
        taps, count = one.taps, detail_length(x.shape[axis], one.taps, mode)
        # coefficient k of the signal is k + taps/2 of the extended one, whose own boundary it does not reach
        longer = np.moveaxis(extended(x, mode, taps, taps, axis), axis, -1)
        both = pywt.dwt(np.ascontiguousarray(longer), wavelet, "zero")
        low, high = (np.moveaxis(c[..., taps // 2 : taps // 2 + count], -1, axis) for c in both)
        return low, high

    def join(self, low: Array, high: Array, one: Analysis, axis: int, level: int) -> Array:
        """Invert `split`."""
        mode = one.modes[0] if one.builtin_modes else "symmetric"  # only periodization has an inverse of its own
        return pywt.idwt(low, high, one.wavelets[0], mode, axis)  # type: ignore[no-any-return]

    def axis_grids(self, one: Analysis, samples: int) -> list[Grid]:
        """Return the places of the details of each level along an axis."""
        mode = one.modes[0]
        middle, periodic = boundary.first_input(one.taps, mode) + (one.taps - 1) / 2, mode == "periodization"
        return [
            Grid(count, 1 << j, details_first(j, middle), 1, REACH, periodic)
            for j, count in enumerate(self.lengths(samples, one), 1)
        ]

    def extend(self, x: Array, one: Analysis, axis: int) -> Array:
        """Return the samples with the part of their extension along an axis that all levels need."""
        return x

    def kept(self, length: int, one: Analysis, level: int) -> slice:
        """Return which of the details of a level along an axis the inverse needs."""
        return slice(length)

    def sizes(self, analysis: Analysis, shape: Shape) -> list[int]:
        lengths = [self.lengths(n, one) for n, one in zip(shape, axes(analysis), strict=True)]
        return [prod(size) for size in zip(*lengths, strict=True) for _ in self.band_names]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        along, details = axes(analysis), list[Array]()
        for axis, one in enumerate(along, 1):
            x = self.extend(x, one, axis)
        for level in range(1, analysis.level + 1):
            bands = {0: x}
            for axis in self.order:
                for place, band in list(bands.items()):
                    bands[place], bands[place | 1 << axis] = self.split(band, along[axis], axis + 1, level)
            x = bands.pop(0)
            kept = [self.kept(n, one, level) for n, one in zip(x.shape[1:], along, strict=True)]
            details = [*(bands[place][(slice(None), *kept)] for place in sorted(bands)), *details]
        return tuple(map(np.ascontiguousarray, (x, *details)))

    def synthesise(self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: Shape) -> Array:
        y, along = approximation, axes(analysis)
        levels = zip(*[details] * len(self.band_names), strict=True)  # the same iterator: all bands of a level
        for level, own in zip(range(analysis.level, 0, -1), levels, strict=True):
            bands = {0: y[(slice(None), *map(slice, own[0].shape[1:]))]} | dict(enumerate(own, 1))
            for axis in reversed(self.order):
                for place in [place for place in bands if not place >> axis & 1]:
                    high = bands.pop(place | 1 << axis)
                    bands[place] = self.join(bands[place], high, along[axis], axis + 1, level)
            y = bands[0]
        return np.ascontiguousarray(y[(slice(None), *map(slice, shape))])

    def grids(self, analysis: Analysis, shape: Shape) -> Any:
        """Return the places of coefficients; low-pass ones are later by the lag of their filter."""
        along = axes(analysis)
        high = [self.axis_grids(one, samples) for one, samples in zip(along, shape, strict=True)]
        lags = [low_pass_lag(wavelet.dec_lo) for wavelet in analysis.wavelets]
        if self.ndim == 1:
            (details,), coarsest = high, high[0][-1]
            steps = round(math.ldexp(lags[0], analysis.start_level + analysis.level) / coarsest.step)
            return (*details, replace(coarsest, first=coarsest.first + steps * coarsest.step))
        high = [[grid.in_plane for grid in grids] for grids in high]
        low = [
            [replace(grid, first=grid.first + lag * 2**j) for j, grid in enumerate(grids, 1)]
            for grids, lag in zip(high, lags, strict=True)
        ]
        levels = zip(*high, *low, strict=True)
        return [pair for a, b, low_a, low_b in levels for pair in ((a, b), (low_a, b), (a, low_b))]

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """Return the transform of the mask by the squared filters."""
        wavelets, modes = [], []
        for wavelet, mode in zip(analysis.wavelets, analysis.modes, strict=True):
            squares = [np.square(taps) / np.sum(np.square(taps)) for taps in wavelet.filter_bank]
            wavelets.append(pywt.Wavelet("", filter_bank=squares))
            modes.append(mode if mode in ROUND else "symmetric")
        own = replace(analysis, wavelets=tuple(wavelets), modes=tuple(modes))
        shares = self.counted(self.analyse(live[None].astype(np.float32), own), own, live.shape)[:-1]
        bands = self.bands(analysis.level)
        return tuple(share * 2.0**-band.noise_exponent for band, share in zip(bands, shares, strict=True))

    def halo(self, filters: pywt.Wavelet, level: int, neighbours: int = 0) -> int | None:
        """Return the reach of all levels of analysis and synthesis, (taps - 1)(2^level - 1) samples, rounded up.

        Neighbours count from the nearest coefficient of another band, which may lag behind.
        """
        if self.ndim == 2:
            return None
        steps = -(-(int(filters.dec_len) - 1) * ((1 << level) - 1) >> level)
        if neighbours:
            steps += neighbours + math.ceil(abs(low_pass_lag(filters.dec_lo))) + 2
        return steps << level


class MaximalOverlapTransform(DecimatedTransform):
    """The MODWT: the DWT without decimation, its filters scaled by 2^(-j/2) at level j along each axis."""

    word = "modwt"
    depends_on_shifts = False

    def __init__(self, ndim: int) -> None:
        super().__init__(ndim)
        self.order, self.workspace = self.order[::-1], 2.0 if ndim == 1 else 5.0

    def refusals(self, options: Options) -> Iterable[Refusal]:
        yield from super().refusals(options)
        yield "rule", options.rule.blocks, ": it shrinks blocks of `transform='dwt'`"

    def deepest(self, shape: Shape, filters: Any) -> int:
        """Return log2 of the length: above, the taps would lie more than half of the samples apart."""
        return max(min(shape), 1).bit_length() - 1

    def noise_exponent(self, level: int) -> float:
        return -0.5 * self.ndim * level

    def lengths(self, samples: int, one: Analysis) -> list[int]:
        return [samples] * one.level

    def extend(self, x: Array, one: Analysis, axis: int) -> Array:
        (mode,) = one.modes
        boundary.check_single(x.shape[axis], mode)
        needed = modwt_needed(one.taps, mode, 0, one.level, one.start_level)
        return extended(x, mode, *needed, axis) if any(needed) else x

    def kept(self, length: int, one: Analysis, level: int) -> slice:
        needed = modwt_needed(one.taps, one.modes[0], level, one.level, one.start_level)
        kept = modwt_kept(one.taps, one.modes[0], level, one.start_level)
        return slice(needed[0] - kept[0], length - (needed[1] - kept[1]))

    def split(self, x: Array, one: Analysis, axis: int, level: int) -> tuple[Array, Array]:
        wavelet, step = one.wavelets[0], 1 << one.start_level + level - 1
        x = wrapped(x, one, step * (one.taps // 2 - 1), step * (one.taps // 2), axis)
        return _filtered(x, wavelet.dec_lo, step, axis), _filtered(x, wavelet.dec_hi, step, axis)

    def join(self, low: Array, high: Array, one: Analysis, axis: int, level: int) -> Array:
        wavelet, step = one.wavelets[0], 1 << one.start_level + level - 1
        before, after = step * (wavelet.rec_len // 2), step * (wavelet.rec_len // 2 - 1)
        low, high = (wrapped(c, one, before, after, axis) for c in (low, high))
        return _filtered(low, wavelet.rec_lo, step, axis) + _filtered(high, wavelet.rec_hi, step, axis)

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: Shape) -> tuple[Any, ...]:
        """Return the coefficients of the samples, without the boundary coefficients."""
        if set(analysis.modes) <= set(ROUND):
            return super().counted(coefficients, analysis, shape)
        along, found = axes(analysis), []
        for i, band in enumerate(coefficients[::-1]):
            level = min(i // len(self.band_names) + 1, analysis.level)
            firsts = [self.margin(one, level) for one in along]
            found.append(band[(slice(None), *(slice(a, a + n) for a, n in zip(firsts, shape, strict=True)))])
        return super().counted(tuple(found[::-1]), analysis, shape)

    def margin(self, analysis: Analysis, level: int) -> int:
        return modwt_kept(analysis.wavelets[0].dec_len, analysis.modes[0], level, analysis.start_level)[0]

    def spacing(self, level: int) -> int:
        return 0

    def axis_grids(self, one: Analysis, samples: int) -> list[Grid]:
        found, (mode,), start_level = list[Grid](), one.modes, one.start_level
        for j in range(1, one.level + 1):
            before, after = modwt_kept(one.taps, mode, j, start_level)
            first = details_first(start_level + j, 0.5) - before
            found.append(Grid(before + samples + after, 1, first, 1 << start_level + j, REACH, mode in ROUND))
        return found


DWT, DWT2 = DecimatedTransform(1), DecimatedTransform(2)
MODWT, MODWT2 = MaximalOverlapTransform(1), MaximalOverlapTransform(2)


def parts(one: Analysis) -> tuple[pywt.Wavelet, str, int, int]:
    """Return the wavelet, mode, level and first level of a transform along one axis."""
    return one.wavelets[0], one.modes[0], one.level, one.start_level


def axes(analysis: Analysis) -> list[Analysis]:
    """Return the transform along each axis."""
    if len(analysis.modes) == 1:
        return [analysis]
    one = DWT if analysis.transform.word == "dwt" else MODWT
    pairs = zip(analysis.wavelets, analysis.modes, strict=True)
    return [Analysis(one, (wavelet,), (mode,), analysis.level, analysis.start_level) for wavelet, mode in pairs]


def wrapped(x: Array, one: Analysis, before: int, after: int, axis: int) -> Array:
    """Return coefficients of the MODWT extended periodically along an axis, in periodic modes."""
    return extended(x, "periodic", before, after, axis) if one.modes[0] in ROUND else x


def _filtered(x: Array, taps: list[float], step: int, axis: int) -> Array:
    """Return the filter over sqrt 2, its taps ``step`` apart, at every place along an axis where it has all samples.

    Summed in float64: sums of many float32 products would lose several digits.
    """
    moved = np.moveaxis(x, axis, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    count = rows.shape[1] - step * (len(taps) - 1)
    wide = rows.astype(np.result_type(x.dtype, np.float64), copy=False)
    out, width = np.empty((len(rows), count), x.dtype), max(AT_ONCE // max(len(rows), 1), 1)
    for first in range(0, count, width):
        total = np.zeros((len(rows), min(width, count - first)), wide.dtype)
        part, columns = np.empty_like(total), total.shape[1]
        for q, tap in enumerate(reversed(taps)):
            begin = first + step * q
            total += np.multiply(wide[:, begin : begin + columns], tap / 2**0.5, out=part)
        out[:, first : first + columns] = total
    return np.moveaxis(out.reshape(*moved.shape[:-1], count), -1, axis)
