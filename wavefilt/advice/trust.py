"""The trust report: questions about the result of denoising, each with a test, its outcome and a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wavefilt._version import __version__
from wavefilt.arrays import Array, Counts, Floats, Mask, refuse_kinds, take
from wavefilt.options import Clock, Noise, NoiseForm
from wavefilt.quality import arrival_shift
from wavefilt.report import Facts, finite, some

from . import harm
from .harm import Effect, Verdict

Finding = Literal["harmful", "undecided", "harmless", "untested", "signal", "none"]
"""The verdicts on a result, and those on the other questions."""
NEIGHBOURS = 32
"""Neighbouring traces in each group of a sample of many traces."""
WINDOW_VALUES = 20
"""Correlations inside the noise window that a comparison with them needs."""
WINDOW, LAG = 64, 8
"""Samples of a window that is correlated with the next trace, and the largest shift in either direction."""
TRIGGER, FLOOR = 6.0, 0.1
"""STA/LTA of a first break, and the variance over that of the noise that is added to both averages."""
FEWEST, CONFIDENCE = 8, 0.99
"""First breaks that a test of their shift needs, and the confidence of the interval of its median."""
UNLIKE = 2.0
"""Ratio of the powers of two noise models in an octave on which a verdict may depend."""
NOISY = 3.0
"""Ratio of the noise of a trace to the upper quartile of all traces, above which it is named: geometric means of the
power over octaves, of which waves that all traces share, such as traffic, dominate only some."""


@dataclass(frozen=True)
class Question:
    """A question about a result, and the answers "signal" and "none" in words."""

    name: str
    text: str
    answers: tuple[str, str] = ("", "")


ERROR = Question("error", "Is the result closer to the signal than the input was?")
WINDOWS = Question("windows", "Is there signal in the residual?", ("signal", "no signal found"))
LATERAL = Question("lateral", "Is the residual coherent from trace to trace?", ("coherent", "not coherent"))
BREAKS = Question("breaks", "Did first breaks move?", ("moved", "did not move"))


@dataclass(frozen=True)
class Answer:
    """The answer to a question: the verdict and the evidence."""

    question: Question
    verdict: Finding
    found: str

    @property
    def word(self) -> str:
        """The verdict in words."""
        signal, none = self.question.answers
        undecided = "undecided" if self.question is ERROR else "cannot tell"
        return {"signal": signal, "none": none, "undecided": undecided}.get(self.verdict, self.verdict)


@dataclass(frozen=True, eq=False, repr=False)
class TrustReport:
    """The result of `report`.

    Attributes
    ----------
    noisy, denoised : ndarray
        Traces in float64 with NaN in gaps.
    effects : tuple of wavefilt.advice.harm.Effect
        The effect of denoising under each of the noise models that have to agree, the most plausible one first.
    shifts : ndarray
        Shift of the first break of each trace in samples; NaN where none was found.
    traces : ndarray
        The numbers of the traces in the array that was given.
    interval : float or None
        Sampling interval in seconds.
    delay : float
        Time of the first sample in seconds.
    noise : tuple of (str, str)
        Kind and origin of each noise model, in words.
    name, call : str
        Title of the report, and the call or command that denoised.
    checksum : str
        SHA-256 of the bytes of the noisy samples that were given.
    notes : tuple of str
        Samples that were not tested.
    statements : tuple of str
        Statements about the residual: `wavefilt.report.statements`.
    """

    noisy: Floats
    denoised: Floats
    effects: tuple[Effect, ...]
    shifts: Floats
    traces: Counts
    interval: float | None
    delay: float
    noise: tuple[tuple[str, str], ...]
    name: str
    call: str
    checksum: str
    notes: tuple[str, ...]
    statements: tuple[str, ...] = ()

    @property
    def effect(self) -> Effect:
        """The effect of denoising under the most plausible noise model."""
        return self.effects[0]

    @property
    def residual(self) -> Floats:
        """The noisy samples minus the denoised ones, NaN in gaps."""
        return np.asarray(self.noisy - self.denoised)

    @cached_property
    def verdict(self) -> Verdict:
        """``"harmful"`` or ``"harmless"`` where all noise models agree, ``"undecided"``, or ``"untested"``."""
        return harm.verdict(self.effects)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """Every question with its answer."""
        return (self._error(), self._windows(), self._lateral(), self._breaks())

    @property
    def gain_range(self) -> tuple[float, float]:
        """Lowest and highest gain in dB by all noise models, if their power is uncertain by `harm.DOUBT`."""
        doubt = harm.DOUBT[0]
        return min(each.gain(-doubt) for each in self.effects), max(each.gain(doubt) for each in self.effects)

    @property
    def noisy_traces(self) -> Counts:
        """The numbers of traces with far more noise than most others, by all noise models."""
        live, levels = self._levels
        means = levels.mean(axis=2)
        upper = np.quantile(means, 0.75, axis=1, keepdims=True) if live.any() else means
        return np.asarray(self.traces[live][(means > upper + np.log(NOISY)).all(axis=0)])

    def __repr__(self) -> str:
        return f"<TrustReport {self.summary()}>"

    def summary(self) -> str:
        """Return the verdict in one line."""
        if self.verdict == "untested":
            return "trust: untested: no trace with noise is long enough"
        _, windows, _, breaks = self.answers
        told = [f"gain {self._gains()} (estimate)"]
        if self.verdict == "undecided":
            told.insert(0, self._doubt())
        if windows.verdict == "signal":
            told.append(f"signal in {self.effect.significant.sum()} of {self.effect.tested} windows of the residual")
        else:
            none = windows.verdict == "none"
            told.append(f"{'no signal found' if none else 'cannot tell whether signal is'} in the residual")
        if self.verdict == "harmful":
            told.append(f"{self.effect.harmed.sum()} windows made worse")
        if self.noisy_traces.size:
            names = f"trace{'s' * (self.noisy_traces.size > 1)} {some([str(trace) for trace in self.noisy_traces])}"
            told.append(f"weak signal can be lost in {names}, far noisier than the others")
        if breaks.verdict == "signal":
            told.append(f"first breaks moved by {self._time(float(np.nanmedian(self.shifts)), '+')}")
        return f"trust: {self.verdict}; {'; '.join(told)}"

    def facts(self) -> Facts:
        """Return verdicts and numbers, ready for JSON."""
        known, shifts = (values[np.isfinite(values)] for values in (self.effect.change, self.shifts))
        return {
            "verdict": self.verdict,
            "gain_db": self.effect.gain_db if np.isfinite(self.effect.gain_db) else None,
            "gain_range_db": self.gain_range if np.isfinite(self.effect.gain_db) else None,
            "noisy_traces": self.noisy_traces.tolist(),
            "worst_window": float(known.max()) if known.size else None,
            "windows": self.effect.tested,
            "windows_with_signal": int(self.effect.significant.sum()),
            "windows_harmed": int(self.effect.harmed.sum()),
            "first_breaks": int(shifts.size),
            "first_break_shift": float(np.median(shifts)) if shifts.size else None,
            "answers": {answer.question.name: answer.verdict for answer in self.answers},
            "noise": [{"kind": kind, "source": source} for kind, source in self.noise],
            "call": self.call,
            "version": __version__,
            "sha256": self.checksum,
        }

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the report as one HTML page without references to others, to a file that is complete or unchanged.

        Raises FileExistsError if it exists and ``overwrite`` is not set, OSError if it cannot be written, ImportError
        without matplotlib.
        """
        from wavefilt.io.atomic import check_destination, write_atomically

        from .page import page

        check_destination(Path(path), overwrite=overwrite)  # before the work, not after
        write_atomically(Path(path), page(self).encode(), overwrite=overwrite)

    def origin(self) -> dict[str, str]:
        """Return the data, the call and the noise that were judged, in words."""
        return {
            "command or call": self.call or "not given",
            "version": f"wavefilt {__version__}",
            "noise": "; ".join(f"{kind}: {source}" for kind, source in self.noise),
            "SHA-256 of the noisy samples": self.checksum,
            **({"samples": " ".join(self.notes)} if self.notes else {}),
        }

    def times(self, samples: ArrayLike) -> Floats:
        """Return the times of samples in seconds; without an interval, the samples."""
        step, start = (1.0, 0.0) if self.interval is None else (self.interval, self.delay)
        return np.asarray(start + step * np.asarray(samples, np.float64))

    def _time(self, samples: float, sign: str = "") -> str:
        """Return a duration, given in samples, in words."""
        if self.interval is None:
            return f"{round(samples, 1) + 0.0:{sign}g} samples"
        return f"{round(samples, 2) * self.interval + 0.0:{sign}.4g} s"

    def _gains(self) -> str:
        """Return the range of the gain in words."""
        low, high = self.gain_range
        return f"{low:+.1f} dB or more" if high >= harm.MOST else f"{low:+.1f} to {high:+.1f} dB"

    @cached_property
    def _levels(self) -> tuple[Mask, Floats]:
        """The traces with noise, and the logarithms of its power (models, traces, octaves)."""
        noise = np.array([effect.noise for effect in self.effects])
        live = (noise.max(axis=2) > 0).all(axis=0)
        return live, np.log(np.maximum(noise[:, live], 1e-300))

    def _doubt(self) -> str:
        """Return the question on which the verdict depends."""
        live, levels = self._levels
        unlike = np.median(np.ptp(levels, axis=0), axis=0) > np.log(UNLIKE) if live.any() else np.zeros(0)
        octaves = np.flatnonzero(unlike)
        what = "steady energy"
        if octaves.size:
            rate, unit = (1.0, "cycles per sample") if self.interval is None else (1 / self.interval, "Hz")
            low = 0.0 if octaves[-1] == levels.shape[2] - 1 else rate / 2 ** (octaves[-1] + 2)
            what = f"energy at {low:.3g} to {rate / 2 ** (octaves[0] + 1):.3g} {unit}"
        return f"depends on whether {what} is noise: give {self.effect.model.advice}"

    def _error(self) -> Answer:
        if self.verdict == "untested":
            return Answer(ERROR, "untested", "No trace with noise is long enough.")
        cell, change, told = self.effect.cell, self.effect.change, f"Estimated gain: {self._gains()}"
        if np.isfinite(change).any():
            trace, window = np.unravel_index(int(np.nanargmax(change)), change.shape)
            start, stop = self.times(int(window) * cell + np.array([0, 2 * cell]))
            unit = "s" if self.interval else "samples"
            told += f"; in the worst window, of trace {self.traces[trace]} between {start:.4g} and {stop:.4g} {unit}, "
            told += f"the error changed by {change[trace, window]:+.1f} times the noise energy"
        if self.verdict == "undecided":
            told += f". The verdict {self._doubt()}"
        return Answer(ERROR, self.verdict, f"{told}.")

    def _windows(self) -> Answer:
        if self.verdict == "untested":
            return Answer(WINDOWS, "untested", "No trace with noise is long enough.")
        found, counts = self.effect, [int(each.significant.sum()) for each in self.effects]
        told = f"In {counts[0]} of {found.tested} windows of {self._time(2 * found.cell)}"
        if counts[0]:
            told += f", of {int(found.significant.any(axis=1).sum())} of {len(found.change)} traces"
        if all(counts) or not any(counts):
            return Answer(WINDOWS, "signal" if all(counts) else "none", f"{told}.")
        by_model = (f"{count} ({each.model.kind})" for count, each in zip(counts, self.effects, strict=True))
        return Answer(WINDOWS, "undecided", f"{told}. It depends on the noise: {', '.join(by_model)}.")

    def _lateral(self) -> Answer:
        values = coherence(self.residual / self.effect.unit)
        if not np.isfinite(values).any():
            return Answer(LATERAL, "untested", "Needs two traces without gaps.")
        inside = np.zeros(values.shape[1], bool)
        for window in [effect.model.window for effect in self.effects if effect.model.window][:1]:
            inside[-(-window[0] // WINDOW) : window[1] // WINDOW] = True
        own, tested = values[:, inside], values[:, ~inside]
        if np.isfinite(own).sum() < WINDOW_VALUES or not np.isfinite(tested).any():
            told = "Without a longer noise window, signal cannot be told from noise that crosses the spread."
            return Answer(LATERAL, "undecided", told)
        count = int(harm.rejected(harm.p_values(tested, own), harm.RATE).sum())
        told = f"In {count} of {int(np.isfinite(tested).sum())} windows of neighbouring traces."
        return Answer(LATERAL, "signal" if count else "none", told)

    def _breaks(self) -> Answer:
        shifts = np.sort(self.shifts[np.isfinite(self.shifts)])
        if not shifts.size:
            return Answer(BREAKS, "untested", "No first break was found.")
        middle = float(np.median(shifts))
        told = f"Median shift of {shifts.size} first breaks: {self._time(middle, '+')}"
        if shifts.size < FEWEST:
            return Answer(BREAKS, "undecided", f"{told}.")
        from scipy.special import bdtr  # the interval of the median by order statistics, whatever the distribution

        chances = bdtr(np.arange(shifts.size), shifts.size, 0.5)
        rank = max(int(np.count_nonzero(chances <= (1 - CONFIDENCE) / 2)) - 1, 0)
        low, high = float(shifts[rank]), float(shifts[-1 - rank])
        told += f", between {self._time(low, '+')} and {self._time(high, '+')}."
        if low > 0 or high < 0:
            return Answer(BREAKS, "signal" if abs(middle) >= 1 else "none", told)
        return Answer(BREAKS, "none" if low > -1 and high < 1 else "undecided", told)


def coherence(rows: Floats) -> Floats:
    """Return the largest correlation, by magnitude, of each window with the next trace, shape (traces - 1, windows).

    NaN where a window has gaps or is constant.
    """
    count = rows.shape[1] // WINDOW

    def windows(values: Floats, shift: int) -> Floats:
        cut = np.roll(values, shift, axis=1)[:, : count * WINDOW].reshape(len(values), count, WINDOW)
        cut = cut - cut.mean(axis=2, keepdims=True)
        norm = np.sqrt(np.einsum("ijk,ijk->ij", cut, cut))[..., None]
        return np.asarray(np.divide(cut, norm, out=np.full_like(cut, np.nan), where=norm > 0))

    first, best = windows(rows[:-1], 0), np.full((max(len(rows) - 1, 0), count), -np.inf)
    for lag in range(-LAG, LAG + 1):
        best = np.maximum(best, np.abs(np.einsum("ijk,ijk->ij", first, windows(rows[1:], lag))))
    return best


def break_shifts(noisy: Floats, denoised: Floats, noise: Floats) -> Floats:
    """Return the shift of the first break of each trace in samples; NaN where none is found.

    A first break is where STA/LTA exceeds `TRIGGER`, before and after. ``noise`` is the variance of the noise of each
    trace, 0 for a dead trace.
    """
    shifts, samples = np.full(len(noisy), np.nan), noisy.shape[1]
    short, long = max(8, samples // 128), max(32, samples // 16)
    if samples < 2 * (short + long):
        return shifts

    def ratio(x: Floats, floor: float) -> Floats:
        total = np.concatenate([[0.0], np.cumsum((x - x.mean()) ** 2)])
        at = np.arange(long, samples - short + 1)
        after, before = (total[at + short] - total[at]) / short, (total[at] - total[at - long]) / long
        return np.asarray((after + floor) / (before + floor))

    for trace in np.flatnonzero((noise > 0) & np.isfinite(noisy).all(axis=1)).tolist():
        before, after = (ratio(rows[trace], FLOOR * noise[trace]) for rows in (noisy, denoised))
        first = int(np.argmax(before > TRIGGER))
        if before[first] > TRIGGER and after[first : first + long].max() > TRIGGER:
            start = first + long - short
            stop = min(start + 4 * short, samples)
            shifts[trace] = arrival_shift(noisy[trace], denoised[trace], start, stop)
    return shifts


def report(
    noisy: ArrayLike,
    denoised: ArrayLike,
    denoise: Callable[[Array], ArrayLike] | None = None,
    *,
    sigma: NoiseForm = "level",
    interval: float | None = None,
    delay: float = 0.0,
    declared: str = "",
    name: str = "",
    call: str = "",
    samples: int = 1 << 23,
) -> TrustReport:
    """Test whether denoising did harm, and whether there is signal in the residual.

    Simulated noise is denoised by the same function, and the residuals are compared. Harm is estimated without knowing
    the signal, as in Stein's unbiased risk estimate. Unless a standard deviation is declared, verdicts are computed for
    two or four models of the noise; where they differ, the result is undecided. See ``docs/trust.md`` for the formulas,
    and for how often the verdicts are right.

    Parameters
    ----------
    noisy, denoised : array_like (..., samples)
        Traces before and after; the last axis is time, neighbours along the others are neighbours in space. NaN and
        masked samples are gaps.
    denoise : callable, optional
        The function that made ``denoised`` from ``noisy``: takes rows (traces, samples) in float64 and returns them
        denoised. Without it, noise is compared as if all of it were removed, which finds less.
    sigma : {"level", "global"}, float, or ("window", start, stop)
        As for `wavefilt.denoise`: a standard deviation or a window declares the noise, ``"global"`` declares it white.
    interval : float, optional
        Sampling interval in seconds, for times and frequencies.
    delay : float
        Time of the first sample in seconds.
    declared : str
        The origin of a noise window that headers declare, in words.
    name, call : str
        Title of the report, and the call or command that denoised, which the report states.
    samples : int
        Most samples that are tested. Of larger arrays, evenly spread groups of 32 neighbouring traces are tested, and
        of traces longer than that, the beginning.

    Returns
    -------
    TrustReport

    Raises
    ------
    TypeError
        For complex samples, or objects that are no array of numbers.
    ValueError
        For arrays of different shapes or without samples, a noise window that does not lie in them, or a function that
        returns an array of another shape.
    """
    for a in (noisy, denoised):
        refuse_kinds(a)
    given = [np.asanyarray(a) for a in (noisy, denoised)]
    if any(np.iscomplexobj(a) for a in given):
        raise TypeError("the trust report needs real samples, not complex ones: take a part or the modulus")
    if given[0].shape != given[1].shape:
        raise ValueError(f"arrays of shapes {given[0].shape} and {given[1].shape} are not the same traces")
    rows = [take(a, -1).rows for a in given]
    if Noise.of(sigma).window:
        Noise.of(sigma).window_in(rows[0].shape[1])  # raises for a window that does not lie in the samples
    traces, part, notes = _sample(len(rows[0]), rows[0].shape[1], samples)
    x, y = (finite(own[traces, part]) for own in rows)
    effects = harm.find(x, y, denoise, sigma)
    unit = effects[0].unit
    shifts = break_shifts(x / unit, y / unit, effects[0].model.variance)
    checksum = hashlib.sha256(np.ascontiguousarray(np.ma.getdata(given[0])).tobytes()).hexdigest()
    clock = Clock(interval, None, x.shape[1], name, delay)
    noise = tuple((effect.model.kind, effect.model.words(clock, declared)) for effect in effects)
    return TrustReport(x, y, effects, shifts, traces, interval, delay, noise, name, call, checksum, notes)


def _sample(traces: int, samples: int, most: int) -> tuple[Counts, slice, tuple[str, ...]]:
    """Return the traces and samples of an array that are tested, and notes if these are not all."""
    length = min(samples, most)
    count = max(1, most // length)
    notes = [f"Only the first {length} of {samples} samples were tested."] if length < samples else []
    if traces <= count:
        return np.arange(traces), slice(length), tuple(notes)
    groups = max(1, count // NEIGHBOURS)
    starts = np.linspace(0, traces - min(NEIGHBOURS, count), groups).astype(int)
    found = np.unique((starts[:, None] + np.arange(min(NEIGHBOURS, count))).ravel())
    notes.append(f"A sample of {len(found)} of {traces} traces was tested, in groups of {NEIGHBOURS} neighbours.")
    return found, slice(length), tuple(notes)
