"""Wavelet transforms of arrays along one axis or two, with PyWavelets' signatures, lengths and values.

The functions convert the array to C-contiguous blocks (batch, *transformed axes), choose a backend and convert the
coefficients back. Formulas: Mallat (1989) for the DWT, lengths in `wavefilt.wavelets.filters`; Percival and Walden
(2000), chapter 5, for the MODWT.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import pywt
from numpy.typing import ArrayLike

from wavefilt import backends
from wavefilt.arrays import Array, dtype_name, refuse_kinds
from wavefilt.transforms import MODWT, Analysis, Pyramid, find
from wavefilt.vocabulary import MODES, Mode, check
from wavefilt.wavelets.boundary import EXTENSIONS, check_single, modwt_length
from wavefilt.wavelets.filters import (
    WaveletLike,
    as_reconstructing,
    as_wavelet,
    detail_lengths,
    max_level,
    synthesis_length,
)

Wavelets: TypeAlias = "WaveletLike | tuple[WaveletLike, WaveletLike]"
Modes: TypeAlias = "Mode | tuple[Mode, Mode]"
Axes: TypeAlias = tuple[int, ...]
Details: TypeAlias = "tuple[Array, ...] | None"
"""The bands of a level: (cD,) for one axis, (cH, cV, cD) for two; None for zeros."""


def wavedec(
    data: ArrayLike,
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    level: int | None = None,
    axis: int = -1,
    *,
    backend: str = "auto",
) -> list[Array]:
    """Compute the multilevel discrete wavelet transform along one axis.

    Parameters
    ----------
    data : array_like, shape (..., n, ...)
        float32, float64, complex64 and complex128 keep their dtype, float16 is computed in float32, everything
        else in float64 (complex128).
    wavelet : str, pywt.Wavelet or object with four filters
    mode : str
        One of PyWavelets' nine boundary modes.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwt_max_level`. All coefficients of deeper levels depend on the
        boundary.
    axis : int
        Time axis; all other axes are a batch.
    backend : str
        ``"auto"`` or a name of `wavefilt.backends.names`.

    Returns
    -------
    list of ndarray
        ``[cA_n, cD_n, ..., cD_1]``, each of the shape of ``data`` except along ``axis``.

    Raises
    ------
    ValueError
        For an unknown wavelet, mode or backend, a negative level, no samples, an axis out of range, or a
        reflection that would have to extend a single sample.
    BackendUnavailable
        If the requested backend cannot run here.
    """
    modes, filters = (mode_name(mode),), (as_wavelet(wavelet),)
    array = as_floating(data)
    return _wavedec(array, filters, modes, level, (as_axis(array, axis),), backend)


def wavedec2(
    data: ArrayLike,
    wavelet: Wavelets,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> list[Any]:
    """Compute the multilevel discrete wavelet transform of two axes.

    Parameters
    ----------
    data : array_like of at least two dimensions
        Dtypes as for `wavefilt.wavedec`. All other axes are a batch.
    wavelet, mode
        As for `wavefilt.wavedec`, or a pair with one for each axis.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwtn_max_level` of the two axes. All coefficients of deeper
        levels depend on the boundary.
    axes : pair of int
        Two different axes.

    Returns
    -------
    list
        ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``, of the shape of ``data`` except along the two axes.
        cH is high-pass along ``axes[0]``, cV along ``axes[1]``, cD along both.

    Raises
    ------
    ValueError, TypeError, BackendUnavailable
        As `wavefilt.wavedec`, and for axes that are not two different ones.
    """
    filters, modes = _wavelet_pair(wavelet), _mode_pair(mode)
    array = as_floating(data)
    return _by_level(_wavedec(array, filters, modes, level, as_axes(array, axes), backend))


def _wavedec(
    array: Array,
    filters: tuple[pywt.Wavelet, ...],
    modes: tuple[Mode, ...],
    level: int | None,
    axes: Axes,
    backend: str,
) -> list[Array]:
    """Return the approximation and the bands of each level, the coarsest first."""
    shape = transformed_shape(array, axes)
    if level is None:
        level = _default_level(shape, filters)
    elif operator.index(level) < 0:
        raise ValueError(f"level={level} must be at least 0")
    for n, own, mode in zip(shape, filters, modes, strict=True):
        check_reflection([n, *detail_lengths(n, own.dec_len, mode, level)], mode)
    return _decomposed(array, axes, Analysis(find("dwt", len(axes)), filters, modes, level), backend)


def waverec(
    coeffs: Sequence[ArrayLike | None],
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `wavedec`. If the length was odd, the result is one sample longer, as in PyWavelets.

    Parameters
    ----------
    coeffs : sequence
        ``[cA_n, cD_n, ..., cD_1]``; None counts as zeros.
    wavelet, mode, axis, backend
        As in `wavedec`.

    Returns
    -------
    ndarray of the coefficients' common floating dtype.

    Raises
    ------
    ValueError
        For an empty list, coefficients with inconsistent shapes, and as `wavedec`.
    """
    modes, filters = (mode_name(mode),), (as_wavelet(wavelet),)
    if not isinstance(coeffs, Sequence) or len(coeffs) == 0:
        raise ValueError("coeffs must be a list [cA_n, cD_n, ..., cD_1] of at least one array")
    return _waverec(coeffs[0], _single_bands(coeffs), filters, modes, (axis,), backend)


def waverec2(
    coeffs: Sequence[Any],
    wavelet: Wavelets,
    mode: Modes = "symmetric",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `wavedec2`. An axis of odd length is one sample longer, as in PyWavelets.

    Parameters
    ----------
    coeffs : sequence
        ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``; None for a band, or for all three, counts as zeros.
    wavelet, mode, axes, backend
        As in `wavedec2`.

    Returns
    -------
    ndarray of the coefficients' common floating dtype.

    Raises
    ------
    ValueError
        For an empty list, coefficients with inconsistent shapes, and as `wavedec2`.
    """
    filters, modes = _wavelet_pair(wavelet), _mode_pair(mode)
    if not isinstance(coeffs, (list, tuple)) or len(coeffs) == 0:
        raise ValueError("coeffs must be a list [cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]")
    levels = [_triple(bands, i) for i, bands in enumerate(coeffs[1:], 1)]
    return _waverec(coeffs[0], levels, filters, modes, axes, backend)


def _waverec(
    approximation: ArrayLike | None,
    levels: Sequence[Details],
    filters: tuple[pywt.Wavelet, ...],
    modes: tuple[Mode, ...],
    axes: Axes,
    backend: str,
) -> Array:
    if approximation is None:
        if not levels or levels[0] is None:
            raise ValueError("of the two coarsest coefficients at least one must be an array")
        approximation = np.zeros_like(levels[0][0])
    if not levels:
        return np.asarray(approximation)
    dtype = np.result_type(as_floating(approximation), *_dtypes(levels))
    smooth = np.asarray(approximation, dtype)
    places = _transformed_axes(smooth, axes, modes)
    blocks, batch = to_blocks(smooth, places)
    shape, coefficients = blocks.shape[1:], list[Array]()
    for i, bands in enumerate(levels, 1):
        size = shape if bands is None else _sizes(bands[0], places, smooth.ndim)
        # an odd length makes the approximation one sample longer than the details of its level
        if size is None or any(n - m not in (0, 1) for n, m in zip(shape, size, strict=True)):
            raise ValueError(f"coeffs[{i}] of shape {bands and bands[0].shape} does not fit the coarser coefficients")
        if i == 1:
            coefficients.append(np.ascontiguousarray(blocks[(slice(None), *map(slice, size))]))
        for band in bands or ():
            own, own_batch = to_blocks(np.asarray(band, dtype), places)
            if own_batch != batch:
                raise ValueError(f"coeffs[{i}] of shape {band.shape} does not fit the coarser coefficients")
            coefficients.append(own)
        if bands is None:
            coefficients += [np.zeros((len(blocks), *size), dtype)] * (2 ** len(modes) - 1)
        shape = tuple(synthesis_length(n, own.dec_len, m) for n, own, m in zip(size, filters, modes, strict=True))
        if min(shape) < 1:
            raise ValueError(f"coeffs[{i}] is too short for {filters[0].name} ({filters[0].dec_len} taps)")
    analysis = Analysis(find("dwt", len(places)), filters, modes, len(levels))
    return _reconstructed(coefficients, analysis, shape, batch, places, backend)


def dwt(
    data: ArrayLike, wavelet: WaveletLike, mode: Mode = "symmetric", axis: int = -1, *, backend: str = "auto"
) -> tuple[Array, Array]:
    """Compute one level of `wavedec`: ``(cA, cD)``, as `pywt.dwt`. Raises as `wavedec`."""
    approximation, detail = wavedec(data, wavelet, mode, 1, axis, backend=backend)
    return approximation, detail


def idwt(
    cA: ArrayLike | None,
    cD: ArrayLike | None,
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `dwt`, as `pywt.idwt`: one argument may be None, which counts as zeros.

    Raises ValueError if both are None or their shapes differ.
    """
    if cA is None and cD is None:
        raise ValueError("at least one of cA and cD must be given")
    if cA is None:
        cA = np.zeros_like(np.asarray(cD))
    elif cD is not None and np.shape(cA) != np.shape(cD):
        raise ValueError(f"cA of shape {np.shape(cA)} and cD of shape {np.shape(cD)} do not belong together")
    return waverec([cA, cD], wavelet, mode, axis, backend=backend)


def modwt(
    data: ArrayLike,
    wavelet: WaveletLike,
    level: int | None = None,
    mode: Mode = "periodic",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> list[Array]:
    """Compute the maximal overlap discrete wavelet transform along one axis, for any length.

    The filters of level j are PyWavelets' filters over sqrt 2, their taps 2^(j-1) apart. With h half the number of taps
    and V_0 the samples,

        V_j[t] = sum_l lo[l]/sqrt 2 V_{j-1}[t + 2^(j-1) (h - l)],   W_j[t] the same with hi,
        V_{j-1}[t] = sum_l (lo'[l] V_j[t + 2^(j-1) (h - 1 - l)] + hi'[l] W_j[...])/sqrt 2.

    Coefficient t of any level is computed from samples around t. In Percival and Walden's alignment, coefficients are
    computed from the samples up to t and stand (2^j - 1) h columns further on.

    Parameters
    ----------
    data : array_like, shape (..., n, ...)
        Dtypes as in `wavedec`.
    wavelet : str, pywt.Wavelet or object with four filters
        With "dmey", whose filters are truncated, `imodwt` warns: it reconstructs only to about 1 %, as PyWavelets.
    level : int, optional
        Number of levels, from 0 to log2(n); beyond this the filter taps would be more than half the signal apart. By
        default `pywt.dwt_max_level`, at which some coefficients are independent of the boundary.
    mode : str
        Boundary mode, one of the nine of PyWavelets; the samples are extended once for all levels. With
        ``"periodic"`` (identical to ``"periodization"``) the transform is circular.
    axis : int
        Time axis; all other axes are a batch.
    backend : str
        ``"auto"`` or a name of `wavefilt.backends.names`.

    Returns
    -------
    list of ndarray
        ``[V_J, W_J, ..., W_1]``. In the periodic modes each has the shape of ``data``, and for orthogonal wavelets the
        sum of squares is preserved. In the other modes level j has (2^j - 1)(taps - 1) additional columns, the
        boundary coefficients that `imodwt` needs for perfect reconstruction: sample t is at column
        t + (2^j - 1) taps/2.

    Raises
    ------
    ValueError
        For an unknown wavelet, mode or backend, a level out of range, no samples, an axis out of range, or a
        reflection of a single sample.
    """
    modes, filters, array = (mode_name(mode),), (as_wavelet(wavelet),), as_floating(data)
    return _modwt(array, filters, modes, level, (as_axis(array, axis),), backend)


def modwt2(
    data: ArrayLike,
    wavelet: Wavelets,
    level: int | None = None,
    mode: Modes = "periodic",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> list[Any]:
    """Compute the maximal overlap discrete wavelet transform of two axes, for any lengths.

    Each level filters both axes as `modwt`.

    Parameters
    ----------
    data : array_like of at least two dimensions
        Dtypes as for `wavefilt.wavedec`. All other axes are a batch.
    wavelet, mode
        As for `wavefilt.modwt`, or a pair with one for each axis.
    level : int, optional
        Number of levels, from 0 to log2 of the shorter axis; by default `pywt.dwtn_max_level` of the two axes.
    axes : pair of int
        Two different axes.

    Returns
    -------
    list
        ``[A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]``: H is high-pass along ``axes[0]``, V along ``axes[1]``, D along
        both. In the periodic modes each has the shape of ``data``, with the values of
        ``pywt.swt2(norm=True, trim_approx=True)`` for the lengths that it supports, and for orthogonal wavelets the sum
        of squares is preserved. In the other modes level j has (2^j - 1)(taps - 1) more along either axis, the boundary
        coefficients that `imodwt2` needs: sample t is at t + (2^j - 1) taps/2.

    Raises
    ------
    ValueError, TypeError, BackendUnavailable
        As `wavefilt.modwt`, and for axes that are not two different ones.
    """
    filters, modes, array = _wavelet_pair(wavelet), _mode_pair(mode), as_floating(data)
    return _by_level(_modwt(array, filters, modes, level, as_axes(array, axes), backend))


def _modwt(
    array: Array,
    filters: tuple[pywt.Wavelet, ...],
    modes: tuple[Mode, ...],
    level: int | None,
    axes: Axes,
    backend: str,
) -> list[Array]:
    shape = transformed_shape(array, axes)
    if level is None:
        level = _default_level(shape, filters)
    level, most = operator.index(level), min(shape).bit_length() - 1
    if not 0 <= level <= most:
        raise ValueError(f"level={level} must be at least 0 and at most log2 of {min(shape)} samples, {most}")
    for n, mode in zip(shape, modes, strict=True):
        check_single(n, mode)
    return _decomposed(array, axes, Analysis(find("modwt", len(axes)), filters, modes, level), backend)


def imodwt(
    coeffs: Sequence[ArrayLike | None],
    wavelet: WaveletLike,
    mode: Mode = "periodic",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `modwt`.

    Parameters
    ----------
    coeffs : sequence
        ``[V_J, W_J, ..., W_1]``; None counts as zeros.
    wavelet, mode, axis, backend
        As in `modwt`.

    Returns
    -------
    ndarray of the coefficients' common floating dtype.

    Raises
    ------
    ValueError
        For an empty list, coefficients with inconsistent shapes, and as `modwt`.
    """
    coeffs, filters, modes = list(coeffs), (as_reconstructing(wavelet),), (mode_name(mode),)
    return _imodwt(coeffs[:1], _single_bands(coeffs), filters, modes, (axis,), backend)


def imodwt2(
    coeffs: Sequence[Any],
    wavelet: Wavelets,
    mode: Modes = "periodic",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `modwt2`.

    Parameters
    ----------
    coeffs : sequence
        ``[A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]``; None for a band, or for all three, counts as zeros.
    wavelet, mode, axes, backend
        As in `modwt2`.

    Returns
    -------
    ndarray of the coefficients' common floating dtype.

    Raises
    ------
    ValueError
        For an empty list, coefficients with inconsistent shapes, and as `modwt2`.
    """
    filters, modes = _wavelet_pair(wavelet), _mode_pair(mode)
    if not isinstance(coeffs, (list, tuple)):
        raise ValueError("coeffs must be a list [A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]")
    levels = [_triple(bands, i) for i, bands in enumerate(coeffs[1:], 1)]
    return _imodwt(list(coeffs[:1]), levels, filters, modes, axes, backend)


def _imodwt(
    approximation: list[Any],
    levels: Sequence[Details],
    filters: tuple[pywt.Wavelet, ...],
    modes: tuple[Mode, ...],
    axes: Axes,
    backend: str,
) -> Array:
    """Reconstruct from an approximation (a list of one array or None) and the bands of each level."""
    smooth = None if not approximation or approximation[0] is None else (as_floating(approximation[0]),)
    every = [smooth, *levels]
    known = [as_floating(band) for bands in every for band in bands or ()]
    if not known:
        raise ValueError("coeffs must be a list [V_J, W_J, ..., W_1] with at least one array")
    dtype, depth = np.result_type(*known), len(levels)
    places = _transformed_axes(known[0], axes, modes)
    first = next(i for i, bands in enumerate(every) if bands)
    size = _sizes(known[0], places, known[0].ndim)
    assert size is not None

    def boundary(place: int) -> tuple[int, ...]:
        """Return how many more coefficients than samples there are along each axis."""
        level = depth if place == 0 else depth - place + 1
        pairs = zip(filters, modes, strict=True)
        return tuple(modwt_length(0, own.rec_len, mode, level) for own, mode in pairs)

    shape = tuple(n - more for n, more in zip(size, boundary(first), strict=True))
    batch = to_blocks(known[0], places)[1]
    coefficients = []
    for i, bands in enumerate(every):
        wanted = tuple(n + more for n, more in zip(shape, boundary(i), strict=True))
        for band in bands or (None,) * (1 if i == 0 else 2 ** len(modes) - 1):
            if band is None:
                coefficients.append(np.zeros((prod(batch), *wanted), dtype))
                continue
            array = as_floating(band).astype(dtype, copy=False)
            fits = array.ndim == known[0].ndim and min(shape) >= 1
            own, own_batch = to_blocks(array, places) if fits else (array, ())
            if not fits or own_batch != batch or own.shape[1:] != wanted:
                shapes = [c.shape for c in known]
                raise ValueError(f"coeffs of shapes {shapes} do not belong together in mode {modes[0]!r}")
            coefficients.append(own)
    analysis = Analysis(find("modwt", len(places)), filters, modes, depth)
    return _reconstructed(coefficients, analysis, shape, batch, places, backend)


def swt(
    data: ArrayLike,
    wavelet: WaveletLike,
    level: int | None = None,
    start_level: int = 0,
    axis: int = -1,
    trim_approx: bool = False,
    norm: bool = False,
    *,
    backend: str = "auto",
) -> list[Any]:
    """Compute the stationary wavelet transform, with the signature and the values of `pywt.swt`.

    Parameters
    ----------
    data, wavelet, axis, backend
        As in `modwt`.
    level : int, optional
        Number of levels, at least 1; the length must be a multiple of 2^(start_level + level). By default the maximum.
    start_level : int
        Number of levels to skip: the taps of the first level are spaced 2^start_level apart.
    trim_approx : bool
        Return ``[cA_n, cD_n, ..., cD_1]`` instead of pairs.
    norm : bool
        Divide the filters by √2, so that orthogonal wavelets preserve the sum of squares: the periodic MODWT.

    Returns
    -------
    list of tuple of ndarray
        ``[(cA_n, cD_n), ..., (cA_1, cD_1)]``, or as ``trim_approx`` specifies, each of the shape of ``data``.

    Raises
    ------
    ValueError
        For an odd length or one with fewer levels (use `modwt` for these), and as `modwt`.
    """
    array = as_floating(data)
    axes = (as_axis(array, axis),)
    samples = transformed_shape(array, axes)[0]
    start_level, most = operator.index(start_level), _halvings(samples)
    level = most - start_level if level is None else operator.index(level)
    if level < 1 or start_level < 0 or start_level + level > most:
        raise ValueError(
            f"level={level} from start_level={start_level} of {samples} samples: level must be at least 1, and "
            f"2^(start_level + level) divide the length, which 2^{most} does; modwt takes any length"
        )
    analysis = Analysis(MODWT, (_swt_filters(as_wavelet(wavelet), norm),), ("periodic",), level, start_level)
    if trim_approx:
        return _decomposed(array, axes, analysis, backend)
    blocks, batch = to_blocks(array, axes)
    chosen = backends.choose(backend, dtype_name(blocks.dtype), blocks.shape, analysis)
    pairs = []
    for j in range(start_level, start_level + level):
        blocks, detail = chosen.decompose(blocks, replace(analysis, level=1, start_level=j)).coefficients
        pairs.append((from_blocks(blocks, batch, axes), from_blocks(detail, batch, axes)))
    return pairs[::-1]


def iswt(
    coeffs: Sequence[Any], wavelet: WaveletLike, norm: bool = False, axis: int = -1, *, backend: str = "auto"
) -> Array:
    """Compute the inverse of `swt` (with ``start_level`` 0) in either form, as `pywt.iswt`.

    Of the pairs, only the coarsest approximation is used. Raises ValueError for an empty list, coefficients with
    inconsistent shapes, and as `swt`.
    """
    if len(coeffs) == 0:
        raise ValueError("coeffs must hold at least one level")
    if isinstance(coeffs[0], (tuple, list)):
        coeffs = [coeffs[0][0], *(detail for _, detail in coeffs)]
    array = np.asarray(coeffs[0])
    samples, level = transformed_shape(array, (as_axis(array, axis),))[0], len(coeffs) - 1
    if level > _halvings(samples):
        raise ValueError(f"{samples} samples cannot have {level} levels: 2^{level} does not divide them")
    filters = (_swt_filters(as_wavelet(wavelet), norm),)
    return _imodwt(list(coeffs[:1]), _single_bands(coeffs), filters, ("periodic",), (axis,), backend)


def _halvings(samples: int) -> int:
    """Return how often 2 divides the length (`pywt.swt_max_level`)."""
    return (samples & -samples).bit_length() - 1


def _swt_filters(filters: pywt.Wavelet, norm: bool) -> pywt.Wavelet:
    """Return the filters whose MODWT is the SWT by these."""
    if not norm:
        return _undivided(filters)
    if not filters.orthogonal:
        warnings.warn(f"norm=True: {filters.name} is not orthogonal, so the sum of squares is not kept", stacklevel=3)
    return filters


@lru_cache(maxsize=64)
def _undivided(filters: pywt.Wavelet) -> pywt.Wavelet:
    """Undo the division by sqrt 2 of the MODWT: the SWT's analysis does not divide, its synthesis divides twice."""
    analysis = [(np.array(taps) * np.sqrt(2)).tolist() for taps in (filters.dec_lo, filters.dec_hi)]
    synthesis = [(np.array(taps) / np.sqrt(2)).tolist() for taps in (filters.rec_lo, filters.rec_hi)]
    return pywt.Wavelet(filters.name, filter_bank=analysis + synthesis)


_NUMBERED: dict[int, Mode] = {getattr(pywt.Modes, name): cast(Mode, name) for name in MODES}
"""PyWavelets' numbers of the modes, whose order is not that of its list of names."""


def mode_name(mode: Mode | int) -> Mode:
    """Return the name of a mode given by its name, PyWavelets' number (`pywt.Modes`) or PyWavelets' old name.

    Raises ValueError for an unknown mode, TypeError for anything but a name or a number.
    """
    if not isinstance(mode, str | int):
        raise TypeError(f"mode={mode!r} must be a name")
    if mode not in EXTENSIONS:
        try:
            return _NUMBERED[pywt.Modes.from_object(mode)]  # warns of old names
        except ValueError:
            check("mode", mode, EXTENSIONS)
    return cast(Mode, mode)


def _mode_pair(mode: Modes) -> tuple[Mode, Mode]:
    pair = mode if isinstance(mode, (tuple, list)) else (mode, mode)
    if len(pair) != 2:
        raise ValueError(f"{len(pair)} modes for two axes: give one, or a pair")
    return mode_name(pair[0]), mode_name(pair[1])


def _wavelet_pair(wavelet: Wavelets) -> tuple[pywt.Wavelet, pywt.Wavelet]:
    pair = wavelet if isinstance(wavelet, (tuple, list)) else (wavelet, wavelet)
    if len(pair) != 2:
        raise ValueError(f"{len(pair)} wavelets for two axes: give one, or a pair")
    return as_wavelet(pair[0]), as_wavelet(pair[1])


def check_reflection(lengths: Sequence[int], mode: str) -> None:
    """Raise ValueError if a level would reflect a single sample; ``lengths`` are the lengths of each level."""
    if 1 in lengths[:-1] and mode in ("reflect", "antireflect"):
        raise ValueError(f"mode={mode!r} cannot extend a single sample, the input of level {lengths.index(1) + 1}")


def as_floating(data: ArrayLike) -> Array:
    """Return ``data`` in the dtype in which PyWavelets computes. Raises TypeError for data that are not numbers."""
    refuse_kinds(data)
    array = np.asarray(data)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"data of dtype {array.dtype} is not numeric")
    native = array.dtype.newbyteorder("=")
    if native.name == "float16":
        native = np.dtype(np.float32)
    if native.name not in ("float32", "float64", "complex64", "complex128"):
        native = np.dtype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return array.astype(native, copy=False)


def as_axis(array: Array, axis: int) -> int:
    """Return ``axis`` counted from the front. Raises numpy.exceptions.AxisError, a ValueError, if there is none."""
    return int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))


def as_axes(array: Array, axes: Axes) -> Axes:
    """Return a pair of axes counted from the front. Raises ValueError unless they are two different axes."""
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


def _transformed_axes(array: Array, axes: Axes, modes: tuple[Mode, ...]) -> Axes:
    """Return the transformed axes, one for each mode, counted from the front."""
    return as_axes(array, axes) if len(modes) == 2 else (as_axis(array, axes[0]),)


def _default_level(shape: tuple[int, ...], filters: tuple[pywt.Wavelet, ...]) -> int:
    """Return `pywt.dwtn_max_level` of the transformed axes."""
    return min(max_level(n, own) for n, own in zip(shape, filters, strict=True))


def transformed_shape(array: Array, axes: Axes) -> tuple[int, ...]:
    shape = tuple(int(array.shape[axis]) for axis in axes)
    if 0 in shape:
        named = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes[0]} and {axes[1]}"
        raise ValueError(f"data of shape {array.shape} has no samples along {named}")
    return shape


def _sizes(band: Array, axes: Axes, ndim: int) -> tuple[int, ...] | None:
    """Return the lengths of the transformed axes of a band; None if it has another number of axes."""
    return tuple(int(band.shape[axis]) for axis in axes) if np.ndim(band) == ndim else None


def _single_bands(coeffs: Sequence[Any]) -> list[Details]:
    """Return the details of one axis as tuples of one band. Raises ValueError for other containers."""
    for i, c in enumerate(coeffs):
        if isinstance(c, dict | tuple):
            raise ValueError(f"coeffs[{i}]: Unexpected detail coefficient type {type(c).__name__}, not an array")
    return [None if c is None else (np.asarray(c),) for c in coeffs[1:]]


def _triple(bands: Any, place: int) -> Details:
    """Return the three bands of a level with zeros for None, or None for three of them. Raises ValueError otherwise."""
    if not isinstance(bands, (list, tuple)):
        kind = type(bands).__name__
        raise ValueError(f"coeffs[{place}]: Unexpected detail coefficient type {kind}, not three arrays (cH, cV, cD)")
    if len(bands) != 3:
        raise ValueError(f"coeffs[{place}] must be the three arrays (cH, cV, cD)")
    shapes = {np.shape(band) for band in bands if band is not None}
    if not shapes:
        return None
    if len(shapes) > 1:
        raise ValueError(f"coeffs[{place}]: bands of one level have shapes {sorted(shapes)}")
    like = next(np.asarray(band) for band in bands if band is not None)
    return tuple(np.zeros_like(like) if band is None else np.asarray(band) for band in bands)


def _by_level(coefficients: list[Array]) -> list[Any]:
    """Group the bands of two axes by level."""
    return [coefficients[0], *(tuple(coefficients[i : i + 3]) for i in range(1, len(coefficients), 3))]


def _dtypes(levels: Sequence[Details]) -> Iterator[np.dtype[Any]]:
    return (as_floating(band).dtype for bands in levels for band in bands or ())


def _decomposed(array: Array, axes: Axes, analysis: Analysis, backend: str) -> list[Array]:
    blocks, batch = to_blocks(array, axes)
    chosen = backends.choose(backend, dtype_name(blocks.dtype), blocks.shape, analysis)
    return [from_blocks(c, batch, axes) for c in chosen.decompose(blocks, analysis).coefficients]


def _reconstructed(
    coefficients: Sequence[Array], analysis: Analysis, shape: Axes, batch: Axes, axes: Axes, backend: str
) -> Array:
    dtype = coefficients[0].dtype
    chosen = backends.choose(backend, dtype_name(dtype), (len(coefficients[0]), *shape), analysis)
    return from_blocks(chosen.reconstruct(Pyramid(tuple(coefficients), analysis, shape)), batch, axes)


def to_blocks(array: Array, axes: Axes) -> tuple[Array, tuple[int, ...]]:
    """Return C-contiguous blocks (batch, *transformed axes), and the shape of the batch."""
    count = len(axes)
    moved = np.moveaxis(array, axes, range(-count, 0))
    batch = moved.shape[:-count]
    return np.ascontiguousarray(moved.reshape(prod(batch), *moved.shape[-count:])), batch


def from_blocks(blocks: Array, batch: tuple[int, ...], axes: Axes) -> Array:
    count = len(axes)
    return np.moveaxis(blocks.reshape(*batch, *blocks.shape[-count:]), range(-count, 0), axes)
