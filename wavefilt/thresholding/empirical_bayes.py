"""Empirical Bayes: a detail is 0 with probability 1 - w, else drawn from a heavy-tailed prior; noise is normal.

Johnstone and Silverman (Annals of Statistics 33, 2005) give the model and both priors. All values here are in units
of the noise's standard deviation, x = |d|/σ. With φ, Φ of the standard normal, γ the prior and g = ∫ γ(u) φ(x - u) du
the resulting density of x, all estimates follow from the ratio g/φ = 1 + β(x):

    weight     Σ β/(1 + w β) = 0 over a level, at the maximum of the likelihood
    nonzero    w (1 + β)/(1 + w β), the probability that a detail is not 0
    mean       nonzero · (x + (log g)'), by Tweedie's formula
    median     the m with nonzero · tail(x, m) = 1/2, where tail is the share of g that comes from u > m; else 0
    threshold  the largest x whose median is 0

`formulas` returns the functions that differ between the priors, for NumPy or for kernels; docs/rules.md derives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wavefilt.arrays import Counts, Floats

SCALE = 0.5
"""Parameter a of the Laplace prior."""
FAR = 35.0
"""From here on w has no effect, and both estimators are x - `Formulas.shift`; e^{x²/2} would overflow soon."""
LARGEST = 1e20
"""Upper limit of β in the equation of the weight; for larger values the term is 1/w."""
WIDTH, BINS = 1 / 64, 512
"""Width and number of the bins of |d|/σ: beyond the last one, at 8, β/(1 + wβ) is 1/w to a millionth."""
ROUNDS = 48
"""Number of bisections of a value up to `FAR`, for an accuracy of 1e-13."""


class Formulas(NamedTuple):
    """Functions of a prior, for x from 0 to `FAR` and m from 0 to x."""

    ratio: Callable[[Any], Any]
    """1 + β(x) = g/φ."""
    tail: Callable[[Any, Any], Any]
    """The share of g that comes from u > m."""
    shift: Callable[[Any], Any]
    """-(log g)': x minus the mean of a detail that is not 0; also valid beyond `FAR`."""


def formulas(prior: str, erfc: Any, exp: Any, expm1: Any, function: Any = lambda f: f) -> Formulas:
    """Return the formulas of "ebayes", γ(u) = (a/2) e^{-a|u|}, or of "ebayes-cauchy", with the tails of a Cauchy
    density: γ(u) = φ(0) (1 - |u| (1 - Φ(|u|))/φ(u)), g = φ(0) (1 - e^{-x²/2})/x².

    ``erfc``, ``exp`` and ``expm1`` take NumPy arrays or numbers; ``function`` decorates the functions that call them.
    """
    root, a = math.sqrt(0.5), SCALE
    density = 1 / math.sqrt(2 * math.pi)
    near = 1e-3  # below it, the differences of the Cauchy formulas lose digits, and their limits hold to 1e-7

    @function
    def normal(z):  # type: ignore[no-untyped-def]
        return 0.5 * erfc(-root * z)

    @function
    def mills(z):  # type: ignore[no-untyped-def]
        """Φ/φ."""
        return 0.5 * erfc(-root * z) / (density * exp(-0.5 * z * z))

    @function
    def laplace_ratio(x):  # type: ignore[no-untyped-def]
        return 0.5 * a * (mills(x - a) + mills(-x - a))

    @function
    def laplace_tail(x, m):  # type: ignore[no-untyped-def]
        above = mills(x - a)
        return above / (above + mills(-x - a)) * normal(x - a - m) / normal(x - a)

    @function
    def laplace_shift(x):  # type: ignore[no-untyped-def]
        inside = (x < FAR) * x
        above, below = mills(inside - a), mills(-inside - a)
        return a * ((x < FAR) * (above - below) / (above + below) + (x >= FAR))

    @function
    def cauchy_ratio(x):  # type: ignore[no-untyped-def]
        safe = x + (x < near) * near
        return (x < near) * 0.5 + (x >= near) * expm1(0.5 * safe * safe) / (safe * safe)

    @function
    def cauchy_tail(x, m):  # type: ignore[no-untyped-def]
        """(Φ(x - m) + e^{xm - x²/2} (xm - 1) (1 - Φ(m)) - x φ(x - m))/(1 - e^{-x²/2}), by parts."""
        safe = x + (x < near) * near
        damped = exp(safe * m - 0.5 * safe * safe) * normal(-m)
        top = normal(safe - m) + damped * (safe * m - 1) - safe * density * exp(-0.5 * (safe - m) * (safe - m))
        return top / -expm1(-0.5 * safe * safe)

    @function
    def cauchy_shift(x):  # type: ignore[no-untyped-def]
        safe = x + (x < near) * near
        inside = (x < FAR) * safe + (x >= FAR)
        return (x < near) * 0.5 * x + (x >= near) * (2 / safe - (x < FAR) * inside / expm1(0.5 * inside * inside))

    if prior == "ebayes":
        return Formulas(laplace_ratio, laplace_tail, laplace_shift)
    return Formulas(cauchy_ratio, cauchy_tail, cauchy_shift)


class Prior:
    """Weights, thresholds and estimators of one prior, for arrays."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def formulas(self) -> Formulas:
        from scipy.special import erfc

        return formulas(self.name, erfc, np.exp, np.expm1)

    @cached_property
    def _table(self) -> tuple[Floats, Floats, Floats]:
        """Thresholds t, log 1/w at t, and its slope: the start of `threshold`."""
        t = np.linspace(0, FAR, 1 << 12)
        y = -np.log(self.weight_of(t))
        return t, y, np.gradient(y, t)

    def weight(self, counts: Counts) -> Floats:
        """Return the w with the largest likelihood for counts (..., BINS) of |d|/σ, shape (...).

        It is at least the weight with threshold √(2 ln m) for m details.
        """
        beta = np.minimum(self.formulas.ratio(WIDTH * (np.arange(BINS) + 0.5)) - 1, LARGEST)
        low = np.log(self.weight_of(np.sqrt(2 * np.log(np.maximum(counts.sum(axis=-1), 2)))))

        def slope(log_w: Floats) -> Any:
            return np.einsum("...i,...i", counts, beta / (1 + np.exp(log_w)[..., None] * beta))

        return np.exp(bisected(slope, low, np.zeros_like(low), 30))

    def weight_of(self, threshold: Any) -> Floats:
        """Return the w with this threshold: 1/w = 2 (1 + β) tail(t, 0) - β."""
        t = np.clip(threshold, 0, FAR)
        ratio = self.formulas.ratio(t)
        return np.asarray(1 / (2 * ratio * self.formulas.tail(t, np.zeros_like(t)) - (ratio - 1)))

    def threshold(self, w: Floats) -> Floats:
        """Return the largest x whose posterior median is 0, to about 1e-12 from 0.03 on."""
        t, y, slope = self._table
        found = np.interp(-np.log(w), y, t)
        for _ in range(2):  # Newton's method
            excess = np.log(w) - np.log(self.weight_of(found))
            found = np.clip(found - excess / np.interp(found, t, slope), 0, FAR)
        return found

    def median(self, x: Floats, w: Floats) -> Floats:
        """Return the posterior median of details x, none of which is below the threshold of w."""
        near = np.minimum(x, FAR)
        half = (1 + w * (self.formulas.ratio(near) - 1)) / (2 * w * self.formulas.ratio(near))
        median = bisected(lambda m: self.formulas.tail(near, m) - half, np.zeros_like(near), near)
        return np.where(x < FAR, median, x - self.formulas.shift(x))

    def mean(self, x: Floats, w: Floats) -> Floats:
        """Return the posterior mean of details x >= 0."""
        ratio = self.formulas.ratio(np.minimum(x, FAR))
        return np.asarray(w * ratio / (1 + w * (ratio - 1)) * (x - self.formulas.shift(x)))


PRIORS = {name: Prior(name) for name in ("ebayes", "ebayes-cauchy")}
"""The prior of each empirical Bayes rule."""


def bisected(falling: Any, low: Floats, high: Floats, rounds: int = ROUNDS) -> Floats:
    """Return the zeros of falling functions between ``low`` and ``high``, or the end nearer to a zero outside."""
    low, high = np.array(low, np.float64), np.array(high, np.float64)
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        above = falling(middle) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return 0.5 * (low + high)
