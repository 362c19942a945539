"""Coefficients shrunk as they are loaded: by a function of their magnitudes and a threshold, or by gains."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import device
from wavefilt.backends.cuda.thresholding import shrink

GAINS = "gains"
"""What `Shrinking` calls the function by which each coefficient has a factor of its own, in its details."""


@cache
def shrinking(dtype: str, function: str) -> DeviceFunction:
    """Device function ``(real, imaginary, threshold, gains, place) -> (real, imaginary)``."""
    zero = np.dtype(dtype).type(0)
    if function == GAINS:
        return device(lambda p, q, t, gains, at: (p * gains[at], q * gains[at]))
    if function == "keep":
        return device(lambda p, q, t, gains, at: (p, q))
    shrunk = shrink(function, dtype)

    @device
    def apply(p, q, t, gains, at):
        m = math.sqrt(p * p + q * q)
        gain = shrunk(m, t) / m if m > zero else zero
        return p * gain, q * gain

    return apply
