"""The dual-tree complex wavelet transform of both axes of panels: six bands a level, each of one direction.

Both axes are filtered as in `wavefilt.transforms.dtcwt`. Of the four combinations of trees in each square of four
coefficients, sums and differences over sqrt 2 are two complex coefficients of opposite directions (Kingsbury 2001).
"""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array
from wavefilt.wavelets.dual_tree import DualTree

from .dtcwt import analyse_axis, cropped, even, synthesise_axis

HALF = np.sqrt(0.5)


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
