"""The options of denoising: `Options`, checked once, and `Noise`, every form of the option ``sigma``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from wavefilt import transforms
from wavefilt._version import __version__
from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError
from wavefilt.statistics.reference import Statistics
from wavefilt.thresholding import rules, shrinkage
from wavefilt.thresholding.local import REACH, Blocks
from wavefilt.transforms import Analysis, Band, Pyramid, Transform
from wavefilt.transforms.base import noise_gains
from wavefilt.vocabulary import (
    DETRENDS,
    ESTIMATORS,
    SCOPES,
    SIGMAS,
    Basis,
    Detrend,
    Estimator,
    Mode,
    Moment,
    Scope,
    Shrink,
    Sigma,
    Window,
    check,
    is_number,
    nearest,
)
from wavefilt.vocabulary import Rule as RuleName
from wavefilt.vocabulary import Transform as TransformName
from wavefilt.wavelets import boundary
from wavefilt.wavelets.filters import WaveletLike, as_wavelet, max_level, shorter

GOLDEN = (3 - math.sqrt(5)) / 2
"""The fractional parts of its multiples are spread evenly from 0 to 1, for any number of multiples."""
FEWEST = 4
"""Smallest number of samples in a noise window."""
FAR = 1 << 53
"""Longer windows and later times are limited to this number of samples; no trace is as long."""
SECOND = np.timedelta64(10**9, "ns")
FORMS = {
    "window": '("window", start, stop)',
    "seconds": '("seconds", start, stop)',
    "before": '("before", pick, length)',
    "running": '("running", length)',
    "intervals": '("intervals", change points)',
}
"""The tuples that the option ``sigma`` accepts; "seconds" only where the sampling interval is known."""

NoiseForm = Sigma | float | tuple[str, Moment] | tuple[str, Moment, Moment]
"""The forms of the option ``sigma``: samples or, where the sampling interval is known, seconds, times and picks."""


@dataclass(frozen=True)
class Noise:
    """The option ``sigma``, checked: how the standard deviation of the noise is found.

    Attributes
    ----------
    sigma : {"level", "global"}, float or tuple
        The option in samples.
    window : tuple of int, optional
        First sample and end of the noise window.
    running : int, optional
        Length in samples of the moving window for noise that changes along a trace.
    intervals : tuple of int, optional
        Samples at which the noise changes.
    """

    sigma: NoiseForm = "level"
    window: tuple[int, int] | None = None
    running: int | None = None
    intervals: tuple[int, ...] | None = None

    @classmethod
    def of(cls, sigma: object) -> Noise:
        """Check the option ``sigma``, in samples; None is "level".

        Raises OptionError, with the accepted forms, for anything else.
        """
        if sigma is None:
            return cls()
        if isinstance(sigma, str):
            check("sigma", sigma, SIGMAS, "a number")
            return cls(sigma)  # type: ignore[arg-type]
        if not isinstance(sigma, tuple):
            if is_number(sigma) and 0 <= sigma < math.inf:
                return cls(sigma)
            named = ", ".join(form for name, form in FORMS.items() if name != "seconds")
            forms = "" if is_number(sigma) else f", nor, in samples, one of {named}"
            words = " nor ".join(SIGMAS)
            raise OptionError(f"`sigma={sigma!r}` is neither {words} nor a finite number of at least 0{forms}")
        form, values = _form(sigma)
        if form == "seconds":
            raise OptionError(
                '`sigma=("seconds", ...)` needs samples with a known interval; give ("window", start, stop)'
            )
        if form == "intervals":
            points = _change_points(values[0])
            return cls((form, points), intervals=points)
        if not all(is_number(value) and value % 1 == 0 for value in values):
            wanted = f"{FORMS[form]}, in samples"
            if form == "running":
                wanted = "a whole number of samples if the sampling interval is not known (`dt` for files)"
            raise OptionError(f"`sigma={sigma!r}` must be {wanted}")
        if form == "running":
            length = min(int(values[0]), FAR)
            if length < FEWEST:
                raise OptionError(f"`sigma={sigma!r}`: the window of running noise must have {FEWEST} samples or more")
            return cls((form, length), running=length)
        first, last = map(int, values)
        start, stop = (first, last) if form == "window" else (first - last, first)
        if start < 0:
            raise OptionError(f"the noise window from sample {start} to {stop} begins before the first sample")
        if start > stop - FEWEST:
            raise OptionError(f"the noise window from sample {start} to {stop} must have {FEWEST} samples or more")
        return cls(("window", start, stop), window=(start, stop))

    @property
    def changing(self) -> bool:
        """Whether the noise changes along a trace: see `wavefilt.noise_curves`."""
        return self.running is not None or self.intervals is not None

    def window_in(self, samples: int) -> slice:
        """Return the noise window. Raises ValueError if it does not lie in a trace of this many samples."""
        assert self.window is not None
        start, stop = self.window
        if stop > samples:
            raise ValueError(f"the noise window from sample {start} to {stop} does not lie in {samples} samples")
        return slice(start, stop)


LEAST_DECLARED = 32
"""Fewest samples of a noise window that counts as declared noise."""


def common_noise(sigmas: Sequence[NoiseForm]) -> NoiseForm:
    """Return the noise common to all traces: for different noise windows, the samples that all contain, or "level"."""
    if len(set(sigmas)) == 1:
        return sigmas[0]
    windows = [Noise.of(sigma).window or (0, 0) for sigma in sigmas]
    start, stop = max((start for start, _ in windows), default=0), min((stop for _, stop in windows), default=0)
    return ("window", start, stop) if stop - start >= LEAST_DECLARED else "level"


def _form(sigma: tuple[Any, ...]) -> tuple[str, list[Moment]]:
    """Return the name of a form and its values. Raises OptionError for an unknown form, or a wrong number of values."""
    form, *values = sigma or ("",)
    if form not in FORMS or len(values) != FORMS[form].count(","):
        raise OptionError(f"`sigma={sigma!r}` must be {FORMS.get(str(form)) or ' or '.join(FORMS.values())}")
    return form, values


def _change_points(points: Moment) -> tuple[int, ...]:
    """Return change points in samples. Raises OptionError for anything else."""
    if np.ndim(points) == 1 and all(is_number(p) and p % 1 == 0 and p > 0 for p in points):
        found = tuple(int(p) for p in points)
        if found and all(a < b for a, b in pairwise(found)):
            return found
    raise OptionError(f"change points {points!r} must be samples above 0 in order, one or more")


@dataclass(frozen=True)
class Clock:
    """The sampling times of a trace, to convert seconds, times and picks into samples.

    Attributes
    ----------
    interval : float or None
        Sampling interval in seconds.
    start : numpy.datetime64 or None
        UTC of the first sample.
    samples : int
        Length of the trace.
    name : str
        Name of the trace or file, for errors.
    delay : float
        Time of the first sample: in seconds after the trigger, or a value of the coordinate.
    """

    interval: float | None
    start: np.datetime64 | None
    samples: int
    name: str
    delay: float = 0.0

    @classmethod
    def of_coordinate(cls, coordinate: Array, name: str) -> Clock:
        """Return the clock of evenly spaced samples with a coordinate of times or numbers (seconds).

        The interval is unknown if the coordinate runs backwards, is of another kind, or has fewer than two samples.
        """
        count, start, delay, interval = len(coordinate), None, 0.0, None
        if count > 1 and coordinate.dtype.kind in "iufmM":
            times = coordinate.astype(f"{coordinate.dtype.kind}8[ns]") if coordinate.dtype.kind in "mM" else coordinate
            span = times[-1] - times[0]
            seconds = float(span / SECOND if times.dtype.kind in "mM" else span)
            interval, name = (seconds / (count - 1), name) if seconds > 0 else (None, f"{name} does not increase")
            if times.dtype.kind == "M":
                start = times[0]
            else:
                delay = float(times[0] / SECOND if times.dtype.kind == "m" else times[0])
        return cls(interval, start, count, name, delay)

    def time(self, sample: int) -> float:
        """Return the time of a sample in seconds, in few digits that still round to this sample."""
        assert self.interval
        return float(f"{self.delay + sample * self.interval:.9g}")

    def seconds(self, moment: Moment) -> float:
        """Return a moment on the time axis. Raises ValueError for a date if the date of the samples is unknown."""
        if is_number(moment):
            if not math.isfinite(moment):
                raise OptionError(f"a time must be a finite number of seconds, not {moment}")
            return float(moment)
        date = _utc(moment)
        if self.start is None:
            raise ValueError(f"{self.name}: the time of its first sample is not known; give seconds from there")
        return float((date - self.start.astype("datetime64[ns]")) / SECOND) + self.delay

    def sample(self, seconds: float) -> int:
        """Return the sample at a time in seconds. Raises ValueError if the interval is unknown."""
        return self.samples_in(seconds - self.delay)

    def samples_in(self, seconds: float) -> int:
        """Return the number of sampling intervals in some seconds. Raises ValueError if the interval is unknown."""
        if not self.interval:
            raise ValueError(
                f"{self.name}: its sampling interval is not known; give it (`dt` for files), or the noise as a number"
            )
        return round(max(-FAR, min(seconds / self.interval, FAR)))

    def window(self, start: float, stop: float) -> Window:
        """Return the noise window in samples between two times in seconds.

        Raises ValueError if the interval is unknown, or the seconds are out of order, fewer than 4 samples apart, or
        outside the trace.
        """
        first, last = self.sample(start), self.sample(stop)
        assert self.interval
        window = f"the noise window from {start:g} s to {stop:g} s"
        if not start < stop:
            raise ValueError(f"{window} is out of order")
        if first < 0:
            raise ValueError(f"{window} begins before the first sample, which is at {self.time(0):g} s")
        if last > self.samples:
            raise ValueError(f"{window} does not lie in the traces, which end at {self.time(self.samples):g} s")
        if last - first < FEWEST:
            raise ValueError(f"{window} is shorter than {FEWEST} samples, {FEWEST * self.interval:g} s")
        return ("window", first, last)

    def in_samples(self, sigma: NoiseForm | None) -> NoiseForm:
        """Return the option ``sigma`` with samples in place of seconds, times and picks; None is "level".

        Words, numbers, and a window between whole numbers, which are samples, are returned unchanged. Raises ValueError
        for an unknown form, and for values that the clock cannot convert.
        """
        if not isinstance(sigma, tuple) or not sigma:
            return "level" if sigma is None else sigma
        form, values = _form(sigma)
        if form == "window":
            return sigma if all(map(is_number, values)) else self.window(*map(self.seconds, values))
        if form == "intervals":
            return form, self._points(values[0])
        lengths = values if form == "seconds" else values[-1:]
        if not all(is_number(length) and math.isfinite(length) for length in lengths):
            what = "its times must be finite numbers" if form == "seconds" else "its length must be a finite number"
            raise OptionError(f"`sigma={sigma!r}`: {what} of seconds")
        if form == "seconds":
            return self.window(*map(float, values))
        if form == "running":
            length = self.samples_in(values[0])
            if length < FEWEST and self.interval:
                least = f"{FEWEST} samples, {FEWEST * self.interval:g} s"
                raise OptionError(f"the window of running noise, {values[0]:g} s, is shorter than {least}")
            return form, length
        pick = self.seconds(values[0])
        return self.window(pick - values[1], pick)

    def _points(self, points: Moment) -> tuple[int, ...]:
        """Return the change points inside the trace, in samples; if there are none, its end (a single interval)."""
        if isinstance(points, str) or not isinstance(points, Sequence | np.ndarray):
            raise OptionError(f"change points {points!r} must be a list of seconds or times")
        found = [self.sample(self.seconds(point)) for point in points]
        if any(a >= b for a, b in pairwise(found)):
            raise OptionError(f"change points {points!r} must increase by at least one sample")
        return tuple(point for point in found if 0 < point < self.samples) or ((self.samples,) if found else ())


def _utc(moment: Moment) -> np.datetime64:
    """Return a time in UTC. Raises ValueError for a value that is not a time."""
    if isinstance(moment, str):
        try:
            moment = np.datetime64(moment.removesuffix("Z"), "ns")
        except ValueError:
            raise ValueError(f"{moment!r} is not a time such as 2020-01-31T12:30:00.5") from None
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    time = np.array([moment], "M8[ns]") if isinstance(moment, datetime | np.datetime64) else np.array(["NaT"], "M8[ns]")
    if np.isnat(time[0]):
        raise ValueError(f"{moment!r} is neither a number of seconds nor a time")
    return time[0]  # type: ignore[no-any-return]


def check_whole(name: str, value: object, least: int) -> None:
    """Raise OptionError unless the value of an option is a whole number of at least ``least``."""
    if not is_number(value) or value % 1 != 0 or value < least:
        raise OptionError(f"`{name}={value!r}` must be a whole number of at least {least}")


class Common(TypedDict, total=False):
    """Keyword arguments of `wavefilt.denoise` except the wavelet, the rule and the transform."""

    level: int | None
    mode: Mode
    shrink: Shrink | Estimator | Callable[[Array, Array], Array] | None
    sigma: NoiseForm | None
    scope: Scope
    keep: int
    spins: int
    detrend: Detrend | None
    blend: float
    statics: bool


class Keywords(Common, total=False):
    """Keyword arguments that every entry point shares with `wavefilt.denoise`."""

    rule: rules.Rule | RuleName | Callable[..., Floats] | float | Sequence[float] | None
    transform: Transform | TransformName
    basis: Basis | None


def along(axes: Sequence[int]) -> dict[str, Any]:
    """Return the keyword argument of `wavefilt.denoise` for one axis, or for the two axes of a section."""
    return {"axis": axes[0]} if len(axes) == 1 else {"axes": (axes[0], axes[1])}


@dataclass(frozen=True)
class Options:
    """The options of `denoise`, except the axis and the backend, checked once.

    Names are resolved: ``rule`` is a `Rule`, ``transform`` a `Transform`, and a ``wavelet`` or ``rule`` that is not
    given is the default of the transform. Errors name the option as in `denoise`.
    """

    wavelet: WaveletLike | None = None
    level: int | None = None
    mode: Mode = "symmetric"
    rule: rules.Rule = None  # type: ignore[assignment]  # resolved in __post_init__
    shrink: Shrink | Estimator | Callable[[Array, Array], Array] | None = None
    sigma: NoiseForm = "level"
    scope: Scope = "trace"
    keep: int = 0
    transform: Transform = "dwt"  # type: ignore[assignment]
    spins: int = 1
    ndim: Literal[1, 2] = 1
    detrend: Detrend | None = None
    blend: float = 0.0
    basis: Basis | None = None
    statics: bool = False
    filters: Any = field(init=False, repr=False, compare=False)
    """The filters of ``wavelet``, as `Transform.filters` returns them."""
    noise: Noise = field(init=False, repr=False, compare=False)
    """The option ``sigma``."""

    if TYPE_CHECKING:  # the values above are resolved from others, which are checked when they are given

        def __init__(
            self, wavelet: WaveletLike | None = None, *more: Any, ndim: Literal[1, 2] = 1, **options: Unpack[Keywords]
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", transforms.find(self.transform, self.ndim, self.basis))
        rule = self.transform.default_rule if self.rule is None else self.rule
        object.__setattr__(self, "rule", rules.find(rule))
        if self.wavelet is None:
            object.__setattr__(self, "wavelet", self.transform.usual_wavelet(self.rule))
        assert self.wavelet is not None
        object.__setattr__(self, "filters", self.transform.filters(self.wavelet))
        check("mode", self.mode, boundary.EXTENSIONS)
        check("scope", self.scope, SCOPES)
        if self.transform.parts == 2 and not self.rule.complex:
            others = ", ".join(name for name, rule in rules.RULES.items() if rule.complex)
            raise OptionError(
                f"`rule={self.rule.option!r}` is for real coefficients, and `transform={self.transform.word!r}` has "
                f"complex ones: use {others}"
            )
        self._check_shrink()
        object.__setattr__(self, "noise", Noise.of(self.sigma))
        object.__setattr__(self, "sigma", self.noise.sigma)
        if self.noise.changing and self.rule.values:
            named = ", ".join(rules.RULES)
            raise OptionError(
                f"`rule={self.rule.option!r}` is a threshold in the units of the samples, to which noise that changes "
                f"does not apply: use one of the rules {named}, or leave `sigma` out"
            )
        if self.level is not None:
            check_whole("level", self.level, 0)
        check_whole("spins", self.spins, 1)
        self.transform.check(self)
        check_whole("keep", self.keep, 0)
        if self.detrend is not None:
            check("detrend", self.detrend, DETRENDS)
        if not is_number(self.blend) or not 0 <= self.blend < 1:
            raise OptionError(f"`blend={self.blend!r}` must be a number of at least 0, and less than 1")
        if not isinstance(self.statics, bool):
            raise OptionError(f"`statics={self.statics!r}` must be True or False")
        if self.statics and self.ndim == 1:
            raise OptionError("`statics=True` is for sections: use `two_dimensional=True`, or two axes")

    def _check_shrink(self) -> None:
        if self.shrink is None:
            return
        if not callable(self.shrink):
            check("shrink", self.shrink, (*shrinkage.FUNCTIONS, *ESTIMATORS), "a function")
        if self.rule.own_function:
            raise OptionError(f"`rule={self.rule.option!r}` has its own threshold function: leave `shrink` out")
        if self.shrink in ESTIMATORS and not isinstance(self.rule.shrink, shrinkage.Posterior):
            raise OptionError(f"`shrink={self.shrink!r}` is for the empirical Bayes rules, not {self.rule.option!r}")

    @cached_property
    def on_host(self) -> bool:
        """Whether only backends in host memory can process chunks; others support rule "js" for whole arrays."""
        return self.rule.together is not None or self.noise.changing

    @cached_property
    def host_only(self) -> bool:
        """Whether only backends in host memory support these options."""
        name, rule = self.transform.name, self.rule
        on_device = name not in ("modwt2", "wp") and (rule.together is None or (rule.local and name != "dwt2"))
        return self.noise.changing or self.statics or not on_device or (self.ndim == 2 and self.spins > 1)

    @cached_property
    def shrinks_approximation(self) -> bool:
        """Whether the approximation is shrunk too: it is the last band."""
        return self.rule.local and self.ndim == 1

    @cached_property
    def known(self) -> bool:
        """Whether results may be cached by these options; a caller's object may have no hash, or change."""
        return isinstance(self.wavelet, str) and not isinstance(self.sigma, tuple)

    @cached_property
    def plain(self) -> bool:
        """Whether a single transform suffices, also for the noise, so that a backend may do all steps at once."""
        return self.spins == 1 and not isinstance(self.sigma, tuple)

    @cached_property
    def unblended(self) -> Options:
        """These options without `blend`: the same object at every call, which backends use as a cache key."""
        return replace(self, blend=0.0) if self.blend else self

    @cached_property
    def trend(self) -> Detrend | None:
        """The trend that is removed before the transform and added again after it, given or needed by the rule."""
        return self.detrend or ("mean" if self.shrinks_approximation else None)

    def shifts(self, level: int) -> list[tuple[int, ...]]:
        """Return the shifts of cycle spinning along every axis, in samples; there are at most 2^level, or 4^level.

        A transform with ``level`` levels repeats after 2^level. The step between shifts is odd, so that the first 2^j
        differ at level j, and about 0.38 of the period, so that any number of shifts is spread evenly at every level.

        Along the second axis of a section, the k-th shift is p_k steps, where bit i of p_k is the parity of the bits r
        of k for which the binomial coefficient C(r, i) is odd: the second dimension of Sobol's sequence (1967), read
        backwards. The first 2^(i+j) pairs then all differ in their phases at level i of one axis and level j of the
        other.
        """
        period = 1 << level
        step = int(GOLDEN * period) | 1
        places = [(k, _sobol(k))[: self.ndim] for k in range(min(self.spins, period**self.ndim))]
        return [tuple(place * step % period for place in both) for both in places]

    @cached_property
    def shrink_function(self) -> shrinkage.Function:
        """The threshold function: ``shrink``, or that of the rule."""
        if self.shrink in ESTIMATORS:
            return replace(self.rule.shrink, estimator=self.shrink)  # type: ignore[type-var]
        return self.shrink or self.rule.shrink

    @cached_property
    def shrink_word(self) -> str:
        """The name of the threshold function."""
        function = self.shrink_function
        return function if isinstance(function, str) else getattr(function, "word", rules.name_of(function))

    def summary(self, level: int) -> str:
        """Return transform, wavelet, level, rule and threshold function in a few words."""
        numbers = [f"{threshold:g}" for threshold in self.rule.values]
        rule = f"threshold {', '.join(numbers)}" if numbers else self.rule.name
        deep = f" level {level}" if self.transform.has_levels else ""
        return f"{self.transform.word} {self.filters.name}{deep}, {rule} {self.shrink_word}"

    def function(self, samples: int) -> shrinkage.Function:
        """Return the threshold function for a trace with this number of samples."""
        function = self.shrink_function
        return replace(function, samples=samples) if isinstance(function, Blocks) else function

    def analysis(self, level: int) -> Analysis:
        """Return the transform with this number of levels, with the same filters and mode along every axis."""
        return self.transform.analysis(self.filters, self.mode, level)

    def deepest(self, *shape: int) -> int:
        """Return the maximum number of levels for a trace of this length, or a section of this shape."""
        return self.transform.deepest(shape, self.filters)

    def fitting(self, *shape: int) -> Options:
        """Return these options with a shorter wavelet of the family for a section too small for one level."""
        if self.ndim == 1 or self.level is not None or self.transform.usual_level(shape, self.filters):
            return self
        wavelet = shorter(min(shape), self.filters)
        return self if wavelet is None else replace(self, wavelet=wavelet)

    def halo(self, level: int) -> int | None:
        """Return the number of samples on each side of a chunk that its result depends on, as `Transform.halo`."""
        return self.transform.halo(self.filters, level, 0 if self.rule.together is None else REACH)

    def blended(self, x: Array, y: Array) -> Array:
        """Return the denoised samples ``y`` with the share ``blend`` of the residual ``x`` - ``y`` added."""
        return y + x.real.dtype.type(self.blend) * (x - y) if self.blend else y

    def level_for(self, *shape: int) -> int:
        """Return the number of levels for a trace of this length, or a section of this shape.

        Raises ValueError if the requested level is above the maximum for this length and filter, or if thresholds are
        given for another number of levels.
        """
        if shape not in self._levels:
            self._levels[shape] = self._level_for(shape)
        return self._levels[shape]

    @cached_property
    def _levels(self) -> dict[tuple[int, ...], int]:
        """Cache of the levels by shape: checking one takes as long as all other steps before the backend."""
        return {}

    def _level_for(self, shape: tuple[int, ...]) -> int:
        deepest, samples = self.deepest(*shape), min(shape)
        level = self.transform.usual_level(shape, self.filters) if self.level is None else int(self.level)
        if self.level is None and self.transform.has_levels:
            level = min(level, self.rule.auto_level)
        if level > deepest:
            size = "samples" if self.ndim == 1 else "traces or samples"
            filters = f"{self.filters.name} ({self.filters.dec_len} taps)"
            limit = f"is above the maximum of {deepest} for {samples} {size} and {filters}"
            most = max(max_level(samples, as_wavelet("haar")), 1)
            other = shorter(samples, self.filters, min(level, most))
            hint = f", such as {other}" if other not in (None, self.filters.name) else ""
            raise OptionError(f"`level={level}` {limit}; use a lower level or a shorter filter{hint}")
        if self.keep > level > 0:
            raise OptionError(f"`keep={self.keep}` is above the number of levels, {level}")
        if len(self.rule.values) not in (0, 1, level):
            raise OptionError(f"`rule` gives {len(self.rule.values)} thresholds for {level} levels")
        return level

    def thresholds(
        self, statistics: Statistics | None, samples: int, sigma: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return noise and thresholds (bands, groups), finest band first, of groups with ``samples`` samples each.

        ``sigma`` is the noise if it is known; ``statistics`` may then be None for rules that need nothing else. The
        coarsest levels that are kept have threshold 0. Results are not finite if samples are not, or if the squares of
        coefficients overflow float64. The bands are `bands`.
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
            if given := self.rule.values:  # coarsest level first; a segment with fewer levels has the finest ones
                values = np.array([[given[-band.level] if len(given) > 1 else given[0]] for band in bands])
                found = values * noise_gains(bands, False) * np.ones_like(sigma)
            else:
                found = np.array(self.rule.thresholds(statistics, sigma, samples, self))
        if self.keep:
            found[[band.level > level - self.keep for band in bands]] = 0
        return sigma, found

    def with_noise(self, sigma: NoiseForm) -> Options:
        """Return the options with this noise: always the same object, which backends use as a cache key."""
        if sigma == self.sigma:
            return self
        if sigma not in self._others:
            self._others[sigma] = replace(self, sigma=sigma)
        return self._others[sigma]

    @cached_property
    def _others(self) -> dict[NoiseForm, Options]:
        return {}

    @cached_property
    def known_rule(self) -> Literal["linear", "bayes", "fixed", None]:
        """The formula of the thresholds, for backends that compute them: given, a multiple of the noise, or bayes."""
        if self.rule.values:
            return "fixed"
        if self.rule.factor is not None:
            return "linear"
        return "bayes" if self.rule.function is rules.bayes and not self.keep else None

    def factors(self, bands: int, samples: int) -> tuple[Floats, Floats]:
        """Return, for each band, the threshold or its ratio to the noise, and the gain that noise is multiplied by.

        The first is 0 unless `known_rule` is "linear" (ratio) or "fixed" (threshold).
        """
        found, gains = np.zeros(bands), self.noise_gains(bands, self.sigma)[:, 0]
        if self.known_rule in ("linear", "fixed"):
            found = self.thresholds(None, samples, np.ones((bands, 1)))[1][:, 0]
        return found, gains

    def noise_gains(self, bands: int, sigma: object = None) -> Floats:
        """Return the gain of white noise, or of a threshold for it, in each band, shape (bands, 1).

        For ``sigma="global"`` the gains are relative to the finest band, for ``"level"`` they are 1.
        """
        if sigma == "level":
            return np.ones((bands, 1))
        return noise_gains(self.bands_of(bands), relative=sigma == "global")

    def bands(self, level: int) -> tuple[Band, ...]:
        """Return the bands with a threshold: details, finest first, and with some rules the approximation."""
        return self.transform.bands(level, self.filters, self.shrinks_approximation)

    def bands_of(self, count: int) -> tuple[Band, ...]:
        """Return `bands` for this number of bands."""
        return self.bands(self.transform.levels(count - self.shrinks_approximation))

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        """Return the number of coefficients of each of `bands` that rules count."""
        details = self.transform.sizes(analysis, shape)
        return [*details, *details[-1:]] if self.shrinks_approximation else details

    def counted(self, pyramid: Pyramid) -> Pyramid:
        """Return a pyramid whose `Pyramid.details` are the coefficients of all `bands`."""
        return pyramid.with_approximation if self.shrinks_approximation else pyramid

    def cut(self, numbers: Floats, level: int) -> Floats:
        """Return noise or thresholds (bands, groups) for fewer levels.

        The variance of the approximation is the mean of the variances of its bands, weighted by their share of white
        noise.
        """
        bands, deeper = self.bands(level), self.bands_of(len(numbers))
        if not self.shrinks_approximation or len(deeper) == len(bands):
            return numbers[: len(bands)]
        parts = zip(deeper[level:], numbers[level:], strict=True)
        variance = sum(row**2 * 2.0 ** (level - band.level - 2 * band.noise_exponent) for band, row in parts)
        approximation = np.sqrt(variance) * 2.0 ** bands[-1].noise_exponent
        return np.concatenate([numbers[:level], np.where(numbers[-1] == 0, 0, approximation)[None]])

    def history(self, level: int, separator: str = ", ", **more: object) -> str:
        """Return one line of processing history with the version and every option as it was used.

        For example ``wavefilt 0.2.0: denoise(keep=0, level=5, ...)``; ``level`` is the number of levels that was used,
        ``more`` are further options of the caller.
        """
        used = {name: vars(self)[name] for name in DEFAULTS if name not in ("wavelet", "ndim")} | more
        used |= {"wavelet": self.filters.name, "level": level if self.transform.has_levels else None}
        if not self.rule.own_function:
            used["shrink"] = self.shrink_word
        used |= {"detrend": self.trend, "blend": self.blend or None, "statics": self.statics or None}
        used |= {"rule": self.rule.option, "transform": self.transform.word}
        call = separator.join(f"{name}={used[name]!r}" for name in sorted(used) if used[name] is not None)
        return f"wavefilt {__version__}: denoise({call})"


def _sobol(k: int) -> int:
    """Return p_k of `Options.shifts`: the sum modulo 2 of the rows of Pascal's triangle given by the bits of k."""
    found, row = 0, 1
    while k:
        found ^= row if k & 1 else 0
        row, k = row ^ row << 1, k >> 1
    return found


DEFAULTS: dict[str, object] = {option.name: option.default for option in fields(Options) if option.init}
"""The default of every option, by its name; None where the transform has its own."""
DEFAULTS["rule"] = None


def check_names(keywords: Mapping[str, object], *others: str) -> None:
    """Raise OptionError for a keyword that is neither an option of `denoise` nor one of ``others``."""
    known = [*(name for name in DEFAULTS if name not in ("wavelet", "ndim")), "backend", *others]
    for name in keywords:
        if name not in known:
            raise OptionError(f"`{name}` is not an option; options are {', '.join(known)}{nearest(name, known)}")


# ------------------------------------------------------------------------------------------------ recipe, presets

RECIPE: dict[str, Any] = {"wavelet": "sym8", "rule": "js", "transform": "modwt"}
"""Options that `Recording.denoise` and the command use for seismic files, unless others are given."""
PRESETS: dict[str, dict[str, Any]] = {
    "gentle": {"wavelet": "db8", "rule": "bayes", "transform": "dwt"},
    "section": {"transform": "fk", "two_dimensional": True},
    "strong": {"rule": "js", "transform": "dtcwt", "level": 8},
}
"""Options by the values of ``preset``; a level is at most what the length allows.

"strong" left the least noise before the events and shots of the quality study, and harmed none of them."""
DEEPEST_FREQUENCY, FEWEST_LEVELS = 8.0, 6
"""Frequency in Hz that the coarsest level of the recipe reaches, and its number of levels at low sampling rates."""


def recipe_levels(interval: float | None) -> int:
    """Return the number of levels of the recipe: the details reach down to 4 to 8 Hz, with at least 6 levels.

    Level j has the frequencies above 1 / (2^(j + 1) ``interval``); 6 levels suffice for rates up to 1024 Hz.
    """
    needed = math.ceil(math.log2(1 / (interval * DEEPEST_FREQUENCY))) - 1 if interval else 0
    return max(needed, FEWEST_LEVELS)


def completed(
    given: Mapping[str, Any],
    preset: str | None = None,
    *,
    seismic: bool = True,
    interval: float | None = None,
    samples: int = 0,
) -> dict[str, Any]:
    """Return the given options of `Recording.denoise`, completed with the options of a preset or of the recipe.

    None and False mean not given. An option of the preset or recipe that cannot be combined with the given ones is left
    out: the recipe with ``transform="dtcwt"`` has the wavelets of that transform, and with ``spins=8`` the DWT. Without
    a preset, sections have the options of the preset "section", and data that are not ``seismic`` the defaults of
    `denoise`. ``samples`` is the length of the longest trace.
    """
    chosen = {name: value for name, value in given.items() if value is not None and value is not False}
    if preset is not None:
        check("preset", preset, PRESETS)
    elif not seismic:
        return chosen
    section = bool(chosen.get("two_dimensional"))
    filling = PRESETS[preset or "section"] if preset or section else RECIPE
    for some in (filling, *({name: filling[name] for name in filling if name != left} for left in filling), {}):
        options = _tried({**some, **chosen})
        if options is None:
            continue
        level = some.get("level", recipe_levels(interval) if options.rule.option == "js" and not section else 0)
        level = min(level, options.transform.usual_level((samples,), options.filters)) if options.ndim == 1 else 0
        deeper = {"level": level} if level > options.rule.auto_level else {}
        chosen = {**{name: value for name, value in some.items() if name != "level"}, **deeper, **chosen}
        break
    return chosen


def _tried(given: dict[str, Any]) -> Options | None:
    """Return the options, or None if they are invalid, whatever the noise window; other names are left out."""
    given, sigma = dict(given), given.get("sigma")
    if isinstance(sigma, tuple):
        changing = sigma[:1] in (("running",), ("intervals",))
        given["sigma"] = ("running", FEWEST) if changing else ("window", 0, FEWEST)
    try:
        return checked({name: given[name] for name in (*DEFAULTS, "two_dimensional") if name in given})
    except (ValueError, TypeError):
        return None


def checked(given: Mapping[str, Any]) -> Options:
    """Return the `Options` for options of `Recording.denoise`."""
    ndim: Literal[1, 2] = 2 if given.get("two_dimensional") else 1
    return Options(**{name: value for name, value in given.items() if name != "two_dimensional"}, ndim=ndim)


def to_give(options: Mapping[str, Any], **recipe: Any) -> dict[str, Any]:
    """Return the options to give to `Recording.denoise`, or the command, for the ones that `denoise` would use.

    ``recipe`` holds the keyword arguments of `completed` for the data. Wavelet, rule and transform are left out if
    `completed` would fill them in.
    """
    options = {name: value for name, value in options.items() if value is not None}
    used = _tried(options)
    if used is None or not recipe.get("seismic", True):
        return {name: value for name, value in options.items() if (name, value) != ("transform", "dwt")}
    named = {"wavelet": used.wavelet, "rule": used.rule.option, "transform": used.transform.word}
    named |= {name: options.pop(name) for name in named if name in options}
    if _tried(completed(options, **recipe)) == used:
        return options
    level = completed(options | named, **recipe).get("level")
    return options | named | ({} if level is None else {"level": used.level_for(recipe["samples"])})


# --------------------------------------------------------------------------------------------------- lines to copy

NOISE_FLAGS = {
    "seconds": "noise-window",
    "window": "noise-window",
    "before": "noise-before",
    "running": "noise-running",
    "intervals": "noise-intervals",
}
"""The option of the command for each form of noise that is a tuple."""


def to_call(options: Mapping[str, Any], declared: bool = False) -> str:
    """Return the arguments of a call of `denoise` for the options that differ from their defaults.

    ``transform`` is always among them; use `to_give` first. If the headers ``declared`` a noise window, it is the
    default, and `sigma="level"` differs. Functions are named.
    """
    changed = _changed(options, declared).items()
    return ", ".join(f"{name}={getattr(value, '__name__', None) or repr(_plain(value))}" for name, value in changed)


def to_argv(options: Mapping[str, Any], clock: Clock | None = None, declared: bool = False) -> list[str]:
    """Return the arguments of the command `wavefilt denoise` for the options that `to_call` returns.

    The command takes noise in seconds. With a ``clock``, a window in samples becomes one in seconds; without it, the
    arguments set an interval of 1 s.
    """
    words: list[str] = []
    for name, value in _changed(options, declared).items():
        flag, values = f"--{name.replace('_', '-')}", [value]
        if name == "sigma" and isinstance(value, tuple):
            kind, *values = value
            flag = f"--{NOISE_FLAGS[kind]}"
            if kind == "window" and clock:
                values = [clock.time(sample) for sample in values]
            elif not clock and kind != "intervals":
                words += ["--dt", "1"]
        words += [flag] if value is True else [flag, *map(_text, values)]
    return words


def _changed(options: Mapping[str, Any], declared: bool) -> dict[str, Any]:
    """Return the options that differ from their defaults, and ``transform``, whose default depends on the data."""
    defaults = DEFAULTS | ({"sigma": None} if declared else {})
    return {
        name: value
        for name, value in options.items()
        if not (value is None or value is False or (name != "transform" and _same(value, defaults.get(name))))
    }


def _same(value: object, default: object) -> bool:
    return isinstance(value, type(default)) and bool(value == default)


def _text(value: Any) -> str:
    parts = value if isinstance(value, list | tuple | np.ndarray) else [value]
    return ",".join(str(_plain(part)) for part in parts)


def _plain(value: Any) -> Any:
    """Return NumPy numbers as Python numbers, which are printed without a type."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value
