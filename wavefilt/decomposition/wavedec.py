"""Wavelet transforms with PyWavelets' signatures, lengths and values, through a backend.

Formulas: Mallat (1989), as implemented and documented by PyWavelets; lengths in `wavefilt.wavelets.filters`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pywt
from numpy.typing import ArrayLike, NDArray

from wavefilt import backends
from wavefilt.arrays import dtype_name, refuse_kinds
from wavefilt.transforms import DWT, Pyramid
from wavefilt.vocabulary import MODES, Mode
from wavefilt.wavelets.boundary import EXTENSIONS
from wavefilt.wavelets.filters import WaveletLike, as_wavelet, detail_lengths, max_level, synthesis_length


def wavedec(
    data: ArrayLike,
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    level: int | None = None,
    axis: int = -1,
    *,
    backend: str = "auto",
) -> list[NDArray[Any]]:
    """Multilevel discrete wavelet transform along one axis.

    Parameters
    ----------
    data : array_like, shape (..., n, ...)
        float32, float64, complex64 and complex128 keep their dtype, float16 is computed in float32, everything
        else in float64 (complex128).
    wavelet : str, pywt.Wavelet or object with four filters
    mode : str
        One of PyWavelets' nine boundary modes.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwt_max_level`. Deeper levels are computed as asked;
        all their coefficients then depend on the boundary.
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
    mode = mode_name(mode)
    bank = as_wavelet(wavelet)
    array = as_floating(data)
    axis = as_axis(array, axis)
    samples = array.shape[axis]
    if samples == 0:
        raise ValueError(f"data of shape {array.shape} has no samples along axis {axis}")
    if level is None:
        level = max_level(samples, bank)
    elif operator.index(level) < 0:
        raise ValueError(f"level={level} must be at least 0")
    check_reflection([samples, *detail_lengths(samples, bank.dec_len, mode, level)], mode)
    x, batch = to_rows(array, axis)
    analysis = DWT.analysis(bank, mode, level)
    chosen = backends.choose(backend, dtype_name(x.dtype), x.shape, analysis)
    return [from_rows(c, batch, axis) for c in chosen.decompose(x, analysis).coefficients]


def waverec(
    coeffs: Sequence[ArrayLike | None],
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> NDArray[Any]:
    """Inverse of `wavedec`: one sample longer if the length was odd, as in PyWavelets.

    Parameters
    ----------
    coeffs : sequence of array_like
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
    mode = mode_name(mode)
    bank = as_wavelet(wavelet)
    if not isinstance(coeffs, Sequence) or len(coeffs) == 0:
        raise ValueError("coeffs must be a list [cA_n, cD_n, ..., cD_1] of at least one array")
    if coeffs[0] is None and len(coeffs) > 1 and coeffs[1] is not None:
        coeffs = [np.zeros_like(np.asarray(coeffs[1])), *coeffs[1:]]
    if coeffs[0] is None:
        raise ValueError("of the two coarsest coefficients at least one must be an array")
    if len(coeffs) == 1:
        return np.asarray(coeffs[0])
    for i, c in enumerate(coeffs):
        if isinstance(c, dict | tuple):
            raise ValueError(
                f"coeffs[{i}]: Unexpected detail coefficient type {type(c).__name__}, not an array or None"
            )
    dtype = np.result_type(*(as_floating(c) for c in coeffs if c is not None))
    first = np.asarray(coeffs[0])
    axis = as_axis(first, axis)
    rows: list[NDArray[Any]] = []
    length, batch = first.shape[axis], None
    for i, c in enumerate(coeffs):
        if c is None:
            row = np.zeros((rows[0].shape[0], length), dtype)
        else:
            array = np.asarray(c, dtype)
            row, shape = to_rows(array, as_axis(array, axis))
            if batch is None:
                batch = shape
            # an odd length makes the approximation one sample longer than the detail it meets
            if shape != batch or (i > 0 and length - row.shape[-1] not in (0, 1)):
                raise ValueError(f"coeffs[{i}] of shape {array.shape} does not fit the coarser coefficients")
        length = row.shape[-1] if i == 0 else synthesis_length(row.shape[-1], bank.dec_len, mode)
        if length < 1:
            raise ValueError(f"coeffs[{i}] is too short for {bank.name} ({bank.dec_len} taps) in mode {mode!r}")
        rows.append(row)
    rows[0] = np.ascontiguousarray(rows[0][:, : rows[1].shape[-1]])
    analysis = DWT.analysis(bank, mode, len(rows) - 1)
    chosen = backends.choose(backend, dtype_name(dtype), (len(rows[0]), length), analysis)
    y = chosen.reconstruct(Pyramid(tuple(rows), analysis, (length,)))
    assert batch is not None
    return from_rows(y, batch, axis)


def dwt(
    data: ArrayLike, wavelet: WaveletLike, mode: Mode = "symmetric", axis: int = -1, *, backend: str = "auto"
) -> tuple[NDArray[Any], NDArray[Any]]:
    """One level of `wavedec`: ``(cA, cD)``, as `pywt.dwt`. Raises what `wavedec` raises."""
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
) -> NDArray[Any]:
    """Inverse of `dwt`, as `pywt.idwt`: either argument may be None and counts as zeros, but not both.

    Raises ValueError if both are None or their shapes differ.
    """
    if cA is None and cD is None:
        raise ValueError("at least one of cA and cD must be given")
    if cA is None:
        cA = np.zeros_like(np.asarray(cD))
    elif cD is not None and np.shape(cA) != np.shape(cD):
        raise ValueError(f"cA of shape {np.shape(cA)} and cD of shape {np.shape(cD)} do not belong together")
    return waverec([cA, cD], wavelet, mode, axis, backend=backend)


_NUMBERED: dict[int, Mode] = {getattr(pywt.Modes, name): cast(Mode, name) for name in MODES}
"""PyWavelets' numbers of the modes; their order is not that of its list of names."""


def mode_name(mode: Mode | int) -> Mode:
    """The mode's name; PyWavelets' numbers (`pywt.Modes`) and old names are taken too.

    Raises ValueError for one that is not known, TypeError for what is neither a name nor a number.
    """
    if not isinstance(mode, str | int):
        raise TypeError(f"mode={mode!r} must be a name")
    if mode not in EXTENSIONS:
        try:
            return _NUMBERED[pywt.Modes.from_object(mode)]  # of old names it warns
        except ValueError:
            EXTENSIONS.check(mode)
    return cast(Mode, mode)


def check_reflection(lengths: Sequence[int], mode: str) -> None:
    """Raise ValueError where a reflection would have to extend a single sample; ``lengths`` are those of each level."""
    if 1 in lengths[:-1] and mode in ("reflect", "antireflect"):
        raise ValueError(f"mode={mode!r} cannot extend a single sample, which level {lengths.index(1) + 1} would meet")


def as_floating(data: ArrayLike) -> NDArray[Any]:
    """``data`` in the dtype PyWavelets would compute it in."""
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


def as_axis(array: NDArray[Any], axis: int) -> int:
    """``axis`` counted from the front; numpy.exceptions.AxisError, which is a ValueError, if there is none."""
    return int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))


def to_rows(array: NDArray[Any], axis: int) -> tuple[NDArray[Any], tuple[int, ...]]:
    """The samples as C-contiguous rows, and the shape of the batch."""
    moved = np.moveaxis(array, axis, -1)
    batch = moved.shape[:-1]
    return np.ascontiguousarray(moved.reshape(int(np.prod(batch)), moved.shape[-1])), batch


def from_rows(rows: NDArray[Any], batch: tuple[int, ...], axis: int) -> NDArray[Any]:
    return np.moveaxis(rows.reshape(*batch, rows.shape[-1]), -1, axis)
