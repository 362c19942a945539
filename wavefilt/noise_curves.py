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

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.options import Options
from wavefilt.statistics.reference import quantile
from wavefilt.transforms import Pyramid

LEAST = 32
"""Smallest number of coefficients for an estimate of the noise, whose standard deviation is then 20 %."""
DEAD = 1e-6
"""Coefficients below this share of the largest one are rounding errors."""
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
    def running(cls, band: Array, half: int, scale: float) -> Curve:
        """Return the running noise of a band (rows, coefficients), with ``half`` coefficients in half a window."""
        medians = block_medians(band, half)
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

    def mean(self, count: int) -> Floats:
        """Return the mean over a band of this many coefficients, (rows,)."""
        widths = np.diff(np.concatenate([[-0.5], self.places, [count - 0.5]]))
        values = np.pad(self.values, [(0, 0), (1, 1)], "edge")
        return np.asarray(np.sum((values[:, 1:] + values[:, :-1]) / 2 * widths, axis=1) / count)

    def over(self, sigma: Floats) -> Curve:
        """Return the curve divided by this noise (rows or 1,); 1 for rows without noise, or where that is 0."""
        some = ((sigma > 0) & self.values.any(axis=1))[:, None]
        return replace(self, values=np.where(some, self.values / np.where(some, sigma.reshape(-1, 1), 1), 1.0))

    def change(self, operation: np.ufunc, band: Array, margin: int) -> None:
        """Divide or multiply a band by the curve in place; ``margin`` coefficients before the first do not count."""
        wanted = np.arange(band.shape[1]) - margin
        for own, values in zip(band, self.values, strict=True):
            operation(own, np.interp(wanted, self.places, values).astype(own.real.dtype), out=own)


RowCurves = tuple[slice, tuple[Curve, ...]]
"""Some rows, and their noise curve in each of `Options.bands`."""


@dataclass(frozen=True)
class NoiseCurves:
    """Noise curves of a batch of rows; ``counts`` is the number of coefficients of each band that rules use."""

    lots: Sequence[RowCurves]
    counts: Sequence[int]

    @property
    def sigma(self) -> Floats:
        """The mean noise (bands, rows)."""
        means = [list(map(Curve.mean, curves, self.counts)) for _, curves in self.lots]
        return np.concatenate([np.array(bands) for bands in means], axis=1)

    def over(self, sigma: Floats) -> NoiseCurves:
        """Return the curves divided by this noise (bands, rows or 1)."""
        divided = list[RowCurves]()
        for rows, curves in self.lots:
            noise = sigma[:, rows] if sigma.shape[1] > 1 else sigma
            divided.append((rows, tuple(curve.over(values) for curve, values in zip(curves, noise, strict=True))))
        return NoiseCurves(divided, self.counts)

    def change(self, operation: np.ufunc, pyramid: Pyramid) -> None:
        """Divide or multiply the coefficients of whole rows by the curves, in place."""
        analysis = pyramid.analysis
        for rows, curves in self.lots:
            bands = zip(pyramid.coefficients[::-1], curves, strict=False)  # only some rules use the approximation
            for i, (band, curve) in enumerate(bands):
                curve.change(operation, band[rows], analysis.transform.margin(analysis, min(i + 1, analysis.level)))


def of_pyramid(pyramid: Pyramid, options: Options, starts: Sequence[int]) -> NoiseCurves:
    """Return the noise curves of whole rows, which begin at samples ``starts`` of their traces."""
    analysis, noise = pyramid.analysis, options.noise
    counted = options.counted(pyramid).details
    grids = options.transform.grids(analysis, pyramid.shape)

    def curves(rows: slice, start: int) -> tuple[Curve, ...]:
        """Return the curves of rows that begin at the same sample."""
        own = list[Curve]()
        for all_rows, about, grid in zip(counted, options.bands(analysis.level), grids, strict=False):
            band, least = all_rows[rows], LEAST << about.level
            if noise.running is not None:
                half = max(round(noise.running / 2), least // 2) // grid.step
                own.append(Curve.running(band, half, about.median_to_sigma))
                continue
            first = start + grid.first + grid.step * options.transform.margin(analysis, about.level)
            points = [point for point in noise.intervals or () if 0 < point - start < pyramid.shape[0]]
            edges = np.array([math.ceil((point - first) / grid.step) for point in points], np.int64)
            edges = edges.clip(0, band.shape[1])
            own.append(Curve.in_intervals(band, edges, least // grid.step, about.median_to_sigma))
        return tuple(own)

    if noise.running is not None or len(set(starts)) == 1:
        lots = [(slice(None), curves(slice(None), starts[0]))]
    else:  # each row has its own intervals
        lots = [(slice(i, i + 1), curves(slice(i, i + 1), start)) for i, start in enumerate(starts)]
    return NoiseCurves(lots, [band.shape[1] for band in counted])


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


# ---- medians


def block_medians(band: Array, half: int) -> Floats:
    """Return the median of |d| in each block of a band (rows, coefficients), (rows, blocks)."""
    whole = max(band.shape[1] // half - 2, 0)  # blocks before the last one
    medians = np.empty((len(band), whole + 1))
    together = max(MEDIANS // (2 * half * len(band)), 1)
    for start in range(0, whole, together):
        stop = min(start + together, whole)
        part = np.abs(band[:, start * half : (stop + 1) * half])
        blocks = np.lib.stride_tricks.sliding_window_view(part, 2 * half, axis=1)[:, ::half]
        medians[:, start:stop] = noise_median(blocks)
    medians[:, -1] = noise_median(np.abs(band[:, whole * half :]))
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


def _without_dead(medians: Floats) -> Floats:
    """Interpolate medians of blocks without noise from their neighbours; all are 0 if no block has noise."""
    dead = medians <= DEAD * medians.max(axis=1, keepdims=True)
    if not dead.any():
        return medians
    filled, places = medians.copy(), np.arange(medians.shape[1])
    for row, gone in zip(filled, dead, strict=True):
        row[gone] = 0 if gone.all() else np.interp(places[gone], places[~gone], row[~gone])
    return filled
