"""Denoising a real-time stream with a constant latency.

Samples pass through one `Analysis` a level, their details are shrunk, and one `Synthesis` a level gives samples again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from wavefilt.arrays import Array, refuse_kinds
from wavefilt.online.filter_bank import Analysis, Synthesis
from wavefilt.online.neighbourhood import Neighbourhood
from wavefilt.online.sliding_window import FixedThreshold, SlidingThresholds, SlidingWindow
from wavefilt.options import Options, check_whole
from wavefilt.thresholding.rules import RULES
from wavefilt.vocabulary import MODES, Mode, Shrink, is_number
from wavefilt.vocabulary import Rule as RuleName
from wavefilt.wavelets import boundary
from wavefilt.wavelets.filters import WaveletLike, gain


class OnlineDenoiser:
    """Denoise a real-time stream: `push` accepts samples and returns denoised ones with a delay of `latency` samples.

    Parameters
    ----------
    wavelet, level, rule, shrink, mode
        As in `wavefilt.denoise`; the level is a number. Rules are the causal ones, "universal", "minimax", "bayes" and
        "js", and numeric thresholds. Rule "js" sees the causal half of its neighbourhood: each coefficient and the
        three before it, and the latest ones of the adjacent levels that are not after it. It shrinks the approximation
        coefficients towards their median in the window, as the mean of a stream is not known. Modes are PyWavelets'
        except "periodic" and "periodization", which join both ends.
    noise : "running", float, or one float per level
        Standard deviation of the noise: "running" estimates it from the median absolute detail coefficient of the
        last ``window`` samples, per level and channel; numbers are in the units of the samples, coarsest level first.
        Numeric thresholds need none.
    window : int, optional
        Length in samples of the sliding window for the noise, for the power in "bayes" and the median of approximation
        coefficients in "js", and n in "universal" and
        "minimax". At level j it contains window / 2^j coefficients, at least 1.
    channels : int, optional
        If given, blocks have shape (channels, samples), otherwise (samples,).
    dtype : "float32" or "float64"
        Dtype of the computation and of the output.

    Notes
    -----
    With numeric thresholds, or numeric noise and "universal" or "minimax", the output is bit-identical to
    ``wavefilt.denoise(everything, backend="pywavelets")`` with the same thresholds, including both ends, for blocks of
    any length. A stream shorter than (taps - 1) 2^level, for which `denoise` raises an error, is still decomposed to
    that level; one shorter than the filter or 2^level is returned unchanged. With a sliding window, a channel is
    returned bit for bit as long as all its samples since the start are equal (a dead channel).

    Raises
    ------
    ValueError
        As `wavefilt.denoise`, for a rule or mode that needs the whole trace, and for a missing window.
    """

    _waiting: Array
    _ready: Array
    _first: Array | None

    def __init__(
        self,
        wavelet: WaveletLike = "db8",
        level: int = 5,
        rule: RuleName | float | Sequence[float] = "bayes",
        *,
        noise: str | float | Sequence[float] = "running",
        window: int | None = None,
        shrink: Shrink | None = None,
        mode: Mode = "symmetric",
        channels: int | None = None,
        dtype: DTypeLike = "float64",
    ) -> None:
        check_whole("level", level, 1)
        # noise that is known has a λ of its own in rule "js"
        self._method = Options(wavelet, level, mode, rule, shrink, "level" if isinstance(noise, str) else 0.0)
        if not self._method.rule.causal:
            causal = ", ".join(name for name, rule in RULES.items() if rule.causal)
            raise ValueError(f"rule={rule!r} needs the whole trace; online are {causal} and numbers")
        if mode in boundary.ROUND:
            raise ValueError(f"mode={mode!r} joins the ends of a trace, and a stream has no end yet")
        if mode not in MODES:
            online = ", ".join(name for name in MODES if name not in boundary.ROUND)
            raise ValueError(f"mode={mode!r} is a registered mode, which a stream cannot have; online are {online}")
        self._dtype = np.dtype(dtype)
        if self._dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is neither float32 nor float64")
        if channels is not None:
            check_whole("channels", channels, 1)
        self._channels, self._level = None if channels is None else int(channels), int(level)
        self._sigma = self._given(noise)
        self._window = window
        self._check_window()
        self._largest = float(np.finfo(self._dtype).max) / gain(self._method.filters) ** (level + 1)
        self._restart()

    def __repr__(self) -> str:
        channels = "one channel" if self._channels is None else f"{self._channels} channels"
        window = "" if self._window is None else f", window {self._window}"
        noise = "running" if self._sigma is None else ", ".join(f"{sigma:g}" for sigma in dict.fromkeys(self._sigma))
        method = f"{self._method.summary(self._level)}, noise {noise}{window}"
        return (
            f"<OnlineDenoiser {channels} of {self._dtype}, {method}, latency {self.latency}, {self._taken_in} taken in>"
        )

    @property
    def latency(self) -> int:
        """By how many samples the output lags behind, (taps - 1)(2^level - 1), the least that exact results need."""
        return int(self._method.filters.dec_len - 1) * ((1 << self._level) - 1)

    def push(self, samples: ArrayLike) -> Array:
        """Accept any number of samples and return those that are complete: all but the last `latency` accepted so far.

        Raises ValueError, without accepting any sample, if one is NaN, masked, infinite or too large for the transform.
        At a gap, call `flush` and push what follows.
        """
        new = self._taken(samples)
        self._watch(new)
        self._taken_in += new.shape[1]
        self._waiting = np.concatenate([self._waiting, new], axis=1)
        step = 1 << self._level  # coefficients of the last level are this far apart: more often there is nothing new
        if self._taken_in >= self._least:
            whole = self._waiting.shape[1] // step * step
            if whole:
                self._advance(self._waiting[:, :whole], last=False)
                self._waiting = self._waiting[:, whole:]
        return self._emit(max(self._taken_in - self.latency, 0) - self._given_out)

    def flush(self) -> Array:
        """Return the remaining samples at the end of the stream. The next `push` starts a new one."""
        if self._taken_in < self._least:
            self._ready = self._waiting
        else:
            self._advance(self._waiting, last=True)
        rest = self._emit(self._taken_in - self._given_out)
        self._restart()
        return rest

    def _watch(self, new: Array) -> None:
        """Which channels have given one and the same value so far."""
        if new.shape[1] and self._constant.any():
            self._first = new[:, :1] if self._first is None else self._first
            self._constant &= (new == self._first).all(axis=1)

    def _given(self, noise: str | float | Sequence[float]) -> list[float] | None:
        """Noise of each level, coarsest first; None where it is that of the sliding window."""
        if isinstance(noise, str):
            if noise != "running":
                raise ValueError(f"noise={noise!r} must be 'running', a number, or one number a level")
            return None
        values = list(np.atleast_1d(np.asarray(noise, object)))
        if len(values) not in (1, self._level) or not all(is_number(v) and 0 <= v < math.inf for v in values):
            allowed = f"one finite number of at least 0, or one for each of the {self._level} levels"
            raise ValueError(f"noise={noise!r} must be {allowed}")
        sigma = [float(value) for value in values]
        return sigma * self._level if len(sigma) == 1 else sigma

    def _check_window(self) -> None:
        numbers = self._method.rule.values
        if len(numbers) not in (0, 1, self._level):
            raise ValueError(f"rule gives {len(numbers)} thresholds for {self._level} levels")
        if self._window is None and not numbers:
            raise ValueError(f"`rule={self._method.rule.option!r}` needs window, in samples")
        if self._window is not None:
            check_whole("window", self._window, 2)

    def _shrinker(self, level: int) -> FixedThreshold | SlidingWindow:
        """What shrinks the details of a level."""
        method, function = self._method, self._method.shrink_function
        assert isinstance(function, str) or callable(function)
        rule = partial(method.rule.thresholds, options=method)
        numbers = method.rule.values
        if numbers:
            return FixedThreshold(function, numbers[-level] if len(numbers) > 1 else numbers[0])
        assert self._window is not None
        window, size = int(self._window), max(int(self._window) >> level, 1)
        sigma = None if self._sigma is None else self._sigma[-level]
        if sigma is None or method.rule.needs:
            return SlidingWindow(function, rule, window, size, sigma)
        found = rule(None, np.array([[sigma]]), window)
        return FixedThreshold(function, float(found[0, 0]))

    def _neighbourhood(self, like: Array) -> Neighbourhood:
        """What shrinks the coefficients of all levels by rule "js"."""
        assert self._window is not None
        method, window = self._method, int(self._window)
        grids = method.transform.grids(method.analysis(self._level), (self._least,))
        thresholds = []
        for band, level in enumerate([*range(1, self._level + 1), self._level]):
            sigma, size = None if self._sigma is None else self._sigma[-level], max(window >> level, 1)
            rule = partial(method.rule.thresholds, options=method)
            own = SlidingThresholds(rule, window, size, sigma, centred=band == self._level)
            thresholds.append(own)
        return Neighbourhood(grids, thresholds, like)

    def _restart(self) -> None:
        """Nothing was taken yet."""
        bank, mode, levels = self._method.filters, self._method.mode, range(1, self._level + 1)
        nothing = np.empty((self._channels or 1, 0), self._dtype)
        self._waiting = self._ready = nothing
        self._taken_in: int = 0
        self._given_out: int = 0
        self._least: int = max(bank.dec_len, 1 << self._level)
        self._there = [Analysis(bank, mode, nothing) for _ in levels]
        self._back = [Synthesis(bank, mode, nothing) for _ in levels]
        local = self._method.rule.local
        self._local = self._neighbourhood(nothing) if local else None
        self._shrinkers = [] if local else [self._shrinker(level) for level in levels]
        # fixed thresholds promise the bits of `denoise`, which sees the samples to come
        running = local or any(isinstance(s, SlidingWindow) for s in self._shrinkers)
        self._constant, self._first = np.full(len(nothing), running), None
        fixed = [s.threshold for s in self._shrinkers if isinstance(s, FixedThreshold)]
        self._nothing_to_do = len(fixed) == self._level and not any(fixed)

    def _taken(self, samples: ArrayLike) -> Array:
        """Samples as (channels, samples) of the dtype, checked."""
        refuse_kinds(samples)
        x = np.asarray(samples)
        if x.ndim != 1 + (self._channels is not None) or (x.ndim == 2 and len(x) != self._channels):
            wanted = "(samples,)" if self._channels is None else f"({self._channels}, samples)"
            raise ValueError(f"a push of shape {x.shape} should have shape {wanted}")
        if x.dtype.kind not in "fiu":
            raise TypeError(f"samples of dtype {x.dtype} are not real numbers")
        x = np.atleast_2d(x).astype(self._dtype)
        if isinstance(samples, np.ma.MaskedArray):
            x[np.atleast_2d(np.ma.getmaskarray(samples))] = np.nan
        bad = np.argwhere(~(np.abs(x) <= self._largest))
        if bad.size:
            channel, sample = bad[0]
            raise ValueError(
                f"sample {sample} of this push is {x[channel, sample]} (channel {channel}): nothing of it was taken; "
                "at a gap call flush(), then push what comes after it"
            )
        return x

    def _advance(self, x: Array, last: bool) -> None:
        """Send samples down all levels and up again."""
        if self._nothing_to_do:  # as `denoise` does: bit for bit as they came
            self._ready = np.concatenate([self._ready, x], axis=1)
            return
        details = []
        for there in self._there:
            x, own = there.push(x, last)
            details.append(own)
        if self._local is not None:
            *shrunk, x = self._local.shrink([*details, x], last)
        else:
            shrunk = [s.shrink(own) for s, own in zip(self._shrinkers, details, strict=True)]
        for back in reversed(self._back):
            x = back.push(x, shrunk.pop())
        self._ready = np.concatenate([self._ready, x], axis=1)

    def _emit(self, count: int) -> Array:
        """The next so many samples, in the shape of a push."""
        y, self._ready = self._ready[:, :count].copy(), self._ready[:, count:]
        self._given_out += count
        if self._first is not None:
            y[self._constant] = self._first[self._constant]
        return y[0] if self._channels is None else y
