"""Threshold rules and noise estimates: from statistics of the details to thresholds, never from arrays.

Every rule takes ``(statistics, sigma, samples)``, with ``sigma`` of shape (levels, groups) in the data's units,
finest level first, and ``samples`` the number of samples of a group, and returns thresholds of sigma's shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError
from wavefilt.registry import Registry
from wavefilt.thresholding.bivariate import ROOT as BIVARIATE
from wavefilt.thresholding.bivariate import Bivariate, Together
from wavefilt.thresholding.block_shrinkage import ROOT, Blocks
from wavefilt.thresholding.local_shrinkage import LAMBDA, LAMBDA_MEASURED, Local
from wavefilt.thresholding.minimax import minimax_threshold, minimax_threshold_hard
from wavefilt.vocabulary import Detrend, is_number

if TYPE_CHECKING:
    from wavefilt.statistics.interface import Statistics

Formula = Callable[..., Floats]

MAD_TO_SIGMA = 1 / 0.6744897501960817
"""Standard deviation of normal noise over the median of its absolute values: 1 / Φ⁻¹(3/4)."""


FALSE = 0.05
"""Share of false discoveries that rule "fdr" allows."""
AUTO_LEVEL = 5
"""Levels where none are asked for, by most rules."""
TINY = 1e-9
"""Threshold in units of σ for a level without any noise-only details: 0 would mean to leave it alone."""


def noise(statistics: Statistics, sigma: str | float, parts: int = 1, share: float = 0.5) -> Floats:
    """Standard deviation of the noise in the details, shape (levels, groups).

    ``"global"`` takes the median absolute detail of the finest level for all levels (Donoho and Johnstone 1994),
    ``"level"`` that of each level (Johnstone and Silverman 1997), a number is used as it is. Of details with several
    ``parts`` it is that of one; ``share`` is another quantile in place of the median.
    """
    levels = len(statistics.counts)  # and the approximation, for a rule that shrinks it
    if sigma == "level":
        return _quantile(statistics, range(1, levels + 1), share) * quantile_to_sigma(parts, share)
    if sigma == "global":
        finest = _quantile(statistics, [1], share) * quantile_to_sigma(parts, share)
        return np.repeat(finest, levels, axis=0)
    return np.full((levels, statistics.groups), float(sigma))


def _quantile(statistics: Statistics, levels: Sequence[int], share: float) -> Floats:
    return statistics.median_abs(levels) if share == 0.5 else statistics.quantile_abs(levels, share)


@cache
def quantile_to_sigma(parts: int, share: float) -> float:
    """Standard deviation of a part of noise over the quantile of its magnitudes below which this share of them lies.

    Magnitudes of two normal parts have a Rayleigh distribution.
    """
    if parts == 2:
        return 1 / math.sqrt(-2 * math.log1p(-share))
    return MAD_TO_SIGMA if share == 0.5 else 1 / NormalDist().inv_cdf((1 + share) / 2)


def universal(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """σ √(2 ln n) (Donoho and Johnstone 1994)."""
    return sigma * math.sqrt(2 * math.log(samples))


def minimax(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """σ times the minimax threshold of soft shrinkage for n samples (Donoho and Johnstone 1994, table 2)."""
    return sigma * minimax_threshold(samples)


def sure(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """The |d| of each level, or 0, that minimises Stein's unbiased estimate of the risk of soft shrinkage.

    With s_k the k-th smallest (d/σ)² of m and s_0 = 0: m - 2k + Σ_{i≤k} s_i + (m - k) s_k (Donoho and Johnstone
    1995). Not capped at √(2 ln m), as their hybrid rule is. The threshold is one of the |d|: ``shrink="hard"`` keeps
    that one, as PyWavelets does, while WaveLab's hard thresholding removes it.
    """
    return statistics.minimise(
        lambda square, rank, below, count: count - 2 * rank + below + (count - rank) * square, sigma
    )


def hybrid(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """`sure`, but at most σ √(2 ln m), which is used where a level of m details holds little but noise.

    That is where Σ(d/σ)²/m - 1 < (log₂ m)^{3/2}/√m (Donoho and Johnstone 1995).
    """
    m = np.maximum(statistics.counts, 2)[:, None]
    most = sigma * np.sqrt(2 * np.log(m))
    with np.errstate(divide="ignore", invalid="ignore"):
        sparse = statistics.mean_square() / sigma**2 - 1 < np.log2(m) ** 1.5 / np.sqrt(m)
    return np.asarray(np.where(sparse, most, np.minimum(sure(statistics, sigma, samples), most)))


def bayes(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """σ² / √(mean(d²) - σ²) for each level: BayesShrink (Chang, Yu and Vetterli 2000).

    Where a level holds no more than the noise, the threshold is 2 √(Σ d²), which no |d| reaches: all of it goes.
    """
    power = statistics.mean_square()
    threshold = bayes_formula(np.maximum, np.fmin, np.divide, np.sqrt)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sigma > 0, threshold(power, power * statistics.counts[:, None], sigma), 0.0)


def bayes_formula(greater: Formula, smaller: Formula, quotient: Formula, root: Formula) -> Formula:
    """`bayes` where σ > 0, from mean(d²), Σ d² and σ, by functions of NumPy arrays or of a kernel's numbers."""

    def threshold(power: Floats, energy: Floats, sigma: Floats) -> Floats:
        variance = sigma * sigma
        return smaller(quotient(variance, root(greater(power - variance, 0.0))), 2 * root(energy))

    return threshold


def fdr(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """t_k = σ Φ⁻¹(1 - qk/2m) for the largest k such that k of the m details have |d| >= t_k; t_1 if there is none.

    At most a share `FALSE` of the details kept are then noise, in the mean: Benjamini and Hochberg's step-up
    procedure (1995) on two-sided tests, for each level (Abramovich and Benjamini 1996). The largest k is where
    counting those above t_k and taking their number for k ends, from k = m.
    """
    from scipy.special import ndtri

    m = statistics.counts[:, None].astype(np.float64)
    return _fdr(statistics, sigma, lambda k: -ndtri(FALSE * np.maximum(k, 1) / (2 * m)))


def _fdr(statistics: Statistics, sigma: Floats, tail: Formula) -> Floats:
    """`fdr` with t_k/σ by ``tail(k)``."""
    k = np.broadcast_to(statistics.counts[:, None].astype(np.float64), sigma.shape)
    while True:
        thresholds = np.asarray(tail(k) * sigma)
        found = statistics.exceeding(thresholds)
        if np.all(found >= k):
            return thresholds
        k = np.minimum(found, k)


def block(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """σ √λ: the root mean square of a block below which all of it goes; see `wavefilt.thresholding.block_shrinkage`."""
    return sigma * math.sqrt(ROOT)


def local(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """σ √λ: the root mean square around a coefficient below which it goes; see `thresholding.local_shrinkage`."""
    return sigma * math.sqrt(LAMBDA)


def local_measured(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """`local` with the λ for noise that is known."""
    return sigma * math.sqrt(LAMBDA_MEASURED)


def bivariate(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """σ ∜3, from which `wavefilt.thresholding.bivariate` has the threshold of each coefficient."""
    return sigma * BIVARIATE


def sure_of_magnitudes(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """`sure` for magnitudes |y| of complex details whose parts have noise σ.

    Stein's estimate for soft shrinkage of pairs (Stein 1981) is the sum of |y|² - 2σ² over those up to the threshold T
    and of 2σ² + T² - 2σ²T/|y| over those above.
    """

    def risk(square: Array, rank: Array, below: Array, count: int, above: Array) -> Array:
        larger = count - rank
        return np.asarray(below - 2 * rank + larger * (2 + square) - 2 * np.sqrt(square) * above)

    return statistics.minimise(risk, sigma, inverse=True)


def hybrid_of_magnitudes(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """`hybrid` for magnitudes: at most σ √(2 ln m), and of 2m parts in the test for noise alone."""
    m = np.maximum(statistics.counts, 2)[:, None]
    most = sigma * np.sqrt(2 * np.log(m))
    with np.errstate(divide="ignore", invalid="ignore"):
        sparse = statistics.mean_square() / (2 * sigma**2) - 1 < np.log2(2 * m) ** 1.5 / np.sqrt(2 * m)
    return np.asarray(np.where(sparse, most, np.minimum(sure_of_magnitudes(statistics, sigma, samples), most)))


def bayes_of_magnitudes(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """`bayes` with the variance of a part, mean(|y|²)/2 - σ²."""
    power = statistics.mean_square()
    threshold = bayes_formula(np.maximum, np.fmin, np.divide, np.sqrt)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sigma > 0, threshold(power / 2, power * statistics.counts[:, None], sigma), 0.0)


def fdr_of_magnitudes(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """`fdr` with the tail of a Rayleigh distribution: t_k = σ √(-2 ln(qk/m))."""
    m = statistics.counts[:, None].astype(np.float64)
    return _fdr(statistics, sigma, lambda k: np.sqrt(-2 * np.log(FALSE * np.maximum(k, 1) / m)))


def _empirical_bayes(name: str) -> Thresholds:
    def rule(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
        """σ times the largest |d|/σ whose posterior median is 0, with the weight of most likelihood for the level."""
        from . import empirical_bayes

        prior, found = empirical_bayes.PRIORS[name], np.empty(sigma.shape)
        for row, own, level in zip(found, sigma, range(1, len(sigma) + 1), strict=True):
            counts = statistics.histogram(level, empirical_bayes.WIDTH * own, empirical_bayes.BINS)
            row[:] = np.maximum(prior.threshold(prior.weight(counts)), TINY) * own
        return found

    return rule


def minimax_hard(statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """σ times the minimax threshold of hard thresholding for n samples (Donoho and Johnstone 1994)."""
    return sigma * minimax_threshold_hard(samples)


Thresholds = Callable[["Statistics", Floats, int], Floats]
"""A function of statistics, noise (bands, groups) and number of samples: see the module's docstring."""

Statistic = Literal["mean_square", "exceeding", "histogram", "sorted"]
"""What a rule may ask of the detail coefficients beyond their noise, by the verb of `Statistics`; "sorted" is
`Statistics.minimise`, which sorts them."""


@dataclass(frozen=True)
class Rule:
    """A threshold rule, and what everything that applies it needs to know of it.

    Attributes
    ----------
    function : Thresholds
        From statistics, noise and number of samples to thresholds.
    shrink : str
        The threshold function it is derived for, used with ``shrink=None``.
    needs : set of Statistic
        What it asks of the detail coefficients beyond the noise.
    passes : int
        Passes over all coefficients that it takes beside those for the noise, where they are not kept in memory.
    mergeable : bool
        Whether it asks for nothing but what parts of the data can add up: noise and mean squares. Then traces may be
        cut into chunks anywhere (Dask, several machines).
    causal : bool
        Whether the latest coefficients alone can give its threshold: for real-time streams.
    device_kind : {"linear", "bayes", "fixed", None}
        How a GPU computes the thresholds: "linear" is sigma times a factor that depends on the number of samples,
        "bayes" the formula of that rule, "fixed" given numbers; with None the host does, from statistics of the GPU.
    hard : Thresholds, optional
        What takes the place of ``function`` with ``shrink="hard"``.
    blocks : callable, optional
        For rules that shrink blocks of coefficients instead of single ones: the blocks for a number of samples.
    auto_level : int
        Levels where none are asked for, if the samples and the filter allow so many.
    detrend : {"mean", "line", None}
        What it has removed from traces before the transform, and added again after, if nothing is asked for.
    together : Local or Bivariate, optional
        For rules that shrink a coefficient by those around it, in its own band and in others: the function that does.
        `Local` shrinks the approximation too, where the transform says so: it is one more band, the last.
    magnitudes : Thresholds, optional
        What takes the place of ``function`` for transforms whose coefficients are complex, with the noise of a real or
        imaginary part and statistics of magnitudes. Without it the rule is not for them.
    measured : Thresholds, optional
        What takes the place of ``function`` where the noise is a number, or measured in a window.
    prior : str
        Name of the prior of an empirical Bayes rule, whose posterior median or mean then serves as ``shrink``.
    name : str
        Name in `RULES`; empty for fixed thresholds.
    values : tuple of float
        Fixed thresholds, coarsest level first; empty for other rules.
    """

    function: Thresholds
    shrink: str = "soft"
    needs: frozenset[Statistic] = frozenset()
    passes: int = 0
    mergeable: bool = False
    causal: bool = False
    device_kind: Literal["linear", "bayes", "fixed", None] = None
    hard: Thresholds | None = None
    blocks: Callable[[int], Blocks] | None = None
    auto_level: int = AUTO_LEVEL
    detrend: Detrend | None = None
    together: Together | None = None
    magnitudes: Thresholds | None = None
    measured: Thresholds | None = None
    prior: str = ""
    name: str = ""
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.mergeable and not self.needs <= {"mean_square"}:
            raise ValueError(f"a mergeable rule cannot need {', '.join(sorted(self.needs - {'mean_square'}))}")

    @property
    def option(self) -> str | list[float]:
        """The value of the option ``rule`` that means this rule: its name, or its thresholds."""
        return self.name or list(self.values)

    @property
    def own_function(self) -> str:
        """What it shrinks in a way of its own, instead of by a threshold function; empty for most rules."""
        return "blocks" if self.blocks else "neighbourhoods" if self.together else ""

    @property
    def local(self) -> bool:
        """Whether it is rule "js"."""
        return isinstance(self.together, Local)


def _linear(function: Thresholds, hard: Thresholds | None = None, magnitudes: Thresholds | None = None) -> Rule:
    return Rule(function, mergeable=True, causal=True, device_kind="linear", hard=hard, magnitudes=magnitudes)


def named(rules: dict[str, Rule]) -> dict[str, Rule]:
    """Return the rules with their names."""
    return {name: replace(rule, name=name) for name, rule in rules.items()}


def _of_blocks(blocks: Callable[[int], Blocks]) -> Rule:
    return Rule(block, "block", blocks=blocks)


def _of_prior(name: str) -> Rule:
    return Rule(_empirical_bayes(name), "median", frozenset({"histogram"}), prior=name)


MEAN_SQUARE: frozenset[Statistic] = frozenset({"mean_square"})

RULES = Registry(
    "rule",
    named(
        {
            "universal": _linear(universal, magnitudes=universal),
            "minimax": _linear(minimax, minimax_hard),
            "sure": Rule(sure, needs=frozenset({"sorted"}), magnitudes=sure_of_magnitudes),
            "hybrid": Rule(hybrid, needs=frozenset({"sorted", "mean_square"}), magnitudes=hybrid_of_magnitudes),
            "bayes": Rule(
                bayes,
                needs=MEAN_SQUARE,
                mergeable=True,
                causal=True,
                device_kind="bayes",
                magnitudes=bayes_of_magnitudes,
            ),
            "fdr": Rule(fdr, "hard", frozenset({"exceeding"}), passes=20, magnitudes=fdr_of_magnitudes),
            "blockjs": _of_blocks(Blocks.js),
            "neighblock": _of_blocks(Blocks.neighbour),
            "js": Rule(
                local,
                "local",
                mergeable=True,
                causal=True,
                device_kind="linear",
                auto_level=6,
                detrend="mean",
                together=Local(),
                measured=local_measured,
                magnitudes=local,
            ),
            "bivariate": Rule(
                bivariate, "bivariate", mergeable=True, auto_level=6, together=Bivariate(), magnitudes=bivariate
            ),
            "ebayes": _of_prior("ebayes"),
            "ebayes-cauchy": _of_prior("ebayes-cauchy"),
        }
    ),
)
"""Every rule by its name: the only list of rules there is."""


def find(rule: object) -> Rule:
    """Return the rule for a name, a `Rule`, or thresholds given as numbers: one for all levels or one per level.

    Raises OptionError for an unknown name, or thresholds that are negative or not finite.
    """
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, str):
        RULES.check(rule, "a number, or one number per level")
        return RULES[rule]
    numbers = np.atleast_1d(np.asarray(rule, dtype=object)).ravel()
    if not len(numbers) or not all(is_number(t) and 0 <= t < math.inf for t in numbers):
        raise OptionError(f"`rule={rule!r}`: thresholds must be finite numbers of at least 0")
    fixed = Fixed(tuple(float(t) for t in numbers))
    return Rule(fixed, mergeable=True, causal=True, device_kind="fixed", magnitudes=fixed, values=fixed.values)


@dataclass(frozen=True)
class Fixed:
    """The rule that uses fixed thresholds: one for all levels, or one per level, coarsest first as in `wavedec`.

    A segment with fewer levels uses the thresholds of its own levels, the finest.
    """

    values: tuple[float, ...]

    def __call__(self, statistics: Statistics, sigma: Floats, samples: int) -> Floats:
        finest_first = np.array(self.values[::-1], dtype=np.float64)[: len(sigma), None]
        return np.broadcast_to(finest_first, sigma.shape)
