"""Noise and thresholds computed on the device, so that a whole denoise is one graph without a host in the middle."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavefilt import rules
from wavefilt.rules import MAD_TO_SIGMA

from .geometry import NOT_FINITE, ROWS, UNFINISHED
from .target import cuda
from .window import DONE, FIELDS, NEXT, SHIFT

LINEAR = ("universal", "minimax")
"""Rules whose threshold is sigma times a number that depends on the samples alone."""


def known(rule: Any) -> bool:
    """Whether this rule runs on the device: the others see their statistics on the host."""
    return not isinstance(rule, str) or rule in (*LINEAR, "bayes")


def factors(rule: Any, fixed: list[float], levels: int, samples: int) -> np.ndarray[Any, Any]:
    """For each level, what multiplies sigma (linear rules) or is the threshold itself (numbers)."""
    if isinstance(rule, str) and rule not in LINEAR:
        return np.zeros(levels)
    if isinstance(rule, str):
        return np.asarray(rules.RULES[rule][0](None, np.ones((levels, 1)), samples))[:, 0]  # type: ignore[arg-type]
    return np.ascontiguousarray(rules.fixed(fixed)(None, np.ones((levels, 1)), samples)[:, 0])  # type: ignore[arg-type]


@cache
def choose(rule: str, sigma_of: str, dtype: str) -> Any:
    """Kernel from middle values and sums of squares to sigma and thresholds, a thread for each level and row.

    ``rule`` is "linear", "fixed" or "bayes"; ``sigma_of`` "level", "global" or "given". In float64, as on the host.
    """
    number = np.dtype(dtype).type

    @cuda.jit
    def choose_kernel(
        middle, energy, counts, factor, given, levels, rows, groups, state, searched, sigmas, exact, thresholds, flags
    ):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < searched and (state[i * FIELDS + SHIFT] != DONE or state[i * FIELDS + NEXT] != 0):
            flags[UNFINISHED] = 1
        if i >= levels * rows:
            return
        level = i // rows
        row = i - level * rows
        group = row if groups > 1 else 0
        segment = level * groups + group
        if sigma_of == "given":
            sigma = given
        else:
            at = segment if sigma_of == "level" else group
            sigma = MAD_TO_SIGMA * (0.5 * (np.float64(middle[2 * at]) + np.float64(middle[2 * at + 1])))
        if rule == "linear":
            t = sigma * factor[level]
        elif rule == "fixed":
            t = factor[level]
        else:  # the formula of `wavefilt.rules.bayes`
            power, variance = energy[segment] / counts[level], sigma * sigma
            signal = max(power - variance, 0.0)
            t = 0.0
            if sigma > 0:
                t = 2 * energy[segment] ** 0.5
                if signal > 0:
                    t = min(variance / signal**0.5, t)
        if t - t != 0:  # squares overflowed, or a sample was not finite
            flags[NOT_FINITE] = 1
        sigmas[i] = sigma
        exact[i] = t
        thresholds[i] = number(t)

    return choose_kernel


@cache
def finish(threads: int) -> Any:
    """Kernel that copies the rows whose thresholds are all 0, bit for bit, and flags samples that are not finite.

    For these it looks at the coarsest approximation alone: NaN and infinity reach it through every level.
    """

    @cuda.jit
    def finish_kernel(x, y, samples, rows, levels, exact, smooth, pitch, length, flags):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        first, step = cuda.blockIdx.x * threads + cuda.threadIdx.x, cuda.gridDim.x * threads
        for i in range(first, length, step):
            d = smooth[row * pitch + i]
            if d - d != 0:  # true for NaN as well
                flags[NOT_FINITE] = 1
        for level in range(levels):
            if exact[level * rows + row] != 0:
                return
        for i in range(first, samples, step):
            y[row * samples + i] = x[row * samples + i]

    return finish_kernel
