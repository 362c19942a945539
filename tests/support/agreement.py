"""How closely coefficients must agree with PyWavelets."""

from __future__ import annotations

import warnings

import numpy as np
import pywt

TOLERANCE = {"f4": 1e-6, "c8": 1e-6, "f8": 1e-13, "c16": 1e-13}
"""Largest relative L2 error for each dtype."""


def _joined(arrays):
    return np.concatenate([np.ravel(a) for a in arrays]).astype("c16")


def norm(arrays) -> float:
    return float(np.linalg.norm(_joined(arrays)))


def error(found, expected) -> float:
    """Relative L2 error of all coefficients together."""
    assert [f.shape for f in found] == [e.shape for e in expected]
    return norm([_joined(found) - _joined(expected)]) / norm(expected)


def assert_coefficients_agree(found, x, wavelet, mode, level):
    """Returns PyWavelets' coefficients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # above its maximum level
        reference = pywt.wavedec(x, wavelet, mode, level)
        exact = pywt.wavedec(x.astype("c16" if x.dtype.kind == "c" else "f8"), wavelet, mode, level)
    assert all(f.dtype == x.dtype for f in found)
    # PyWavelets' own rounding counts; smooth extrapolates from a rounded slope, which no summation repairs
    bound = max(TOLERANCE[x.dtype.str[1:]], 2 * error(reference, exact))
    assert error(found, exact) <= (100 * bound if mode == "smooth" else bound)
    return reference


def assert_samples_agree(found, reference, wavelet, mode):
    """Samples reconstructed from PyWavelets' coefficients ``reference``."""
    expected = pywt.waverec(reference, wavelet, mode)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = TOLERANCE[expected.dtype.str[1:]]
    assert norm([found - expected]) <= tolerance * max(norm([expected]), 0.1 * norm(reference))
