"""The options of denoising, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt import rules
from wavefilt.filters import WaveletLike, as_wavelet, max_level
from wavefilt.vocabulary import MODES, RULES, SCOPES, SHRINKS, SIGMAS, Mode, Scope, Shrink, Sigma, check
from wavefilt.vocabulary import Rule as RuleName

if TYPE_CHECKING:
    from wavefilt.backends import Statistics

AUTO_LEVEL = 5
"""``level=None`` means this many levels, or as many as the samples and the filter allow."""


@dataclass(frozen=True)
class Method:
    """How to denoise, checked: every option of `denoise` but the axis and the backend."""

    wavelet: WaveletLike = "db8"
    level: int | None = None
    mode: Mode = "symmetric"
    rule: RuleName | float | Sequence[float] = "bayes"
    shrink: Shrink | None = None
    sigma: Sigma | float = "level"
    scope: Scope = "trace"
    bank: pywt.Wavelet = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bank", as_wavelet(self.wavelet))
        check("mode", self.mode, MODES)
        check("scope", self.scope, SCOPES)
        if self.shrink is not None:
            check("shrink", self.shrink, SHRINKS)
        if isinstance(self.rule, str):
            check("rule", self.rule, RULES, "a number, or one number a level")
        elif not self.fixed_thresholds or not all(0 <= t < math.inf for t in self.fixed_thresholds):
            raise ValueError(f"rule={self.rule!r}: thresholds must be finite numbers of at least 0")
        if isinstance(self.sigma, str):
            check("sigma", self.sigma, SIGMAS, "a number")
        elif not _is_number(self.sigma) or not 0 <= self.sigma < math.inf:
            raise ValueError(f"sigma={self.sigma!r} must be {', '.join(SIGMAS)} or a finite number of at least 0")
        if self.level is not None and (not _is_number(self.level) or self.level % 1 != 0 or self.level < 0):
            raise ValueError(f"level={self.level!r} must be a whole number of at least 0")

    @property
    def fixed_thresholds(self) -> list[float]:
        """The thresholds given as ``rule``, coarsest level first; empty if the rule is a name."""
        if isinstance(self.rule, str):
            return []
        values = np.atleast_1d(np.asarray(self.rule, dtype=object)).ravel()
        return [float(t) if _is_number(t) else math.nan for t in values]

    @property
    def shrink_function(self) -> Shrink:
        """``shrink``, or what the rule is derived for: soft for a threshold given as a number."""
        if self.shrink is not None:
            return self.shrink
        return rules.RULES[self.rule][1] if isinstance(self.rule, str) else "soft"

    def level_for(self, samples: int) -> int:
        """Levels used for a trace of this many samples.

        Raises ValueError if the level asked for is above the maximum for this length and filter, or if thresholds
        are given for another number of levels.
        """
        deepest = max_level(samples, self.bank)
        level = min(AUTO_LEVEL, deepest) if self.level is None else int(self.level)
        if level > deepest:
            raise ValueError(
                f"level={self.level} is above the maximum of {deepest} for {samples} samples and "
                f"{self.bank.name} ({self.bank.dec_len} taps); use a lower level, None for the default, "
                "or a shorter filter"
            )
        if len(self.fixed_thresholds) not in (0, 1, level):
            raise ValueError(f"rule gives {len(self.fixed_thresholds)} thresholds for {level} levels")
        return level

    def thresholds(self, statistics: Statistics, samples: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Noise and thresholds (levels, groups), finest level first, of groups of so many samples.

        Not finite where samples are not, or where float64 does not hold the squares of the details.
        """
        sigma = rules.noise(statistics, self.sigma)
        rule = rules.RULES[self.rule][0] if isinstance(self.rule, str) else rules.fixed(self.fixed_thresholds)
        with np.errstate(over="ignore", invalid="ignore"):
            return sigma, rule(statistics, sigma, samples)


def _is_number(value: Any) -> bool:
    """A real number; True and False are none."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
