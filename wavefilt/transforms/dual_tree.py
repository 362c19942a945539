"""The dual-tree complex wavelet transform along one axis or two, in NumPy (Kingsbury 2001).

Both trees are in one sequence, tree a at even and tree b at odd places. The first level filters the sequence without
decimation by `DualTree.first`, all others by `DualTree.later`, tree b by the same filters reversed in time, and each
tree keeps every second of its coefficients: four coefficients of the sequence become two low-pass and two high-pass
ones. A complex coefficient consists of two neighbouring high-pass ones. Beyond the ends the sequence continues as in
mode "symmetric", which swaps the trees. Therefore all levels but the first are orthogonal, the ends included.

In sections both axes are filtered so. From the four combinations of trees in each square of four coefficients, sums and
differences over sqrt 2 are two complex coefficients of opposite directions: six bands a level, each of one direction.

The transform objects first extend each axis at its end, by reflection, to a multiple of 2^level samples: then every
level is half as long as the one before it, wherever a trace is divided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.errors import OptionError
from wavefilt.thresholding.local import REACH, Grid
from wavefilt.wavelets.dual_tree import DualTree, Trees, as_dual_tree, deepest, magnitude_quantile, noise
from wavefilt.wavelets.filters import WaveletLike

from .base import Analysis, Band, Refusal, Shape, Transform

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.statistics.reference import Statistics

SHARE = 0.3
"""The quantile of magnitudes from which the noise is estimated: signal raises it less than the median."""
HALF = np.sqrt(0.5)
DIRECTIONS = (0, 2, 1)
"""Parts of a level in the order of their directions: high-pass along the first axis, both, and the second."""


class DualTreeTransform(Transform):
    """The dual-tree transform of traces or sections."""

    word = "dtcwt"
    default_wavelet, default_rule = "near_sym_b,qshift_b", "js"
    parts = 2
    workspace = 1.0
    noise_share = SHARE
    depends_on_shifts = False

    def __init__(self, ndim: int) -> None:
        """Sections have bands "F" to "A" for edges at 165, 135, 105, 75, 45 and 15 degrees."""
        self.ndim = ndim
        self.name, self.band_names = ("dtcwt", "D") if ndim == 1 else ("dtcwt2", "FEDCBA")

    def refusals(self, options: Options) -> Iterable[Refusal]:
        yield from super().refusals(options)
        yield "mode", options.mode != "symmetric", ", which reflects the samples at the ends: leave it out"

    def filters(self, wavelet: WaveletLike) -> DualTree:
        return as_dual_tree(wavelet)

    def usual_level(self, shape: Shape, filters: Any) -> int:
        return deepest(shape)

    def growth(self, filters: DualTree, level: int) -> float:
        return filters.gain ** (self.ndim * (level + 1))

    def band(self, letter: str, level: int, filters: Any) -> Band:
        """Return a band by the moments of white noise along each axis.

        In sections, the variances of the parts of a coefficient are the product of the variances along both axes, plus
        or minus the product of the covariances between the trees: as if the parts were correlated.
        """
        low, high = noise(filters or DualTree(), level)
        if self.ndim == 1:
            variance, covariance = low if letter == "A" else high
        else:
            pairs = {"FA": (high, low), "EB": (high, high), "DC": (low, high)}  # mirrored directions
            rows, columns = next(pair for letters, pair in pairs.items() if letter in letters)
            variance, covariance = rows.variance * columns.variance, rows.covariance * columns.covariance
        return Band(f"{letter}{level}", level, math.log2(variance) / 2, covariance / variance)

    def sizes(self, analysis: Analysis, shape: Shape) -> list[int]:
        levels = zip(*(axis_grids(analysis.level, samples) for samples in shape), strict=True)
        return [prod(grid.count for grid in level) for level in levels for _ in self.band_names]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        """Return the coefficients; the approximation of traces is complex too, with tree a as the real part."""
        if np.iscomplexobj(x):
            raise OptionError(f"`transform={self.word!r}` is for real samples")
        low, levels = decomposed(padded(x, analysis.level), analysis.wavelets[0], analysis.level, self.ndim)
        low = paired(low) if self.ndim == 1 else np.ascontiguousarray(low)
        return (low, *(band for bands in reversed(levels) for band in bands))

    def synthesise(self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: Shape) -> Array:
        levels = list(zip(*[details] * len(self.band_names), strict=True))[::-1]  # the same iterator: a level at a time
        low = unpaired(approximation) if self.ndim == 1 else approximation
        longer = tuple(2 * n for n in levels[0][0].shape[1:])
        y = recomposed(low, levels, analysis.wavelets[0], longer)
        return np.ascontiguousarray(y[(slice(None), *map(slice, shape))])

    def noise(self, statistics: Statistics, sigma: str | float, bands: tuple[Band, ...]) -> Floats:
        """Return the noise from the quantile `SHARE` of the magnitudes, with parts correlated as in white noise.

        Each pair of mirrored directions has the lower noise of both: noise that is independent between traces is the
        same in both.
        """
        if not isinstance(sigma, str):
            return super().noise(statistics, sigma, bands)
        measured = bands if sigma == "level" else bands[:1]
        scale = np.array([[magnitude_quantile(SHARE, band.correlation or 0.0)] for band in measured])
        found = statistics.quantile_abs(list(range(1, len(measured) + 1)), SHARE) / scale
        every: Floats = np.broadcast_to(found, (len(bands), found.shape[1]))
        directions = every.reshape(-1, len(self.band_names), found.shape[1])
        return np.asarray(np.minimum(directions, directions[:, ::-1])).reshape(every.shape)

    def grids(self, analysis: Analysis, shape: Shape) -> Any:
        """Return the places of coefficients: the filters of both trees are centred on the middle of 2^j samples."""
        along = [axis_grids(analysis.level, samples) for samples in shape]
        if self.ndim == 1:
            return (*along[0], along[0][-1])
        levels = zip(*([grid.in_plane for grid in grids] for grids in along), strict=True)
        return [pair for pair in levels for _ in self.band_names]

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """Return the mean over both trees along each axis of the transform of the mask by the squared filters."""
        x, shares = padded(live[None].astype(np.float32), analysis.level), list[Array]()
        for level in range(1, analysis.level + 1):
            x, *high = _split(x, analysis.wavelets[0].squared, level, 2)
            means = [_mean_of_four(high[place]).reshape(1, -1) for place in DIRECTIONS]
            shares += [*means, *means[::-1]]
        return tuple(shares)

    def halo(self, filters: DualTree, level: int, neighbours: int = 0) -> int | None:
        """Return the samples on either side of its 2^j samples on which a coefficient of level j depends.

        There are fewer than (taps - 2) 2^(j - 1); a sample depends on coefficients as far away.
        """
        steps = filters.dec_len - 1 + (neighbours + 2 if neighbours else 0)
        return steps << level if self.ndim == 1 else None


DTCWT, DTCWT2 = DualTreeTransform(1), DualTreeTransform(2)


def axis_grids(level: int, samples: int) -> list[Grid]:
    """Return the places of the coefficients of each level along an axis."""
    whole = -(-samples >> level)
    return [Grid(whole << level - j, 1 << j, ((1 << j) - 1) / 2, 1, REACH, periodic=False) for j in range(1, level + 1)]


def padded(x: Array, level: int) -> Array:
    """Return ``x`` (batch, ...) extended at the end of each axis by reflection to a multiple of 2^level."""
    ends = [(0, -n % (1 << level)) for n in x.shape[1:]]
    return np.pad(x, [(0, 0), *ends], "symmetric") if any(map(any, ends)) else x


def decomposed(x: Array, tree: DualTree, level: int, ndim: int) -> tuple[Array, list[list[Array]]]:
    """Return low-pass coefficients, the trees alternating, and the bands of each level, finest first.

    Sections (..., rows, columns) have six bands a level, of edges at 15, 45, 75, 105, 135 and 165 degrees, in the order
    of the package dtcwt. Any shape.
    """
    levels = []
    for j in range(1, level + 1):
        for axis in range(-ndim, 0):
            x = even(x, j, axis)
        x, *high = _split(x, tree, j, ndim)
        if ndim == 1:
            levels.append([paired(high[0])])
        else:
            first, second = zip(*(_directions(high[place]) for place in DIRECTIONS), strict=True)
            levels.append([*first, *second[::-1]])
    return x, levels


def recomposed(low: Array, levels: Sequence[Sequence[Array]], tree: DualTree, shape: Shape) -> Array:
    """Invert `decomposed`."""
    ndim = len(shape)
    shapes = [shape, *(tuple(2 * n for n in bands[0].shape[-ndim:]) for bands in levels)]
    for j in range(len(levels), 0, -1):
        bands = levels[j - 1]
        if ndim == 1:
            low = synthesise_axis(low, unpaired(bands[0]), tree, j)
        else:
            rows, both, columns = (_trees(bands[i], bands[-1 - i]) for i in range(3))
            parts = (synthesise_axis(low, columns, tree, j, -1), synthesise_axis(rows, both, tree, j, -1))
            low = synthesise_axis(*parts, tree, j, -2)
        for axis in range(-ndim, 0):
            low = cropped(low, shapes[j - 1][axis], j, axis)
    return low


def _split(x: Array, tree: DualTree | Trees, level: int, ndim: int) -> list[Array]:
    """Return the low-pass part of a level, and those high-pass along the first axis, the second and both."""
    parts = [x]
    for axis in range(-ndim, 0):
        pairs = [analyse_axis(part, tree, level, axis) for part in parts]
        parts = [low for low, _ in pairs] + [high for _, high in pairs]
    return parts


def analyse_axis(x: Array, tree: DualTree | Trees, level: int, axis: int = -1) -> tuple[Array, Array]:
    """Return low-pass and high-pass coefficients of one level along an axis, the trees alternating.

    The axis has an even length at the first level, and a multiple of 4 at others.
    """
    x = np.moveaxis(x, axis, -1)
    if level == 1:
        low, high = (_filtered(x, taps) for taps in tree.first[:2])
    else:
        low, high = _decimated(x, *tree.later[:2])
    return np.moveaxis(low, -1, axis), np.moveaxis(high, -1, axis)


def synthesise_axis(low: Array, high: Array, tree: DualTree, level: int, axis: int = -1) -> Array:
    """Invert `analyse_axis`."""
    low, high = (np.moveaxis(c, axis, -1) for c in (low, high))
    if level == 1:
        x = _filtered(low, tree.first.rec_lo) + _filtered(high, tree.first.rec_hi)
    else:
        x = _interpolated(low, high, *tree.later[:2])
    return np.moveaxis(x, -1, axis)


def even(x: Array, level: int, axis: int = -1) -> Array:
    """Return the samples, with those at the ends repeated if `analyse_axis` needs a longer axis at this level.

    Only the last one at the first level, both at others, as the package dtcwt does.
    """
    if x.shape[axis] % (2 if level == 1 else 4) == 0:
        return x
    ends = [(0, 0)] * x.ndim
    ends[axis] = (int(level > 1), 1)
    return np.pad(x, ends, "edge")


def cropped(x: Array, count: int, level: int, axis: int = -1) -> Array:
    """Remove the samples that `even` added to ``count`` samples."""
    first = int(level > 1 and x.shape[axis] > count)
    return np.moveaxis(np.moveaxis(x, axis, -1)[..., first : first + count], -1, axis)


def paired(x: Array) -> Array:
    """Return neighbours along the last axis as real and imaginary parts."""
    return np.ascontiguousarray(x).view(np.result_type(x.dtype, np.complex64))


def unpaired(x: Array) -> Array:
    """Invert `paired`."""
    return np.ascontiguousarray(x).view(x.real.dtype)


def _reflected(x: Array, count: int) -> Array:
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], "symmetric")


def _sum(x: Array, taps: Floats, starts: list[int], step: int, count: int) -> Array:
    """Add up, for each tap, ``count`` samples from its start, ``step`` apart, times the tap."""
    parts = zip(taps.astype(x.dtype), starts, strict=True)
    terms = (tap * x[..., first : first + step * (count - 1) + 1 : step] for tap, first in parts if tap)
    total: Array = next(terms)
    for term in terms:
        total += term
    return total


def _filtered(x: Array, taps: Floats) -> Array:
    return _sum(_reflected(x, len(taps) // 2), taps, list(range(len(taps))), 1, x.shape[-1])


def _decimated(x: Array, low: Floats, high: Floats) -> tuple[Array, Array]:
    taps, count = len(low), x.shape[-1] // 4
    x = _reflected(x, taps - 2)
    a, b = (list(range(tree, tree + 2 * taps, 2)) for tree in (0, 1))
    return (
        _joined(_sum(x, low, a, 4, count), _sum(x, low[::-1], b, 4, count)),
        _joined(_sum(x, high[::-1], b, 4, count), _sum(x, high, a, 4, count)),
    )


def _interpolated(low: Array, high: Array, low_taps: Floats, high_taps: Floats) -> Array:
    """Apply the transpose of `_decimated`: tap t of tree a maps coefficient k to 2k + t + 1 - half the taps."""
    taps, count = len(low_taps), low.shape[-1] // 2
    margin = taps // 4 + 1
    low, high = (_reflected(c, 2 * margin) for c in (low, high))
    x = np.empty((*low.shape[:-1], 4 * count), low.dtype)
    for place in (0, 1):  # the even and the odd samples of each tree
        found = np.arange((place + taps // 2 - 1) % 2, taps, 2)
        starts = 2 * (margin + (place + taps // 2 - 1 - found) // 2)
        for tree in (0, 1):
            own = found if tree == 0 else taps - 1 - found
            x[..., 2 * place + tree :: 4] = _sum(low, low_taps[own], list(starts + tree), 2, count)
            x[..., 2 * place + tree :: 4] += _sum(high, high_taps[own], list(starts + 1 - tree), 2, count)
    return x


def _joined(even: Array, odd: Array) -> Array:
    return np.stack((even, odd), -1).reshape(*even.shape[:-1], 2 * even.shape[-1])


def _mean_of_four(x: Array) -> Array:
    """Return the mean of each square of four coefficients."""
    return (x[..., ::2, ::2] + x[..., ::2, 1::2] + x[..., 1::2, ::2] + x[..., 1::2, 1::2]) / 4


def _directions(x: Array) -> tuple[Array, Array]:
    """Return two complex bands of opposite directions from both trees along both axes."""
    x = x * x.dtype.type(HALF)
    aa, ab, ba, bb = x[..., ::2, ::2], x[..., ::2, 1::2], x[..., 1::2, ::2], x[..., 1::2, 1::2]
    return aa - bb + 1j * (ab + ba), aa + bb + 1j * (ab - ba)


def _trees(first: Array, second: Array) -> Array:
    """Invert `_directions`."""
    rows, columns = first.shape[-2:]
    x = np.empty((*first.shape[:-2], 2 * rows, 2 * columns), first.real.dtype)
    total, difference = first + second, first - second
    x[..., ::2, ::2], x[..., 1::2, 1::2] = total.real, -difference.real
    x[..., ::2, 1::2], x[..., 1::2, ::2] = total.imag, difference.imag
    x *= x.dtype.type(HALF)
    return x
