"""Undecimated transforms: the MODWT, for any length and boundary mode, and the SWT with PyWavelets' values.

MODWT: Percival and Walden (2000), chapter 5. Level j's filters are those of PyWavelets over sqrt 2, their taps
2^(j-1) apart. With h half of their number, and V_0 the samples,

    V_j[t] = sum_l lo[l]/sqrt 2 V_{j-1}[t + 2^(j-1) (h - l)],   W_j[t] the same with hi,
    V_{j-1}[t] = sum_l (lo'[l] V_j[t + 2^(j-1) (h - 1 - l)] + hi'[l] W_j[...])/sqrt 2.

So the samples that coefficient t of any level is computed from lie around sample t. Percival and Walden's own, of the
samples up to t, stand (2^j - 1) h columns further on.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pywt
from numpy.typing import ArrayLike, NDArray

from wavefilt import backends
from wavefilt.arrays import dtype_name
from wavefilt.decomposition.wavedec import as_axis, as_floating, from_rows, mode_name, to_rows
from wavefilt.transforms import MODWT, Pyramid
from wavefilt.vocabulary import Mode
from wavefilt.wavelets import modwt_boundary
from wavefilt.wavelets.filters import WaveletLike, as_wavelet, max_level


def modwt(
    data: ArrayLike,
    wavelet: WaveletLike,
    level: int | None = None,
    mode: Mode = "periodic",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> list[NDArray[Any]]:
    """Maximal overlap discrete wavelet transform along one axis, for any length.

    Parameters
    ----------
    data : array_like, shape (..., n, ...)
        Dtypes as in `wavedec`.
    wavelet : str, pywt.Wavelet or object with four filters
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
    mode, bank, array = mode_name(mode), as_wavelet(wavelet), as_floating(data)
    axis = as_axis(array, axis)
    samples = _samples(array, axis)
    level = max_level(samples, bank) if level is None else operator.index(level)
    most = samples.bit_length() - 1
    if not 0 <= level <= most:
        raise ValueError(f"level={level} must be at least 0 and at most log2 of {samples} samples, {most}")
    modwt_boundary.check(samples, mode)
    x, batch = to_rows(array, axis)
    analysis = MODWT.analysis(bank, mode, level)
    chosen = backends.choose(backend, dtype_name(x.dtype), x.shape, analysis)
    return [from_rows(c, batch, axis) for c in chosen.decompose(x, analysis).coefficients]


def imodwt(
    coeffs: Sequence[ArrayLike | None],
    wavelet: WaveletLike,
    mode: Mode = "periodic",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> NDArray[Any]:
    """Inverse of `modwt`.

    Parameters
    ----------
    coeffs : sequence of array_like
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
    return _inverse(list(coeffs), as_wavelet(wavelet), mode_name(mode), axis, backend)


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
    """Stationary wavelet transform: signature and values of `pywt.swt`.

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
    axis = as_axis(array, axis)
    samples = _samples(array, axis)
    start_level, most = operator.index(start_level), _halvings(samples)
    level = most - start_level if level is None else operator.index(level)
    if level < 1 or start_level < 0 or start_level + level > most:
        raise ValueError(
            f"level={level} from start_level={start_level} of {samples} samples: level must be at least 1, and "
            f"2^(start_level + level) divide the length, which 2^{most} does; modwt takes any length"
        )
    bank = _bank(as_wavelet(wavelet), norm)
    x, batch = to_rows(array, axis)
    analysis = MODWT.analysis(bank, "periodic", level, start_level)
    chosen = backends.choose(backend, dtype_name(x.dtype), x.shape, analysis)
    if trim_approx:
        return [from_rows(c, batch, axis) for c in chosen.decompose(x, analysis).coefficients]
    pairs = []
    for j in range(start_level, start_level + level):
        x, detail = chosen.decompose(x, replace(analysis, level=1, start_level=j)).coefficients
        pairs.append((from_rows(x, batch, axis), from_rows(detail, batch, axis)))
    return pairs[::-1]


def iswt(
    coeffs: Sequence[Any], wavelet: WaveletLike, norm: bool = False, axis: int = -1, *, backend: str = "auto"
) -> NDArray[Any]:
    """Inverse of `swt` (with ``start_level`` 0) in either form: signature and values of `pywt.iswt`.

    Of the pairs, only the coarsest approximation is used. Raises ValueError for an empty list, coefficients with
    inconsistent shapes, and as `swt`.
    """
    if len(coeffs) == 0:
        raise ValueError("coeffs must hold at least one level")
    if isinstance(coeffs[0], (tuple, list)):
        coeffs = [coeffs[0][0], *(detail for _, detail in coeffs)]
    array = np.asarray(coeffs[0])
    samples, level = _samples(array, as_axis(array, axis)), len(coeffs) - 1
    if level > _halvings(samples):
        raise ValueError(
            f"coefficients of {samples} samples cannot have {level} levels: 2^{level} does not divide them"
        )
    return _inverse(list(coeffs), _bank(as_wavelet(wavelet), norm), "periodic", axis, backend)


def _inverse(coeffs: list[ArrayLike | None], bank: pywt.Wavelet, mode: Mode, axis: int, backend: str) -> NDArray[Any]:
    given = [None if c is None else as_floating(c) for c in coeffs]
    known = [c for c in given if c is not None]
    if not known:
        raise ValueError("coeffs must be a list [V_J, W_J, ..., W_1] with at least one array")
    dtype, level = np.result_type(*known), len(given) - 1
    levels = [level, *range(level, 0, -1)]
    columns = [modwt_boundary.length(0, bank.rec_len, mode, j) for j in levels]  # more than samples
    axis = as_axis(known[0], axis)
    shapes = set()
    for c, more in zip(given, columns, strict=True):
        if c is not None:
            same = c.ndim == known[0].ndim
            shapes.add((*np.delete(c.shape, axis).tolist(), c.shape[axis] - more) if same else c.shape)
    *lead, samples = next(iter(shapes))
    batch = tuple(lead)
    if len(shapes) > 1 or samples < 1:
        raise ValueError(f"coefficients of shapes {[c.shape for c in known]} do not belong together in mode {mode!r}")
    traces = int(np.prod(batch))
    rows = []
    for c, more in zip(given, columns, strict=True):
        if c is None:
            rows.append(np.zeros((traces, samples + more), dtype))
        else:
            rows.append(to_rows(c.astype(dtype, copy=False), axis)[0])
    analysis = MODWT.analysis(bank, mode, level)
    chosen = backends.choose(backend, dtype_name(dtype), (traces, samples), analysis)
    y = chosen.reconstruct(Pyramid(tuple(rows), analysis, (samples,)))
    return from_rows(y, batch, axis)


def _samples(array: NDArray[Any], axis: int) -> int:
    samples = int(array.shape[axis])
    if samples == 0:
        raise ValueError(f"data of shape {array.shape} has no samples along axis {axis}")
    return samples


def _halvings(samples: int) -> int:
    """How often 2 divides the length (`pywt.swt_max_level`)."""
    return (samples & -samples).bit_length() - 1


def _bank(bank: pywt.Wavelet, norm: bool) -> pywt.Wavelet:
    """The bank whose MODWT is the SWT of this one."""
    if not norm:
        return _undivided(bank)
    if not bank.orthogonal:
        warnings.warn(f"norm=True: {bank.name} is not orthogonal, so the sum of squares is not kept", stacklevel=3)
    return bank


@lru_cache(maxsize=64)
def _undivided(bank: pywt.Wavelet) -> pywt.Wavelet:
    """Filters that, divided by sqrt 2, are the SWT's: its analysis does not divide, its synthesis divides twice."""
    analysis = [(np.array(taps) * np.sqrt(2)).tolist() for taps in (bank.dec_lo, bank.dec_hi)]
    synthesis = [(np.array(taps) / np.sqrt(2)).tolist() for taps in (bank.rec_lo, bank.rec_hi)]
    return pywt.Wavelet(bank.name, filter_bank=analysis + synthesis)
