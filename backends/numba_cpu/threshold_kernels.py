"""Thresholds from statistics of the details, within a prepared run."""

from __future__ import annotations

import math

import numpy as np

from wavefilt.thresholding.rules import bayes_formula

from .adapter import part
from .prepared import BAYES, GIVEN, LEVEL, LINEAR
from .vector import view

_greater, _smaller = part(lambda a, b: max(a, b)), part(lambda a, b: min(a, b))
_quotient, _root = part(lambda a, b: a / b), part(lambda a: math.sqrt(a))
_bayes = part(bayes_formula(_greater, _smaller, _quotient, _root), fastmath=False)  # rounded as NumPy does


@part
def choose(
    samples,
    length,
    noise_of,
    rule,
    medians,
    powers,
    counts,
    scale,
    factors,
    gains,
    most,
    thresholds,
    other,
    like,
    workspace,
    begin,
    end,
):
    """Thresholds (bands, rows), at most ``most``, of rows ``begin`` to ``end``; 0, or ``other`` if one is for others.

    That is a row whose thresholds are all 0, or not all finite, or that may be dead. ``scale`` is the noise, or what
    multiplies medians (bands, rows) to tell it; in each band it is multiplied by ``gains`` again. ``noise_of`` and
    ``rule`` are numbers of `prepared`.
    """
    for row in range(begin, end):
        x = view(samples + row * length * like.itemsize, length, like)
        last = length - 1
        if x[0] == x[last] and x[0] == x[last // 2] and x[0] == x[last // 4] and x[0] == x[3 * last // 4]:
            return other
        any_removed = False
        for band in range(len(counts)):
            sigma = scale
            if noise_of != GIVEN:
                sigma = medians[band if noise_of == LEVEL else 0, row] * scale
            sigma *= gains[band]
            threshold = factors[band]
            if rule == LINEAR:
                threshold = sigma * factors[band]
            elif rule == BAYES:
                power = powers[band, row]
                threshold = _bayes(power, power * counts[band], sigma) if sigma > 0 else 0.0
            if not (np.isfinite(sigma) and np.isfinite(threshold)):  # noise is NaN where a search has to go on
                return other
            any_removed |= threshold != 0
            thresholds[band, row] = min(threshold, most)
        if not any_removed:
            return other
    return 0
