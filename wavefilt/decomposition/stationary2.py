"""The maximal overlap transform of two axes, for any lengths and boundary modes.

Each level filters both axes by the filters of `wavefilt.modwt`; the bands are called as those of `wavefilt.wavedec2`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wavefilt import backends
from wavefilt.arrays import Array, dtype_name
from wavefilt.decomposition.wavedec import as_floating
from wavefilt.decomposition.wavedec2 import (
    Modes,
    Wavelets,
    as_axes,
    bands_of,
    from_planes,
    mode_pair,
    to_planes,
    wavelet_pair,
)
from wavefilt.transforms import MODWT2, Analysis, Pyramid
from wavefilt.wavelets import modwt_boundary
from wavefilt.wavelets.filters import max_level


def modwt2(
    data: ArrayLike,
    wavelet: Wavelets,
    level: int | None = None,
    mode: Modes = "periodic",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> list[Any]:
    """Maximal overlap discrete wavelet transform of two axes, for any lengths.

    Parameters
    ----------
    data : array_like of at least two dimensions
        Dtypes as for `wavefilt.wavedec`. All other axes are a batch.
    wavelet, mode
        As for `wavefilt.modwt`, or a pair: one for each axis.
    level : int, optional
        Number of levels, from 0 to log2 of the shorter axis; by default `pywt.dwtn_max_level` of the two axes.
    axes : pair of int
        Two different axes.
    backend : str
        ``"auto"`` or a name of `wavefilt.backends.names`.

    Returns
    -------
    list
        ``[A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]``: H is high-pass along ``axes[0]``, V along ``axes[1]``, D along
        both. In the periodic modes each has the shape of ``data``, with the values of
        ``pywt.swt2(norm=True, trim_approx=True)`` for the lengths that it has, and for orthogonal wavelets the sum of
        squares is preserved. In the other modes level j has (2^j - 1)(taps - 1) more along either axis, the boundary
        coefficients that `imodwt2` needs: sample t is at t + (2^j - 1) taps/2.

    Raises
    ------
    ValueError
        For what `wavefilt.modwt` refuses, and axes that are not two different ones.
    TypeError
        For ``axes`` that are no pair.
    BackendUnavailable
        If the requested backend cannot run here.
    """
    banks, modes, array = wavelet_pair(wavelet), mode_pair(mode), as_floating(data)
    first, second = as_axes(array, axes)
    sizes = array.shape[first], array.shape[second]
    if 0 in sizes:
        raise ValueError(f"data of shape {array.shape} has no samples along axes {first} and {second}")
    if level is None:
        level = min(max_level(n, bank) for n, bank in zip(sizes, banks, strict=True))
    most = MODWT2.deepest(sizes, banks[0])
    if not 0 <= operator.index(level) <= most:
        raise ValueError(f"level={level} must be at least 0 and at most log2 of the shorter axis of {sizes}, {most}")
    for n, own in zip(sizes, modes, strict=True):
        modwt_boundary.check(n, own)
    planes, batch = to_planes(array, (first, second))
    analysis = Analysis(MODWT2, banks, modes, level)
    chosen = backends.choose(backend, dtype_name(planes.dtype), planes.shape, analysis)
    arrays = [from_planes(c, batch, (first, second)) for c in chosen.decompose(planes, analysis).coefficients]
    return [arrays[0], *(tuple(arrays[i : i + 3]) for i in range(1, len(arrays), 3))]


def imodwt2(
    coeffs: Sequence[Any],
    wavelet: Wavelets,
    mode: Modes = "periodic",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> Array:
    """Inverse of `modwt2`.

    Parameters
    ----------
    coeffs : sequence
        ``[A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]``; a band that is None, or all three, count as zeros.
    wavelet, mode, axes, backend
        As in `modwt2`.

    Returns
    -------
    ndarray of the coefficients' common floating dtype.

    Raises
    ------
    ValueError
        For an empty list, levels that are not three bands, coefficients with inconsistent shapes, and as `modwt2`.
    """
    banks, modes = wavelet_pair(wavelet), mode_pair(mode)
    if not isinstance(coeffs, (list, tuple)) or len(coeffs) == 0 or coeffs[0] is None:
        raise ValueError("coeffs must be a list [A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)] that begins with an array")
    levels = [bands_of(bands, i) for i, bands in enumerate(coeffs[1:], 1)]
    level, smooth = len(levels), as_floating(coeffs[0])
    pair = as_axes(smooth, axes)
    dtype = np.result_type(smooth, *(as_floating(band) for bands in levels if bands for band in bands))
    planes, batch = to_planes(smooth.astype(dtype, copy=False), pair)

    def more(j: int) -> tuple[int, ...]:
        """Coefficients of a level beyond samples, along either axis."""
        return tuple(modwt_boundary.length(0, b.rec_len, m, j) for b, m in zip(banks, modes, strict=True))

    shape = tuple(n - m for n, m in zip(planes.shape[1:], more(level), strict=True))
    found = [planes]
    for i, bands in enumerate(levels):
        wanted = tuple(n + m for n, m in zip(shape, more(level - i), strict=True))
        for band in bands or (None,) * 3:
            if band is None:
                found.append(np.zeros((len(planes), *wanted), dtype))
                continue
            own, own_batch = to_planes(band.astype(dtype, copy=False), pair) if band.ndim == smooth.ndim else (band, ())
            if own_batch != batch or own.shape[1:] != wanted or min(shape) < 1:
                raise ValueError(f"coeffs[{i + 1}] of shape {band.shape} does not fit coeffs[0] of {smooth.shape}")
            found.append(own)
    if min(shape) < 1:
        raise ValueError(f"coeffs[0] of shape {smooth.shape} is too short for {level} levels in modes {modes}")
    analysis = Analysis(MODWT2, banks, modes, level)
    chosen = backends.choose(backend, dtype_name(dtype), (len(planes), *shape), analysis)
    return from_planes(chosen.reconstruct(Pyramid(tuple(found), analysis, shape)), batch, pair)
