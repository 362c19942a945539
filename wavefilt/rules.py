"""Threshold rules and noise estimates: from statistics of the details to thresholds, never from arrays.

Every rule takes ``(statistics, sigma, samples)``, with ``sigma`` of shape (levels, groups) in the data's units,
finest level first, and ``samples`` the number of samples of a group, and returns thresholds of sigma's shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.vocabulary import Shrink

if TYPE_CHECKING:
    from wavefilt.backends import Statistics

MAD_TO_SIGMA = 1 / 0.6744897501960817
"""Standard deviation of normal noise over the median of its absolute values: 1 / Φ⁻¹(3/4)."""


def noise(statistics: Statistics, sigma: str | float) -> NDArray[np.float64]:
    """Standard deviation of the noise in the details, shape (levels, groups).

    ``"global"`` takes the median absolute detail of the finest level for all levels (Donoho and Johnstone 1994),
    ``"level"`` that of each level (Johnstone and Silverman 1997), a number is used as it is.
    """
    levels = len(statistics.counts)
    if sigma == "level":
        return MAD_TO_SIGMA * statistics.median_abs(range(1, levels + 1))
    if sigma == "global":
        finest = MAD_TO_SIGMA * statistics.median_abs([1])
        return np.repeat(finest, levels, axis=0)
    return np.full((levels, statistics.groups), float(sigma))


def universal(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """σ √(2 ln n) (Donoho and Johnstone 1994)."""
    return sigma * math.sqrt(2 * math.log(samples))


def minimax(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """σ times the minimax threshold of soft shrinkage for n samples (Donoho and Johnstone 1994, table 2)."""
    return sigma * minimax_threshold(samples)


def sure(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """The |d| of each level, or 0, that minimises Stein's unbiased estimate of the risk of soft shrinkage.

    With s_k the k-th smallest (d/σ)² of m and s_0 = 0: m - 2k + Σ_{i≤k} s_i + (m - k) s_k (Donoho and Johnstone
    1995). Not capped at √(2 ln m), as their hybrid rule is.
    """
    return statistics.minimise(
        lambda square, rank, below, count: count - 2 * rank + below + (count - rank) * square, sigma
    )


def bayes(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """σ² / √(mean(d²) - σ²) for each level: BayesShrink (Chang, Yu and Vetterli 2000).

    Where a level holds no more than the noise, the threshold is 2 √(Σ d²), which no |d| reaches: all of it goes.
    """
    power, variance = statistics.mean_square(), sigma**2
    energy = power * statistics.counts[:, None]
    signal = np.maximum(power - variance, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sigma > 0, np.fmin(variance / np.sqrt(signal), 2 * np.sqrt(energy)), 0.0)


Rule = Callable[["Statistics", NDArray[Any], int], NDArray[Any]]

RULES: dict[str, tuple[Rule, Shrink]] = {
    "universal": (universal, "soft"),
    "minimax": (minimax, "soft"),
    "sure": (sure, "soft"),
    "bayes": (bayes, "soft"),
}
"""Each rule with the threshold function it is derived for."""


def fixed(values: Sequence[float]) -> Rule:
    """The rule that uses ``values``: one for all levels, or one a level, coarsest first as `wavedec` orders them.

    A piece between gaps that has fewer levels uses the values of its own, the finest.
    """

    def rule(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
        finest_first = np.array(values[::-1], dtype=np.float64)[: len(sigma), None]
        return np.broadcast_to(finest_first, sigma.shape)

    return rule


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
