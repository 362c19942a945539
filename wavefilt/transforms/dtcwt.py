"""The dual-tree complex wavelet transform along one axis, in NumPy (Kingsbury 2001).

Both trees are in one sequence, tree a at even and tree b at odd places. The first level filters it without decimation
by `DualTree.first`, all others by `DualTree.later`, tree b by the same filters reversed in time, and each tree keeps
every second of its coefficients: four of the sequence become two low-pass and two high-pass ones. A complex coefficient
is two neighbouring high-pass ones. Beyond the ends the sequence goes on as in mode "symmetric", which changes the
trees over. All levels but the first are orthogonal then, the ends included.

The transform object first extends a trace at its end, by reflection, to a multiple of 2^level samples: then every level
is half as long as the one before it, wherever the trace is cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError, options
from wavefilt.thresholding.local_shrinkage import REACH, Grid
from wavefilt.wavelets.dual_tree import DualTree, Moments, Trees, as_dual_tree, deepest, magnitude_quantile, noise
from wavefilt.wavelets.filters import WaveletLike

from .base import Analysis, Band, Transform

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.statistics.interface import Statistics
    from wavefilt.thresholding.rules import Rule

SHARE = 0.3
"""The quantile of magnitudes from which the noise is found: signal raises it less than the median."""


class DualTreeTransform(Transform):
    """What the transforms of one and of two axes have in common."""

    word = "dtcwt"
    default_wavelet, default_rule = "near_sym_b,qshift_b", "js"
    parts = 2
    workspace = 1.0
    noise_share = SHARE

    def check(self, method: Options) -> None:
        super().check(method)
        if method.mode != "symmetric":
            raise OptionError(
                options(transform=self.word),
                " reflects the samples at the ends: leave ",
                options(mode=method.mode),
                " out",
            )
        if method.spins > 1:
            raise OptionError(
                options(transform=self.word), " depends little on shifts: leave ", options("spins"), " out"
            )

    def filters(self, wavelet: WaveletLike) -> DualTree:
        return as_dual_tree(wavelet)

    def deepest(self, shape: tuple[int, ...], bank: Any) -> int:
        return deepest(shape)

    def usual_level(self, shape: tuple[int, ...], bank: Any) -> int:
        return deepest(shape)

    def with_levels(self, samples: int, bank: Any, above: int = 0) -> str:
        return ""

    def growth(self, bank: DualTree, level: int) -> float:
        return bank.gain ** (self.dimensions * (level + 1))

    def on_device(self, spec: Rule) -> bool:
        return spec.together is None or spec.local

    def noise(self, statistics: Statistics, sigma: str | float, bands: tuple[Band, ...]) -> Floats:
        """From the quantile `SHARE` of the magnitudes, with parts as correlated as they are in white noise."""
        if not isinstance(sigma, str):
            return super().noise(statistics, sigma, bands)
        own = bands if sigma == "level" else bands[:1]
        scale = np.array([[magnitude_quantile(SHARE, band.correlation)] for band in own])
        found = statistics.quantile_abs(list(range(1, len(own) + 1)), SHARE) / scale
        return np.broadcast_to(found, (len(bands), found.shape[1]))

    def median_to_sigma(self, band: Band) -> float:
        return 1 / magnitude_quantile(0.5, band.correlation)


def axis_grids(level: int, samples: int) -> list[Grid]:
    """Where the coefficients of each level are along an axis of so many samples."""
    whole = -(-samples >> level)
    return [Grid(whole << level - j, 1 << j, ((1 << j) - 1) / 2, 1, REACH, periodic=False) for j in range(1, level + 1)]


def padded(x: Array, level: int) -> Array:
    """Traces or panels extended at the end of each of their axes by reflection to a multiple of 2^level."""
    ends = [(0, -n % (1 << level)) for n in x.shape[1:]]
    return np.pad(x, [(0, 0), *ends], "symmetric") if any(map(any, ends)) else x


class _DTCWT(DualTreeTransform):
    name = "dtcwt"

    def bands(self, level: int, bank: Any = None) -> tuple[Band, ...]:
        return _bands(bank or DualTree(), level)

    def approximation_band(self, level: int, bank: DualTree) -> Band:
        return _band(f"A{level}", level, "", noise(bank, level)[0])

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        return [grid.count for grid in axis_grids(analysis.level, shape[0])]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        """The approximation as complex numbers too, of which tree a is the real part."""
        low, details = decomposed(padded(real(x, self), analysis.level), analysis.wavelets[0], analysis.level)
        return (paired(low), *reversed(details))

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        found = list(details)[::-1]
        y = recomposed(unpaired(approximation), found, analysis.wavelets[0], 2 * found[0].shape[1])
        return np.ascontiguousarray(y[:, : shape[0]])

    def grids(self, analysis: Analysis, shape: tuple[int, ...]) -> tuple[Grid, ...]:
        """Both trees' filters together are symmetric about the middle of 2^j samples."""
        found = axis_grids(analysis.level, shape[0])
        return (*found, found[-1])

    def lag(self, bank: DualTree) -> float:
        return 0

    def halo(self, taps: int, level: int) -> int:
        """A coefficient of level j is of 2^j samples, and of fewer than (taps - 2) 2^(j - 1) on either side of them.

        So is a sample of coefficients.
        """
        return taps - 1 << level


DTCWT = _DTCWT()


def real(x: Array, transform: Transform) -> Array:
    """The samples. Raises OptionError for complex ones."""
    if np.iscomplexobj(x):
        raise OptionError(options(transform=transform.word), " is for real samples")
    return x


@lru_cache(maxsize=256)
def _bands(tree: DualTree, level: int) -> tuple[Band, ...]:
    names = [f"D{j}" for j in range(1, level + 1)]
    parents = [*names[1:], ""]
    return tuple(
        _band(name, j, parent, noise(tree, j)[1])
        for j, (name, parent) in enumerate(zip(names, parents, strict=False), 1)
    )


def _band(name: str, level: int, parent: str, moments: Moments) -> Band:
    variance, covariance = moments
    return Band(name, level, math.log2(variance) / 2, parent, covariance / variance)


def analyse_axis(x: Array, tree: DualTree | Trees, level: int, axis: int = -1) -> tuple[Array, Array]:
    """Low-pass and high-pass coefficients of one level along an axis, both trees in turn.

    The axis has an even length at the first level, and a multiple of 4 at others.
    """
    x = np.moveaxis(x, axis, -1)
    if level == 1:
        low, high = (_filtered(x, taps) for taps in tree.first[:2])
    else:
        low, high = _decimated(x, *tree.later[:2])
    return np.moveaxis(low, -1, axis), np.moveaxis(high, -1, axis)


def synthesise_axis(low: Array, high: Array, tree: DualTree, level: int, axis: int = -1) -> Array:
    """The inverse of `analyse_axis`."""
    low, high = (np.moveaxis(c, axis, -1) for c in (low, high))
    if level == 1:
        x = _filtered(low, tree.first.rec_lo) + _filtered(high, tree.first.rec_hi)
    else:
        x = _interpolated(low, high, *tree.later[:2])
    return np.moveaxis(x, -1, axis)


def even(x: Array, level: int, axis: int = -1) -> Array:
    """With the samples at the ends doubled where the axis is not as long as `analyse_axis` needs it at this level.

    Only the last one at the first level, both at others, as the package dtcwt does.
    """
    if x.shape[axis] % (2 if level == 1 else 4) == 0:
        return x
    ends = [(0, 0)] * x.ndim
    ends[axis] = (int(level > 1), 1)
    return np.pad(x, ends, "edge")


def cropped(x: Array, count: int, level: int, axis: int = -1) -> Array:
    """Without what `even` added to ``count`` samples."""
    first = int(level > 1 and x.shape[axis] > count)
    return np.moveaxis(np.moveaxis(x, axis, -1)[..., first : first + count], -1, axis)


def decomposed(x: Array, tree: DualTree, level: int) -> tuple[Array, list[Array]]:
    """The low-pass coefficients of both trees in turn, and complex coefficients, finest first; any length."""
    details = []
    for j in range(1, level + 1):
        x, high = analyse_axis(even(x, j), tree, j)
        details.append(paired(high))
    return x, details


def recomposed(low: Array, details: list[Array], tree: DualTree, samples: int) -> Array:
    """The inverse of `decomposed`."""
    lengths = [samples, *(2 * detail.shape[-1] for detail in details)]
    for j in range(len(details), 0, -1):
        high = unpaired(details[j - 1])
        low = cropped(synthesise_axis(low, high, tree, j), lengths[j - 1], j)
    return low


def paired(x: Array) -> Array:
    """Neighbours along the last axis as real and imaginary parts."""
    return np.ascontiguousarray(x).view(np.result_type(x.dtype, np.complex64))


def unpaired(x: Array) -> Array:
    """The inverse of `paired`."""
    return np.ascontiguousarray(x).view(x.real.dtype)


def _reflected(x: Array, count: int) -> Array:
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], "symmetric")


def _sum(x: Array, taps: Floats, starts: list[int], step: int, count: int) -> Array:
    """The sum of ``count`` samples each, ``step`` apart from each start, times its tap."""
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
    """The transpose of `_decimated`: tap t of tree a takes coefficient k to 2k + t + 1 - half the taps."""
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
    return np.stack((even, odd), -1).reshape(*even.shape[:-1], -1)
