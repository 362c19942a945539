"""Denoising: decompose, estimate the noise, choose thresholds, shrink, reconstruct."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt import arrays, backends, gaps, rules
from wavefilt.filters import WaveletLike, as_wavelet, max_level
from wavefilt.shrinkage import Shrinkage
from wavefilt.vocabulary import MODES, RULES, SCOPES, SHRINKS, SIGMAS, Mode, Scope, Shrink, Sigma, check
from wavefilt.vocabulary import Rule as RuleName

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
            check("rule", self.rule, [*RULES, "a number", "one number a level"])
        elif not self.fixed_thresholds or not all(0 <= t < math.inf for t in self.fixed_thresholds):
            raise ValueError(f"rule={self.rule!r}: thresholds must be finite numbers of at least 0")
        if isinstance(self.sigma, str):
            check("sigma", self.sigma, [*SIGMAS, "a number"])
        elif not 0 <= float(self.sigma) < math.inf:
            raise ValueError(f"sigma={self.sigma!r} must be a finite number of at least 0")
        if self.level is not None and (isinstance(self.level, bool) or self.level != int(self.level)):
            raise ValueError(f"level={self.level!r} must be a whole number")
        if self.level is not None and self.level < 0:
            raise ValueError(f"level={self.level} must be at least 0")

    @property
    def fixed_thresholds(self) -> list[float]:
        """The thresholds given as ``rule``, coarsest level first; empty if the rule is a name."""
        return [] if isinstance(self.rule, str) else [float(t) for t in np.atleast_1d(np.asarray(self.rule))]

    @property
    def shrink_function(self) -> Shrink:
        """``shrink``, or what the rule is derived for: soft for a threshold given as a number."""
        if self.shrink is not None:
            return self.shrink
        return rules.RULES[self.rule][1] if isinstance(self.rule, str) else "soft"

    def level_for(self, samples: int) -> int:
        """Levels used for a trace of this many samples.

        Raises ValueError if the level asked for is above the maximum for this length and filter.
        """
        deepest = max_level(samples, self.bank)
        if self.level is None:
            return min(AUTO_LEVEL, deepest)
        if self.level > deepest:
            raise ValueError(
                f"level={self.level} is above the maximum of {deepest} for {samples} samples and "
                f"{self.bank.name} ({self.bank.dec_len} taps); use a lower level, None for the default, "
                "or a shorter filter"
            )
        return int(self.level)


@dataclass(frozen=True)
class Estimate:
    """What was found and used for one batch of traces of one length; arrays (levels, traces), finest level first.

    ``sigma`` and ``thresholds`` are in the data's units; ``power`` is the mean square of the details before
    shrinking (None unless a report was asked for) and ``counts`` their number per trace and level.
    """

    rows: NDArray[np.intp]
    start: int
    stop: int
    sigma: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    power: NDArray[np.float64] | None
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Denoised samples, and how: the method, the backend that ran, the levels used and an estimate a batch."""

    samples: NDArray[Any]
    method: Method
    backend: str
    level: int
    estimates: list[Estimate]


def denoise(
    x: Any,
    wavelet: WaveletLike = "db8",
    *,
    level: int | None = None,
    mode: Mode = "symmetric",
    rule: RuleName | float | Sequence[float] = "bayes",
    shrink: Shrink | None = None,
    sigma: Sigma | float = "level",
    scope: Scope = "trace",
    axis: int = -1,
    backend: str = "auto",
) -> NDArray[Any]:
    """Remove noise by shrinking the wavelet details of every trace; the approximation is left as it is.

    Parameters
    ----------
    x : array_like, shape (..., samples, ...)
        Samples along ``axis``, everything else a batch of traces; never modified. float16 and integers of up to
        16 bits are computed in float32, wider integers in float64. NaN and masked samples are gaps: the pieces
        between them are denoised one by one and the gaps put back.
    wavelet : str, pywt.Wavelet or object with four filters
        ``"db8"`` is Daubechies with 8 vanishing moments, 16 taps.
    level : int, optional
        Number of levels; by default min(5, the maximum for this length and filter). A piece between gaps uses
        at most its own maximum; a piece shorter than the filter has none and is returned unchanged.
    mode : str
        Boundary mode, one of PyWavelets' nine.
    rule : {"bayes", "universal", "sure", "minimax"}, float, or one float a level
        How thresholds are chosen (`wavefilt.rules`). Numbers are thresholds in the units of ``x``, coarsest level
        first as `wavedec` orders the details.
    shrink : {"soft", "hard", "garrote", "firm"}, optional
        Threshold function; by default the one the rule is derived for. Firm leaves |d| above twice the threshold.
    sigma : {"level", "global"} or float
        Standard deviation of the noise: from the median absolute detail of each level, of the finest level for
        all, or given in the units of ``x``.
    scope : {"trace", "record"}
        Whether every trace has thresholds of its own or all share those of their pooled details.
    axis : int
        Axis of the samples.
    backend : str
        ``"auto"`` or a name of `wavefilt.backends.names`.

    Returns
    -------
    ndarray (or MaskedArray) of the shape and floating dtype of ``x``; integers give the dtype of computation. A
    trace whose thresholds are all 0 (a dead trace, a single sample, threshold 0) is returned bit for bit.

    Raises
    ------
    ValueError
        For an unknown wavelet, mode, rule, function or backend, a level above the maximum for the length, an
        infinite sample (named by trace and sample), no samples, or an axis out of range.
    TypeError
        For samples that are not numbers, or an array on a GPU.
    BackendUnavailable
        If the backend asked for cannot run here.

    Notes
    -----
    Wavelet shrinkage after Donoho and Johnstone (1994); noise from the median absolute detail; BayesShrink after
    Chang, Yu and Vetterli (2000). Scaling the input scales the output for every data-driven rule.
    """
    method = Method(wavelet, level, mode, rule, shrink, sigma, scope)
    traces = arrays.take(x, axis)
    return traces.restore(run(traces.rows, method, backend).samples)


def run(traces: NDArray[Any], method: Method, backend: str = "auto", report: bool = False) -> Outcome:
    """Denoise the rows of ``traces`` (traces, samples), of a dtype of computation, and tell how it was done.

    ``report`` has the power of the details measured as well, which costs a pass for rules that do not need it.
    """
    chosen = backends.choose(backend, traces.dtype.name)
    level = method.level_for(traces.shape[-1])
    if len(method.fixed_thresholds) not in (0, 1, level):
        raise ValueError(f"rule gives {len(method.fixed_thresholds)} thresholds for {level} levels")
    batches = [(piece, min(level, max_level(piece.samples, method.bank))) for piece in gaps.pieces(traces)]
    batches = [(piece, depth) for piece, depth in batches if depth > 0]
    groups = [[batch] for batch in batches] if method.scope == "trace" else [batches]
    y: NDArray[Any] | None = None
    estimates = []
    for group in filter(None, groups):
        pyramids = [chosen.decompose(piece.of(traces), method.bank, method.mode, depth) for piece, depth in group]
        statistics = chosen.statistics(pyramids, method.scope)
        sizes = [piece.samples * (len(piece.rows) if method.scope == "record" else 1) for piece, _ in group]
        pooled = _thresholds(statistics, method, sum(sizes))
        power = statistics.mean_square() if report else None
        for pyramid, (piece, depth) in zip(pyramids, group, strict=True):
            estimate = _estimate(piece, depth, statistics.counts, *pooled, power)
            rows = chosen.reconstruct(pyramid, Shrinkage(method.shrink_function, estimate.thresholds))
            y = _placed(rows, estimate, traces, y)
            estimates.append(estimate)
    return Outcome(traces.copy() if y is None else y, method, chosen.name, level, estimates)


def _placed(rows: NDArray[Any], estimate: Estimate, traces: NDArray[Any], y: NDArray[Any] | None) -> NDArray[Any]:
    """The output with these denoised rows in it: they are all of it, or a piece beside others.

    Traces whose thresholds are all 0 stay bit for bit as they were.
    """
    changed = estimate.thresholds.any(axis=0)
    if rows.shape == traces.shape:
        rows[~changed] = traces[~changed]
        return rows
    y = traces.copy() if y is None else y
    y[estimate.rows[changed], estimate.start : estimate.stop] = rows[changed]
    return y


def _thresholds(
    statistics: backends.Statistics, method: Method, samples: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sigma = rules.noise(statistics, method.sigma)
    rule = rules.RULES[method.rule][0] if isinstance(method.rule, str) else rules.fixed(method.fixed_thresholds)
    with np.errstate(over="ignore", invalid="ignore"):
        thresholds = rule(statistics, sigma, samples)
    if not np.isfinite(thresholds).all():
        raise ValueError("the samples are so large that their squares overflow; scale them down first")
    return sigma, thresholds


def _estimate(
    piece: gaps.Piece,
    level: int,
    counts: NDArray[np.int64],
    sigma: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    power: NDArray[np.float64] | None,
) -> Estimate:
    """The group's numbers for one of its batches: its levels, and a column for each of its traces."""

    def columns(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.broadcast_to(numbers[:level], (level, len(piece.rows)))

    powers = None if power is None else columns(power)
    return Estimate(piece.rows, piece.start, piece.stop, columns(sigma), columns(thresholds), powers, counts[:level])
