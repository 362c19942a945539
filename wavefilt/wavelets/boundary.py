"""The nine boundary modes as one index map, in scalar arithmetic that numba compiles for CPU and GPU.

Names and values are PyWavelets'; every level extends its own approximation. In periodization an odd length
first repeats its last sample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from wavefilt.registry import Registry
from wavefilt.vocabulary import MODES

Terms = tuple[int, int, int, int, int, int]
"""(j, a, k, b, l, c): the value a x[j] + b x[k] + c x[l]."""

ZERO, CONSTANT, SYMMETRIC, PERIODIC, SMOOTH, PERIODIZATION, REFLECT, ANTISYMMETRIC, ANTIREFLECT = range(9)


def code(mode: str) -> int:
    """The number by which `extension` knows this mode."""
    return MODES.index(mode)


def first_input(taps: int, mode: str) -> int:
    """Index of the first sample under the filter of the first coefficient; every next one is 2 further."""
    return 1 - taps // 2 if mode == "periodization" else 2 - taps


def extension(mode: int, i: int, n: int) -> Terms:
    """Sample ``i`` of the extension of ``x[0:n]``, i any integer, as (j, a, k, b, l, c): a x[j] + b x[k] + c x[l].

    The indices lie in [0, n). Only smooth and antireflect, which extrapolate, have b or c other than 0.
    """
    if 0 <= i < n:
        return i, 1, 0, 0, 0, 0
    if mode == ZERO:
        return 0, 0, 0, 0, 0, 0
    if mode == CONSTANT or (n == 1 and mode == SMOOTH):
        return (0 if i < 0 else n - 1), 1, 0, 0, 0, 0
    if mode == SMOOTH:
        if i < 0:
            return 0, 1 - i, 1, i, 0, 0
        beyond = i - n + 1
        return n - 1, 1 + beyond, n - 2, -beyond, 0, 0

    if mode == PERIODIC:
        period = n
    elif mode == PERIODIZATION:
        period = n + n % 2
    elif mode in (SYMMETRIC, ANTISYMMETRIC):
        period = 2 * n
    else:
        period = 2 * n - 2
    j = i + period if i < 0 else i - period if i >= period else i
    if j < 0 or j >= period:
        j = i % period  # a division takes as long as the rest: only where the first turn was not enough
    if j < n:
        mirrored = False
    elif mode == PERIODIZATION:
        return n - 1, 1, 0, 0, 0, 0
    else:
        mirrored = True
    if mode == ANTIREFLECT:
        climb = (i - j) // period * 2  # a whole period climbs by twice the difference of the ends
        if mirrored:
            return period - j, -1, 0, -climb, n - 1, climb + 2
        return j, 1, 0, -climb, n - 1, climb
    if not mirrored:
        return j, 1, 0, 0, 0, 0
    if mode == REFLECT:
        return period - j, 1, 0, 0, 0, 0
    return period - 1 - j, (-1 if mode == ANTISYMMETRIC else 1), 0, 0, 0, 0


EXTENSIONS: Registry[Callable[[int, int], Terms]] = Registry(
    "mode", {name: partial(extension, number) for number, name in enumerate(MODES)}
)
"""Boundary modes by name: sample ``i`` of the extension of n samples as `extension` gives it.

Compiled backends and PyWavelets know those of `MODES`; the reference backend computes with all.
"""
