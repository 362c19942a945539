"""Wavelet transforms of arrays along one axis or two, with PyWavelets' signatures, lengths and values.

The functions convert the array to C-contiguous blocks (batch, *transformed axes), choose a backend and convert the
coefficients back. Formulas: Mallat (1989) for the DWT, lengths in `wavefilt.wavelets.filters`; Percival and Walden
(2000), chapter 5, for the MODWT.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import pywt
from numpy.typing import ArrayLike

from wavefilt import backends
from wavefilt.arrays import Array, dtype_name, refuse_kinds
from wavefilt.backends.interface import Backend
from wavefilt.transforms import Analysis, Pyramid, find
from wavefilt.vocabulary import MODES, Mode, check
from wavefilt.wavelets.boundary import EXTENSIONS, check_single, modwt_length
from wavefilt.wavelets.filters import (
    WaveletLike,
    as_reconstructing,
    as_wavelet,
    detail_lengths,
    lengths_from,
    max_level,
)

Wavelets: TypeAlias = "WaveletLike | tuple[WaveletLike, WaveletLike]"
Modes: TypeAlias = "Mode | tuple[Mode, Mode]"
Axes: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = list[tuple[int, ...]]
"""Lengths of the transformed axes: of the approximation, then of the bands of each level, the coarsest first."""


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
    return _decomposed(data, analysis_of("dwt", 1, wavelet, mode), level, (axis,), backend)


def wavedec2(
    data: ArrayLike,
    wavelet: Wavelets,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> list[Any]:
    """Compute the multilevel discrete wavelet transform of two axes; errors and other parameters are as for `wavedec`.

    Parameters
    ----------
    wavelet, mode
        As for `wavedec`, or a pair with one for each axis.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwtn_max_level` of the two axes.
    axes : pair of int
        Two different axes; all others are a batch.

    Returns
    -------
    list
        ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``, of the shape of ``data`` except along the two axes.
        cH is high-pass along ``axes[0]``, cV along ``axes[1]``, cD along both.
    """
    return _by_level(_decomposed(data, analysis_of("dwt", 2, wavelet, mode), level, axes, backend))


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
    return _recomposed(coeffs, analysis_of("dwt", 1, wavelet, mode), (axis,), backend)


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
        As in `wavedec2`. Errors are as for `waverec`.
    """
    return _recomposed(coeffs, analysis_of("dwt", 2, wavelet, mode), axes, backend)


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
    if cA is not None and cD is not None and np.shape(cA) != np.shape(cD):
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
    return _decomposed(data, analysis_of("modwt", 1, wavelet, mode), level, (axis,), backend)


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

    Each level filters both axes as `modwt`; errors and other parameters are as for `modwt`.

    Parameters
    ----------
    wavelet, mode
        As for `modwt`, or a pair with one for each axis.
    level : int, optional
        Number of levels, from 0 to log2 of the shorter axis; by default `pywt.dwtn_max_level` of the two axes.
    axes : pair of int
        Two different axes; all others are a batch.

    Returns
    -------
    list
        ``[A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]``: H is high-pass along ``axes[0]``, V along ``axes[1]``, D along
        both. In the periodic modes each has the shape of ``data``, with the values of
        ``pywt.swt2(norm=True, trim_approx=True)`` for the lengths that it supports, and for orthogonal wavelets the sum
        of squares is preserved. In the other modes level j has (2^j - 1)(taps - 1) more along either axis, the boundary
        coefficients that `imodwt2` needs: sample t is at t + (2^j - 1) taps/2.
    """
    return _by_level(_decomposed(data, analysis_of("modwt", 2, wavelet, mode), level, axes, backend))


def imodwt(
    coeffs: Sequence[ArrayLike | None],
    wavelet: WaveletLike,
    mode: Mode = "periodic",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `modwt`, in the coefficients' common floating dtype.

    Parameters
    ----------
    coeffs : sequence
        ``[V_J, W_J, ..., W_1]``; None counts as zeros.
    wavelet, mode, axis, backend
        As in `modwt`.

    Raises
    ------
    ValueError
        For an empty list, coefficients with inconsistent shapes, and as `modwt`.
    """
    return _recomposed(coeffs, analysis_of("modwt", 1, as_reconstructing(wavelet), mode), (axis,), backend)


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
        As in `modwt2`. Errors are as for `imodwt`.
    """
    return _recomposed(coeffs, analysis_of("modwt", 2, wavelet, mode), axes, backend)


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
    axes = as_axes(array, (axis,), 1)
    (samples,) = transformed_shape(array, axes)
    start_level, most = operator.index(start_level), _halvings(samples)
    level = most - start_level if level is None else operator.index(level)
    if level < 1 or start_level < 0 or start_level + level > most:
        raise ValueError(
            f"level={level} from start_level={start_level} of {samples} samples: level must be at least 1, and "
            f"2^(start_level + level) divide the length, which 2^{most} does; modwt takes any length"
        )
    analysis = analysis_of("modwt", 1, _swt_filters(as_wavelet(wavelet), norm), "periodic")
    analysis = replace(analysis, level=level, start_level=start_level)
    if trim_approx:
        return _transformed(array, axes, analysis, backend)
    chosen = backends.choose(backend, dtype_name(array.dtype), (array.size // samples, samples), analysis)
    pairs = []
    for j in range(start_level, start_level + level):
        array, detail = _transformed(array, axes, replace(analysis, level=1, start_level=j), chosen)
        pairs.append((array, detail))
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
    array, level = np.asarray(coeffs[0]), len(coeffs) - 1
    (samples,) = transformed_shape(array, as_axes(array, (axis,), 1))
    if level > _halvings(samples):
        raise ValueError(f"{samples} samples cannot have {level} levels: 2^{level} does not divide them")
    filters = _swt_filters(as_wavelet(wavelet), norm)
    return _recomposed(coeffs, analysis_of("modwt", 1, filters, "periodic"), (axis,), backend)


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


def mode_name(mode: Mode | int) -> Mode:
    """Return the name of a mode given by its name, PyWavelets' number (`pywt.Modes`) or PyWavelets' old name.

    Raises ValueError for an unknown mode, TypeError for anything but a name or a number.
    """
    if not isinstance(mode, str | int):
        raise TypeError(f"mode={mode!r} must be a name")
    if mode not in EXTENSIONS:
        try:
            number = pywt.Modes.from_object(mode)  # warns of old names
        except ValueError:
            check("mode", mode, EXTENSIONS)
        else:
            return cast(Mode, next(name for name in MODES if getattr(pywt.Modes, name) == number))
    return cast(Mode, mode)


def analysis_of(word: str, ndim: int, wavelet: Wavelets, mode: Modes) -> Analysis:
    """Return a transform of no levels of one axis or two, for a wavelet and a mode or, for two axes, pairs of them."""
    filters, modes = _of_each_axis(wavelet, ndim, as_wavelet), _of_each_axis(mode, ndim, mode_name)
    return Analysis(find(word, ndim), filters, modes, 0)


def _of_each_axis(option: Any, ndim: int, convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    values = option if ndim == 2 and isinstance(option, (tuple, list)) else (option,) * ndim
    if len(values) != ndim:
        raise ValueError(f"{len(values)} wavelets or modes for two axes: give one, or a pair")
    return tuple(map(convert, values))


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


def as_axes(array: Array, axes: Iterable[int], ndim: int) -> Axes:
    """Return different axes of the array, as many as ``ndim``, counted from the front.

    Raises ValueError if there are others, and for axes that the array does not have.
    """
    found = np.lib.array_utils.normalize_axis_tuple(tuple(axes), array.ndim, "axes")
    if len(found) != ndim:
        raise ValueError(f"axes={found} must be a pair of axes")
    return found


def transformed_shape(array: Array, axes: Axes) -> tuple[int, ...]:
    shape = tuple(int(array.shape[axis]) for axis in axes)
    if 0 in shape:
        named = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes[0]} and {axes[1]}"
        raise ValueError(f"data of shape {array.shape} has no samples along {named}")
    return shape


def prepared(
    data: ArrayLike, analysis: Analysis, level: int | None, axes: Iterable[int]
) -> tuple[Array, Axes, Analysis]:
    """Return the array to transform, its axes counted from the front, and the transform with its number of levels."""
    array = as_floating(data)
    axes = as_axes(array, axes, len(analysis.modes))
    shape = transformed_shape(array, axes)
    along = list(zip(shape, analysis.wavelets, analysis.modes, strict=True))
    level = min(max_level(n, filters) for n, filters, _ in along) if level is None else operator.index(level)
    if level < 0:
        raise ValueError(f"level={level} must be at least 0")
    if analysis.transform.word == "modwt" and level > (most := min(shape).bit_length() - 1):
        raise ValueError(f"level={level} must be at most log2 of {min(shape)} samples, {most}")
    for n, filters, mode in along:
        if analysis.transform.word == "modwt":
            check_single(n, mode)
        else:
            check_reflection([n, *detail_lengths(n, filters.dec_len, mode, level)], mode)
    return array, axes, replace(analysis, level=level)


def _decomposed(
    data: ArrayLike, analysis: Analysis, level: int | None, axes: Iterable[int], backend: str
) -> list[Array]:
    """Return the approximation and the bands of each level, the coarsest first."""
    array, axes, analysis = prepared(data, analysis, level, axes)
    return _transformed(array, axes, analysis, backend)


def _transformed(array: Array, axes: Axes, analysis: Analysis, backend: str | Backend) -> list[Array]:
    blocks, batch = to_blocks(array, axes)
    chosen = backends.choose(backend, dtype_name(blocks.dtype), blocks.shape, analysis)
    return [from_blocks(c, batch, axes) for c in chosen.decompose(blocks, analysis).coefficients]


def _by_level(coefficients: list[Array]) -> list[Any]:
    """Group the bands of two axes by level."""
    return [coefficients[0], *(tuple(coefficients[i : i + 3]) for i in range(1, len(coefficients), 3))]


def _recomposed(coeffs: Sequence[Any], analysis: Analysis, axes: Iterable[int], backend: str) -> Array:
    """Return the samples from coefficients in the order of `_decomposed`, of which some may be None."""
    word, ndim = analysis.transform.word, len(analysis.modes)
    if not isinstance(coeffs, Sequence if word == "dwt" else Sequence | np.ndarray) or len(coeffs) == 0:
        raise ValueError("coeffs must be a list of at least one array: the approximation, and details of each level")
    levels = [
        None if coeffs[0] is None else (np.asarray(coeffs[0]),),
        *(_bands(c, i, ndim) for i, c in enumerate(coeffs[1:], 1)),
    ]
    known = [as_floating(band) for bands in levels for band in bands or ()]
    if not known or (word == "dwt" and levels[:2] in ([None], [None, None])):
        raise ValueError("of the two coarsest coefficients of coeffs at least one must be an array")
    dtype, axes = np.result_type(*known), as_axes(known[0], axes, ndim)
    batch = _without(known[0].shape, axes)
    for i, bands in enumerate(levels):
        shape = known[0].shape if bands is None else bands[0].shape
        if len(shape) != known[0].ndim or _without(shape, axes) != batch:
            raise ValueError(f"coeffs[{i}] of shape {shape} does not belong together with the other coefficients")
    given = [None if bands is None else tuple(bands[0].shape[axis] for axis in axes) for bands in levels]
    analysis = replace(analysis, level=len(levels) - 1)
    sizes, shape = _sizes(given, analysis)
    coefficients = list[Array]()
    for i, (bands, size) in enumerate(zip(levels, sizes, strict=True)):
        if bands is None:
            coefficients += [np.zeros((prod(batch), *size), dtype)] * (1 if i == 0 else 2**ndim - 1)
        for band in bands or ():
            block = to_blocks(np.asarray(band, dtype), axes)[0]
            coefficients.append(np.ascontiguousarray(block[(slice(None), *map(slice, size))]))
    chosen = backends.choose(backend, dtype_name(dtype), (prod(batch), *shape), analysis)
    return from_blocks(chosen.reconstruct(Pyramid(tuple(coefficients), analysis, shape)), batch, axes)


def _bands(bands: Any, place: int, ndim: int) -> tuple[Array, ...] | None:
    """Return the bands of a level as arrays, with zeros for None; None if all are. Raises ValueError for others."""
    if bands is None:
        return None
    if ndim == 1:
        bands = (bands,)
    if not isinstance(bands, (list, tuple)) or len(bands) != 2**ndim - 1 or isinstance(bands[0], (dict, tuple)):
        what = "an array" if ndim == 1 else "the three arrays (cH, cV, cD)"
        raise ValueError(f"coeffs[{place}]: Unexpected detail coefficient type {type(bands).__name__}, not {what}")
    arrays = [np.asarray(band) for band in bands if band is not None]
    if len({array.shape for array in arrays}) > 1:
        raise ValueError(f"coeffs[{place}]: bands of one level have different shapes")
    return tuple(np.zeros_like(arrays[0]) if band is None else np.asarray(band) for band in bands) if arrays else None


def _without(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def _sizes(given: Sequence[tuple[int, ...] | None], analysis: Analysis) -> tuple[Sizes, tuple[int, ...]]:
    """Return the lengths of all coefficients, boundary coefficients included, and of the samples.

    Where a length is odd, an approximation from coarser levels of the DWT is one longer than the details of its level.
    """
    levels, decimated, along = [analysis.level, *range(analysis.level, 0, -1)], analysis.transform.word == "dwt", []
    for axis, (filters, mode) in enumerate(zip(analysis.wavelets, analysis.modes, strict=True)):
        known = {level: size[axis] for level, size in zip(levels, given, strict=True) if size}
        if decimated:
            along.append(lengths_from(known, filters.dec_len, mode))
        else:
            more = [modwt_length(0, filters.rec_len, mode, level) for level in range(analysis.level + 1)]
            along.append([known[max(known)] - more[max(known)] + n for n in more])
    shape, *sizes = zip(*along, strict=True)
    sizes = [*sizes[-1:], *reversed(sizes)] or [shape]
    for i, (own, size) in enumerate(zip(given, sizes, strict=True)):
        more = [n - m for n, m in zip(own or size, size, strict=True)]
        if min(shape) < min(analysis.level, 1) or not set(more) <= {0, int(decimated and i == 0)}:
            what = f"belong together with the others, or is too short for filters of {analysis.taps} taps"
            raise ValueError(f"coeffs[{i}] of lengths {own} does not {what}")
    return sizes, shape


def to_blocks(array: Array, axes: Axes) -> tuple[Array, tuple[int, ...]]:
    """Return C-contiguous blocks (batch, *transformed axes), and the shape of the batch."""
    count = len(axes)
    moved = np.moveaxis(array, axes, range(-count, 0))
    batch = moved.shape[:-count]
    return np.ascontiguousarray(moved.reshape(prod(batch), *moved.shape[-count:])), batch


def from_blocks(blocks: Array, batch: tuple[int, ...], axes: Axes) -> Array:
    count = len(axes)
    return np.moveaxis(blocks.reshape(*batch, *blocks.shape[-count:]), range(-count, 0), axes)
