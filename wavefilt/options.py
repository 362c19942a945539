"""The options of denoising, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wavefilt import transforms
from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError, options
from wavefilt.option_checks import check_whole, checked_noise
from wavefilt.statistics.interface import NOTHING, Statistics, Wanted
from wavefilt.thresholding import rules, shrinkage
from wavefilt.thresholding.local_shrinkage import REACH
from wavefilt.transforms import Analysis, Band, Transform
from wavefilt.transforms.base import noise_gains
from wavefilt.vocabulary import (
    DETRENDS,
    ESTIMATORS,
    SCOPES,
    Detrend,
    Estimator,
    Mode,
    Noise,
    Scope,
    Shrink,
    check,
    is_number,
)
from wavefilt.vocabulary import Rule as RuleName
from wavefilt.wavelets import boundary
from wavefilt.wavelets.filters import WaveletLike

GOLDEN = (3 - math.sqrt(5)) / 2
"""Multiples of it, whole numbers left out, are spread through 0 to 1 however many there are."""


@dataclass(frozen=True)
class Options:
    """How to denoise, checked: every option of `denoise` but the axis and the backend.

    Where ``wavelet`` and ``rule`` are left out, they are those of the transform from then on.
    """

    wavelet: WaveletLike | None = None
    level: int | None = None
    mode: Mode = "symmetric"
    rule: rules.Rule = None  # type: ignore[assignment]  # resolved in __post_init__
    shrink: Shrink | Estimator | None = None
    sigma: Noise = "level"
    scope: Scope = "trace"
    keep: int = 0
    transform: Transform = "dwt"  # type: ignore[assignment]
    spins: int = 1
    dimensions: Literal[1, 2] = 1
    detrend: Detrend | None = None
    blend: float = 0.0
    filters: Any = field(init=False, repr=False, compare=False)
    """The filters, as `Transform.filters` makes them."""

    if TYPE_CHECKING:

        def __init__(
            self,
            wavelet: WaveletLike | None = None,
            level: int | None = None,
            mode: Mode = "symmetric",
            rule: rules.Rule | RuleName | float | Sequence[float] | None = None,
            shrink: Shrink | Estimator | None = None,
            sigma: Noise = "level",
            scope: Scope = "trace",
            keep: int = 0,
            transform: Transform | str = "dwt",
            spins: int = 1,
            dimensions: Literal[1, 2] = 1,
            detrend: Detrend | None = None,
            blend: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", transforms.find(self.transform, self.dimensions))
        if self.wavelet is None:
            object.__setattr__(self, "wavelet", self.transform.default_wavelet)
        assert self.wavelet is not None
        object.__setattr__(self, "filters", self.transform.filters(self.wavelet))
        boundary.EXTENSIONS.check(self.mode)
        check("scope", self.scope, SCOPES)
        rule = self.transform.default_rule if self.rule is None else self.rule
        object.__setattr__(self, "rule", rules.find(rule))
        if self.transform.parts == 2 and self.rule.magnitudes is None:
            others = ", ".join(rules.RULES.where(lambda spec: spec.magnitudes is not None))
            transform = options(transform=self.transform.word)
            raise OptionError(
                options(rule=self.rule.option),
                " is for real coefficients, and ",
                transform,
                f" has complex ones: use {others}",
            )
        self._check_shrink()
        object.__setattr__(self, "sigma", checked_noise(self.sigma))
        if self.changing and self.fixed_thresholds:
            named = ", ".join(rules.RULES.names())
            what = " is a threshold in the units of the samples, which noise that changes tells nothing of: use "
            raise OptionError(
                options(rule=self.rule.option), what, f"one of the rules {named}, or leave ", options("sigma"), " out"
            )
        if self.level is not None:
            check_whole("level", self.level, 0)
        check_whole("spins", self.spins, 1)
        self.transform.check(self)
        check_whole("keep", self.keep, 0)
        if self.detrend is not None:
            check("detrend", self.detrend, DETRENDS)
        if not is_number(self.blend) or not 0 <= self.blend < 1:
            raise OptionError(options(blend=self.blend), " must be a number of at least 0, and less than 1")

    def _check_shrink(self) -> None:
        if self.shrink is None:
            return
        if self.shrink not in ESTIMATORS and self.shrink not in shrinkage.FUNCTIONS:
            check("shrink", self.shrink, (*shrinkage.FUNCTIONS.names(), *ESTIMATORS))
        if self.rule.own_function:
            own = f" shrinks {self.rule.own_function} its own way: leave "
            raise OptionError(options(rule=self.rule.option), own, options(shrink=self.shrink), " out")
        if self.shrink in ESTIMATORS and not self.rule.prior:
            allowed = " and ".join(rules.RULES.where(lambda spec: spec.prior))
            why = f" is for rules with a posterior, {allowed}, not {self.rule.option!r}"
            raise OptionError(options(shrink=self.shrink), why)

    @cached_property
    def window(self) -> slice | None:
        """The samples that are noise alone, if the user named any."""
        return slice(*self.sigma[1:]) if isinstance(self.sigma, tuple) and self.sigma[0] == "window" else None

    @cached_property
    def running(self) -> int | None:
        """Samples of the window of running noise."""
        return self.sigma[1] if isinstance(self.sigma, tuple) and self.sigma[0] == "running" else None

    @cached_property
    def intervals(self) -> tuple[int, ...] | Literal["find"] | None:
        """The samples where the noise changes; "find" where they are to be found."""
        if not isinstance(self.sigma, tuple) or self.sigma[0] != "intervals":
            return None
        points = self.sigma[1]
        return "find" if points is None or isinstance(points, str) else tuple(points)

    @cached_property
    def changing(self) -> bool:
        """Whether the noise changes along a trace: see `wavefilt.statistics.changing_noise`."""
        return self.running is not None or self.intervals is not None

    @cached_property
    def on_host(self) -> bool:
        """Whether only backends in host memory do it chunk by chunk; in one piece others do rule "js" as well."""
        return self.rule.together is not None or self.changing

    @cached_property
    def host_only(self) -> bool:
        """Whether only backends in host memory do it at all."""
        return self.changing or not self.transform.on_device(self.rule) or (self.dimensions == 2 and self.spins > 1)

    @cached_property
    def shrinks_approximation(self) -> bool:
        """Whether the approximation is a band as well, with noise and a threshold, the last."""
        return self.rule.local and self.transform.shrinks_approximation

    def window_in(self, samples: int) -> slice:
        """The window of noise. Raises ValueError where it does not lie in a trace of so many samples."""
        window = self.window
        assert window is not None
        if window.stop > samples:
            where = f"from sample {window.start} to {window.stop}"
            raise ValueError(f"the noise window {where} does not lie in {samples} samples")
        return window

    @cached_property
    def known(self) -> bool:
        """Whether what was found for it can be found again: objects of users may have no hash, and may change."""
        return isinstance(self.wavelet, str) and not isinstance(self.sigma, tuple)

    @cached_property
    def plain(self) -> bool:
        """Whether one transform does it, with noise from its own details: what a backend may do in one go."""
        return self.spins == 1 and not isinstance(self.sigma, tuple)

    @cached_property
    def trend(self) -> Detrend | None:
        """What is removed before the transform and added again after: as asked for, or what the rule needs."""
        return self.detrend or (self.rule.detrend if self.shrinks_approximation else None)

    def shifts(self, level: int) -> list[int]:
        """Samples by which cycle spinning shifts, for a transform of so many levels, which repeats after 2^level.

        Each is an odd number after the one before, so that the first 2^j differ at level j, and about 0.38 of the
        period, which spreads any number of them evenly at every level. There are no
        more than the period has.
        """
        period = 1 << level
        step = int(GOLDEN * period) | 1
        return [k * step % period for k in range(min(self.spins, period))]

    def axis_shifts(self, level: int) -> list[tuple[int, ...]]:
        """`shifts` along every axis.

        Along the second axis of panels multiple k is replaced by multiple p_k, where bit i of p_k is the parity of the
        bits r of k for which the binomial coefficient C(r, i) is odd: the second dimension of Sobol's sequence (1967),
        read backwards. The first 2^(i+j) pairs are then all different in their phases at level i of one axis and level
        j of the other, and there are 4^level.
        """
        if self.dimensions == 1:
            return [(shift,) for shift in self.shifts(level)]
        period = 1 << level
        step = int(GOLDEN * period) | 1
        count = min(self.spins, period * period)
        return [(k * step % period, _sobol(k) * step % period) for k in range(count)]

    @cached_property
    def fixed_thresholds(self) -> list[float]:
        """The thresholds given as ``rule``, coarsest level first; empty if the rule is a name."""
        return list(self.rule.values)

    @cached_property
    def shrink_word(self) -> str:
        """``shrink``, or what the rule is derived for: soft for a threshold given as a number, "block" for blocks."""
        return self.shrink or self.rule.shrink

    def summary(self, level: int) -> str:
        """Transform, wavelet, level, rule and threshold function in a few words."""
        numbers = [f"{threshold:g}" for threshold in self.fixed_thresholds]
        rule = f"threshold {', '.join(numbers)}" if numbers else self.rule.name
        deep = f" level {level}" if self.transform.has_levels else ""
        return f"{self.transform.word} {self.filters.name}{deep}, {rule} {self.shrink_word}"

    def function(self, samples: int) -> shrinkage.Function:
        """What is done to the coefficients of a trace of so many samples."""
        if self.rule.together is not None:
            return self.rule.together
        if self.rule.blocks:
            return self.rule.blocks(samples)
        word: Any = self.shrink_word
        return shrinkage.Posterior(self.rule.prior, word) if word in ESTIMATORS else word

    def analysis(self, level: int) -> Analysis:
        """The transform to this level, by the filters and the mode of this method along every axis."""
        return self.transform.analysis(self.filters, self.mode, level)

    def deepest(self, *shape: int) -> int:
        """Levels that a trace of so many samples, or a panel of this shape, may have at most."""
        return self.transform.deepest(shape, self.filters)

    def halo(self, level: int) -> int | None:
        """Samples on each side of a chunk that its samples depend on, as `Transform.halo`."""
        halo = self.transform.halo(self.filters.dec_len, level)
        if halo is None or self.rule.together is None:
            return halo
        lag = math.ceil(abs(self.transform.lag(self.filters)))
        return halo + (REACH + lag + 2 << level)  # coefficients of the last level, to the nearest ones and their means

    def blended(self, x: Array, y: Array) -> Array:
        """The denoised samples ``y``, with the share of the samples ``x`` as they were that ``blend`` asks for."""
        return y + x.real.dtype.type(self.blend) * (x - y) if self.blend else y

    def level_for(self, *shape: int) -> int:
        """Levels used for a trace of this many samples, or a panel of this shape.

        Raises ValueError if the level asked for is above the maximum for this length and filter, or if thresholds
        are given for another number of levels.
        """
        deepest, samples = self.deepest(*shape), min(shape)
        level = (
            int(self.level)
            if self.level is not None
            else min(self.transform.auto_level or self.rule.auto_level, self.transform.usual_level(shape, self.filters))
        )
        if level > deepest:
            size = "samples" if self.dimensions == 1 else "traces or samples"
            filters = f"{self.filters.name} ({self.filters.dec_len} taps)"
            limit = f" is above the maximum of {deepest} for {samples} {size} and {filters}; "
            others = self.transform.with_levels(samples, self.filters, deepest)
            raise OptionError(
                options(level=level), limit, f"use a lower level or a shorter filter{others and ': '}{others}"
            )
        if len(self.fixed_thresholds) not in (0, 1, level):
            raise OptionError(options("rule"), f" gives {len(self.fixed_thresholds)} thresholds for {level} levels")
        return level

    def thresholds(
        self, statistics: Statistics | None, samples: int, sigma: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Noise and thresholds (bands, groups), finest band first, of groups of so many samples.

        ``sigma`` is the noise if it is known from elsewhere; ``statistics`` may then be None for rules that ask
        for nothing else. The coarsest levels that are kept have threshold 0. Not finite where samples are not, or
        where float64 does not hold the squares of the coefficients. Bands are those of `bands`.
        """
        if sigma is None:
            assert statistics is not None
            assert not isinstance(self.sigma, tuple)
            sigma = self.transform.noise(statistics, self.sigma, self.bands_of(len(statistics.counts)))
            if self.sigma != "level":
                sigma = sigma * self.noise_gains(len(statistics.counts), self.sigma)
        level = self.transform.levels(len(sigma) - self.shrinks_approximation)
        bands = self.bands(level)
        with np.errstate(over="ignore", invalid="ignore"):
            if given := self.fixed_thresholds:  # coarsest level first; a segment with fewer levels has the finest ones
                values = np.array([[given[-band.level] if len(given) > 1 else given[0]] for band in bands])
                found = values * noise_gains(bands, False) * np.ones_like(sigma)
            else:
                found = np.array(self.rule_function(statistics, sigma, samples))  # type: ignore[arg-type]
        if self.keep:
            found[[band.level > level - self.keep for band in bands]] = 0
        return sigma, found

    @cached_property
    def known_rule(self) -> Literal["linear", "bayes", "fixed", None]:
        """What `Rule.device_kind` says, if thresholds are that and nothing else."""
        kind = self.rule.device_kind
        return None if kind == "bayes" and self.keep else kind

    def factors(self, bands: int, samples: int) -> tuple[Floats, Floats]:
        """For each band what multiplies its noise, or is its threshold; and what multiplies noise found or given.

        The first are those of rules that `known_rule` calls "linear" or "fixed", and 0 for others.
        """
        found, gains = np.zeros(bands), self.noise_gains(bands, self.sigma)[:, 0]
        if self.known_rule in ("linear", "fixed"):
            found = self.thresholds(None, samples, np.ones((bands, 1)))[1][:, 0]
        return found, gains

    def wanted(self, level: int) -> Wanted:
        """What will be asked of the details."""
        if self.sigma not in ("level", "global") or self.shrinks_approximation:
            return NOTHING
        bands = len(self.transform.bands(level)) if self.sigma == "level" else 1
        return Wanted(tuple(range(1, bands + 1)), self.sigma == "level" and "mean_square" in self.rule.needs)

    def noise_gains(self, bands: int, sigma: object = None) -> Floats:
        """What white noise, or a threshold for it, is multiplied by in each band, shape (bands, 1).

        Noise found in the finest band ("global") has the first factor already, noise found in each band all of them.
        """
        if sigma == "level":
            return np.ones((bands, 1))
        return noise_gains(self.bands_of(bands), relative=sigma == "global")

    def bands(self, level: int) -> tuple[Band, ...]:
        """What has a noise and a threshold, to so many levels: details, finest first, and by rule also approximations.

        These have the noise of the details of the last level, but where the transform knows more.
        """
        details = self.transform.bands(level, self.filters)
        if not self.shrinks_approximation:
            return details
        return (*details, self.transform.approximation_band(level, self.filters))

    def bands_of(self, count: int) -> tuple[Band, ...]:
        """`bands`, of which there are so many."""
        return self.bands(self.transform.levels(count - self.shrinks_approximation))

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        """Number of coefficients of each of `bands` that rules count."""
        details = self.transform.sizes(analysis, shape)
        return [*details, *details[-1:]] if self.shrinks_approximation else details

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """The coefficients of each of `bands` that rules count, arrays (batch, coefficients)."""
        details = self.transform.counted(coefficients, analysis, shape)
        if not self.shrinks_approximation:
            return details
        return (*details, self.transform.counted_approximation(coefficients[0], analysis, shape))

    def cut(self, numbers: Floats, level: int) -> Floats:
        """Noise or thresholds (bands, groups) of fewer levels.

        The variance of an approximation is the mean of those of what it holds, by their share of white noise.
        """
        bands, deeper = self.bands(level), self.bands_of(len(numbers))
        if not self.shrinks_approximation or len(deeper) == len(bands):
            return numbers[: len(bands)]
        parts = zip(deeper[level:], numbers[level:], strict=True)
        variance = sum(row**2 * 2.0 ** (level - band.level - 2 * band.noise_exponent) for band, row in parts)
        approximation = np.sqrt(variance) * 2.0 ** bands[-1].noise_exponent
        return np.concatenate([numbers[:level], np.where(numbers[-1] == 0, 0, approximation)[None]])

    @cached_property
    def rule_function(self) -> rules.Thresholds:
        """The function that finds the thresholds."""
        if self.rule.measured and not isinstance(self.sigma, str) and not self.changing:
            return self.rule.measured
        if self.transform.parts == 2 and self.rule.magnitudes:
            return self.rule.magnitudes
        return self.rule.hard if self.rule.hard and self.shrink_word == "hard" else self.rule.function


def _sobol(k: int) -> int:
    """The number p_k of `Options.axis_shifts`: the sum modulo 2 of the rows of Pascal's triangle named by its bits."""
    found, row = 0, 1
    while k:
        found ^= row if k & 1 else 0
        row, k = row ^ row << 1, k >> 1
    return found
