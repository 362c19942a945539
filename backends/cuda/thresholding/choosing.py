"""Noise and thresholds computed on the device, so that a whole denoise is one graph without a host in the middle."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, UNFINISHED
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.search_window import DONE, FIELDS, NEXT, SHIFT
from wavefilt.method import Method
from wavefilt.thresholding.rules import MAD_TO_SIGMA

LINEAR = ("universal", "minimax")
"""Rules whose threshold is sigma times a number that depends on the samples alone."""


def known(method: Method) -> bool:
    """Whether its rule runs on the device: the others see their statistics on the host."""
    return not isinstance(method.rule, str) or method.rule in LINEAR or (method.rule == "bayes" and not method.keep)


def factors(method: Method, levels: int, samples: int) -> np.ndarray[Any, Any]:
    """For each level, what multiplies sigma (linear rules) or is the threshold itself (numbers)."""
    if isinstance(method.rule, str) and method.rule not in LINEAR:
        return np.zeros(levels)
    ones = np.ones((levels, 1))
    return np.ascontiguousarray(method.thresholds(None, samples, ones)[1][:, 0])  # type: ignore[arg-type]


@cache
def choose(rule: str, sigma_of: str, dtype: str) -> Any:
    """Kernel from middle values and sums of squares to sigma and thresholds, a thread for each row.

    ``rule`` is "linear", "fixed" or "bayes"; ``sigma_of`` "level", "global" or "given". In float64, as on the host.
    """
    number = np.dtype(dtype).type

    @kernel(rule, sigma_of, dtype)
    def choose_kernel(
        middle, energy, counts, factor, fading, given, levels, rows, groups, state, searched, sigmas, exact, thresholds,
        live, flags,
    ):  # fmt: skip
        row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if row < searched and (state[row * FIELDS + SHIFT] != DONE or state[row * FIELDS + NEXT] != 0):
            flags[UNFINISHED] = 1
        if row >= rows:
            return
        group = row if groups > 1 else 0
        above = 0
        for level in range(levels):
            segment, i = level * groups + group, level * rows + row
            if sigma_of == "given":
                sigma = given
            else:
                at = segment if sigma_of == "level" else group
                sigma = MAD_TO_SIGMA * (0.5 * (np.float64(middle[2 * at]) + np.float64(middle[2 * at + 1])))
            sigma *= fading[level]
            if rule == "linear":
                t = sigma * factor[level]
            elif rule == "fixed":
                t = factor[level]
            else:  # the formula of `wavefilt.thresholding.rules.bayes`
                power, variance = energy[segment] / counts[level], sigma * sigma
                signal = max(power - variance, 0.0)
                t = 0.0
                if sigma > 0:
                    t = 2 * energy[segment] ** 0.5
                    if signal > 0:
                        t = min(variance / signal**0.5, t)
            if t - t != 0:  # squares overflowed, or a sample was not finite
                flags[NOT_FINITE] = 1
            above += 1 if t != 0 else 0
            sigmas[i] = sigma
            exact[i] = t
            thresholds[i] = number(t)
        live[row] = above

    return choose_kernel
