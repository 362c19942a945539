"""Minimax thresholds: those of the least worst-case risk relative to an ideal threshold (Donoho and Johnstone 1994)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=64)
def minimax_threshold_hard(samples: int) -> float:
    """The λ that minimises, for hard thresholding, the largest ratio of risk to 1/n + min(θ², 1) over all means θ.

    The risk is θ² (Φ(λ - θ) - Φ(-λ - θ)) + Σ (Φ(-t) + t φ(t)) over t = λ ± θ (Donoho and Johnstone 1994).
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr

    most = math.sqrt(2 * math.log(samples + 1)) + 1
    theta = np.linspace(0, most + 5, 4000)

    def worst(value: float) -> float:
        ends = value - theta, value + theta
        lost = theta**2 * (ndtr(ends[0]) - ndtr(-ends[1]))
        noise = sum(ndtr(-t) + t * np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi) for t in ends)
        return float(np.max((lost + noise) / (1 / samples + np.minimum(theta**2, 1))))

    return float(minimize_scalar(worst, bounds=(0, most), method="bounded", options={"xatol": 1e-6}).x)


def minimax_threshold(samples: int) -> float:
    """The λ that minimises, for soft shrinkage, the largest ratio of risk to 1/n + min(θ², 1).

    It is where the ratio for θ = 0 equals that for θ → ∞: (n + 1) ρ(λ, 0) = 1 + λ², with
    ρ(λ, 0) = 2 [(1 + λ²) Φ(-λ) - λ φ(λ)] (Donoho and Johnstone 1994, section 2.2); found by bisection.
    """

    def excess(value: float) -> float:
        tail = 0.5 * math.erfc(value / math.sqrt(2))
        density = math.exp(-0.5 * value * value) / math.sqrt(2 * math.pi)
        square = 1 + value * value
        return (samples + 1) * 2 * (square * tail - value * density) - square

    low, high = 0.0, math.sqrt(2 * math.log(samples + 1)) + 1
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 0.5 * (low + high)
