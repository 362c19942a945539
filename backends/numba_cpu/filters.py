"""Filters of the decimated transforms as kernels take them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pywt

from wavefilt.arrays import Array, DType


@lru_cache(maxsize=64)
def analysis(wavelet: pywt.Wavelet, dtype: DType) -> tuple[Array, Array]:
    """Those of the forward kernels. A wavelet never changes, and making its lists takes longer than finding it."""
    return np.array(wavelet.dec_lo[::-1], dtype), np.array(wavelet.dec_hi[::-1], dtype)


@lru_cache(maxsize=64)
def synthesis(wavelet: pywt.Wavelet, dtype: DType) -> tuple[Array, Array]:
    """Those of the inverse kernels: taps of even and of odd outputs, low and high in turn."""
    bank = np.array([wavelet.rec_lo, wavelet.rec_hi], dtype)
    return bank[:, -2::-2].T.ravel(), bank[:, ::-2].T.ravel()
