"""Denoising a real-time stream with a constant latency.

Samples pass through one `_Analysis` for each level, the coefficients are shrunk, and one `_Synthesis` for each level
returns samples again. Both keep the samples or coefficients that later ones need, a number that depends on the filters,
and are bit-identical to PyWavelets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pywt
from numpy.typing import ArrayLike, DTypeLike

from wavefilt.arrays import Array, Counts, Floats, as_array, refuse_kinds
from wavefilt.options import NoiseForm, Options, check_whole
from wavefilt.statistics.reference import ReferenceStatistics, quantile
from wavefilt.thresholding import rules
from wavefilt.thresholding.local import NEXT, OWN, REACH, Grid
from wavefilt.thresholding.shrinkage import apply
from wavefilt.vocabulary import MODES, Mode, Shrink, is_number
from wavefilt.vocabulary import Rule as RuleName
from wavefilt.wavelets import boundary
from wavefilt.wavelets.filters import WaveletLike, gain

UPDATES = 16
"""Number of updates of the thresholds per window; there are more until the first window is full."""


class OnlineDenoiser:
    """Denoise a real-time stream: `push` accepts samples and returns denoised ones with a delay of `latency` samples.

    Parameters
    ----------
    wavelet, level, rule, shrink, mode
        As in `wavefilt.denoise`; the level is a number. Rules are the causal ones, "universal", "minimax", "bayes" and
        "js", and numeric thresholds. Rule "js" uses the causal half of its neighbourhood: each coefficient, the four
        before it, and the latest ones of the adjacent levels that are not after it. It shrinks the approximation
        coefficients towards their median in the window, as the mean of a stream is not known. All modes of PyWavelets
        are possible except "periodic" and "periodization", which join both ends.
    noise : "running", float, or one float per level
        Standard deviation of the noise: "running" estimates it from the median absolute detail coefficient of the last
        ``window`` samples, per level and channel; numbers are in the units of the samples, coarsest level first. Not
        used with numeric thresholds.
    window : int, optional
        Length in samples of the sliding window for the noise, for the power in "bayes" and for the median of the
        approximation coefficients in "js", and n in "universal" and "minimax". At level j it contains window / 2^j
        coefficients, at least 1.
    channels : int, optional
        If given, blocks have shape (channels, samples), otherwise (samples,).
    dtype : "float32" or "float64"
        Dtype of the computation and of the output.

    Notes
    -----
    With numeric thresholds, or numeric noise and "universal" or "minimax", the output is bit-identical to
    ``wavefilt.denoise(everything, backend="pywavelets")`` with the same thresholds, including both ends, except in
    channels with runs of equal samples, which are gaps for `denoise`. A stream shorter than (taps - 1) 2^level, for
    which `denoise` raises an error, is still decomposed to that level; a stream shorter than the filter or 2^level is
    returned unchanged. With a sliding window, equal samples at the start of a channel are returned bit for bit, until
    `latency` samples before the first one that differs. The output never depends on the lengths of the blocks.

    Raises
    ------
    ValueError
        As `wavefilt.denoise`, for a rule or mode that needs the whole trace, and for a missing window.
    """

    _pending: Array
    """Accepted samples that are not transformed yet."""
    _ready: Array
    """Denoised samples that are not returned yet."""
    _first: Array
    """The first sample of each channel (channels, 1)."""
    _equal: Counts
    """Number of samples at the start of each channel that equal the first one; -1 if they are denoised as well."""
    _accepted: int
    _returned: int

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
        # rule js has another λ for noise that is known
        sigma: NoiseForm = "level" if isinstance(noise, str) else 0.0
        options = Options(wavelet, level=level, mode=mode, rule=rule, shrink=shrink, sigma=sigma)
        if not options.rule.causal:
            causal = ", ".join(name for name, rule in rules.RULES.items() if rule.causal)
            raise ValueError(f"`rule={rule!r}` needs the whole trace; streams can have {causal} and numbers")
        possible = [name for name in MODES if name not in boundary.ROUND]
        if mode not in possible:
            why = "joins the ends of a trace" if mode in boundary.ROUND else "is a registered mode"
            raise ValueError(f"`mode={mode!r}` {why}, which streams cannot have; use {', '.join(possible)}")
        self._dtype = np.dtype(dtype)
        if self._dtype not in (np.float32, np.float64):
            raise ValueError(f"`dtype={dtype!r}` is neither float32 nor float64")
        if channels is not None:
            check_whole("channels", channels, 1)
        if len(options.rule.values) not in (0, 1, level):
            raise ValueError(f"`rule` has {len(options.rule.values)} thresholds for {level} levels")
        if window is not None:
            check_whole("window", window, 2)
        elif not options.rule.values:
            raise ValueError(f"`rule={options.rule.option!r}` needs `window`, in samples")
        self._options, self._level, self._window = options, int(level), None if window is None else int(window)
        self._channels = None if channels is None else int(channels)
        self._sigma = _noise_of_levels(noise, self._level)
        self._largest = float(np.finfo(self._dtype).max) / gain(options.filters) ** (level + 1)
        self._restart()

    def __repr__(self) -> str:
        channels = "one channel" if self._channels is None else f"{self._channels} channels"
        window = "" if self._window is None else f", window {self._window}"
        noise = "running" if self._sigma is None else ", ".join(f"{sigma:g}" for sigma in dict.fromkeys(self._sigma))
        options = f"{self._options.summary(self._level)}, noise {noise}{window}, latency {self.latency}"
        return f"<OnlineDenoiser {channels} of {self._dtype}, {options}, {self._accepted} accepted>"

    @property
    def latency(self) -> int:
        """Delay of the output in samples, (taps - 1)(2^level - 1): the smallest for which results are exact."""
        return int(self._options.filters.dec_len - 1) * ((1 << self._level) - 1)

    def push(self, samples: ArrayLike) -> Array:
        """Accept any number of samples, and return the denoised ones: all except the last `latency` accepted so far.

        Raises ValueError, without accepting any sample, if one is NaN, masked, infinite or too large for the transform.
        At a gap, call `flush`, then push the samples after it.
        """
        new = self._checked(samples)
        if not self._accepted:
            self._first = new[:, :1].copy()
        if (same := self._equal == self._accepted).any():
            self._equal[same] += np.logical_and.accumulate(new[same] == self._first[same], axis=1).sum(axis=1)
        self._accepted += new.shape[1]
        self._pending = np.concatenate([self._pending, new], axis=1)
        step = 1 << self._level  # samples between two coefficients of the last level
        if self._accepted >= self._shortest:
            complete = self._pending.shape[1] // step * step
            if complete:
                self._transform(self._pending[:, :complete], last=False)
                self._pending = self._pending[:, complete:]
        return self._output(max(self._accepted - self.latency, 0) - self._returned)

    def flush(self) -> Array:
        """Return the remaining samples at the end of the stream. The next `push` starts a new stream."""
        if self._accepted < self._shortest:
            self._ready = self._pending
        else:
            self._transform(self._pending, last=True)
        rest = self._output(self._accepted - self._returned)
        self._restart()
        return rest

    def _restart(self) -> None:
        """Forget all samples."""
        options, level = self._options, self._level
        empty = np.empty((self._channels or 1, 0), self._dtype)
        self._pending = self._ready = empty
        self._accepted = self._returned = 0
        self._shortest: int = max(options.filters.dec_len, 1 << level)
        self._analyses = [_Analysis(options.filters, options.mode, empty) for _ in range(level)]
        self._syntheses = [_Synthesis(options.filters, options.mode, empty) for _ in range(level)]
        sigmas = [None] * level if self._sigma is None else self._sigma[::-1]
        self._thresholds = [_Thresholds(options, j, sigma, self._window, empty) for j, sigma in enumerate(sigmas, 1)]
        self._neighbourhood: _Neighbourhood | None = None
        if options.rule.local:
            grids = options.transform.grids(options.analysis(level), (self._shortest,))
            approximation = _Thresholds(options, level, sigmas[-1], self._window, empty, centred=True)
            self._neighbourhood = _Neighbourhood(grids, [*self._thresholds, approximation], empty)
        fixed = [own.fixed for own in self._thresholds]
        # with fixed thresholds the result is that of `denoise`, which knows whether later samples differ
        self._equal, self._first = np.full(len(empty), 0 if None in fixed else -1), empty
        self._unchanged = None not in fixed and not any(fixed)

    def _checked(self, samples: ArrayLike) -> Array:
        """Return samples as an array (channels, samples) of the dtype. Raises ValueError for a bad shape or sample."""
        refuse_kinds(samples)
        x = as_array(samples)
        if x.ndim != 1 + (self._channels is not None) or (x.ndim == 2 and len(x) != self._channels):
            expected = "(samples,)" if self._channels is None else f"({self._channels}, samples)"
            raise ValueError(f"a push of shape {x.shape} should have shape {expected}")
        if x.dtype.kind not in "fiu":
            raise TypeError(f"samples of dtype {x.dtype} are not real numbers")
        x = np.ma.filled(np.atleast_2d(x).astype(self._dtype), np.nan)
        bad = np.argwhere(~(np.abs(x) <= self._largest))
        if bad.size:
            channel, sample = bad[0]
            raise ValueError(
                f"sample {sample} of this push is {x[channel, sample]} (channel {channel}): no sample was accepted; "
                "at a gap call flush(), then push the samples after it"
            )
        return x

    def _transform(self, x: Array, last: bool) -> None:
        """Decompose samples, shrink the coefficients and reconstruct; add the result to the samples that are ready."""
        if self._unchanged:  # like `denoise`, bit for bit
            self._ready = np.concatenate([self._ready, x], axis=1)
            return
        details = []
        for analysis in self._analyses:
            x, detail = analysis.push(x, last)
            details.append(detail)
        if self._neighbourhood is not None:
            *details, x = self._neighbourhood.shrink([*details, x], last)
        else:
            function, pairs = self._options.shrink_function, zip(details, self._thresholds, strict=True)
            assert isinstance(function, str) or callable(function)
            details = [apply(function, own, thresholds.of(own)[0]) if own.size else own for own, thresholds in pairs]
        for synthesis in reversed(self._syntheses):
            x = synthesis.push(x, details.pop())
        self._ready = np.concatenate([self._ready, x], axis=1)

    def _output(self, count: int) -> Array:
        """Return the next ``count`` denoised samples, in the shape of a push."""
        y, self._ready = self._ready[:, :count].copy(), self._ready[:, count:]
        if (self._equal >= self._returned).any():
            known = self._returned + self.latency + np.arange(count)  # the last sample that each waits for
            equal = self._equal[:, None]
            y = np.where((known < equal) | (equal == self._accepted), self._first, y)
        self._returned += count
        return y[0] if self._channels is None else y


class _Analysis:
    """One level of the transform of samples that arrive in blocks. Coefficient k depends on samples up to 2k + 1."""

    def __init__(self, filters: pywt.Wavelet, mode: str, empty: Array) -> None:
        self._filters, self._mode, self._taps = filters, mode, filters.dec_len
        self._samples = empty
        self._started = False

    def push(self, x: Array, last: bool) -> tuple[Array, Array]:
        """Return the approximations and details that ``x`` completes, all the rest if it is the ``last`` block."""
        x = np.concatenate([self._samples, x], axis=1)
        samples = x.shape[1]
        if samples < self._taps and not last:  # too few to extend the beginning by the boundary mode
            self._samples = x
            return x[:, :0], x[:, :0]
        begin = self._taps // 2 if self._started else 0  # earlier coefficients have been returned before
        end = None if last else samples // 2
        # one pair of samples more than the filters need, as two modes reflect the sample taps - 1 before the last
        self._samples, self._started = x[:, samples // 2 * 2 - self._taps :], True
        approximations, details = pywt.dwt(x, self._filters, self._mode)
        return approximations[:, begin:end], details[:, begin:end]


class _Synthesis:
    """One level of the inverse transform. Sample i depends on coefficients up to (i + taps - 2) // 2."""

    def __init__(self, filters: pywt.Wavelet, mode: str, empty: Array) -> None:
        self._filters, self._mode, self._taps = filters, mode, filters.dec_len
        self._approximations = self._details = empty

    def push(self, approximations: Array, details: Array) -> Array:
        """Return the samples that new coefficients complete; a coefficient without its partner is kept until later."""
        a = np.concatenate([self._approximations, approximations], axis=1)
        d = np.concatenate([self._details, details], axis=1)
        pairs, overlap = min(a.shape[1], d.shape[1]), self._taps // 2 - 1
        done = max(pairs - overlap, 0)
        self._approximations, self._details = a[:, done:], d[:, done:]
        if not done:
            return a[:, :0]
        return np.asarray(pywt.idwt(a[:, :pairs], d[:, :pairs], self._filters, self._mode))


def _noise_of_levels(noise: str | float | Sequence[float], level: int) -> list[float] | None:
    """Return the noise of each level, coarsest first; None if it is estimated in the sliding window."""
    if isinstance(noise, str):
        if noise != "running":
            raise ValueError(f"`noise={noise!r}` must be 'running', a number, or one number per level")
        return None
    values = list(np.atleast_1d(np.asarray(noise, object)))
    if len(values) not in (1, level) or not all(is_number(v) and 0 <= v < math.inf for v in values):
        allowed = f"one finite number of at least 0, or one for each of the {level} levels"
        raise ValueError(f"`noise={noise!r}` must be {allowed}")
    return [float(value) for value in values] * (level if len(values) == 1 else 1)


class _Thresholds:
    """Thresholds of a band: fixed, or for each channel from the coefficients in a sliding ``window`` of samples.

    ``sigma`` is the noise, or None to estimate it from these coefficients. The thresholds are updated at the first
    coefficient, and then whenever a sixteenth of the known coefficients are new, so that results do not depend on the
    lengths of pushes. If ``centred``, the median is subtracted from the coefficients.
    """

    def __init__(
        self, options: Options, level: int, sigma: float | None, window: int | None, empty: Array, centred: bool = False
    ) -> None:
        rule, self.fixed = options.rule, None
        self._rule = partial(rule.thresholds, samples=window or 0, options=options)
        self._size, self._sigma, self._centred = max((window or 0) >> level, 1), sigma, centred
        self._left, self._recent = 0, empty
        if rule.values:
            self.fixed = float(rule.values[-level] if len(rule.values) > 1 else rule.values[0])
        elif sigma is not None and not rule.needs and not rule.local:
            self.fixed = float(self._rule(None, np.array([[sigma]]))[0, 0])

    def of(self, new: Array) -> tuple[float | Floats, Array]:
        """Return the thresholds of new coefficients (channels, coefficients), and the medians to subtract from them.

        Both have the shape of the coefficients; a fixed threshold is a number.
        """
        centres, place = np.zeros_like(new), 0
        if self.fixed is not None:
            return self.fixed, centres
        known, thresholds = np.concatenate([self._recent, new], axis=1), np.empty(new.shape)
        while place < new.shape[1]:
            if self._left == 0:
                end = self._recent.shape[1] + place + 1
                self._update(known[:, max(end - self._size, 0) : end])
            run = slice(place, min(place + self._left, new.shape[1]))
            thresholds[:, run], centres[:, run] = self._threshold, self._centre
            self._left, place = self._left - (run.stop - place), run.stop
        self._recent = known[:, -self._size :]
        return thresholds, centres

    def _update(self, recent: Array) -> None:
        """Compute the threshold and the median of each channel from these coefficients."""
        self._centre = quantile(recent)[:, None].astype(recent.dtype) if self._centred else recent.dtype.type(0)
        statistics = ReferenceStatistics([recent - self._centre if self._centred else recent])
        sigma = rules.noise(statistics, "level" if self._sigma is None else self._sigma)
        self._threshold = self._rule(statistics, sigma)[0][:, None]
        self._left = max(recent.shape[1] // UPDATES, 1)


class _Band:
    """The coefficients of a band that are still needed, with their limits, centres and mean energies R: ``kept``.

    All four are arrays (channels, coefficients).

    Coefficients are numbered from the start of the stream: ``first`` is the number of the first one kept, ``shrunk``
    the number of the first one not shrunk yet, and ``arrived`` how many have arrived. ``recent`` is |W|²/limit² of the
    last `REACH` coefficients, NaN if they are missing or their limit is 0.
    """

    def __init__(self, thresholds: _Thresholds, empty: Array) -> None:
        self.thresholds, self.recent = thresholds, np.full((len(empty), REACH), np.nan)
        self.kept: Sequence[Array] = (empty, self.recent[:, :0], empty, self.recent[:, :0])
        self.first = self.shrunk = self.arrived = 0

    def add(self, new: Array) -> None:
        """Add new coefficients, with their limits, centres and mean energies."""
        thresholds, centres = self.thresholds.of(new)
        limits = np.broadcast_to(thresholds, new.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            powers = np.where(limits > 0, np.square((new - centres) / limits), np.nan)
        powers = np.concatenate([self.recent, powers], axis=1)
        total, weights = np.zeros((2, *new.shape))
        for q in range(REACH + 1):
            earlier, weight = powers[:, q : q + new.shape[1]], NEXT ** (REACH - q)
            total += weight * np.nan_to_num(earlier, posinf=np.finfo(np.float64).max / (4 * REACH))
            weights += weight * ~np.isnan(earlier)
        with np.errstate(invalid="ignore"):
            means = total / weights  # NaN without neighbours
        self.recent = powers[:, powers.shape[1] - REACH :]
        added = zip(self.kept, (new, limits, centres, means), strict=True)
        self.kept = [np.concatenate(both, axis=1) for both in added]
        self.arrived += new.shape[1]

    def energies_at(self, numbers: Counts) -> Floats:
        """Return R of the coefficients with these numbers; numbers out of range mean the first or the last one."""
        return self.kept[-1][:, np.clip(numbers, 0, self.arrived - 1) - self.first]


class _Neighbourhood:
    """Rule js on a stream: local James-Stein shrinkage by the neighbours that have arrived.

    This is the causal half of the neighbourhood in `wavefilt.thresholding.local`. R is the mean of |W|²/limit² over a
    coefficient and the `REACH` before it, with the same weights. A is the mean of R at the coefficient and at the last
    coefficients of the adjacent bands that are not after it; between the approximation and the coarsest details,
    neither may have a larger number than the other. Finer levels wait for coarser ones, as the synthesis does anyway,
    so the latency is that of other rules.

    A coefficient keeps the limit that applied when it arrived. Coefficients with limit 0 are unchanged and are no
    neighbours. Bands lie on ``grids``, finest first and the approximation last.
    """

    def __init__(self, grids: Sequence[Grid], thresholds: Sequence[_Thresholds], empty: Array) -> None:
        self._grids, self._bands = grids, [_Band(band, empty) for band in thresholds]

    def shrink(self, new: Sequence[Array], last: bool) -> list[Array]:
        """Add new coefficients (channels, coefficients) of each band, and return the shrunk ones that are complete.

        All are complete after the ``last`` coefficients.
        """
        for band, coefficients in zip(self._bands, new, strict=True):
            band.add(coefficients)
        done = [self._shrunk(i, self._complete(i, last)) for i in range(len(self._bands))]
        for i, band in enumerate(self._bands):
            needed = [band.shrunk, *(int(self._numbers(j, i, 1)[0]) for j in self._adjacent(i))]
            first = max(min(*needed, band.arrived - 1), band.first)
            band.kept, band.first = [own[:, first - band.first :] for own in band.kept], first
        return done

    def _adjacent(self, band: int) -> list[int]:
        return [j for j in (band - 1, band + 1) if 0 <= j < len(self._bands)]

    def _numbers(self, band: int, other: int, count: int) -> Counts:
        """Return the numbers of the neighbours in another band, for the next coefficients of a band."""
        grid, other_grid = self._grids[band], self._grids[other]
        own = self._bands[band].shrunk + np.arange(count)
        numbers = np.floor((grid.first + grid.step * own - other_grid.first) / other_grid.step).astype(np.int64)
        return np.minimum(numbers, own) if grid.step == other_grid.step else numbers

    def _complete(self, band: int, last: bool) -> int:
        """Return how many of the coefficients that are not shrunk yet have all their neighbours."""
        count = self._bands[band].arrived - self._bands[band].shrunk
        if last:
            return count
        for j in self._adjacent(band):
            count = int(np.count_nonzero(np.maximum(self._numbers(band, j, count), 0) < self._bands[j].arrived))
        return count

    def _shrunk(self, index: int, count: int) -> Array:
        """Return the next ``count`` coefficients of a band shrunk."""
        band = self._bands[index]
        start = band.shrunk - band.first
        values, limits, centres, energies = (own[:, start : start + count] for own in band.kept)
        around = [energies] * OWN
        around += [self._bands[j].energies_at(self._numbers(index, j, count)) for j in self._adjacent(index)]
        number = np.sum([~np.isnan(energies) for energies in around], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.maximum(1 - number / np.sum(np.nan_to_num(around), axis=0), 0)
        band.shrunk += count
        return np.where(limits > 0, centres + (values - centres) * gain.astype(values.dtype), values)
