"""Threshold rules and noise estimates: from statistics of the details to thresholds, never from arrays.

Every rule takes ``(statistics, sigma, samples)``, with ``sigma`` of shape (levels, groups) in the data's units,
finest level first, and ``samples`` the number of samples of a group, and returns thresholds of sigma's shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.vocabulary import Estimator, Shrink

from . import block_shrinkage

if TYPE_CHECKING:
    from wavefilt.statistics.interface import Statistics

MAD_TO_SIGMA = 1 / 0.6744897501960817
"""Standard deviation of normal noise over the median of its absolute values: 1 / Φ⁻¹(3/4)."""


FALSE = 0.05
"""Share of false discoveries that rule "fdr" allows."""
TINY = 1e-9
"""Threshold in units of σ for a level without any noise-only details: 0 would mean to leave it alone."""


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


def hybrid(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """`sure`, but at most σ √(2 ln m), which is used where a level of m details holds little but noise.

    That is where Σ(d/σ)²/m - 1 < (log₂ m)^{3/2}/√m (Donoho and Johnstone 1995).
    """
    m = np.maximum(statistics.counts, 2)[:, None]
    most = sigma * np.sqrt(2 * np.log(m))
    with np.errstate(divide="ignore", invalid="ignore"):
        sparse = statistics.mean_square() / sigma**2 - 1 < np.log2(m) ** 1.5 / np.sqrt(m)
    return np.asarray(np.where(sparse, most, np.minimum(sure(statistics, sigma, samples), most)))


def bayes(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """σ² / √(mean(d²) - σ²) for each level: BayesShrink (Chang, Yu and Vetterli 2000).

    Where a level holds no more than the noise, the threshold is 2 √(Σ d²), which no |d| reaches: all of it goes.
    """
    power, variance = statistics.mean_square(), sigma**2
    energy = power * statistics.counts[:, None]
    signal = np.maximum(power - variance, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sigma > 0, np.fmin(variance / np.sqrt(signal), 2 * np.sqrt(energy)), 0.0)


def fdr(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """t_k = σ Φ⁻¹(1 - qk/2m) for the largest k such that k of the m details have |d| >= t_k; t_1 if there is none.

    At most a share `FALSE` of the details kept are then noise, in the mean: Benjamini and Hochberg's step-up
    procedure (1995) on two-sided tests, for each level (Abramovich and Benjamini 1996). The largest k is where
    counting those above t_k and taking their number for k ends, from k = m.
    """
    from scipy.special import ndtri

    m = statistics.counts[:, None].astype(np.float64)

    def threshold(k: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(-ndtri(FALSE * np.maximum(k, 1) / (2 * m)) * sigma)

    k = np.broadcast_to(m, sigma.shape)
    while True:
        found = statistics.exceeding(threshold(k))
        if np.all(found >= k):
            return threshold(k)
        k = np.minimum(found, k)


def block(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """σ √λ: the root mean square of a block below which all of it goes; see `wavefilt.thresholding.block_shrinkage`."""
    return sigma * math.sqrt(block_shrinkage.ROOT)


def _empirical_bayes(name: str) -> Rule:
    def rule(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
        """σ times the largest |d|/σ whose posterior median is 0, with the weight of most likelihood for the level."""
        from . import empirical_bayes

        prior, found = empirical_bayes.PRIORS[name], np.empty(sigma.shape)
        for row, own, level in zip(found, sigma, range(1, len(sigma) + 1), strict=True):
            counts = statistics.histogram(level, empirical_bayes.WIDTH * own, empirical_bayes.BINS)
            row[:] = np.maximum(prior.threshold(prior.weight(counts)), TINY) * own
        return found

    return rule


def minimax_hard(statistics: Statistics, sigma: NDArray[Any], samples: int) -> NDArray[Any]:
    """σ times the minimax threshold of hard thresholding for n samples (Donoho and Johnstone 1994)."""
    return sigma * minimax_threshold_hard(samples)


Rule = Callable[["Statistics", NDArray[Any], int], NDArray[Any]]

BLOCK_RULES = {"blockjs": block_shrinkage.Blocks.js, "neighblock": block_shrinkage.Blocks.neighbour}
"""Rules of blocks, which have no other way of shrinking: the blocks for a number of samples."""
BAYES_RULES = ("ebayes", "ebayes-cauchy")
"""Rules that find a posterior, named like their prior."""

RULES: dict[str, tuple[Rule, Shrink | Estimator]] = {
    "universal": (universal, "soft"),
    "minimax": (minimax, "soft"),
    "sure": (sure, "soft"),
    "hybrid": (hybrid, "soft"),
    "bayes": (bayes, "soft"),
    "fdr": (fdr, "hard"),
    "blockjs": (block, "soft"),
    "neighblock": (block, "soft"),
    "ebayes": (_empirical_bayes("ebayes"), "median"),
    "ebayes-cauchy": (_empirical_bayes("ebayes-cauchy"), "median"),
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
