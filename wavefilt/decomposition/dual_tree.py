"""The dual-tree complex wavelet transform of arrays along one axis or two, with the values of the package dtcwt."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.arrays import Array
from wavefilt.transforms import dtcwt as one_axis
from wavefilt.transforms import dtcwt2 as two_axes
from wavefilt.wavelets.dual_tree import DualTree, deepest

from .wavedec import as_axis, as_floating
from .wavedec2 import as_axes


@dataclass(frozen=True)
class DualTreeCoefficients:
    """What `wavefilt.dtcwt` returns, and `wavefilt.idtcwt` takes.

    To change coefficients, change the arrays, or `dataclasses.replace` them by others of their shapes.

    Attributes
    ----------
    lowpass : ndarray
        Real low-pass coefficients, those of both trees in turn, transformed axes in place: n samples become about
        n / 2^(level - 1), and are unchanged for ``level`` 0.
    highpasses : tuple of ndarray
        Complex coefficients of each level, the finest first: about n / 2^j along transformed axes at level j. Of two
        axes, the last axis are six bands, of edges at 15, 45, 75, 105, 135 and 165 degrees.
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
    """Dual-tree complex wavelet transform along one axis or two (Kingsbury 2001).

    Two trees of real wavelet filters give the real and the imaginary parts of complex coefficients, whose magnitudes
    depend little on where an event is between the samples, and of which six bands a level tell directions apart in two
    dimensions. There are twice as many numbers as samples along one axis, four times along two.

    Parameters
    ----------
    x : array_like, real
        float32 and float64 are kept, float16 is computed in float32, everything else in float64.
    biort : {"antonini", "legall", "near_sym_a", "near_sym_b"}
        Biorthogonal filters of the first level.
    qshift : {"qshift_06", "qshift_a", "qshift_b", "qshift_c", "qshift_d"}
        Quarter-shift filters of all other levels. Both: `wavefilt.wavelets.dual_tree`.
    level : int, optional
        Number of levels, at least 0; by default as many as leave two coefficients or more along each axis.
    axis : int
        The axis to transform; all others are a batch.
    axes : pair of int, optional
        Two axes to transform, instead of ``axis``.

    Returns
    -------
    DualTreeCoefficients
        With ``lowpass`` and ``highpasses``, as the package dtcwt has them, in its order and with its values. Where a
        length is odd, or at deeper levels no multiple of 4, samples at the ends count twice.

    Raises
    ------
    ValueError
        For unknown filters, a negative level, no samples, complex data, and axes that the data do not have.
    """
    tree, array = DualTree(biort, qshift), as_floating(x)
    if np.iscomplexobj(array):
        raise ValueError("complex data: transform their real and imaginary parts one by one")
    transformed = (as_axis(array, axis),) if axes is None else as_axes(array, axes)
    samples = tuple(array.shape[k] for k in transformed)
    if 0 in samples:
        raise ValueError(f"data of shape {array.shape} have no samples along axes {transformed}")
    level = deepest(samples) if level is None else operator.index(level)
    if level < 0:
        raise ValueError(f"level={level} must be at least 0")
    if axes is None:
        low, details = one_axis.decomposed(np.moveaxis(array, axis, -1), tree, level)
        places: tuple[int, ...] = (-1,)
    else:
        low, levels = two_axes.decomposed(np.moveaxis(array, transformed, (-2, -1)), tree, level)
        details, places = [np.stack(bands, -1) for bands in levels], (-3, -2)
    low = np.moveaxis(low, range(-len(transformed), 0), transformed)
    highpasses = tuple(np.moveaxis(detail, places, transformed) for detail in details)
    return DualTreeCoefficients(low, highpasses, transformed, samples, tree)


def idtcwt(pyramid: DualTreeCoefficients) -> Array:
    """Inverse of `dtcwt`: the samples, to rounding, in the shape of the data.

    Raises
    ------
    ValueError
        For coefficients whose shapes do not belong together.
    """
    axes, tree = pyramid.axes, pyramid.tree
    two = len(axes) == 2
    low = np.moveaxis(pyramid.lowpass, axes, range(-len(axes), 0))
    details = [np.moveaxis(detail, axes, (-3, -2) if two else (-1,)) for detail in pyramid.highpasses]
    shapes, size = [], pyramid.samples
    for _ in details:
        size = tuple(-(-n // 2) for n in size)
        shapes.append((*low.shape[: -len(axes)], *size, *((6,) if two else ())))
    size = tuple(2 * n for n in size) if details else size
    found = [low.shape[-len(axes) :], *(detail.shape for detail in details)]
    if found != [size, *shapes]:
        given = ", ".join(str(c.shape) for c in (pyramid.lowpass, *pyramid.highpasses))
        raise ValueError(f"coefficients of shapes {given} are not those of {pyramid.samples} samples")
    if two:
        x = two_axes.recomposed(low, [list(np.moveaxis(d, -1, 0)) for d in details], tree, pyramid.samples)
    else:
        x = one_axis.recomposed(low, details, tree, pyramid.samples[0])
    return np.moveaxis(x, range(-len(axes), 0), axes)
