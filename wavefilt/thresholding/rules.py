"""Threshold rules and noise estimates, which are computed from statistics of the details, never from arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError
from wavefilt.thresholding import empirical_bayes
from wavefilt.thresholding.local import BIVARIATE, LAMBDA, LAMBDA_MEASURED, ROOT, Bivariate, Blocks, Local, Together
from wavefilt.thresholding.shrinkage import Function, Posterior
from wavefilt.vocabulary import check, is_number

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.statistics.reference import Statistics

Thresholds = Callable[["Statistics", Floats, int], Floats]
"""A function of statistics, noise (levels, groups) and the number of samples; see `Rule`."""
Formula = Callable[..., Any]
Statistic = Literal["mean_square", "exceeding", "histogram", "sorted"]
"""Statistics that a rule may ask for beyond the noise, by the methods of `Statistics`; `minimise` sorts the details."""
ALL: frozenset[Statistic] = frozenset(get_args(Statistic))

MAD_TO_SIGMA = 1 / 0.6744897501960817
"""Standard deviation of normal noise over the median of its absolute values: 1 / Φ⁻¹(3/4)."""
FALSE = 0.05
"""Share of false discoveries that rule "fdr" allows."""
AUTO_LEVEL = 5
"""Default number of levels of most rules."""
TINY = 1e-9
"""Threshold in units of σ for a level without any details of noise alone: with 0 the level would be left unchanged."""


def noise(statistics: Statistics, sigma: str | float, parts: int = 1, share: float = 0.5) -> Floats:
    """Return the standard deviation of the noise in the details, shape (levels, groups).

    ``"global"`` takes the median absolute detail of the finest level for all levels (Donoho and Johnstone 1994),
    ``"level"`` that of each level (Johnstone and Silverman 1997), and a number is used as it is. For details with
    several real ``parts`` the result is that of one part; ``share`` selects another quantile than the median.
    """
    levels = len(statistics.counts)  # includes the approximation for a rule that shrinks it
    if not isinstance(sigma, str):
        return np.full((levels, statistics.groups), float(sigma))
    measured = range(1, levels + 1) if sigma == "level" else [1]
    found = statistics.quantile_abs(measured, share) * quantile_to_sigma(parts, share)
    return found if sigma == "level" else np.repeat(found, levels, axis=0)


@cache
def quantile_to_sigma(parts: int, share: float) -> float:
    """Return the standard deviation of a part of noise over the quantile of its magnitudes.

    This share of the magnitudes lies below the quantile. Magnitudes of two normal parts have a Rayleigh distribution.
    """
    if parts == 2:
        return 1 / math.sqrt(-2 * math.log1p(-share))
    return MAD_TO_SIGMA if share == 0.5 else 1 / NormalDist().inv_cdf((1 + share) / 2)


@dataclass(frozen=True)
class Rule:
    """A threshold rule: the function that computes thresholds, and the statistics it needs.

    Attributes
    ----------
    name : str
        The value of the option ``rule`` if the rule is registered.
    function : callable
        ``function(statistics, sigma, samples)`` returns thresholds of the shape of ``sigma`` (levels, groups), which is
        in the units of the samples, finest level first; ``samples`` is the number of samples of a group.
    shrink : str, callable or object
        The threshold function that is used with ``shrink=None``.
    needs : set of str
        Statistics that ``function`` asks for beyond the noise, see `Statistic`; all of them by default. Traces may be
        cut into chunks by Dask, and streamed in real time, for rules that need mean squares or nothing.
    factor : callable
        ``factor(samples, options)`` replaces ``function`` for thresholds that are a multiple of the noise.
    complex : bool
        Whether the rule is defined for complex coefficients, by statistics of magnitudes and the noise of a real or
        imaginary part. ``function`` then takes one more argument, the number of real parts of a coefficient, 1 or 2.
    values : tuple of float
        Thresholds given as numbers instead of a rule: one for all levels, or one for each level, coarsest first.
    """

    name: str
    function: Callable[..., Floats] | None = None
    shrink: Function = "soft"
    needs: frozenset[Statistic] = ALL
    factor: Callable[[int, Options], float] | None = None
    complex: bool = False
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.function is None:
            if self.factor is None and not self.values:
                raise OptionError(f"rule {self.name!r} needs a `function` or a `factor`")
            object.__setattr__(self, "needs", frozenset())

    def __hash__(self) -> int:
        return hash((self.name, self.values))  # quick, and possible for any callable object

    def thresholds(self, statistics: Statistics | None, sigma: Floats, samples: int, options: Options) -> Floats:
        """Return the thresholds; ``statistics`` may be None for rules that need none."""
        if self.factor is not None:
            thresholds = np.asarray(sigma * self.factor(samples, options))
        else:
            assert self.function is not None
            parts = [options.transform.parts] if self.complex else []
            thresholds = np.asarray(self.function(statistics, sigma, samples, *parts))
        if thresholds.dtype.kind not in "fiu" or thresholds.shape not in (sigma.shape, (len(sigma), 1)):
            given = f"{thresholds.dtype} of shape {thresholds.shape}"
            raise OptionError(f"`rule` must return thresholds of shape {sigma.shape} (levels, traces), not {given}")
        if (thresholds < 0).any():
            raise OptionError("`rule` must return thresholds of at least 0")
        if self not in BUILT_IN and np.isfinite(sigma).all() and not np.isfinite(thresholds).all():
            raise OptionError("`rule` must return finite thresholds")
        return thresholds

    @property
    def option(self) -> str | list[float]:
        """The value of the option ``rule``: the name, or the thresholds."""
        return self.name or list(self.values)

    @property
    def together(self) -> Together | None:
        """The threshold function, if it shrinks a coefficient by its neighbours in its own band and in others."""
        return self.shrink if isinstance(self.shrink, Together) else None

    @property
    def local(self) -> bool:
        """Whether this is rule "js"."""
        return isinstance(self.shrink, Local)

    @property
    def blocks(self) -> bool:
        """Whether blocks of coefficients are shrunk."""
        return isinstance(self.shrink, Blocks)

    @property
    def own_function(self) -> bool:
        """Whether the rule shrinks blocks or neighbourhoods and has no other threshold function."""
        return isinstance(self.shrink, Blocks | Together)

    @property
    def mergeable(self) -> bool:
        """Whether chunks of traces give all that is needed: noise and mean squares."""
        return self.needs <= {"mean_square"} and not self.blocks

    @property
    def causal(self) -> bool:
        """Whether the latest coefficients give the threshold, for real-time streams."""
        return self.mergeable and not isinstance(self.shrink, Bivariate)

    @property
    def auto_level(self) -> int:
        """Default number of levels, if the samples and the filter allow it."""
        return 6 if self.together else AUTO_LEVEL


def universal(samples: int, options: Options) -> float:
    """Return √(2 ln n) (Donoho and Johnstone 1994)."""
    return math.sqrt(2 * math.log(samples))


def minimax(samples: int, options: Options) -> float:
    """Return the minimax threshold for n samples of soft or hard thresholding (Donoho and Johnstone 1994)."""
    return minimax_threshold_hard(samples) if options.shrink_word == "hard" else minimax_threshold(samples)


def minimax_threshold(samples: int) -> float:
    """Return the λ that minimises, for soft thresholding, the largest ratio of risk to 1/n + min(θ², 1).

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


@lru_cache(maxsize=64)
def minimax_threshold_hard(samples: int) -> float:
    """Return the λ that minimises, for hard thresholding, the largest ratio of risk to 1/n + min(θ², 1) over all θ.

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


def sure(statistics: Statistics, sigma: Floats, samples: int, parts: int = 1) -> Floats:
    """Return the |d| of each level, or 0, that minimises Stein's unbiased estimate of the risk of soft thresholding.

    With s_k the k-th smallest (d/σ)² of m and s_0 = 0 it is m - 2k + Σ_{i≤k} s_i + (m - k) s_k (Donoho and Johnstone
    1995). The threshold is not limited to √(2 ln m), as in their hybrid rule. It is one of the |d|: ``shrink="hard"``
    keeps that one, as PyWavelets does, while WaveLab's hard thresholding removes it. For pairs (Stein 1981) the risk is
    the sum of |y|² - 2σ² over those up to the threshold T and of 2σ² + T² - 2σ²T/|y| over the larger ones.
    """

    def risk(square: Array, rank: Array, below: Array, count: int) -> Any:
        return count - 2 * rank + below + (count - rank) * square

    def risk_of_pairs(square: Array, rank: Array, below: Array, count: int, above: Array) -> Any:
        return below - 2 * rank + (count - rank) * (2 + square) - 2 * np.sqrt(square) * above

    return statistics.minimise(risk if parts == 1 else risk_of_pairs, sigma, inverse=parts == 2)


def hybrid(statistics: Statistics, sigma: Floats, samples: int, parts: int = 1) -> Floats:
    """Return `sure`, at most σ √(2 ln m), which is used where a level of m details is little more than noise.

    That is where Σ(d/σ)²/m - 1 < (log₂ m)^{3/2}/√m (Donoho and Johnstone 1995), with 2m parts of complex details.
    """
    m = np.maximum(statistics.counts, 2)[:, None]
    most = sigma * np.sqrt(2 * np.log(m))
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = statistics.mean_square() / (parts * sigma**2) - 1
        sparse = excess < np.log2(parts * m) ** 1.5 / np.sqrt(parts * m)
    return np.asarray(np.where(sparse, most, np.minimum(sure(statistics, sigma, samples, parts), most)))


def bayes(statistics: Statistics, sigma: Floats, samples: int, parts: int = 1) -> Floats:
    """Return σ² / √(mean(d²) - σ²) for each level: BayesShrink (Chang, Yu and Vetterli 2000).

    Where a level has no more energy than the noise, the threshold is 2 √(Σ d²), which removes the whole level.
    """
    power = statistics.mean_square()
    threshold = bayes_formula(np.maximum, np.fmin, np.divide, np.sqrt)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sigma > 0, threshold(power / parts, power * statistics.counts[:, None], sigma), 0.0)


def bayes_formula(greater: Formula, smaller: Formula, quotient: Formula, root: Formula) -> Formula:
    """Return `bayes` for σ > 0 as a function of mean(d²), Σ d² and σ, for NumPy arrays or the numbers of a kernel."""

    def threshold(power: Floats, energy: Floats, sigma: Floats) -> Any:
        variance = sigma * sigma
        return smaller(quotient(variance, root(greater(power - variance, 0.0))), 2 * root(energy))

    return threshold


def fdr(statistics: Statistics, sigma: Floats, samples: int, parts: int = 1) -> Floats:
    """Return t_k = σ Φ⁻¹(1 - qk/2m) for the largest k such that k of the m details have |d| >= t_k, else t_1.

    On average, at most a share `FALSE` of the details kept are then noise: Benjamini and Hochberg's step-up procedure
    (1995) on two-sided tests, for each level (Abramovich and Benjamini 1996). For pairs the tail is that of a Rayleigh
    distribution, t_k = σ √(-2 ln(qk/m)). To find the largest k, count the details above t_k from k = m on, and
    take the count as the next k.
    """
    from scipy.special import ndtri

    m = statistics.counts[:, None].astype(np.float64)
    k = np.broadcast_to(m, sigma.shape)
    while True:
        if parts == 1:
            tail = -ndtri(FALSE * np.maximum(k, 1) / (2 * m))
        else:
            tail = np.sqrt(-2 * np.log(FALSE * np.maximum(k, 1) / m))
        thresholds = np.asarray(tail * sigma)
        found = statistics.exceeding(thresholds)
        if np.all(found >= k):
            return thresholds
        k = np.minimum(found, k)


def block(samples: int, options: Options) -> float:
    """Return √λ: the root mean square of a block, in units of σ, below which it is removed; see `Blocks`."""
    return math.sqrt(ROOT)


def js(samples: int, options: Options) -> float:
    """Return √λ: the root mean square around a coefficient, in units of σ, below which it is removed; see `Local`."""
    return math.sqrt(LAMBDA if isinstance(options.sigma, str) or options.noise.changing else LAMBDA_MEASURED)


def bivariate(samples: int, options: Options) -> float:
    """Return ∜3, from which `Bivariate` computes the threshold of each coefficient."""
    return BIVARIATE


def ebayes(name: str, statistics: Statistics, sigma: Floats, samples: int) -> Floats:
    """Return σ times the largest |d|/σ whose posterior median is 0, with the most likely weight of each level.

    ``name`` is that of the prior.
    """
    prior, widths = empirical_bayes.PRIORS[name], empirical_bayes.WIDTH * sigma
    counts = (statistics.histogram(level, own, empirical_bayes.BINS) for level, own in enumerate(widths, 1))
    return np.maximum(prior.threshold(np.array([prior.weight(c) for c in counts])), TINY) * sigma


def _needs(*names: Statistic) -> frozenset[Statistic]:
    return frozenset(names)


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("universal", factor=universal, complex=True),
        Rule("minimax", factor=minimax),
        Rule("sure", sure, needs=_needs("sorted"), complex=True),
        Rule("hybrid", hybrid, needs=_needs("sorted", "mean_square"), complex=True),
        Rule("bayes", bayes, needs=_needs("mean_square"), complex=True),
        Rule("fdr", fdr, "hard", _needs("exceeding"), complex=True),
        Rule("blockjs", factor=block, shrink=Blocks(neighbours=False)),
        Rule("neighblock", factor=block, shrink=Blocks(neighbours=True)),
        Rule("js", factor=js, shrink=Local(), complex=True),
        Rule("bivariate", factor=bivariate, shrink=Bivariate(), complex=True),
        Rule("ebayes", partial(ebayes, "ebayes"), Posterior("ebayes"), _needs("histogram")),
        Rule("ebayes-cauchy", partial(ebayes, "ebayes-cauchy"), Posterior("ebayes-cauchy"), _needs("histogram")),
    )
}
"""All rules by name; other packages may add theirs."""
BUILT_IN = frozenset(RULES.values())
"""Rules whose thresholds are finite unless squares overflow."""


def name_of(function: object) -> str:
    """Return the name of a function, or of the class of another callable object."""
    return str(getattr(function, "__name__", type(function).__name__))


def find(rule: object) -> Rule:
    """Return a rule given by its name, as a `Rule`, as a function, or as one threshold or one for each level.

    Raises OptionError for an unknown name, and for thresholds that are not finite numbers of at least 0.
    """
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, str):
        check("rule", rule, RULES, "a number or one number for each level")
        return RULES[rule]
    if callable(rule):
        return Rule(name_of(rule), rule)
    values: Sequence[Any] = np.atleast_1d(np.asarray(rule, dtype=object)).ravel().tolist()
    if not values or not all(is_number(value) and 0 <= value < math.inf for value in values):
        raise OptionError(f"`rule={rule!r}`: thresholds must be finite numbers of at least 0")
    return Rule("", values=tuple(map(float, values)), complex=True)
