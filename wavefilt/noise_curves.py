"""Noise that changes along traces: its curves in all bands; coefficients are divided and multiplied by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.chunks import Chunk
from wavefilt.options import Options
from wavefilt.statistics.changing_noise import (
    LEAST,
    Curve,
    at_samples,
    change_points,
    half_window,
    in_intervals,
    running,
)
from wavefilt.transforms import Analysis, Pyramid

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

    Rows share their intervals only if these are given in samples and all rows begin at the same sample.
    """
    analysis, shape = pyramid.analysis, pyramid.shape
    bands = options.counted(pyramid.coefficients, analysis, shape)
    counts = np.array([band.shape[1] for band in bands], np.int64)
    if options.noise.running is not None:
        half = half_windows(options, analysis, shape)
        return NoiseCurves([(slice(None), tuple(map(running, bands, half, scales(options, analysis.level))))], counts)
    alike = options.noise.intervals != "find" and len(set(starts)) == 1
    curves = list[RowCurves]()
    for rows in [slice(None)] if alike else [slice(i, i + 1) for i in range(len(bands[0]))]:
        coefficients = [band[rows] for band in bands]
        curves.append((rows, _in_intervals(coefficients, options, analysis, shape, starts[rows.start or 0])))
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
    return [half_window(options.noise.running, band.level, step) for band, (_, step) in pairs]


def scales(options: Options, level: int) -> list[float]:
    """Return the noise of each of `Options.bands` divided by the median of its magnitudes."""
    return [band.median_to_sigma for band in options.bands(level)]


def _in_intervals(
    bands: Sequence[Array], options: Options, analysis: Analysis, shape: tuple[int, ...], start: int
) -> tuple[Curve, ...]:
    """Return the noise curves in intervals, for rows that begin at sample ``start`` of their traces."""
    grids = _grids(options, analysis, shape)
    if options.noise.intervals == "find":
        first, step = grids[0]
        points = [first + step * place for place in change_points(np.abs(bands[0][0]))]
    else:
        assert options.noise.intervals is not None
        points = [float(point) - start for point in options.noise.intervals]
        points = [point for point in points if 0 < point < shape[0]]
    curves = []
    for coefficients, (first, step), band in zip(bands, grids, options.bands(analysis.level), strict=True):
        edges = at_samples(points, first, step, coefficients.shape[1])
        curves.append(in_intervals(coefficients, edges, (LEAST << band.level) // step, band.median_to_sigma))
    return tuple(curves)


def _grids(options: Options, analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[float, int]]:
    """Return, for each of `Options.bands`, the time of the first coefficient that counts and the spacing in samples."""
    grids = options.transform.grids(analysis, shape)
    first_and_step = []
    for band, grid in zip(options.bands(analysis.level), grids, strict=False):
        first = grid.first + grid.step * options.transform.margin(analysis, band.level)
        first_and_step.append((first, grid.step))
    return first_and_step
