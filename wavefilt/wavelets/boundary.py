"""Boundary modes: how a signal continues beyond its ends, and the boundary coefficients of the MODWT.

`extension` is one index map for the nine modes, in scalar arithmetic that numba compiles for CPU and GPU. Names and
values are PyWavelets'; every level extends its own approximation. In periodization an odd length first repeats its last
sample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from wavefilt.arrays import Array
from wavefilt.vocabulary import MODES

Terms = tuple[int, int, int, int, int, int]
"""(j, a, k, b, l, c): the value a x[j] + b x[k] + c x[l]."""

ZERO, CONSTANT, SYMMETRIC, PERIODIC, SMOOTH, PERIODIZATION, REFLECT, ANTISYMMETRIC, ANTIREFLECT = range(9)

ROUND = ("periodic", "periodization")
"""Periodic modes. In these, a level of the MODWT has as many coefficients as there are samples."""


def code(mode: str) -> int:
    """Return the number of a mode in `extension`."""
    return MODES.index(mode)


def first_input(taps: int, mode: str) -> int:
    """Return the index of the first sample under the filter of coefficient 0; that of coefficient k is 2k further."""
    return 1 - taps // 2 if mode == "periodization" else 2 - taps


def extension(mode: int, i: int, n: int) -> Terms:
    """Return sample ``i`` (any integer) of the extension of ``x[0:n]`` as (j, a, k, b, l, c): a x[j] + b x[k] + c x[l].

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
        j = i % period  # a division takes as long as the rest: only if one period was not enough
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


EXTENSIONS: dict[str, Callable[[int, int], Terms]] = {
    name: partial(extension, number) for number, name in enumerate(MODES)
}
"""Boundary modes by name: functions of i and n that return sample ``i`` of the extension of n samples, as `extension`.

Compiled backends and PyWavelets have the modes of `MODES`; the reference backend computes with all.
"""


def extended(x: Array, mode: str, before: int, after: int, axis: int = -1) -> Array:
    """Return ``x`` with ``before`` and ``after`` samples of its extension added along an axis."""
    x = np.moveaxis(x, axis, -1)
    n = x.shape[-1]

    def outside(first: int, stop: int) -> Array:
        terms = [EXTENSIONS[mode](i, n) for i in range(first, stop)]
        j, a, k, b, l, c = np.array(terms, dtype=np.int64).reshape(-1, 6).T  # noqa: E741
        values = (np.where(factor != 0, factor * x[..., place], 0) for place, factor in ((j, a), (k, b), (l, c)))
        return sum(values, start=np.zeros(len(j))).astype(x.dtype)

    return np.moveaxis(np.concatenate([outside(-before, 0), x, outside(n, n + after)], axis=-1), -1, axis)


# Boundary coefficients of the MODWT: coefficients beyond the samples that are needed for perfect reconstruction. With h
# half the number of taps, coefficient t of level j is computed from samples t - (2^j - 1)(h - 1) to t + (2^j - 1) h,
# and sample t from coefficients t - (2^j - 1) h to t + (2^j - 1)(h - 1). With ``start_level`` levels skipped, all
# distances are 2^start_level times as long.


def check_single(samples: int, mode: str) -> None:
    """Raise ValueError if a reflection would have to extend a single sample."""
    if samples == 1 and mode in ("reflect", "antireflect"):
        raise ValueError(f"mode={mode!r} cannot extend a single sample")


def modwt_kept(taps: int, mode: str, level: int, start_level: int = 0) -> tuple[int, int]:
    """Return how many coefficients of a level before sample 0 and after the last sample the inverse needs."""
    if mode in ROUND:
        return 0, 0
    span = ((1 << level) - 1) << start_level
    return span * (taps // 2), span * (taps // 2 - 1)


def modwt_needed(taps: int, mode: str, level: int, deepest: int, start_level: int = 0) -> tuple[int, int]:
    """Return how many approximations of a level (samples: 0) before and after `modwt_kept` of the deepest needs."""
    if mode in ROUND:
        return 0, 0
    before, after = modwt_kept(taps, mode, deepest, start_level)
    span = ((1 << deepest) - (1 << level)) << start_level
    return before + span * (taps // 2 - 1), after + span * (taps // 2)


def modwt_length(samples: int, taps: int, mode: str, level: int, start_level: int = 0) -> int:
    """Return the number of coefficients of a level, boundary coefficients included."""
    return samples + sum(modwt_kept(taps, mode, level, start_level))
