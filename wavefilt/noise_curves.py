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
from collections.abc import Iterable, Sequence
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

    ``places`` (rows or 1, knots) are in coefficients that rules count, of which the band has ``count``; ``values`` are
    (rows, knots).
    """

    places: Floats
    values: Floats
    count: int

    @classmethod
    def running(cls, band: Array, half: int, scale: float) -> Curve:
        """Return the running noise of a band (rows, coefficients), with ``half`` coefficients in half a window."""
        medians = block_medians(band, half)
        places = half * np.arange(1, medians.shape[1] + 1)[None] - 0.5
        return cls(places, scale * _without_dead(medians), band.shape[1])

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
        return cls(ends.reshape(1, -1), np.repeat(sigma, 2, axis=1), count)

    @classmethod
    def of_rows(cls, curves: Sequence[Curve]) -> Curve:
        """Return the curves of single rows as one curve; rows with fewer knots than others repeat their last one."""
        most = max(curve.values.shape[1] for curve in curves)

        def joined(rows: Iterable[Floats]) -> Floats:
            return np.concatenate([np.pad(row, [(0, 0), (0, most - row.shape[1])], "edge") for row in rows])

        return cls(joined(c.places for c in curves), joined(c.values for c in curves), curves[0].count)

    @property
    def mean(self) -> Floats:
        """The mean over the band, (rows,)."""
        widths = np.diff(self.places, axis=1, prepend=-0.5, append=self.count - 0.5)
        values = np.pad(self.values, [(0, 0), (1, 1)], "edge")
        return np.asarray(np.sum((values[:, 1:] + values[:, :-1]) / 2 * widths, axis=1) / self.count)

    def over(self, sigma: Floats) -> Curve:
        """Return the curve divided by this noise (rows or 1,); 1 for rows without noise, or where ``sigma`` is 0."""
        some = ((sigma > 0) & self.values.any(axis=1))[:, None]
        return replace(self, values=np.where(some, self.values / np.where(some, sigma.reshape(-1, 1), 1), 1.0))

    def change(self, operation: np.ufunc, band: Array, margin: int) -> None:
        """Divide or multiply a band by the curve in place; its first coefficient has the place -``margin``."""
        wanted = np.arange(band.shape[1]) - margin
        for own, places, values in zip(band, np.broadcast_to(self.places, self.values.shape), self.values, strict=True):
            operation(own, np.interp(wanted, places, values).astype(own.real.dtype), out=own)


def of_pyramid(pyramid: Pyramid, options: Options, starts: Sequence[int]) -> list[Curve]:
    """Return the noise curves of whole rows, which begin at samples ``starts`` of their traces, in each of the bands.

    The bands are `Options.bands`.
    """
    analysis, noise, curves = pyramid.analysis, options.noise, list[Curve]()
    grids = options.transform.grids(analysis, pyramid.shape)
    for band, about, grid in zip(options.counted(pyramid).details, options.bands(analysis.level), grids, strict=False):
        least, scale = LEAST << about.level, about.median_to_sigma
        if noise.running is not None:
            half = max(round(noise.running / 2), least // 2) // grid.step
            curves.append(Curve.running(band, half, scale))
            continue
        own, first = list[Curve](), grid.first + grid.step * options.transform.margin(analysis, about.level)
        together = len(set(starts)) == 1
        for start, rows in zip(starts, [band] if together else band[:, None], strict=not together):
            points = [point - start for point in noise.intervals or () if 0 < point - start < pyramid.shape[0]]
            edges = np.array([math.ceil((point - first) / grid.step) for point in points], np.int64)
            own.append(Curve.in_intervals(rows, edges.clip(0, band.shape[1]), least // grid.step, scale))
        curves.append(own[0] if together else Curve.of_rows(own))
    return curves


def divide(
    pyramids: Sequence[Pyramid], starts: Sequence[Sequence[int]], options: Options
) -> tuple[Floats, list[list[Curve]]]:
    """Divide the coefficients of groups of rows in place by their noise over its mean; ``starts`` as in `of_pyramid`.

    Return the mean noise (bands, groups), and for each pyramid the curves by which its bands were divided.
    """
    found = [of_pyramid(pyramid, options, own) for pyramid, own in zip(pyramids, starts, strict=True)]
    sigmas = [np.array([curve.mean for curve in curves]) for curves in found]
    sigma = pooled(sigmas, options) if options.scope == "record" else sigmas[0]
    relative = list[list[Curve]]()
    for curves, pyramid in zip(found, pyramids, strict=True):
        noise = options.cut(sigma, pyramid.level)
        relative.append([curve.over(own) for curve, own in zip(curves, noise, strict=True)])
        change(relative[-1], np.divide, pyramid)
    return sigma, relative


def change(curves: Sequence[Curve], operation: np.ufunc, pyramid: Pyramid) -> None:
    """Divide or multiply the coefficients of whole rows by the curves of their bands, in place."""
    analysis = pyramid.analysis
    bands = zip(pyramid.coefficients[::-1], curves, strict=False)  # only some rules use the approximation
    for i, (band, curve) in enumerate(bands):
        curve.change(operation, band, analysis.transform.margin(analysis, min(i + 1, analysis.level)))


def pooled(sigmas: Sequence[Floats], options: Options) -> Floats:
    """Return the mean noise (bands, 1) of a record from the noise of its traces (bands, rows), except where it is 0.

    The approximation of a trace with fewer levels than others is left out.
    """
    bands = max(map(len, sigmas))
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
