"""Wavelet transforms of two axes with PyWavelets' signatures, lengths and values, through a backend.

A level filters both axes (Mallat 1989): cA is low-pass along both, cH high-pass along the first axis, cV along the
second, cD along both.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pywt
from numpy.typing import ArrayLike, NDArray

from wavefilt import backends
from wavefilt.arrays import dtype_name
from wavefilt.decomposition.wavedec import as_axis, as_floating, check_reflection, mode_name
from wavefilt.transforms import DWT2, Analysis, Pyramid
from wavefilt.vocabulary import Mode
from wavefilt.wavelets.filters import WaveletLike, as_wavelet, detail_lengths, max_level, synthesis_length

Array: TypeAlias = NDArray[Any]
Bands: TypeAlias = tuple[Array, Array, Array]
"""(cH, cV, cD) of a level."""
Wavelets: TypeAlias = "WaveletLike | tuple[WaveletLike, WaveletLike]"
Modes: TypeAlias = "Mode | tuple[Mode, Mode]"


def wavedec2(
    data: ArrayLike,
    wavelet: Wavelets,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> list[Any]:
    """Multilevel discrete wavelet transform of two axes.

    Parameters
    ----------
    data : array_like of at least two dimensions
        Dtypes as for `wavefilt.wavedec`. All other axes are a batch.
    wavelet, mode
        As for `wavefilt.wavedec`, or a pair: one for each axis.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwtn_max_level` of the two axes. Deeper levels are computed as
        asked; all their coefficients then depend on the boundary.
    axes : pair of int
        Two different axes.
    backend : str
        ``"auto"`` or a name of `wavefilt.backends.names`.

    Returns
    -------
    list
        ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``, of the shape of ``data`` except along the two axes.
        cH is high-pass along ``axes[0]``, cV along ``axes[1]``, cD along both.

    Raises
    ------
    ValueError
        For what `wavefilt.wavedec` refuses, axes that are not two different ones, and a backend without transforms of
        two axes.
    TypeError
        For ``axes`` that are no pair.
    BackendUnavailable
        If the requested backend cannot run here.
    """
    banks, modes = wavelet_pair(wavelet), mode_pair(mode)
    array = as_floating(data)
    first, second = as_axes(array, axes)
    sizes = array.shape[first], array.shape[second]
    if 0 in sizes:
        raise ValueError(f"data of shape {array.shape} has no samples along axes {first} and {second}")
    if level is None:
        level = min(max_level(n, bank) for n, bank in zip(sizes, banks, strict=True))
    elif operator.index(level) < 0:
        raise ValueError(f"level={level} must be at least 0")
    for n, bank, own in zip(sizes, banks, modes, strict=True):
        check_reflection([n, *detail_lengths(n, bank.dec_len, own, level)], own)
    planes, batch = to_planes(array, (first, second))
    analysis = Analysis(DWT2, banks, modes, level)
    chosen = backends.choose(backend, dtype_name(planes.dtype), planes.shape, analysis)
    found = chosen.decompose(planes, analysis).coefficients
    arrays = [from_planes(c, batch, (first, second)) for c in found]
    return [arrays[0], *(tuple(arrays[i : i + 3]) for i in range(1, len(arrays), 3))]


def waverec2(
    coeffs: Sequence[Any],
    wavelet: Wavelets,
    mode: Modes = "symmetric",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> Array:
    """Inverse of `wavedec2`: one sample longer along an axis of odd length, as in PyWavelets.

    Parameters
    ----------
    coeffs : sequence
        ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``; a band that is None, or all three, count as
        zeros.
    wavelet, mode, axes, backend
        As in `wavedec2`.

    Returns
    -------
    ndarray of the coefficients' common floating dtype.

    Raises
    ------
    ValueError
        For an empty list, levels that are not three bands, coefficients with inconsistent shapes, and as
        `wavedec2`.
    """
    banks, modes = wavelet_pair(wavelet), mode_pair(mode)
    if not isinstance(coeffs, (list, tuple)) or len(coeffs) == 0:
        raise ValueError("coeffs must be a list [cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]")
    levels = [bands_of(level, i) for i, level in enumerate(coeffs[1:], 1)]
    if coeffs[0] is None:
        if not levels or levels[0] is None:
            raise ValueError("coeffs[0] must be an array: there is no band that tells its shape")
        coeffs = [np.zeros_like(levels[0][0]), *coeffs[1:]]
    if not levels:
        return np.asarray(coeffs[0])
    known = (band for bands in levels if bands is not None for band in bands)
    dtype = np.result_type(*map(as_floating, (coeffs[0], *known)))
    smooth = np.asarray(coeffs[0], dtype)
    pair = as_axes(smooth, axes)
    planes, batch = to_planes(smooth, pair)
    shape, found = planes.shape[1:], []
    for i, bands in enumerate(levels, 1):
        if bands is None:
            bands = (from_planes(np.zeros((len(planes), *shape), dtype), batch, pair),) * 3
        own = tuple(bands[0].shape[axis] for axis in pair) if bands[0].ndim == smooth.ndim else ()
        arrays = [to_planes(np.asarray(band, dtype), pair) for band in bands] if own else []
        # an odd length makes the approximation one sample longer than the details it meets
        if not arrays or arrays[0][1] != batch or any(n - m not in (0, 1) for n, m in zip(shape, own, strict=True)):
            raise ValueError(f"coeffs[{i}] of shape {bands[0].shape} does not fit the coarser coefficients")
        if i == 1:
            found.append(np.ascontiguousarray(planes[:, : own[0], : own[1]]))
        found += [planes for planes, _ in arrays]
        shape = tuple(synthesis_length(n, b.dec_len, m) for n, b, m in zip(own, banks, modes, strict=True))
    analysis = Analysis(DWT2, banks, modes, len(levels))
    chosen = backends.choose(backend, dtype_name(dtype), (len(planes), *shape), analysis)
    y = chosen.reconstruct(Pyramid(tuple(found), analysis, (shape[0], shape[1])))
    return from_planes(y, batch, pair)


def as_axes(array: Array, axes: tuple[int, int]) -> tuple[int, int]:
    """Two axes counted from the front. Raises ValueError unless they are two different ones of the array."""
    if np.ndim(axes) == 0:
        raise TypeError(f"axes={axes!r} must be a pair of axes")
    if len(axes) != 2:
        raise ValueError(f"axes={axes!r} must be a pair of axes")
    if array.ndim < 2:
        raise ValueError(f"an array of {array.ndim} dimensions has no two axes")
    first, second = (as_axis(array, axis) for axis in axes)
    if first == second:
        raise ValueError(f"axes={axes!r} are one and the same axis")
    return first, second


def wavelet_pair(wavelet: Wavelets) -> tuple[pywt.Wavelet, pywt.Wavelet]:
    """One wavelet for both axes, or one for each."""
    pair = wavelet if isinstance(wavelet, (tuple, list)) else (wavelet, wavelet)
    if len(pair) != 2:
        raise ValueError(f"{len(pair)} wavelets for two axes: give one, or a pair")
    return as_wavelet(pair[0]), as_wavelet(pair[1])


def mode_pair(mode: Modes) -> tuple[Mode, Mode]:
    pair = mode if isinstance(mode, (tuple, list)) else (mode, mode)
    if len(pair) != 2:
        raise ValueError(f"{len(pair)} modes for two axes: give one, or a pair")
    return mode_name(pair[0]), mode_name(pair[1])


def bands_of(level: Any, place: int) -> Bands | None:
    """The three arrays of a level, zeros for None; None for three of them. Raises ValueError for anything else."""
    if not isinstance(level, (list, tuple)):
        kind = type(level).__name__
        raise ValueError(f"coeffs[{place}]: Unexpected detail coefficient type {kind}, not three arrays (cH, cV, cD)")
    if len(level) != 3:
        raise ValueError(f"coeffs[{place}] must be the three arrays (cH, cV, cD)")
    shapes = {np.shape(band) for band in level if band is not None}
    if not shapes:
        return None
    if len(shapes) > 1:
        raise ValueError(f"bands of shapes {', '.join(map(str, sorted(shapes)))} in coeffs[{place}] are no level")
    like = next(np.asarray(band) for band in level if band is not None)
    cH, cV, cD = (np.zeros_like(like) if band is None else np.asarray(band) for band in level)
    return cH, cV, cD


def to_planes(array: Array, axes: tuple[int, int]) -> tuple[Array, tuple[int, ...]]:
    """C-contiguous planes (batch, first axis, second axis), and the shape of the batch."""
    moved = np.moveaxis(array, axes, (-2, -1))
    batch = moved.shape[:-2]
    return np.ascontiguousarray(moved.reshape(int(np.prod(batch)), *moved.shape[-2:])), batch


def from_planes(planes: Array, batch: tuple[int, ...], axes: tuple[int, int]) -> Array:
    return np.moveaxis(planes.reshape(*batch, *planes.shape[-2:]), (-2, -1), axes)
