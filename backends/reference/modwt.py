"""The reference MODWT: NumPy, one filter tap after another. What it is: `wavefilt.decomposition.stationary`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.interface import Pyramid
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.wavelets import boundary, modwt_boundary


def decompose(x: NDArray[Any], wavelet: pywt.Wavelet, mode: str, level: int, start_level: int) -> Pyramid:
    """The pyramid of ``x`` (traces, samples)."""
    modwt_boundary.check(x.shape[-1], mode)
    samples, half = x.shape[-1], wavelet.dec_len // 2
    round_about = mode in modwt_boundary.ROUND
    before, after = modwt_boundary.needed(wavelet.dec_len, mode, 0, level, start_level)
    v, details = extended(x, mode, before, after), []
    for j in range(1, level + 1):
        step = 1 << start_level + j - 1
        if round_about:
            v = extended(v, mode, step * (half - 1), step * half)
        v, detail = _filtered(v, wavelet.dec_lo, step), _filtered(v, wavelet.dec_hi, step)
        first, _ = modwt_boundary.needed(wavelet.dec_len, mode, j, level, start_level)
        before, after = modwt_boundary.kept(wavelet.dec_len, mode, j, start_level)
        details.append(detail[:, first - before : first + samples + after])
    return Pyramid((v, *reversed(details)), wavelet, mode, samples, "modwt", start_level)


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None) -> NDArray[Any]:
    """The rows again, their details shrunk on the way."""
    wavelet, half = pyramid.wavelet, pyramid.wavelet.rec_len // 2
    if shrinkage is not None:
        pyramid = pyramid.holding(shrinkage.of_all(pyramid.coefficients))
    v, details = pyramid.coefficients[0], pyramid.coefficients[1:]
    for j, detail in zip(range(pyramid.level, 0, -1), details, strict=True):
        step = 1 << pyramid.start_level + j - 1
        if pyramid.mode in modwt_boundary.ROUND:
            v, detail = (extended(c, pyramid.mode, step * half, step * (half - 1)) for c in (v, detail))
        v = _filtered(v, wavelet.rec_lo, step) + _filtered(detail, wavelet.rec_hi, step)
    return np.ascontiguousarray(v)


def extended(x: NDArray[Any], mode: str, before: int, after: int) -> NDArray[Any]:
    """Rows with so many samples of their extension before and after them; in periodization no sample is repeated."""
    n, code = x.shape[-1], boundary.PERIODIC if mode in modwt_boundary.ROUND else boundary.code(mode)

    def outside(first: int, stop: int) -> NDArray[Any]:
        terms = [boundary.extension(code, i, n) for i in range(first, stop)]
        j, a, k, b, l, c = np.array(terms, dtype=np.int64).reshape(-1, 6).T  # noqa: E741
        values = (np.where(factor != 0, factor * x[:, place], 0) for place, factor in ((j, a), (k, b), (l, c)))
        return sum(values, start=np.zeros(len(j))).astype(x.dtype)

    return np.concatenate([outside(-before, 0), x, outside(n, n + after)], axis=-1)


def _filtered(x: NDArray[Any], taps: list[float], step: int) -> NDArray[Any]:
    """The filter over sqrt 2, its taps ``step`` apart, at every place where it finds all of its samples."""
    count, reversed_taps = x.shape[-1] - step * (len(taps) - 1), enumerate(reversed(taps))
    parts = (tap / 2**0.5 * x[:, step * q : step * q + count] for q, tap in reversed_taps)
    return sum(parts, start=np.zeros(count, x.dtype))
