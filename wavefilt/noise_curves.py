"""Noise that changes along traces: its curves in all bands, and coefficients divided and multiplied by them."""

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

Lot = tuple[slice, tuple[Curve, ...]]
"""Some rows, and the curve of each of `Options.bands`."""


@dataclass(frozen=True)
class NoiseCurves:
    """Of a batch of rows; ``counts`` are the coefficients of each band that rules count."""

    lots: Sequence[Lot]
    counts: Counts

    @property
    def sigma(self) -> Floats:
        """The mean noise (bands, rows)."""
        found = [
            [curve.mean(count) for curve, count in zip(curves, self.counts.tolist(), strict=True)]
            for _, curves in self.lots
        ]
        return np.concatenate([np.array(own) for own in found], axis=1)

    def over(self, sigma: Floats) -> NoiseCurves:
        """Divided by this noise (bands, rows or 1)."""
        return NoiseCurves([_over(lot, sigma) for lot in self.lots], self.counts)

    def change(self, operation: np.ufunc, pyramid: Pyramid, chunk: Chunk | None = None) -> None:
        """Divide or multiply coefficients by them in place; those of a chunk, if they are not of whole rows."""
        analysis = pyramid.analysis
        bands = pyramid.coefficients[::-1]
        for rows, curves in self.lots:
            for i, (band, curve) in enumerate(zip(bands, curves, strict=False)):  # approximations by some rules
                level = min(i + 1, analysis.level)
                spacing, margin = analysis.transform.spacing(level), analysis.transform.margin(analysis, level)
                for own, first in chunk.placed(spacing, margin) if chunk else [(slice(None), -margin)]:
                    curve.change(operation, band[rows, own], first)


def of_pyramid(pyramid: Pyramid, method: Options, starts: Sequence[int] = (0,)) -> NoiseCurves:
    """The noise of whole rows, which begin at these samples of their traces; in intervals that may differ."""
    analysis, shape = pyramid.analysis, pyramid.shape
    bands = method.counted(pyramid.coefficients, analysis, shape)
    counts = np.array([band.shape[1] for band in bands], np.int64)
    if method.noise.running is not None:
        half = half_windows(method, analysis, shape)
        return NoiseCurves([(slice(None), tuple(map(running, bands, half, scales(method, analysis.level))))], counts)
    alike = method.noise.intervals != "find" and len(set(starts)) == 1
    lots = list[Lot]()
    for rows in [slice(None)] if alike else [slice(i, i + 1) for i in range(len(bands[0]))]:
        own = [band[rows] for band in bands]
        lots.append((rows, _in_intervals(own, method, analysis, shape, starts[rows.start or 0])))
    return NoiseCurves(lots, counts)


def pooled(sigmas: Sequence[Floats], bands: int, method: Options) -> Floats:
    """The mean noise (bands, 1) of a record from that of its traces (bands, rows), over those that have any.

    Approximations of fewer levels than others are left out.
    """
    total, count = np.zeros((2, bands, 1))
    for sigma in sigmas:
        own = sigma if len(sigma) == bands else sigma[: len(sigma) - method.shrinks_approximation]
        total[: len(own), 0] += own.sum(axis=1)
        count[: len(own), 0] += np.count_nonzero(own, axis=1)
    return np.asarray(total / np.maximum(count, 1))


def half_windows(method: Options, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
    """Coefficients of half a window of running noise in each of `Options.bands`."""
    assert method.noise.running is not None
    pairs = zip(method.bands(analysis.level), _grids(method, analysis, shape), strict=True)
    return [half_window(method.noise.running, band.level, step) for band, (_, step) in pairs]


def scales(method: Options, level: int) -> list[float]:
    """The noise of each of `Options.bands` over the median of its magnitudes."""
    return [band.median_to_sigma for band in method.bands(level)]


def _in_intervals(
    bands: Sequence[Array], method: Options, analysis: Analysis, shape: tuple[int, ...], start: int
) -> tuple[Curve, ...]:
    """The noise in intervals, with the rows' first sample at ``start`` of the change points."""
    grids = _grids(method, analysis, shape)
    if method.noise.intervals == "find":
        first, step = grids[0]
        points = [first + step * place for place in change_points(np.abs(bands[0][0]))]
    else:
        assert method.noise.intervals is not None
        points = [float(point) - start for point in method.noise.intervals]
        points = [point for point in points if 0 < point < shape[0]]
    found = []
    for band, (first, step), own in zip(bands, grids, method.bands(analysis.level), strict=True):
        edges = at_samples(points, first, step, band.shape[1])
        found.append(in_intervals(band, edges, (LEAST << own.level) // step, own.median_to_sigma))
    return tuple(found)


def _grids(method: Options, analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[float, int]]:
    """Return, for each of `Options.bands`, the time of the first coefficient that counts and the spacing in samples."""
    grids = method.transform.grids(analysis, shape)
    found = []
    for band, grid in zip(method.bands(analysis.level), grids, strict=False):
        found.append((grid.first + grid.step * method.transform.margin(analysis, band.level), grid.step))
    return found


def _over(lot: Lot, sigma: Floats) -> Lot:
    rows, curves = lot
    own = sigma[:, rows] if sigma.shape[1] > 1 else sigma
    return rows, tuple(curve.over(values) for curve, values in zip(curves, own, strict=True))
