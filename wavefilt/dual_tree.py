"""The dual-tree complex wavelet transform of arrays along one axis or two, with the values of the package dtcwt."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.arrays import Array
from wavefilt.decomposition import as_axes, as_floating, transformed_shape
from wavefilt.transforms.dual_tree import decomposed, recomposed
from wavefilt.wavelets.dual_tree import DualTree, deepest


@dataclass(frozen=True)
class DualTreeCoefficients:
    """Coefficients of `wavefilt.dtcwt`, the argument of `wavefilt.idtcwt`.

    To change coefficients, change the arrays in place, or replace them with `dataclasses.replace`.

    Attributes
    ----------
    lowpass : ndarray
        Real low-pass coefficients, of both trees in turn, with the transformed axes in place: n samples become about
        n / 2^(level - 1), and are unchanged for ``level`` 0.
    highpasses : tuple of ndarray
        Complex coefficients of each level, the finest first: about n / 2^j along transformed axes at level j. With two
        axes, the last axis has six bands, for edges at 15, 45, 75, 105, 135 and 165 degrees.
    axes : tuple of int
        The transformed axes of the data, counted from the front.
    samples : tuple of int
        Their lengths.
    tree : DualTree
        The filters.
    """

    lowpass: Array
    highpasses: tuple[Array, ...]
    axes: tuple[int, ...]
    samples: tuple[int, ...]
    tree: DualTree


def dtcwt(
    x: ArrayLike,
    biort: str = "near_sym_b",
    qshift: str = "qshift_b",
    level: int | None = None,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
) -> DualTreeCoefficients:
    """Compute the dual-tree complex wavelet transform along one axis or two (Kingsbury 2001).

    Two trees of real wavelet filters give the real and the imaginary parts of complex coefficients. Their magnitudes
    depend little on the position of an event between samples; in two dimensions the six bands of a level separate
    directions. There are two numbers per sample along one axis, four along two.

    Parameters
    ----------
    x : array_like, real
        float32 and float64 are kept, float16 is computed in float32, everything else in float64.
    biort : {"antonini", "legall", "near_sym_a", "near_sym_b"}
        Biorthogonal filters of the first level.
    qshift : {"qshift_06", "qshift_a", "qshift_b", "qshift_c", "qshift_d"}
        Quarter-shift filters of all other levels. Both: `wavefilt.wavelets.dual_tree`.
    level : int, optional
        Number of levels, at least 0; by default the most that leave two coefficients or more along each axis.
    axis : int
        The axis to transform; all others are a batch.
    axes : pair of int, optional
        Two axes to transform, instead of ``axis``.

    Returns
    -------
    DualTreeCoefficients
        With ``lowpass`` and ``highpasses`` in the order and with the values of the package dtcwt. Where a length is
        odd, or at deeper levels no multiple of 4, samples at the ends count twice.

    Raises
    ------
    ValueError
        For unknown filters, a negative level, no samples, complex data, and axes that the data do not have.
    """
    tree, array = DualTree(biort, qshift), as_floating(x)
    if np.iscomplexobj(array):
        raise ValueError("complex data: transform their real and imaginary parts one by one")
    transformed = as_axes(array, (axis,), 1) if axes is None else as_axes(array, axes, 2)
    samples = transformed_shape(array, transformed)
    level = deepest(samples) if level is None else operator.index(level)
    if level < 0:
        raise ValueError(f"level={level} must be at least 0")
    last = range(-len(transformed), 0)
    low, levels = decomposed(np.moveaxis(array, transformed, last), tree, level, len(transformed))
    levels = [[np.moveaxis(band, last, transformed) for band in bands] for bands in levels]
    highpasses = tuple(bands[0] if axes is None else np.stack(bands, -1) for bands in levels)
    return DualTreeCoefficients(np.moveaxis(low, last, transformed), highpasses, transformed, samples, tree)


def idtcwt(pyramid: DualTreeCoefficients) -> Array:
    """Compute the inverse of `dtcwt`: the samples, to rounding, in the shape of the data.

    Raises ValueError for coefficients whose shapes do not belong together.
    """
    axes, last = pyramid.axes, range(-len(pyramid.axes), 0)
    low = np.moveaxis(pyramid.lowpass, axes, last)
    levels = [[c] if len(axes) == 1 else list(np.moveaxis(c, -1, 0)) for c in pyramid.highpasses]
    levels = [[np.moveaxis(band, axes, last) for band in bands] for bands in levels]
    shapes, size = [], pyramid.samples
    for _ in levels:
        size = tuple(-(-n // 2) for n in size)
        shapes += [(*low.shape[: -len(axes)], *size)] * (1 if len(axes) == 1 else 6)
    size = tuple(2 * n for n in size) if levels else size
    if [low.shape[-len(axes) :], *(band.shape for bands in levels for band in bands)] != [size, *shapes]:
        given = ", ".join(str(c.shape) for c in (pyramid.lowpass, *pyramid.highpasses))
        raise ValueError(f"coefficients of shapes {given} are not those of {pyramid.samples} samples")
    return np.moveaxis(recomposed(low, levels, pyramid.tree, pyramid.samples), last, axes)
