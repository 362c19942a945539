"""Noise that changes along traces: its curves in all bands, by which coefficients are divided and multiplied.

With σ(k) at coefficient k of a band and its mean σ̄ over the band, the coefficients d(k) σ̄/σ(k) have steady noise σ̄.
A rule finds one threshold for them as for any band, and the shrunk coefficients are multiplied by σ(k)/σ̄ again.

Running noise: with h coefficients in half a window, block b has the coefficients from b h to before (b + 2) h (the last
block: to the end of the band), and σ_b = median|d|/0.6745 in it (Donoho and Johnstone 1994). Between the centres of two
blocks, (b + 1) h - 1/2, σ is interpolated linearly; it is constant before the first and after the last one. Half a
window has at least `LEAST` / 2 periods of a level, 2^j samples.

Noise in intervals: σ = median|d|/0.6745 in each interval (Lavielle, Stochastic Processes and their Applications 83,
1999; `wvarchg` in MATLAB's toolbox), or in `LEAST` periods around a shorter interval.

Where all samples are equal, as in gaps filled with zeros, coefficients are 0 except for rounding. Coefficients below
`DEAD` of the largest one of a block or interval are left out if they are more than a quarter. A block or interval
without others, or whose median is below `DEAD` of the largest median, takes the noise of its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.chunks import Chunk
from wavefilt.options import Options
from wavefilt.statistics.mergeable import JoinedBlocks
from wavefilt.statistics.reference import quantile
from wavefilt.transforms import Analysis, Pyramid

LEAST = 32
"""Smallest number of coefficients for an estimate of the noise, whose standard deviation is then 20 %."""
DEAD = 1e-6
"""Coefficients below this share of the largest one are rounding errors."""
AT_ONCE = 1 << 14
"""Number of coefficients that are divided at once."""
MEDIANS = 1 << 17
"""Number of coefficients that are sorted at once."""


@dataclass(frozen=True)
class Curve:
    """The standard deviation of the noise along one band of rows: straight lines between knots, constant beyond.

    ``places`` (knots,) are in coefficients that rules count, ``values`` are (rows, knots).
    """

    places: Floats
    values: Floats

    @classmethod
    def running(cls, medians: Floats, half: int, scale: float) -> Curve:
        """Return the running noise from the medians of blocks (rows, blocks), ``scale`` times these."""
        return cls(half * np.arange(1, medians.shape[1] + 1) - 0.5, scale * _without_dead(medians))

    @classmethod
    def in_intervals(cls, band: Array, edges: Counts, least: int, scale: float) -> Curve:
        """Return the noise of a band (rows, coefficients) in the intervals between ``edges`` and the ends.

        An interval with fewer than ``least`` coefficients is extended on both sides for its median.
        """
        medians, count = [], band.shape[1]
        bounds = np.array([0, *edges.tolist(), count])
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            more = max(least - (end - begin), 0)
            last = min(max(begin - more // 2, 0) + max(least, end - begin), count)
            medians.append(noise_median(np.abs(band[:, max(min(begin, last - least), 0) : last])))
        ends = np.stack([bounds[:-1], bounds[1:] - 1], axis=1)[np.diff(bounds) > 0].astype(float)
        sigma = scale * _without_dead(np.stack(medians, axis=1))[:, np.diff(bounds) > 0]
        return cls(ends.ravel(), np.repeat(sigma, 2, axis=1))

    def at(self, first: int, last: int, dtype: DType) -> Array:
        """Return the values from one coefficient to another, (rows, last - first)."""
        wanted = np.arange(first, last)
        return np.array([np.interp(wanted, self.places, row) for row in self.values], dtype)

    def mean(self, count: int) -> Floats:
        """Return the mean over a band of this many coefficients, (rows,)."""
        widths = np.diff(np.concatenate([[-0.5], self.places, [count - 0.5]]))
        values = np.pad(self.values, [(0, 0), (1, 1)], "edge")
        return np.asarray(np.sum((values[:, 1:] + values[:, :-1]) / 2 * widths, axis=1) / count)

    def over(self, sigma: Floats) -> Curve:
        """Return the curve divided by this noise (rows or 1,); 1 for rows without noise, or where that is 0."""
        some = ((sigma > 0) & self.values.any(axis=1))[:, None]
        return replace(self, values=np.where(some, self.values / np.where(some, sigma.reshape(-1, 1), 1), 1.0))

    def change(self, operation: np.ufunc, band: Array, first: int) -> None:
        """Divide or multiply coefficients of a band by the curve in place; the first one has the place ``first``."""
        together = max(AT_ONCE // max(len(band), 1), 64)
        for start in range(0, band.shape[1], together):
            own = band[:, start : start + together]
            operation(own, self.at(first + start, first + start + own.shape[1], own.real.dtype), out=own)


RowCurves = tuple[slice, tuple[Curve, ...]]
"""Some rows, and their noise curve in each of `Options.bands`."""


@dataclass(frozen=True)
class NoiseCurves:
    """Noise curves of a batch of rows; ``counts`` is the number of coefficients of each band that rules use."""

    lots: Sequence[RowCurves]
    counts: Counts

    @property
    def sigma(self) -> Floats:
        """The mean noise (bands, rows)."""
        means = [
            [curve.mean(count) for curve, count in zip(curves, self.counts.tolist(), strict=True)]
            for _, curves in self.lots
        ]
        return np.concatenate([np.array(bands) for bands in means], axis=1)

    def over(self, sigma: Floats) -> NoiseCurves:
        """Return the curves divided by this noise (bands, rows or 1)."""
        divided = list[RowCurves]()
        for rows, curves in self.lots:
            noise = sigma[:, rows] if sigma.shape[1] > 1 else sigma
            divided.append((rows, tuple(curve.over(values) for curve, values in zip(curves, noise, strict=True))))
        return NoiseCurves(divided, self.counts)

    def change(self, operation: np.ufunc, pyramid: Pyramid, chunk: Chunk | None = None) -> None:
        """Divide or multiply coefficients by the curves, in place; ``chunk`` is needed unless rows are whole."""
        analysis = pyramid.analysis
        bands = pyramid.coefficients[::-1]
        for rows, curves in self.lots:
            for i, (band, curve) in enumerate(
                zip(bands, curves, strict=False)
            ):  # only some rules use the approximation
                level = min(i + 1, analysis.level)
                spacing, margin = analysis.transform.spacing(level), analysis.transform.margin(analysis, level)
                for place, first in chunk.placed(spacing, margin) if chunk else [(slice(None), -margin)]:
                    curve.change(operation, band[rows, place], first)


def of_pyramid(pyramid: Pyramid, options: Options, starts: Sequence[int] = (0,)) -> NoiseCurves:
    """Return the noise curves of whole rows, which begin at samples ``starts`` of their traces.

    Rows share their intervals only if all begin at the same sample.
    """
    analysis, shape = pyramid.analysis, pyramid.shape
    bands = options.counted(pyramid.coefficients, analysis, shape)
    counts = np.array([band.shape[1] for band in bands], np.int64)
    if options.noise.running is not None:
        half = half_windows(options, analysis, shape)
        medians = map(block_medians, bands, half)
        return NoiseCurves(
            [(slice(None), tuple(map(Curve.running, medians, half, scales(options, analysis.level))))], counts
        )
    curves, alike = list[RowCurves](), len(set(starts)) == 1
    for rows in [slice(None)] if alike else [slice(i, i + 1) for i in range(len(bands[0]))]:
        points = [point - starts[rows.start or 0] for point in options.noise.intervals or ()]
        points = [point for point in points if 0 < point < shape[0]]
        own = list[Curve]()
        for band, (first, step), about in zip(
            bands, _grids(options, analysis, shape), options.bands(analysis.level), strict=True
        ):
            edges = np.array([math.ceil((point - first) / step) for point in points], np.int64)
            least = (LEAST << about.level) // step
            own.append(Curve.in_intervals(band[rows], edges.clip(0, band.shape[1]), least, about.median_to_sigma))
        curves.append((rows, tuple(own)))
    return NoiseCurves(curves, counts)


def pooled(sigmas: Sequence[Floats], bands: int, options: Options) -> Floats:
    """Return the mean noise (bands, 1) of a record from the noise of its traces (bands, rows), except where it is 0.

    The approximation of a trace with fewer levels than others is left out.
    """
    total, count = np.zeros((2, bands, 1))
    for sigma in sigmas:
        used = sigma if len(sigma) == bands else sigma[: len(sigma) - options.shrinks_approximation]
        total[: len(used), 0] += used.sum(axis=1)
        count[: len(used), 0] += np.count_nonzero(used, axis=1)
    return np.asarray(total / np.maximum(count, 1))


def half_windows(options: Options, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
    """Return the number of coefficients in half a window of running noise, for each of `Options.bands`."""
    assert options.noise.running is not None
    pairs = zip(options.bands(analysis.level), _grids(options, analysis, shape), strict=True)
    longest = round(options.noise.running / 2)
    return [max(longest, LEAST // 2 << band.level) // step for band, (_, step) in pairs]


def scales(options: Options, level: int) -> list[float]:
    """Return the noise of each of `Options.bands` divided by the median of its magnitudes."""
    return [band.median_to_sigma for band in options.bands(level)]


def _grids(options: Options, analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[float, int]]:
    """Return, for each of `Options.bands`, the time of the first coefficient that counts and the spacing in samples."""
    grids = options.transform.grids(analysis, shape)
    first_and_step = []
    for band, grid in zip(options.bands(analysis.level), grids, strict=False):
        first = grid.first + grid.step * options.transform.margin(analysis, band.level)
        first_and_step.append((first, grid.step))
    return first_and_step


# ---- medians


def halves(count: int, half: int) -> Counts:
    """Return the starts of the halves of blocks, and the band's end: block b has the halves b and b + 1."""
    blocks = max(count // half - 1, 1)
    return np.append(np.minimum(half * np.arange(blocks + 1), count), count)


def block_medians(band: Array, half: int) -> Floats:
    """Return the median of |d| in each block of a band (rows, coefficients), (rows, blocks)."""
    ends = halves(band.shape[1], half)
    medians, whole = np.empty((len(band), len(ends) - 2)), len(ends) - 3
    together = max(MEDIANS // (2 * half * len(band)), 1)
    for start in range(0, whole, together):
        stop = min(start + together, whole)
        part = np.abs(band[:, start * half : (stop + 1) * half])
        blocks = np.lib.stride_tricks.sliding_window_view(part, 2 * half, axis=1)[:, ::half]
        medians[:, start:stop] = noise_median(blocks)
    medians[:, -1] = noise_median(np.abs(band[:, ends[-3] :]))
    return medians


def noise_median(magnitudes: Array) -> Floats:
    """Return the median along the last axis without rounding errors; 0 where too few values are left."""
    medians = quantile(magnitudes)
    rounding = magnitudes <= DEAD * magnitudes.max(axis=-1, keepdims=True)
    many = np.count_nonzero(rounding, axis=-1) > magnitudes.shape[-1] // 4
    for place in zip(*np.nonzero(many), strict=True):
        own = magnitudes[place][~rounding[place]]
        medians[place] = quantile(own) if own.size >= LEAST // 2 else 0
    return medians


class BlockTally:
    """Computes `block_medians` of one row (coefficients,) from parts in any order; keeps a block or two."""

    def __init__(self, count: int, half: int) -> None:
        self._half, self._ends = half, halves(count, half)
        self._parts, self._waiting = JoinedBlocks(self._ends), dict[int, Array]()
        self.medians = np.empty((1, len(self._ends) - 2))

    def add(self, place: int, details: Array) -> None:
        """Count coefficients, the first of which has this place."""
        for first, last, joined in self._parts.add(place, details):
            if last - first > 1:
                self.medians[:, first : last - 1] = block_medians(joined[None], self._half)
            bounds = self._ends[first : last + 1] - self._ends[first]
            if first > 0:
                self._join(first - 1, joined[: bounds[1]])
            if last < len(self._ends) - 1:
                self._join(last - 1, joined[bounds[-2] :])

    def _join(self, block: int, half: Array) -> None:
        """Take half of a block, and compute its median if the other half is known."""
        if block in self._waiting:
            self.medians[:, block] = noise_median(np.abs(np.concatenate([self._waiting.pop(block), half]))[None])
        else:
            self._waiting[block] = half.copy()


def _without_dead(medians: Floats) -> Floats:
    """Interpolate medians of blocks without noise from their neighbours; all are 0 if no block has noise."""
    dead = medians <= DEAD * medians.max(axis=1, keepdims=True)
    if not dead.any():
        return medians
    filled, places = medians.copy(), np.arange(medians.shape[1])
    for row, gone in zip(filled, dead, strict=True):
        row[gone] = 0 if gone.all() else np.interp(places[gone], places[~gone], row[~gone])
    return filled
