"""`wavefilt.compare`: methods on one's own samples, ranked by an estimate of the error that they leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends import Backend, registry
from wavefilt.containers import Container, traces_of
from wavefilt.errors import OptionError
from wavefilt.options import Common, check_names
from wavefilt.thresholding.rules import RULES
from wavefilt.wavelets.filters import WaveletLike

from .criterion import WHOLE, Criterion, Risk, methods_of, standard_error

MOST = 1 << 18
"""Samples that methods are compared on: those of traces spread through the others, where there are more."""
MUCH = 0.5
"""Share of the energy that noise may have without a warning, where no one says what noise is."""
Progress = Callable[[Sequence[str]], Iterable[str]]
"""Is given the names of what is tried, and gives them back one by one, as `tqdm.tqdm` does with a bar."""


@dataclass(frozen=True)
class Trial:
    """A method on these samples.

    Attributes
    ----------
    options : dict
        Those of `wavefilt.denoise` that it was given.
    name : str
        These options in a few words.
    gain_db : float
        Estimated ratio of the noise's variance to the mean square error that is left, in dB; the risk is taken to be
        at least its standard error, as the estimate can be 0 or less.
    risk, error : float
        Estimated mean square error over the variance of the noise, mean over traces, and its standard error.
    behind, behind_error : float
        The risk less that of the best, and its standard error: of the difference on the same samples.
    removed : float
        Σ(x - y)²/Σx², the share of the energy that is removed.
    seconds : float
        Time of a denoise of all samples, from the time for those that were compared on.
    """

    options: dict[str, Any]
    name: str
    risk: float
    error: float
    behind: float
    behind_error: float
    removed: float
    seconds: float

    @property
    def gain_db(self) -> float:
        return -10 * math.log10(max(self.risk, self.error, 1e-12))

    @property
    def tied(self) -> bool:
        """Whether it cannot be told apart from the best: the difference is within its standard error."""
        return self.behind <= self.behind_error

    def __repr__(self) -> str:
        return f"<Trial {self.name}: {self.gain_db:+.1f} dB>"


@dataclass(frozen=True)
class Comparison:
    """What `wavefilt.compare` found.

    Attributes
    ----------
    trials : tuple of Trial
        The best first.
    traces, of : int
        How many traces the methods were compared on, and how many of them are live.
    noise : str
        Where the criterion has its noise from.
    noise_share : float
        The variance of that noise over that of the samples, median over traces.
    skipped : dict
        Methods that do not go with the other options, and why.
    """

    trials: tuple[Trial, ...]
    traces: int
    of: int
    noise: str
    noise_share: float
    skipped: dict[str, str]
    container: Container = field(repr=False)
    samples: Array = field(repr=False)
    """A trace that is shown, (samples,), and what each of `trials` makes of it (trials, samples)."""
    denoised: Array = field(repr=False)
    interval: float | None = field(repr=False, default=None)

    @property
    def best(self) -> Trial:
        return self.trials[0]

    @property
    def tied(self) -> tuple[Trial, ...]:
        """The best, and those that cannot be told apart from it."""
        return tuple(trial for trial in self.trials if trial.tied)

    @property
    def python(self) -> str:
        """A line of Python that denoises with the best."""
        return self.container.python(self.best.options)

    def caution(self) -> str:
        """What is to be said of the first places, "" if the best is well ahead."""
        others = [trial.name for trial in self.tied[1:]]
        if not others:
            return ""
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        return f"cannot be told apart from {self.best.name}, within the standard error of the estimate: {named}"

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """A table, and notes."""
        width = max(len(trial.name) for trial in self.trials)
        rows = [f"{'':{width + 2}}{'gain':>9}  {'risk':>17}  {'removed':>8}  {'time':>8}"]
        for trial in self.trials:
            mark = "=" if trial.tied and len(self.tied) > 1 else " "
            risk = f"{trial.risk:.4f} ±{trial.error:.4f}"
            numbers = f"{trial.gain_db:+6.1f} dB  {risk:>17}  {trial.removed:8.2%}  {trial.seconds:6.2g} s"
            rows.append(f"{mark} {trial.name:{width}}{numbers}")
        return rows + [f"note: {note}" for note in self.notes()]

    def notes(self) -> list[str]:
        """What a user should know of the table."""
        some = f"compared on {self.traces} of {self.of} live traces" if self.traces < self.of else ""
        left = [f"left out: {name}: {why}" for name, why in self.skipped.items()]
        told = f"risk: estimated mean square error over the noise's variance; noise {self.noise}"
        told += f", {self.noise_share:.0%} of the energy"
        much = self.noise_share > MUCH and self.noise == WHOLE
        doubt = "if so much is no noise, results are wrong: name a noise window, or sigma global if it is white"
        kept = "nothing is removed: too few samples for a level of the wavelet"
        idle = [] if any(trial.removed for trial in self.trials) else [kept]
        return [*filter(None, [self.caution(), some]), *left, told, *([doubt] if much else []), *idle]

    def plot(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Draw gains with their standard errors, and a trace before, after and removed: .png, .pdf or .svg.

        Raises ValueError for another ending, ImportError without matplotlib, FileExistsError, OSError.
        """
        from .figure import plot

        plot(self, Path(path), overwrite=overwrite)


class Contest:
    """Methods that are tried on the same samples, one after the other, with options that they have in common."""

    def __init__(
        self,
        x: Any,
        common: dict[str, Any],
        axis: int = -1,
        axes: tuple[int, int] | None = None,
        backend: str | Backend = "auto",
        seed: int = 0,
        most: int = MOST,
    ) -> None:
        self.common = common
        self.whole = traces_of(x, common.get("sigma", "level"), axis, axes).checked()
        self.criterion = Criterion.of(part_of(self.whole, most), seed, backend)
        self.own: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, tuple[dict[str, Any], Risk]] = {}
        self.skipped: dict[str, str] = {}

    def enter(self, own: dict[str, Any]) -> Risk:
        """Try a method with options of its own. Raises ValueError where they do not go with each other."""
        name, options = words(own), {**self.common, **own}
        if name not in self.entries:
            methods = methods_of(options, self.criterion.taken, own.get("sigma"))
            self.entries[name], self.own[name] = (options, self.criterion.risk(methods)), own
        return self.entries[name][1]

    def ranked(self) -> list[str]:
        """The names of all that were tried, the best first. Raises ValueError if nothing was."""
        if not self.entries:
            raise ValueError("; ".join(f"{name}: {why}" for name, why in self.skipped.items()) or "nothing to compare")
        return sorted(self.entries, key=lambda name: self.entries[name][1].mean)

    def result(self) -> Comparison:
        """All that was tried. Raises ValueError if nothing was."""
        names, taken = self.ranked(), self.criterion.taken
        best, factor = self.entries[names[0]][1], self.whole.rows.size / taken.rows.size
        trials = []
        for name in names:
            options, risk = self.entries[name]
            behind = risk.blocks - best.blocks
            numbers = risk.mean, risk.error, float(behind.mean()), standard_error(behind)
            trials.append(Trial(options, name, *numbers, risk.removed, factor * risk.seconds))
        live = np.flatnonzero(self.criterion.variance)
        ratios = np.nanvar(taken.traces[live], axis=1) / self.criterion.variance[live]
        shown = live[np.argsort(ratios)[len(live) // 2]]
        return Comparison(
            tuple(trials),
            traces=len(live),
            of=int(self.whole.live.sum()),
            noise=self.criterion.source,
            noise_share=min(float(np.median(1 / np.maximum(ratios, 1e-300))), 1.0),
            skipped=self.skipped,
            container=taken,
            samples=taken.traces[shown],
            denoised=np.array([self.entries[name][1].denoised[shown] for name in names]),
            interval=taken.interval,
        )


def compare(
    x: Any,
    wavelet: WaveletLike | None = None,
    *,
    rule: str | float | Sequence[str | float] | None = None,
    transform: str | Sequence[str] = "dwt",
    methods: Sequence[Mapping[str, Any]] | None = None,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    seed: int = 0,
    progress: Progress = iter,
    **options: Unpack[Common],
) -> Comparison:
    """Methods on one's own samples, ranked by an estimate of their error that needs no clean signal.

    The estimate is Stein's with noise that is added (Monte Carlo SURE; Ramani, Blu and Unser 2008), for Gaussian noise
    whose spectrum does not change along a trace. How far its ranks can be trusted is measured in docs/quality.md.

    Parameters
    ----------
    x : array_like, pandas, xarray or DASCore object, ObsPy Stream or Trace, Recording
        As `wavefilt.denoise` and its integrations take it, with time along ``axis``, along the index, or along the
        dimension "time". Never modified. NaN and masked samples are gaps; dead traces are left out. Where there are
        more than 2^18 samples the methods are compared on some of the traces, spread through the others.
    rule, transform : str or sequence of str
        The methods are all rules, or those named (numbers are thresholds), with each of the transforms.
    methods : sequence of dict, optional
        Options of `denoise` for each method instead: ``[{"rule": "js", "transform": "modwt"}, {"level": 8}]``.
    sigma : {"level", "global"}, float, or tuple
        As for `denoise`, for the methods and for the criterion alike, whose noise has the spectrum in a noise window
        (below 8 periods in it, that of the whole trace), is white with "global" and a number, and else has the
        spectrum of most of the trace: a signal that fills more than half of it is taken for noise.
    wavelet, axis, axes, backend, **options
        Those of `denoise`, the same for all methods. Streams and recordings take ``sigma`` in seconds, times and
        picks; any ``axes`` makes a panel of them.
    seed : int
        Of the noise that is added.
    progress : callable, optional
        Is given the list of names that are tried and gives them back one by one: `tqdm.tqdm` draws a bar.

    Returns
    -------
    Comparison
        ``trials``, the best first, with their estimated gain; ``best``, ``tied``, ``python``, ``plot(path)``.

    Raises
    ------
    ValueError, TypeError
        As `denoise`, for options of the named methods that do not go together, and where no trace has noise;
        TypeError for complex samples.

    Examples
    --------
    >>> import numpy as np
    >>> import wavefilt
    >>> t = np.arange(2000) / 1000
    >>> x = np.exp(-3 * t) * np.sin(2 * np.pi * 12 * t) + 0.3 * np.random.default_rng(0).standard_normal((24, 2000))
    >>> found = wavefilt.compare(x, rule=["bayes", "js", "universal"], sigma="global")
    >>> found.best.name
    'js'
    >>> y = wavefilt.denoise(x, **found.best.options)
    """
    check_names(options)
    registry.check_name(backend)
    common = {"wavelet": wavelet, **options}
    tried: list[dict[str, Any]]
    if methods is not None:
        tried = [dict(method) for method in methods]
    else:
        named = (
            list(RULES)
            if rule is None
            else rule
            if isinstance(rule, Sequence) and not isinstance(rule, str)
            else [rule]
        )
        kinds = [transform] if isinstance(transform, str) else transform
        tried = [{"rule": one, **({"transform": kind} if kind != "dwt" else {})} for kind in kinds for one in named]
    given = {name: value for name, value in common.items() if value is not None}
    contest = Contest(x, given, axis, axes, backend, seed)
    by_name = {words(own): own for own in tried}
    for name in progress(list(by_name)):
        try:
            contest.enter(by_name[name])
        except OptionError as error:
            if rule is not None or methods is not None:
                raise
            contest.skipped[name] = str(error)
    return contest.result()


def words(options: Mapping[str, Any]) -> str:
    """Options in a few words: names and numbers that say what they are stand alone."""
    alone = ("rule", "shrink", "wavelet", "transform")
    ordered = sorted(options.items(), key=lambda pair: alone.index(pair[0]) if pair[0] in alone else len(alone))
    told = [f"{value}" if name in alone and isinstance(value, str) else f"{name} {value}" for name, value in ordered]
    return ", ".join(told) or "the defaults"


def part_of(taken: Container, most: int) -> Container:
    """Some of the live traces, spread through them, or neighbouring ones of a panel, of together so many samples."""
    rows, live = taken.rows, np.asarray(taken.live.reshape(taken.rows.shape[:-1]))
    if taken.dimensions == 2:
        height = max(most // rows.shape[-1], min(rows.shape[1], 64))
        start = max(rows.shape[1] - height, 0) // 2
        rows = rows[:, start : start + height]
        live = np.asarray(live[:, start : start + height].any(axis=1))
    usable = np.flatnonzero(live)
    count = max(1, most * len(rows) // max(rows.size, 1))
    chosen = usable[np.linspace(0, len(usable) - 1, min(count, len(usable))).round().astype(int)] if len(usable) else []
    return replace(taken, rows=np.ascontiguousarray(rows[chosen]), sigmas=tuple(taken.sigmas[i] for i in chosen))
