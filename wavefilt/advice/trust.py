"""The trust report: questions about the result of denoising, each with a test, its outcome and a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from wavefilt._version import __version__
from wavefilt.arrays import Array, Counts, Floats, Mask, constant, take
from wavefilt.noise import NoiseModel
from wavefilt.options import Clock, Noise, NoiseForm, Options, to_call, to_give
from wavefilt.report import Facts

from . import leakage, picking
from .coherence import WINDOW
from .leakage import Leakage, Verdict

Finding = Literal["harmful", "undecided", "harmless", "untested", "signal", "none"]
"""The verdicts on a result, and those on the other questions."""
WORDS: dict[Finding, str] = {
    "harmful": "harmful",
    "undecided": "undecided",
    "harmless": "harmless",
    "untested": "not tested",
}
"""Verdicts on a result, the worst first."""
ANSWERS: dict[Finding, str] = {"signal": "signal", "none": "no signal found", "undecided": "cannot tell"}
"""Verdicts of the other questions in words, where they have no words of their own."""
OWN_WORDS: dict[str, dict[Finding, str]] = {
    "error": {"undecided": "undecided", "harmless": "harmless"},
    "lateral": {"signal": "coherent", "none": "not coherent"},
    "breaks": {"signal": "moved", "none": "did not move"},
}
NEIGHBOURS = 32
"""Neighbouring traces in each group of a sample of many traces."""
WINDOW_VALUES = 20
"""Correlations inside the noise window that a comparison with them needs."""
SHORTEST = 32
"""Samples of a declared noise window below which the noise counts as not declared."""
UNLIKE = 2.0
"""Ratio of the powers of two noise models in an octave on which a verdict may depend."""


@dataclass(frozen=True)
class Answer:
    """A question about a result: the verdict, what was found, and by which test."""

    name: str
    question: str
    verdict: Finding
    found: str
    test: str

    @property
    def word(self) -> str:
        """The verdict in words."""
        return OWN_WORDS.get(self.name, {}).get(self.verdict) or ANSWERS.get(self.verdict) or WORDS[self.verdict]


@dataclass(frozen=True)
class TrustReport:
    """The result of `report`.

    Attributes
    ----------
    noisy, denoised : ndarray
        Traces in float64 with NaN in gaps.
    leakages : tuple of wavefilt.advice.leakage.Leakage
        The effect of denoising under each of the noise models that have to agree, the most plausible one first.
    first_breaks : ndarray
        First break of each trace before and after in samples, shape (traces, 2); NaN where none was found.
    traces : ndarray
        The numbers of the traces in the array that was given.
    interval : float or None
        Sampling interval in seconds.
    delay : float
        Time of the first sample in seconds.
    declared : str
        The origin of noise that headers declare, in words.
    name, call : str
        Title of the report, and the call or command that denoised.
    checksum : str
        SHA-256 of the bytes of the noisy samples that were given.
    notes : tuple of str
        Samples that were not tested.
    """

    noisy: Floats
    denoised: Floats
    leakages: tuple[Leakage, ...]
    first_breaks: Floats
    traces: Counts
    interval: float | None = None
    delay: float = 0.0
    declared: str = ""
    name: str = ""
    call: str = ""
    checksum: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def leakage(self) -> Leakage:
        """The effect of denoising under the most plausible noise model."""
        return self.leakages[0]

    @property
    def residual(self) -> Floats:
        """The noisy samples minus the denoised ones, NaN in gaps."""
        return np.asarray(self.noisy - self.denoised)

    @cached_property
    def verdict(self) -> Verdict:
        """``"harmful"`` or ``"harmless"`` where all noise models agree, ``"undecided"``, or ``"untested"``."""
        return leakage.verdict(self.leakages)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """Every question with its answer."""
        return (self._error(), self._windows(), self._octaves(), self._lateral(), self._breaks(), self._unchanged())

    @property
    def gain_db(self) -> float:
        """Estimated ratio in dB of the energy of the error before and after; NaN without noise."""
        return self.leakage.gain_db

    @property
    def harmed(self) -> Mask:
        """The windows of `leakage` whose error grew so much that they count as harm."""
        return self.leakage.harmed

    def summary(self) -> str:
        """Return the verdict in one line."""
        if self.verdict == "untested":
            return "trust: not tested: no trace with noise is long enough"
        told = [f"gain {self._gains()} (estimate)"]
        if self.verdict == "undecided":
            told.insert(0, self._doubt())
        signal = self._answer("windows")
        if signal.verdict == "none":
            told.append("no signal found in the residual")
        elif signal.verdict == "undecided":
            told.append("cannot tell whether signal is in the residual")
        else:
            told.append(f"signal in {self.leakage.significant.sum()} of {self.leakage.tested} windows of the residual")
        if self.verdict == "harmful":
            told.append(f"{self.harmed.sum()} windows made worse")
        if self._answer("breaks").verdict == "signal":
            told.append(f"first breaks moved by {self.time(float(np.median(self._shifts())), '+')}")
        return f"trust: {WORDS[self.verdict]}; {'; '.join(told)}"

    def facts(self) -> Facts:
        """Return verdicts and numbers, ready for JSON."""
        found = self.leakage
        known = np.isfinite(found.change)
        moved = self._shifts()
        return {
            "verdict": self.verdict,
            "gain_db": self.gain_db if np.isfinite(self.gain_db) else None,
            "worst_window": float(found.change[known].max()) if known.any() else None,
            "windows": found.tested,
            "windows_with_signal": int(found.significant.sum()),
            "windows_harmed": int(self.harmed.sum()),
            "levels_with_signal": [int(level) + 1 for level in np.flatnonzero(found.octaves)],
            "first_breaks": int(moved.size),
            "first_break_shift": float(np.median(moved)) if moved.size else None,
            "answers": {answer.name: answer.verdict for answer in self.answers},
            "noise": [{"kind": each.model.kind, "source": each.model.source} for each in self.leakages],
            "call": self.call,
            "version": __version__,
            "sha256": self.checksum,
        }

    def html(self) -> str:
        """Return the report as one HTML page without references to others. Raises ImportError without matplotlib."""
        from .page import page

        return page(self)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `html` to a file, which is complete or unchanged.

        Raises FileExistsError if it exists and ``overwrite`` is not set, OSError if it cannot be written, ImportError
        without matplotlib.
        """
        from wavefilt.io.atomic import check_destination, write_atomically

        check_destination(Path(path), overwrite=overwrite)  # before the work, not after
        write_atomically(Path(path), self.html().encode(), overwrite=overwrite)

    def time(self, samples: float, sign: str = "") -> str:
        """Return a duration, given in samples, in words."""
        if self.interval is None:
            return f"{samples:{sign}g} samples"
        return f"{samples * self.interval:{sign}.4g} s"

    def moment(self, sample: int) -> str:
        """Return the time of a sample in words."""
        return f"sample {sample}" if self.interval is None else f"{self.times(sample):.4g} s"

    def times(self, samples: ArrayLike) -> Floats:
        """Return the times of samples in seconds; without an interval, the samples."""
        return np.asarray(samples) if self.interval is None else self.delay + np.asarray(samples) * self.interval

    def origin(self) -> dict[str, str]:
        """Return what was judged, and against which noise, in words."""
        found = {"call": self.call or "not given", "version": f"wavefilt {__version__}"}
        found["noise"] = "; ".join(f"{each.model.kind}: {self._source(each.model)}" for each in self.leakages)
        return found | {"SHA-256 of the noisy samples": self.checksum}

    def band(self, first: int, last: int) -> str:
        """Return the frequencies from one octave, counted from 0, to a coarser one or itself."""
        low, high = 0.5 / 2 ** (last + 1), 0.5 / 2**first
        if last == self.leakage.noise.shape[1] - 1:
            low = 0.0
        rate, unit = (1.0, "cycles per sample") if self.interval is None else (1 / self.interval, "Hz")
        return f"{low * rate:.3g} to {high * rate:.3g} {unit}"

    def _source(self, model: NoiseModel) -> str:
        return model.in_words(Clock(self.interval, None, model.samples, self.name, self.delay), self.declared)

    def _answer(self, name: str) -> Answer:
        return next(answer for answer in self.answers if answer.name == name)

    def _gains(self) -> str:
        """Return the gains under all noise models in words."""
        gains = sorted(found.gain_db for found in self.leakages)
        low, high = f"{gains[0]:+.1f}", f"{gains[-1]:+.1f}"
        return f"{low} dB" if low == high else f"{low} to {high} dB"

    def _doubt(self) -> str:
        """Return the question on which the verdict depends."""
        noise = np.array([found.noise for found in self.leakages])
        live, octaves = (noise.max(axis=2) > 0).all(axis=0), np.zeros(0, int)
        if live.any():
            logs = np.log(np.maximum(noise[:, live], 1e-300))
            octaves = np.flatnonzero(np.median(np.ptp(logs, axis=0), axis=0) > np.log(UNLIKE))
        what = "steady energy" if not octaves.size else f"energy at {self.band(int(octaves[0]), int(octaves[-1]))}"
        advice = "another noise window" if self.leakages[0].model.kind == "declared" else "a noise window"
        return f"depends on whether {what} is noise: give {advice}"

    def _agreed(self, outcomes: list[bool]) -> Finding:
        return "undecided" if len(set(outcomes)) > 1 else "signal" if outcomes[0] else "none"

    def _error(self) -> Answer:
        test = (
            f"Harmful if the estimated energy of the error grew in the whole record, or in some windows by more than "
            f"{leakage.WORST:g} times that of the noise, and by more than {leakage.HARM:g} times the noise in the mean "
            f"over all windows. Such windows have more residual than simulated noise (false discovery rate "
            f"{leakage.HARM_RATE:.0%}). The noise models have to agree."
        )
        found, question = self.leakage, "Is the result closer to the signal than the input was?"
        if self.verdict == "untested":
            return Answer("error", question, "untested", "No trace with noise is long enough.", test)
        told = f"Estimated gain: {self._gains()}"
        if np.isfinite(found.change).any():
            trace, window = np.unravel_index(int(np.nanargmax(found.change)), found.change.shape)
            start, worst = int(window) * found.cell, float(found.change[trace, window])
            told += f"; in the worst window, of trace {self.traces[trace]} between {self.moment(start)} and "
            told += f"{self.moment(start + 2 * found.cell)}, the error changed by {worst:+.1f} times the noise energy"
        if self.verdict == "undecided":
            told += f". The verdict {self._doubt()}"
        return Answer("error", question, self.verdict, f"{told}.", test)

    def _windows(self) -> Answer:
        found, question = self.leakage, "Is there signal in the residual?"
        noise = "denoised in the same way" if found.simulated else "removed altogether (the method is not known)"
        test = (
            f"Signal where a window of the residual has more energy than for simulated noise of the same spectrum, "
            f"{noise}, at a false discovery rate of {leakage.RATE:.0%} (Benjamini and Hochberg 1995)."
        )
        if self.verdict == "untested":
            return Answer("windows", question, "untested", "No trace with noise is long enough.", test)
        told = f"In {found.significant.sum()} of {found.tested} windows of {self.time(2 * found.cell)}"
        if found.significant.any():
            told += f", of {int(found.significant.any(axis=1).sum())} of {len(found.change)} traces"
        verdict = self._agreed([bool(each.significant.any()) for each in self.leakages])
        if verdict == "undecided":
            counts = ", ".join(f"{each.significant.sum()} ({each.model.kind})" for each in self.leakages)
            told += f". It depends on the noise: {counts}"
        return Answer("windows", question, verdict, f"{told}.", test)

    def _octaves(self) -> Answer:
        found, question = self.leakage, "Does the residual contain more energy at some frequencies than noise would?"
        test = (
            f"Signal where an octave of the residual of a trace has more energy than for simulated noise, at a false "
            f"discovery rate of {leakage.RATE:.0%}."
        )
        if self.verdict == "untested":
            return Answer("levels", question, "untested", "No trace with noise is long enough.", test)
        runs = np.flatnonzero(np.diff(np.concatenate([[False], found.octaves, [False]]).astype(int))).reshape(-1, 2)
        names = [self.band(first, stop - 1) for first, stop in runs[::-1].tolist()]
        told = f"More than noise at {' and '.join(names)}." if names else "Not more than noise in any octave."
        return Answer(
            "levels", question, self._agreed([bool(each.octaves.any()) for each in self.leakages]), told, test
        )

    def _lateral(self) -> Answer:
        values, null = self.leakage.lateral
        question = "Is the residual coherent from trace to trace?"
        window = next((each.model.window for each in self.leakages if each.model.window), None)
        inside = np.zeros(values.shape[1] if values.ndim > 1 else 0, bool)
        if window is not None:
            inside[-(-window[0] // WINDOW) : window[1] // WINDOW] = True
        own = values[:, inside] if values.size else values
        compared = np.isfinite(own).sum() >= WINDOW_VALUES and not inside.all()
        reference = "in the noise window" if compared else "in simulated noise"
        test = (
            f"Coherent where a window of the residual correlates with the next trace more than {reference}, at a false "
            f"discovery rate of {leakage.RATE:.0%}."
        )
        if not np.isfinite(values).any():
            return Answer("lateral", question, "untested", "Needs two traces without gaps.", test)
        tested = values[:, ~inside] if compared else values
        p_value = leakage.p_values(tested, own if compared else null)
        count = int(leakage.rejected(p_value, leakage.RATE).sum())
        told = f"In {count} of {int(np.isfinite(tested).sum())} windows of neighbouring traces."
        if count and not compared:
            told += " Without a noise window, signal cannot be told from noise that crosses the spread."
        return Answer("lateral", question, "none" if not count else "signal" if compared else "undecided", told, test)

    def _shifts(self) -> Floats:
        """Return the samples by which first breaks moved."""
        known = self.first_breaks[np.isfinite(self.first_breaks).all(axis=1)]
        return np.asarray(known[:, 1] - known[:, 0])

    def _breaks(self) -> Answer:
        shifts, question = self._shifts(), "Did first breaks move?"
        test = (
            f"Moved if the median shift is at least one sample and its {picking.CONFIDENCE:.0%} confidence interval "
            f"excludes 0; not moved if the interval lies within one sample. Needs {picking.FEWEST} first breaks."
        )
        if not shifts.size:
            return Answer("breaks", question, "untested", "No first break was found.", test)
        told = f"Median shift of {shifts.size} first breaks: {self.time(float(np.median(shifts)), '+')}"
        if len(shifts) >= picking.FEWEST:
            low, high = picking.median_interval(shifts)
            told += f", between {self.time(low, '+')} and {self.time(high, '+')}"
        found = picking.moved(shifts)
        return Answer(
            "breaks", question, "undecided" if found is None else "signal" if found else "none", told + ".", test
        )

    def _unchanged(self) -> Answer:
        gaps = np.isnan(self.noisy)
        dead = sum(bool(constant(own[None], gaps=True)[0]) for own in self.noisy if not np.isnan(own).all())
        with np.errstate(invalid="ignore"):
            same = int((((self.residual == 0) | gaps).all(axis=1)).sum())
        told = f"{same} of {len(self.noisy)} traces are unchanged, {dead} of them dead (constant)"
        told += f"; {gaps.sum()} of {gaps.size} samples are in gaps, masked or not finite."
        told = " ".join([told, *self.notes])
        return Answer("unchanged", "Which samples are unchanged?", "untested", told, "For information.")


def call_in_python(source: str, options: Options, recipe: dict[str, Any], declared: bool, used: bool) -> str:
    """Return a line of Python that denoises a file, with its `Recording.recipe`, with these options.

    ``declared`` and ``used`` are whether headers declare the noise, and whether that was used.
    """
    given = {each.name: getattr(options, each.name) for each in fields(Options) if each.init}
    section = given.pop("ndim") == 2
    given |= {"rule": options.rule.option, "transform": options.transform.word, "two_dimensional": section}
    given |= {"sigma": None} if used else {}
    return f"wavefilt.read({source!r}).denoise({to_call(to_give(given, **recipe), declared)})"


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
    seed: int = 0,
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
    seed : int
        Seed of the simulated noise.

    Returns
    -------
    TrustReport

    Raises
    ------
    TypeError
        For complex samples, or objects that are no array of numbers.
    ValueError
        For arrays of different shapes or without samples, or a noise window that does not lie in them.
    """
    given = [np.asanyarray(a) for a in (noisy, denoised)]
    if any(np.iscomplexobj(a) for a in given):
        raise TypeError("the trust report needs real samples, not complex ones: take a part or the modulus")
    if given[0].shape != given[1].shape:
        raise ValueError(f"arrays of shapes {given[0].shape} and {given[1].shape} are not the same traces")
    rows = [take(a, -1).rows for a in given]
    window = Noise.of(sigma).window
    if window is not None and window[1] > rows[0].shape[1]:
        where = f"from sample {window[0]} to {window[1]}"
        raise ValueError(f"the noise window {where} does not lie in {rows[0].shape[1]} samples")
    traces, part, notes = _sample(len(rows[0]), rows[0].shape[1], samples)
    x, y = (np.asarray(own[traces, part], np.float64) for own in rows)
    x, y = (np.where(np.isfinite(own), own, np.nan) for own in (x, y))
    if isinstance(sigma, tuple):
        usable = window is not None and window[1] <= x.shape[1] and window[1] - window[0] >= SHORTEST
        sigma = ("window", window[0], window[1]) if window is not None and usable else "level"

    def again(rows: Floats, _: Array) -> Floats:
        assert denoise is not None
        return np.asarray(denoise(rows), np.float64)

    found = leakage.find(x, y, None if denoise is None else again, sigma, seed)
    unit = found[0].unit
    breaks = picking.first_breaks(x / unit, y / unit, found[0].model.variance)
    checksum = hashlib.sha256(np.ascontiguousarray(np.ma.getdata(given[0])).tobytes()).hexdigest()
    return TrustReport(x, y, found, breaks, traces, interval, delay, declared, name, call, checksum, notes)


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
