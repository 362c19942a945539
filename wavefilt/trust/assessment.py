"""The trust report: questions about a denoise, each with a test, what it found, and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.arrays import Array, Counts, Floats, Mask, constant, take
from wavefilt.report import Facts
from wavefilt.trust import leakage, picking
from wavefilt.trust.cells import widths
from wavefilt.trust.significance import p_values, rejected
from wavefilt.trust.verdicts import FEWEST_PICKS, MOVED, TOTAL, WORDS, WORST, Answer, Verdict

NEIGHBOURS = 32
"""Traces of a group in a sample of many."""


@dataclass(frozen=True)
class TrustReport:
    """What `report` found. ``noisy`` and ``denoised`` are rows in float64 with NaN in gaps.

    ``interval`` is in seconds, None where it is unknown, ``name`` for people, and ``notes`` say what was left out.
    """

    noisy: Floats
    denoised: Floats
    leakage: leakage.Leakage
    first_breaks: Floats
    """First break of each trace before and after, in samples, shape (traces, 2); NaN where there is none."""
    traces: Counts
    """The numbers of the traces, as in the array that was given."""
    interval: float | None = None
    name: str = ""
    notes: tuple[str, ...] = ()

    @property
    def removed(self) -> Floats:
        """What was removed, NaN in gaps."""
        return np.asarray(self.noisy - self.denoised)

    @cached_property
    def verdict(self) -> Verdict:
        """The worst answer, first breaks apart: "harmful", "signal", "none", or "untested" where nothing could be."""
        found = {answer.verdict for answer in self.answers if answer.name != "breaks"}
        return next((verdict for verdict in WORDS if verdict in found), "untested")

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """Every question with its answer."""
        return (self._error(), self._windows(), self._levels(), self._lateral(), self._breaks(), self._unchanged())

    @property
    def error_db(self) -> float:
        """Estimated growth of the error's energy in dB; below 0 where the denoise helped. NaN without noise."""
        return decibels(self.leakage.total) if self.leakage.noise.any() else float("nan")

    @property
    def harmed(self) -> Mask:
        """The windows of `Leakage` whose error grew so much that the denoise is harmful."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.leakage.suspect & (self.leakage.change > WORST))

    def summary(self) -> str:
        """A line for people."""
        if self.verdict == "untested":
            return "trust: not tested: no trace with noise is long enough"
        found = self.leakage
        windows = f"signal in {found.significant.sum()} of {np.isfinite(found.p_value).sum()} windows"
        worse = f", {self.harmed.sum()} made worse" if self.harmed.any() else ""
        return f"trust: {WORDS[self.verdict]}; error {self.error_db:+.1f} dB (estimate), {windows} removed{worse}"

    def facts(self) -> Facts:
        """Verdicts and numbers, ready for JSON."""
        found = self.leakage
        known = np.isfinite(found.change)
        moved = self._shifts()
        return {
            "verdict": self.verdict,
            "error_db": self.error_db if np.isfinite(self.error_db) else None,
            "worst_window": float(found.change[known].max()) if known.any() else None,
            "windows": int(np.isfinite(found.p_value).sum()),
            "windows_with_signal": int(found.significant.sum()),
            "windows_harmed": int(self.harmed.sum()),
            "levels_with_signal": [int(level) + 1 for level in np.flatnonzero(found.levels)],
            "first_breaks": int(moved.size),
            "first_break_shift": float(np.median(moved)) if moved.size else None,
            "answers": {answer.name: answer.verdict for answer in self.answers},
        }

    def html(self) -> str:
        """A page that needs nothing else. Raises ImportError without matplotlib."""
        from wavefilt.trust.page import page

        return page(self)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `html` to a file, which is complete or unchanged.

        Raises FileExistsError if it exists and ``overwrite`` is not set, OSError if it cannot be written, ImportError
        without matplotlib.
        """
        from wavefilt.io.atomic import check_destination, write_atomically

        check_destination(Path(path), overwrite=overwrite)  # before the work, not after
        write_atomically(Path(path), self.html().encode(), overwrite=overwrite)

    def time(self, samples: float) -> str:
        """Samples as a time for people."""
        return f"{samples:.0f} samples" if self.interval is None else f"{samples * self.interval:.4g} s"

    def _error(self) -> Answer:
        test = (
            f"Harmful if the estimated energy of the error grew in the whole record, or in a window by more than "
            f"{WORST:g} times the noise's, and more was removed from it than from simulated noise (false discovery "
            f"rate {leakage.HARM_RATE:.0%})."
        )
        found = self.leakage
        question = "Is the result nearer to the signal than the record was?"
        if not np.isfinite(found.p_value).any():
            return Answer("error", question, "untested", "No trace with noise is long enough.", test)
        harmful = bool(self.harmed.any()) or found.total > TOTAL
        told = f"The energy of the error changed by {self.error_db:+.1f} dB (an estimate)"
        trace, window = np.unravel_index(int(np.nanargmax(found.change)), found.change.shape)
        worst = float(found.change[trace, window])
        start = int(window) * found.cell
        where = f"of trace {self.traces[trace]} between {self.time(start)} and {self.time(start + 2 * found.cell)}"
        told += f", at worst by {worst:+.1f} times the noise's energy, in a window {where}."
        return Answer("error", question, "harmful" if harmful else "none", told, test)

    def _windows(self) -> Answer:
        found = self.leakage
        question = "Is there signal in what was removed?"
        noise = "put through the same denoise" if found.simulated else "removed altogether (the denoise is not known)"
        test = (
            f"Signal where more was removed from a window than from simulated noise of the same spectrum, {noise}, at "
            f"a false discovery rate of {leakage.RATE:.0%} (Benjamini and Hochberg 1995)."
        )
        every, those = int(np.isfinite(found.p_value).sum()), int(found.significant.sum())
        if not every:
            return Answer("windows", question, "untested", "No trace with noise is long enough.", test)
        told = f"In {those} of {every} windows of {self.time(2 * found.cell)}"
        if those:
            told += f", of {int(found.significant.any(axis=1).sum())} of {len(found.change)} traces"
        return Answer("windows", question, "signal" if those else "none", f"{told}.", test)

    def _levels(self) -> Answer:
        found = self.leakage
        question = "Which frequencies were removed, and more of them than noise has?"
        test = (
            f"Signal where more of a level was removed from a trace than from simulated noise, at a false discovery "
            f"rate of {leakage.RATE:.0%}."
        )
        if not np.isfinite(found.p_value).any():
            return Answer("levels", question, "untested", "No trace with noise is long enough.", test)
        runs = np.flatnonzero(np.diff(np.concatenate([[False], found.levels, [False]]).astype(int))).reshape(-1, 2)
        names = [self.band(first, stop - 1) for first, stop in runs[::-1].tolist()]
        told = f"More than noise from {' and '.join(names)}." if names else "No more than noise from any level."
        return Answer("levels", question, "signal" if names else "none", told, test)

    def band(self, first: int, last: int) -> str:
        """The frequencies from one level, counted from 0, to a coarser one or itself."""
        low, high = 0.5 / 2 ** (last + 1), 0.5 / 2**first
        if last == self.leakage.noise.shape[1] - 1:
            low = 0.0
        rate, unit = (1.0, "cycles a sample") if self.interval is None else (1 / self.interval, "Hz")
        return f"{low * rate:.3g} to {high * rate:.3g} {unit}"

    def _lateral(self) -> Answer:
        values, null = self.leakage.lateral
        question = "Does what was removed go on from trace to trace?"
        test = (
            f"Signal, or noise that crosses the spread, where a window of what was removed correlates with the next "
            f"trace more than in simulated noise, at a rate of {leakage.RATE:.0%}."
        )
        if not np.isfinite(values).any():
            return Answer("lateral", question, "untested", "Needs two traces without gaps.", test)
        those = int(rejected(p_values(values, null), leakage.RATE).sum())
        told = f"In {those} of {int(np.isfinite(values).sum())} windows of neighbouring traces."
        return Answer("lateral", question, "signal" if those else "none", told, test)

    def _shifts(self) -> Floats:
        """Samples by which first breaks moved."""
        known = self.first_breaks[np.isfinite(self.first_breaks).all(axis=1)]
        return np.asarray(known[:, 1] - known[:, 0])

    def _breaks(self) -> Answer:
        moved = self._shifts()
        question = "Did first breaks move?"
        test = (
            f"Moved if the median shift is a sample or more and the sign test has a p-value below {MOVED:.0%}; needs "
            f"{FEWEST_PICKS} first breaks."
        )
        if not moved.size:
            return Answer("breaks", question, "untested", "No first break was found.", test)
        middle = float(np.median(moved))
        most = np.abs(moved).max()
        told = f"First breaks of {moved.size} traces: median shift {middle:+g} samples, largest {most:g}."
        if moved.size < FEWEST_PICKS:
            return Answer("breaks", question, "untested", told, test)
        changed = False
        if abs(middle) >= 1:
            from scipy.stats import binomtest

            changed = bool(binomtest(int((moved > 0).sum()), int((moved != 0).sum())).pvalue < MOVED)
        return Answer("breaks", question, "signal" if changed else "none", told, test)

    def _unchanged(self) -> Answer:
        gaps = np.isnan(self.noisy)
        dead = sum(bool(constant(own[None], gaps=True)[0]) for own in self.noisy if not np.isnan(own).all())
        with np.errstate(invalid="ignore"):
            same = int((((self.removed == 0) | gaps).all(axis=1)).sum())
        told = f"As they were: {same} of {len(self.noisy)} traces, {dead} of them dead (constant)"
        told += f"; {gaps.sum()} of {gaps.size} samples are in gaps, masked or not finite."
        told = " ".join([told, *self.notes])
        return Answer("unchanged", "What was left as it was?", "untested", told, "For information.")


def decibels(growth: float) -> float:
    """Of the error's energy, from its growth over the noise's; at most a gain of 30 dB can be told."""
    return float(10 * np.log10(max(1 + growth, 1e-3)))


def report(
    noisy: ArrayLike,
    denoised: ArrayLike,
    denoise: Callable[[Array], ArrayLike] | None = None,
    *,
    interval: float | None = None,
    noise_window: tuple[int, int] | None = None,
    name: str = "",
    samples: int = 1 << 23,
    seed: int = 0,
) -> TrustReport:
    """Test whether there is signal in what a denoise removed, and whether it did harm.

    The noise's spectrum is estimated from the quiet windows of the noisy traces. Noise of this spectrum goes through
    the same denoise: what is removed from a window and from noise alone is compared. Harm is estimated without knowing
    the signal, as in Stein's unbiased risk estimate: docs/trust.md has the formulas and how often they are right.

    Parameters
    ----------
    noisy, denoised : array_like (..., samples)
        Traces before and after; the last axis is time, neighbours along the others are neighbours in space. NaN and
        masked samples are gaps.
    denoise : callable, optional
        What made ``denoised`` from ``noisy``: takes rows (traces, samples) in float64 and returns them denoised.
        Without it, noise is compared as if all of it were removed, which finds less.
    interval : float, optional
        Sampling interval in seconds, for axes.
    noise_window : tuple of two int, optional
        First sample, and the one after the last, of samples that hold noise alone in every trace.
    name : str
        Title of the page.
    samples : int
        How many are measured at most: of larger arrays evenly spread groups of 32 neighbouring traces, and of traces
        longer than that their beginning.
    seed : int
        Of the simulated noise.

    Returns
    -------
    TrustReport

    Raises
    ------
    TypeError
        For complex samples, or what is no array of numbers.
    ValueError
        For arrays of different shapes or without samples, or a noise window that does not lie in them.
    """
    given = [np.asanyarray(a) for a in (noisy, denoised)]
    if any(np.iscomplexobj(a) for a in given):
        raise TypeError("the trust report needs real samples, not complex ones: take a part or the modulus")
    if given[0].shape != given[1].shape:
        raise ValueError(f"arrays of shapes {given[0].shape} and {given[1].shape} are not the same traces")
    rows = [take(a, -1).rows for a in given]
    traces, part, notes = _sample(len(rows[0]), rows[0].shape[1], samples)
    x, y = (np.asarray(own[traces, part], np.float64) for own in rows)
    x, y = (np.where(np.isfinite(own), own, np.nan) for own in (x, y))
    quiet = None
    if noise_window is not None:
        quiet = slice(*noise_window)
        if not 0 <= quiet.start <= quiet.stop - leakage.CELL or quiet.stop > rows[0].shape[1]:
            size = f"{leakage.CELL} of {rows[0].shape[1]} samples or more"
            raise ValueError(f"the noise window {noise_window} must have {size}")

    def run(rows: Floats) -> Floats:
        assert denoise is not None
        return np.asarray(denoise(rows), np.float64)

    found = leakage.find(x, x - y, None if denoise is None else run, quiet, seed)
    breaks = picking.first_breaks(x / found.unit, y / found.unit, found.noise @ widths(found.noise.shape[1]))
    return TrustReport(x, y, found, breaks, traces, interval, name, notes)


def _sample(traces: int, samples: int, most: int) -> tuple[Counts, slice, tuple[str, ...]]:
    """The traces and samples of an array that are measured, and notes if those are not all."""
    length = min(samples, most)
    count = max(1, most // length)
    notes = [f"Only the first {length} of {samples} samples were measured."] if length < samples else []
    if traces <= count:
        return np.arange(traces), slice(length), tuple(notes)
    groups = max(1, count // NEIGHBOURS)
    starts = np.linspace(0, traces - min(NEIGHBOURS, count), groups).astype(int)
    found = np.unique((starts[:, None] + np.arange(min(NEIGHBOURS, count))).ravel())
    notes.append(f"A sample of {len(found)} of {traces} traces was measured, in groups of {NEIGHBOURS} neighbours.")
    return found, slice(length), tuple(notes)
