"""The threshold functions of `wavefilt.thresholding.shrinkage`, one coefficient at a time, as device functions."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction
from wavefilt.backends.cuda.runtime.target import device
from wavefilt.thresholding.shrinkage import FIRM_RATIO

KNOWN = ("soft", "hard", "garrote", "firm")
"""Functions that kernels have; others are applied on the host."""


@cache
def shrink(function: str, dtype: str) -> DeviceFunction:
    """Device function ``(d, t) -> d shrunk`` for one of the four functions, or ``"keep"``."""
    number = np.dtype(dtype).type
    zero, ratio, rest = number(0), number(FIRM_RATIO), number(1) / (number(1) - number(1) / number(FIRM_RATIO))

    def keep(d, t):
        return d

    def soft(d, t):
        return d - max(min(d, t), -t)

    def hard(d, t):
        return zero if abs(d) < t else d

    def garrote(d, t):
        m = abs(d)
        return d - math.copysign(t / m * t, d) if m > t else zero

    def firm(d, t):
        m = abs(d)
        return d if m > ratio * t else math.copysign((m - t) * rest, d) if m > t else zero

    return device({f.__name__: f for f in (keep, soft, hard, garrote, firm)}[function])
