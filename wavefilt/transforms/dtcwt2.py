"""The dual-tree complex wavelet transform of both axes of panels: six bands a level, each of one direction.

Both axes are filtered as in `wavefilt.transforms.dtcwt`. Of the four combinations of trees in each square of four
coefficients, sums and differences over sqrt 2 are two complex coefficients of opposite directions (Kingsbury 2001).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.thresholding.local import Grid
from wavefilt.wavelets.dual_tree import DualTree, noise

from .base import Analysis, Band
from .dtcwt import DualTreeTransform, analyse_axis, axis_grids, cropped, even, padded, real, synthesise_axis
from .planes import PlaneTransform

if TYPE_CHECKING:
    from wavefilt.statistics.reference import Statistics

HALF = np.sqrt(0.5)


class _DTCWT2(DualTreeTransform, PlaneTransform):
    name = "dtcwt2"
    band_names = "FEDCBA"
    """Edges at 165, 135, 105, 75, 45 and 15 degrees."""

    def bands(self, level: int, bank: Any = None) -> tuple[Band, ...]:
        return _bands(bank or DualTree(), level)

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        return [rows.count * columns.count for rows, columns in self.plane_grids(analysis, shape)]

    def plane_grids(self, analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[Grid, Grid]]:
        rows, columns = ([grid.in_plane for grid in axis_grids(analysis.level, n)] for n in shape)
        return [pair for pair in zip(rows, columns, strict=True) for _ in self.band_names]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        low, levels = decomposed(padded(real(x, self), analysis.level), analysis.wavelets[0], analysis.level)
        return (np.ascontiguousarray(low), *(band for bands in reversed(levels) for band in bands))

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        found = list(details)
        levels = [found[i : i + 6] for i in range(len(found) - 6, -1, -6)]
        rows, columns = (2 * n for n in levels[0][0].shape[1:])
        y = recomposed(approximation, levels, analysis.wavelets[0], (rows, columns))
        return np.ascontiguousarray(y[:, : shape[0], : shape[1]])

    def noise(self, statistics: Statistics, sigma: str | float, bands: tuple[Band, ...]) -> Floats:
        """The smaller one of those of mirrored directions, which noise that is independent between traces has alike."""
        found = super().noise(statistics, sigma, bands)
        pairs = found.reshape(-1, 6, found.shape[1])
        return np.minimum(pairs, pairs[:, ::-1]).reshape(found.shape)

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """The mean over both trees along each axis of the transform of the mask by the squared filters."""
        x, shares = padded(live[None].astype(np.float32), analysis.level), list[Array]()
        for j in range(1, analysis.level + 1):
            low, high = analyse_axis(x, analysis.wavelets[0].squared, j, -2)
            (x, columns), (rows, both) = (analyse_axis(part, analysis.wavelets[0].squared, j) for part in (low, high))
            found = [_four(part).reshape(1, -1) for part in (rows, both, columns)]
            shares += [*found, *found[::-1]]
        return tuple(shares)


DTCWT2 = _DTCWT2()


@lru_cache(maxsize=256)
def _bands(tree: DualTree, level: int) -> tuple[Band, ...]:
    """In white noise the variances of the parts of a coefficient are the product of the variances of both axes, plus or
    minus that of their covariances between the trees: as if the parts were correlated so."""
    found = []
    for j in range(1, level + 1):
        low, high = noise(tree, j)
        of = dict(
            zip("FEDCBA", ((high, low), (high, high), (low, high), (low, high), (high, high), (high, low)), strict=True)
        )
        for name, (rows, columns) in of.items():
            variance, product = rows.variance * columns.variance, rows.covariance * columns.covariance
            parent = f"{name}{j + 1}" if j < level else ""
            found.append(Band(f"{name}{j}", j, math.log2(variance) / 2, parent, product / variance))
    return tuple(found)


def _four(x: Array) -> Array:
    """The mean of each square of four coefficients."""
    return (x[..., ::2, ::2] + x[..., ::2, 1::2] + x[..., 1::2, ::2] + x[..., 1::2, 1::2]) / 4


def decomposed(x: Array, tree: DualTree, level: int) -> tuple[Array, list[list[Array]]]:
    """Low-pass coefficients of panels (..., rows, columns), and of each level, finest first, six complex bands.

    These are of edges at 15, 45, 75, 105, 135 and 165 degrees, in the order of the package dtcwt. Any shape.
    """
    levels = []
    for j in range(1, level + 1):
        low, high = analyse_axis(even(even(x, j, -2), j, -1), tree, j, -2)
        (x, columns), (rows, both) = (analyse_axis(part, tree, j, -1) for part in (low, high))
        (b15, b165), (b45, b135), (b75, b105) = (_directions(part) for part in (rows, both, columns))
        levels.append([b15, b45, b75, b105, b135, b165])
    return x, levels


def recomposed(low: Array, levels: list[list[Array]], tree: DualTree, shape: tuple[int, ...]) -> Array:
    """The inverse of `decomposed`."""
    shapes = [shape, *(tuple(2 * n for n in bands[0].shape[-2:]) for bands in levels)]
    for j in range(len(levels), 0, -1):
        b15, b45, b75, b105, b135, b165 = levels[j - 1]
        rows, both, columns = (_trees(*pair) for pair in ((b15, b165), (b45, b135), (b75, b105)))
        parts = (synthesise_axis(low, columns, tree, j, -1), synthesise_axis(rows, both, tree, j, -1))
        low = synthesise_axis(*parts, tree, j, -2)
        for axis in (-2, -1):
            low = cropped(low, shapes[j - 1][axis], j, axis)
    return low


def _directions(x: Array) -> tuple[Array, Array]:
    """Two complex bands of opposite directions from both trees along both axes."""
    x = x * x.dtype.type(HALF)
    aa, ab, ba, bb = x[..., ::2, ::2], x[..., ::2, 1::2], x[..., 1::2, ::2], x[..., 1::2, 1::2]
    return aa - bb + 1j * (ab + ba), aa + bb + 1j * (ab - ba)


def _trees(first: Array, second: Array) -> Array:
    """The inverse of `_directions`."""
    rows, columns = first.shape[-2:]
    x = np.empty((*first.shape[:-2], 2 * rows, 2 * columns), first.real.dtype)
    total, difference = first + second, first - second
    x[..., ::2, ::2], x[..., 1::2, 1::2] = total.real, -difference.real
    x[..., ::2, 1::2], x[..., 1::2, ::2] = total.imag, difference.imag
    x *= x.dtype.type(HALF)
    return x
