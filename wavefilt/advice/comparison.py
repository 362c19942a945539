"""`wavefilt.compare`: rank methods on a record of one's own by an estimate of their error."""

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

from . import harm
from .criterion import Criterion, Risk, methods_of, standard_error

MOST = 1 << 18
"""Most samples on which methods are compared; of more, some of the traces are used."""
MUCH = 0.5
"""Share of the energy in undeclared noise above which a note asks for a declaration."""
JUDGED = 3
"""Methods, the best first, that the test of the trust report is applied to."""
ROWS = 9
"""Most methods in the table, which with its head has ten lines."""
Progress = Callable[[Sequence[str]], Iterable[str]]
"""Takes the names of the methods and yields them one by one, as `tqdm.tqdm` does with a bar."""


@dataclass(frozen=True)
class Trial:
    """A method on these samples.

    Attributes
    ----------
    options : dict
        Options of `wavefilt.denoise`.
    name : str
        The options in a few words.
    gain_db, gain_error_db : float
        Estimated ratio of the energy of the noise to that of the remaining error, in dB, and its standard error. The
        risk is taken to be at least its standard error, because the estimate can be 0 or less.
    risk, error : float
        Estimated mean square error over the variance of the noise, mean over traces, and its standard error.
    behind, behind_error : float
        Difference of the risk from that of the first method, and its standard error on the same samples.
    residual : float
        Energy of the residual over the energy of the samples about their mean.
    seconds : float
        Run time for all samples, scaled up from those that were used.
    verdict : {"harmless", "undecided", "harmful", "untested"}
        The verdict of the trust report, for the first methods; otherwise ``"untested"``.
    """

    options: dict[str, Any]
    name: str
    risk: float
    error: float
    behind: float
    behind_error: float
    residual: float
    seconds: float
    verdict: harm.Verdict = "untested"

    @property
    def gain_db(self) -> float:
        return -10 * math.log10(max(self.risk, self.error, 1e-12))

    @property
    def gain_error_db(self) -> float:
        return 10 / math.log(10) * self.error / max(self.risk, self.error, 1e-12)

    @property
    def tied(self) -> bool:
        """Whether the difference from the first method is within its standard error."""
        return self.behind <= self.behind_error

    def __repr__(self) -> str:
        return f"<Trial {self.name}: {self.gain_db:+.1f} dB>"


@dataclass(frozen=True)
class Comparison:
    """The result of `wavefilt.compare`.

    Attributes
    ----------
    trials : tuple of Trial
        All methods, the one with the lowest estimated error first.
    traces, of : int
        Number of traces on which the methods were compared, and number of live traces.
    noise : str
        Origin of the noise model with which they were ranked.
    noise_share : float
        The variance of that noise over that of the samples, median over traces.
    declared : bool
        Whether the noise was declared.
    skipped : dict
        Methods that cannot be combined with the other options, and why.
    """

    trials: tuple[Trial, ...]
    traces: int
    of: int
    noise: str
    noise_share: float
    declared: bool
    skipped: dict[str, str]
    container: Container = field(repr=False)
    samples: Array = field(repr=False)
    """A trace for the figure, (samples,), and the results of all trials, (trials, samples)."""
    denoised: Array = field(repr=False)
    interval: float | None = field(repr=False, default=None)

    @property
    def best(self) -> Trial:
        """The first method that is not harmful; the first one if none is recommended."""
        return next((trial for trial in self.trials if trial.verdict != "harmful"), self.trials[0])

    @property
    def recommended(self) -> bool:
        """Whether `best` is recommended: False if all methods are harmful."""
        return self.best.verdict != "harmful"

    @property
    def tied(self) -> tuple[Trial, ...]:
        """The first method and those that cannot be told apart from it."""
        return tuple(trial for trial in self.trials if trial.tied)

    @property
    def python(self) -> str:
        """A line of Python that denoises with the best method."""
        return self.container.python(self.best.options)

    def caution(self) -> str:
        """Return which methods are as good as the first one, "" if it is ahead of all others."""
        others = [trial.name for trial in self.tied[1:]]
        if not others:
            return ""
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        return f"within the standard error of the estimate, as good as {self.trials[0].name}: {named}"

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return a table and notes."""
        shown = self.trials if len(self.trials) <= ROWS else self.trials[: ROWS - 1]
        width = max(len(trial.name) for trial in shown)
        rows = [f"{'':{width + 2}}{'gain':>14}  {'residual':>8}  {'verdict':9}  {'time':>8}"]
        for trial in shown:
            mark = "=" if trial.tied and len(self.tied) > 1 else " "
            gain = f"{trial.gain_db:+.1f} ±{trial.gain_error_db:.1f} dB"
            verdict = "" if trial.verdict == "untested" else trial.verdict
            rows.append(
                f"{mark} {trial.name:{width}}{gain:>14}  {trial.residual:8.1%}  {verdict:9}  {trial.seconds:6.2g} s"
            )
        if rest := self.trials[len(shown) :]:
            rows.append(f"  and {len(rest)} more, from {rest[0].gain_db:+.1f} to {rest[-1].gain_db:+.1f} dB")
        return rows + [f"note: {note}" for note in self.notes()]

    def notes(self) -> list[str]:
        """Return what a user should know about the table."""
        share = f"{100 * self.noise_share:.0f} % of the energy"
        noise = f"gain in signal-to-noise ratio, estimated; noise: {self.noise}, {share}"
        notes = [noise, self.caution()]
        if not self.recommended:
            notes.append("all methods that were tested are harmful: none is recommended")
        elif self.best is not self.trials[0]:
            notes.append(f"not recommended, because harmful: {self.trials[0].name}")
        if self.best.verdict == "undecided":
            notes.append(f"whether {self.best.name} is harmful depends on the noise: give a noise window")
        if self.traces < self.of:
            notes.append(f"compared on {self.traces} of {self.of} live traces")
        if self.noise_share > MUCH and not self.declared:
            notes.append("if less of the energy is noise, this order is wrong: give a noise window")
        idle = [trial.name for trial in self.trials if trial.residual == 0]
        if idle:
            named = ", ".join(idle[:3]) + (f" and {len(idle) - 3} more" if len(idle) > 3 else "")
            notes.append(f"nothing is removed by {named}: often too few samples or traces for a level of the wavelet")
        notes += [f"left out: {name}: {why}" for name, why in self.skipped.items()]
        return [note for note in notes if note]

    def plot(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Draw the gains with their standard errors, and a trace with its residuals, as .png, .pdf or .svg.

        Raises ValueError for another ending, ImportError without matplotlib, FileExistsError, OSError.
        """
        from .comparison_figure import plot

        plot(self, Path(path), overwrite=overwrite)


class Contest:
    """Try methods on the same samples, one after the other, with common options."""

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
        self.whole = traces_of(x, common.get("sigma"), axis, axes).checked()
        self.criterion = Criterion.of(part_of(self.whole, most), seed, backend)
        self.own: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, tuple[dict[str, Any], Risk]] = {}
        self.skipped: dict[str, str] = {}

    def candidates(self, transforms: Sequence[str] = ("dwt",)) -> list[dict[str, Any]]:
        """Return all rules with each of the transforms, and for sections "fk" and "dtcwt" with their own rule."""
        found = combined(transforms, list(RULES))
        if self.whole.ndim == 2:
            found += [{"transform": transform} for transform in ("fk", "dtcwt") if transform not in transforms]
        return found

    def enter(self, own: dict[str, Any]) -> Risk:
        """Try a method with options of its own. Raises ValueError where options cannot be combined."""
        name, options = words(own), {**self.common, **own}
        if name not in self.entries:
            methods = methods_of(options, self.criterion.taken, own.get("sigma"))
            self.entries[name], self.own[name] = (options, self.criterion.risk(methods)), own
        return self.entries[name][1]

    def ranked(self) -> list[str]:
        """Return the names of all methods, the best first. Raises ValueError if there are none."""
        if not self.entries:
            raise ValueError("; ".join(f"{name}: {why}" for name, why in self.skipped.items()) or "nothing to compare")
        return sorted(self.entries, key=lambda name: self.entries[name][1].mean)

    def verdicts(self) -> dict[str, harm.Verdict]:
        """Return the verdicts on the first methods, and on more of them until one is not harmful."""
        found: dict[str, harm.Verdict] = {}
        for name in self.ranked():
            if len(found) >= JUDGED and any(verdict != "harmful" for verdict in found.values()):
                break
            options, risk = self.entries[name]
            methods = methods_of(options, self.criterion.taken, self.own[name].get("sigma"))
            found[name] = harm.verdict(self.criterion.leakages(methods, risk.denoised))
        return found

    def _noise(self) -> str:
        """Return the source of the noise model in words."""
        recording = self.whole.recording
        declared = recording.declared_noise if "sigma" not in self.common else None
        clock = replace(recording.clock(0), interval=self.whole.interval)
        return self.criterion.model.words(clock, declared.source if declared else "")

    def result(self) -> Comparison:
        """Return the comparison of all methods. Raises ValueError if there are none."""
        names, taken, verdicts = self.ranked(), self.criterion.taken, self.verdicts()
        best, factor = self.entries[names[0]][1], self.whole.rows.size / taken.rows.size
        trials = []
        for name in names:
            options, risk = self.entries[name]
            behind = risk.blocks - best.blocks
            numbers = risk.mean, risk.error, float(behind.mean()), standard_error(behind)
            verdict = verdicts.get(name, "untested")
            trials.append(Trial(options, name, *numbers, risk.residual, factor * risk.seconds, verdict))
        live = np.flatnonzero(self.criterion.variance)
        ratios = np.nanvar(taken.traces[live], axis=1) / self.criterion.variance[live]
        shown = live[np.argsort(ratios)[len(live) // 2]]
        return Comparison(
            tuple(trials),
            traces=len(live),
            of=int(self.whole.live.sum()),
            noise=self._noise(),
            noise_share=min(float(np.median(1 / np.maximum(ratios, 1e-300))), 1.0),
            declared=self.criterion.model.kind == "declared",
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
    """Rank methods on your own samples by an estimate of their error, without a clean signal.

    The error is estimated with added noise (parametric bootstrap), for Gaussian noise whose spectrum does not change
    along a trace. The three best methods are also tested as the trust report does, and a method that is found harmful
    is not recommended. How far the order can be trusted is measured in docs/quality.md.

    Parameters
    ----------
    x : array_like, pandas, xarray or DASCore object, ObsPy Stream or Trace, Recording
        As for `wavefilt.denoise` and its integrations, with time along ``axis``, along the index, or along the
        dimension "time". Never modified. NaN and masked samples are gaps; dead traces are left out. Of more than 2^18
        samples, evenly spread traces are used.
    rule, transform : str or sequence of str
        The methods are all rules, or those named (numbers are thresholds), with each of the transforms. For sections,
        "fk" and "dtcwt" with their own rule are added to all rules.
    methods : sequence of dict, optional
        Options of `denoise` for each method instead: ``[{"rule": "js", "transform": "modwt"}, {"level": 8}]``.
    sigma : {"level", "global"}, float, or tuple
        As for `denoise`, for the methods and for the noise of the estimate alike. A noise window or a number declares
        the noise, "global" declares it white. Otherwise the median spectrum of the whole trace is used if the record
        contains a quiet window, and white noise if it does not.
    wavelet, axis, axes, backend, **options
        As for `denoise`, the same for all methods. Streams and recordings take ``sigma`` in seconds, times and picks;
        with any ``axes`` they are a section.
    seed : int
        Seed of the added noise.
    progress : callable, optional
        Takes the list of names and yields them one by one: `tqdm.tqdm` draws a bar.

    Returns
    -------
    Comparison
        ``trials``, the best first, with their estimated gain; ``best``, ``tied``, ``python``, ``plot(path)``.

    Raises
    ------
    ValueError, TypeError
        As `denoise`, for options of the named methods that cannot be combined, and where no trace has noise;
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
    given = {name: value for name, value in {"wavelet": wavelet, **options}.items() if value is not None}
    contest = Contest(x, given, axis, axes, backend, seed)
    transforms = [transform] if isinstance(transform, str) else transform
    if methods is not None:
        tried = [dict(method) for method in methods]
    elif rule is not None:
        tried = combined(transforms, rule if isinstance(rule, Sequence) and not isinstance(rule, str) else [rule])
    else:
        tried = contest.candidates(transforms)
    by_name = {words(own): own for own in tried}
    for name in progress(list(by_name)):
        try:
            contest.enter(by_name[name])
        except OptionError as error:
            if rule is not None or methods is not None:
                raise
            contest.skipped[name] = str(error)
    return contest.result()


def combined(transforms: Sequence[str], rules: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the options of every rule with every transform."""
    pairs = [(transform, rule) for transform in transforms for rule in rules]
    return [{"rule": rule, **({} if transform == "dwt" else {"transform": transform})} for transform, rule in pairs]


def words(options: Mapping[str, Any]) -> str:
    """Return options in a few words; names and numbers that need no explanation stand alone."""
    alone = ("rule", "shrink", "wavelet", "transform")
    ordered = sorted(options.items(), key=lambda pair: alone.index(pair[0]) if pair[0] in alone else len(alone))
    said = [f"{value}" if name in alone and isinstance(value, str) else f"{name} {value}" for name, value in ordered]
    return ", ".join(said) or "the defaults"


def part_of(taken: Container, most: int) -> Container:
    """Return evenly spread live traces, or neighbouring traces of sections, with at most this number of samples."""
    rows, live = taken.rows, np.asarray(taken.live.reshape(taken.rows.shape[:-1]))
    if taken.ndim == 2:
        height = max(most // rows.shape[-1], min(rows.shape[1], 64))
        start = max(rows.shape[1] - height, 0) // 2
        rows = rows[:, start : start + height]
        live = np.asarray(live[:, start : start + height].any(axis=1))
    usable = np.flatnonzero(live)
    count = max(1, most * len(rows) // max(rows.size, 1))
    chosen = usable[np.linspace(0, len(usable) - 1, min(count, len(usable))).round().astype(int)] if len(usable) else []
    return replace(taken, rows=np.ascontiguousarray(rows[chosen]), sigmas=tuple(taken.sigmas[i] for i in chosen))
