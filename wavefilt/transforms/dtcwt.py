"""The dual-tree complex wavelet transform along one axis, in NumPy (Kingsbury 2001).

Both trees are in one sequence, tree a at even and tree b at odd places. The first level filters it without decimation
by `DualTree.first`, all others by `DualTree.later`, tree b by the same filters reversed in time, and each tree keeps
every second of its coefficients: four of the sequence become two low-pass and two high-pass ones. A complex coefficient
is two neighbouring high-pass ones. Beyond the ends the sequence goes on as in mode "symmetric", which changes the
trees over. All levels but the first are orthogonal then, the ends included.
"""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.wavelets.dual_tree import DualTree


def analyse_axis(x: Array, tree: DualTree, level: int, axis: int = -1) -> tuple[Array, Array]:
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
        details.append(high[..., ::2] + 1j * high[..., 1::2])
    return x, details


def recomposed(low: Array, details: list[Array], tree: DualTree, samples: int) -> Array:
    """The inverse of `decomposed`."""
    lengths = [samples, *(2 * detail.shape[-1] for detail in details)]
    for j in range(len(details), 0, -1):
        high = _joined(details[j - 1].real, details[j - 1].imag)
        low = cropped(synthesise_axis(low, high, tree, j), lengths[j - 1], j)
    return low


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
