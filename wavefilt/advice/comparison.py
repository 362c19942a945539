"""`wavefilt.compare` and `wavefilt.tune`: rank methods on a record of one's own by an estimate of their error.

The mean result of several methods (the pilot) is taken as the signal. Noise with the spectrum of the noise of the
record is added to it, and the error of any method on these samples is known: the parametric bootstrap (Efron 2004).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from wavefilt.api import run, run_with_noise
from wavefilt.arrays import Array, Floats
from wavefilt.backends import Backend, registry
from wavefilt.containers import Container, traces_of
from wavefilt.noise import for_ranking
from wavefilt.options import Common, NoiseForm, Options, check_names, common_noise, completed
from wavefilt.recording import supports
from wavefilt.report import some
from wavefilt.thresholding.rules import RULES
from wavefilt.wavelets.filters import WaveletLike

from . import harm

MOST = 1 << 18
"""Most samples on which methods are compared; of more, some of the traces are used."""
MUCH = 0.5
"""Share of the energy in undeclared noise above which a note asks for a declaration."""
KEPT = 3
"""Methods, the best ones, that the test of the trust report is applied to, and of which `tune` changes every option."""
ROWS = 9
"""Most methods in the table, which with its head has ten lines."""
GRID: dict[str, tuple[Any, ...]] = {
    "transform": ("modwt", "dtcwt", "fk"),
    "wavelet": ("haar", "db4", "sym8", "coif3"),
    "level": (3, 4, 6, 7, 8),
    "shrink": ("hard", "firm", "mean"),
    "sigma": ("level", "global"),
    "mode": ("reflect", "periodization"),
}
"""Options that `tune` changes, in this order, and their values."""
PILOTS: tuple[dict[str, Any], ...] = (
    {"rule": "js", "wavelet": "sym8", "transform": "modwt"},
    {"rule": "js", "wavelet": "sym8"},
    {"rule": "bayes", "transform": "modwt"},
    {"rule": "sure", "level": 8},
    {"rule": "fdr", "transform": "modwt"},
    {"rule": "bayes"},
)
"""Methods of the pilot, with fewer levels where the samples allow no more; for sections only those with the DWT."""
AVERAGED = 3
"""The best ones of these, whose mean is the pilot."""
PROBES = 4
"""Draws of noise that are added to the pilot."""
BLOCKS = 32
"""Fewest parts of the samples whose errors give the standard error of the mean."""
Progress = Callable[[Sequence[str]], Iterable[str]]
"""Takes the names of the methods and yields them one by one, as `tqdm.tqdm` does with a bar."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A method on these samples.

    Attributes
    ----------
    options : dict
        Options of `wavefilt.denoise`.
    name : str
        The options in a few words.
    gain_db, gain_error_db : float
        Estimated ratio of the energy of the noise to that of the remaining error, in dB, and its standard error.
    tied : bool
        Whether the difference from the first method is within its standard error.
    residual : float
        Energy of the residual over the energy of the samples about their mean.
    verdict : {"harmless", "undecided", "harmful", "untested"}
        The verdict of the trust report, for the first methods; otherwise ``"untested"``.
    """

    options: dict[str, Any]
    name: str
    gain_db: float
    gain_error_db: float
    residual: float
    own: Mapping[str, Any] = field(repr=False)
    """The options that differ from those of all methods."""
    denoised: Array = field(repr=False)
    errors: Floats = field(repr=False)
    """Errors over the power of the noise, by blocks of the samples."""
    tied: bool = False
    verdict: harm.Verdict = "untested"


class Comparison:
    """The result of `wavefilt.compare` and `wavefilt.tune`.

    Attributes
    ----------
    trials : tuple of Trial
        All methods, the one with the lowest estimated error first.
    traces, of : int
        Number of traces on which the methods were compared, and number of live traces.
    model : wavefilt.noise.NoiseModel
        The noise with which they were ranked.
    noise_share : float
        The variance of that noise over that of the samples, median over traces.
    skipped : dict
        Methods that cannot be combined with the other options, and why.
    complete : bool
        Whether all methods were tried before the time limit.
    """

    def __init__(
        self,
        x: Any,
        given: dict[str, Any],
        axis: int,
        axes: tuple[int, int] | None,
        backend: str | Backend,
        most: int,
    ) -> None:
        self.given, self.backend = given, backend
        self.whole = traces_of(x, given.get("sigma"), axis, axes).checked()
        self.common = {name: value for name, value in given.items() if name != "sigma"}
        # a noise window that headers declare, not the user, is left out of methods that do not support it
        self.declared = None if "sigma" in given else self.whole.recording.declared_noise
        self.taken = _part_of(self.whole, most)
        self.x, rows = self.taken.traces, self.taken.rows
        self.sigma = common_noise(self.taken.sigmas)
        self.model = for_ranking(self.x, self.sigma)
        self.variance = self.model.variance * self.taken.live
        if not self.variance.any():
            why = "`sigma` is 0" if self.sigma == 0 else "their samples are equal, missing or too few"
            raise ValueError(f"no trace has noise to compare by: {why}")
        rng = np.random.default_rng(0)
        self.probes = [self.model.draw(rng).astype(rows.dtype).reshape(rows.shape) for _ in range(PROBES)]
        self.pilot = self._estimated_signal()
        live = self.variance > 0
        shares = self.variance[live] / np.maximum(np.nanvar(self.x[live].astype(np.float64), axis=1), 1e-300)
        self.traces, self.of = len(shares), int(self.whole.live.sum())
        self.noise_share = min(float(np.median(shares)), 1)
        self.trials: tuple[Trial, ...] = ()
        self.skipped: dict[str, str] = {}
        self.complete = True

    def attempt(self, methods: Sequence[Mapping[str, Any]], progress: Progress, end: float = math.inf) -> bool:
        """Try methods until the time limit, rank all, and return whether the limit was not reached.

        Methods whose options cannot be combined are skipped.
        """
        tried = {trial.name: trial for trial in self.trials}
        by_name = {_words(own): own for own in methods}
        for name in progress(list(by_name)):
            if time.monotonic() > end:
                self.complete = False
                break
            try:
                if name not in tried:
                    tried[name] = self._try(name, by_name[name])
            except ValueError as error:
                self.skipped[name] = str(error)
        self.trials = tuple(sorted(tried.values(), key=lambda trial: float(trial.errors.mean())))
        return self.complete

    def judge(self) -> Comparison:
        """Test the first methods, and more of them until one is not harmful.

        Raises ValueError if there are no methods, or if none removes anything.
        """
        if not self.trials:
            raise ValueError("; ".join(dict.fromkeys(self.skipped.values())) or "nothing to compare")
        if not any(trial.residual for trial in self.trials):
            raise ValueError(
                "no method removes anything: too few samples or traces for a level, no noise, or thresholds of 0"
            )
        judged = list[Trial]()
        for trial in self.trials:
            behind = trial.errors - self.trials[0].errors
            tied = bool(behind.mean() <= _standard_error(behind))
            wanted = len(judged) < KEPT or all(before.verdict in ("harmful", "untested") for before in judged)
            judged.append(replace(trial, tied=tied, verdict=self._verdict(trial) if wanted else "untested"))
        self.trials = tuple(judged)
        return self

    def _try(self, name: str, own: Mapping[str, Any]) -> Trial:
        """Denoise and estimate the error. Raises ValueError where options cannot be combined."""
        method = {**self.common, **own}
        y = self._denoised(method, self.taken.rows).reshape(self.x.shape)
        x = self.x[self.variance > 0].astype(np.float64)
        share = np.nansum((x - y[self.variance > 0]) ** 2) / np.nansum((x - np.nanmean(x, axis=1, keepdims=True)) ** 2)
        errors = self._errors(method)
        errors = errors if share else np.ones_like(errors)  # all noise remains, whatever a few draws suggest
        uncertainty = _standard_error(errors)
        risk = max(float(errors.mean()), uncertainty, 1e-12)  # the estimate can be 0
        gain, gain_error = 10 * math.log10(1 / risk), 10 / math.log(10) * uncertainty / risk
        return Trial({**self.given, **own}, name, gain, gain_error, float(share), own, y, errors)

    def candidates(self, transforms: Sequence[str], rules: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the options of every rule with every transform; for sections and all rules also "fk" and "dtcwt"."""
        pairs = [(transform, rule) for transform in transforms for rule in rules]
        found = [
            {"rule": rule, **({} if transform == "dwt" else {"transform": transform})} for transform, rule in pairs
        ]
        if self.taken.ndim == 2 and rules == list(RULES):
            found += [{"transform": transform} for transform in ("fk", "dtcwt") if transform not in transforms]
        return found

    def presets(self) -> list[dict[str, Any]]:
        """Return the recipe and the preset "strong" for traces; "gentle" and "section" are among the rules."""
        data = {**self.whole.recording.recipe, "seismic": True}
        return [] if self.taken.ndim == 2 else [completed({}, preset, **data) for preset in (None, "strong")]

    def _estimated_signal(self) -> Array:
        """Return the mean result of the best of `PILOTS`, by their errors if the mean of all were the signal."""
        pilots, ndim = [], self.taken.ndim
        for pilot in PILOTS if ndim == 1 else [pilot for pilot in PILOTS if "transform" not in pilot]:
            options = Options(**{**pilot, "level": None}, ndim=ndim)
            deepest = options.deepest(*self.taken.rows.shape[1:])
            own = {**pilot, "level": min(pilot["level"], deepest)} if "level" in pilot else dict(pilot)
            if not all(supports(options, sigma, self.taken.rows.shape[-2]) for sigma in set(self.taken.sigmas)):
                own["sigma"] = "level"  # the noise window is too short for the filter
            pilots.append(own)
        results = np.array([self._denoised(pilot, self.taken.rows) for pilot in pilots])
        self.pilot = results.mean(axis=0)
        order = np.argsort([self._errors(pilot).mean() for pilot in pilots])
        return np.asarray(results[order[:AVERAGED]].mean(axis=0))

    def _errors(self, method: Mapping[str, Any]) -> Floats:
        """Return the errors of denoising the pilot with noise, over the power of that noise, by blocks."""
        error: Array = np.zeros(self.x.shape)
        for probe in self.probes:
            found = self._denoised(method, self.pilot + probe)
            error += np.square(found - self.pilot, dtype=np.float64).reshape(self.x.shape) / PROBES
        used = self.variance > 0
        known, error = ~np.isnan(error[used]), np.asarray(np.nan_to_num(error[used]))
        error *= (error.shape[1] / known.sum(axis=1) / self.variance[used])[:, None]
        parts = min(math.ceil(BLOCKS / len(error)), error.shape[1])  # may differ in length
        blocks = [part.sum(axis=1) * parts / error.shape[1] for part in np.array_split(error, parts, axis=1)]
        return np.concatenate(blocks)

    def _denoised(self, method: Mapping[str, Any], rows: Array, sigmas: Sequence[NoiseForm] = ()) -> Array:
        """Denoise rows with the noise of the method, or else with ``sigmas``, by default the noise of the samples."""
        options = Options(**method, ndim=self.taken.ndim)
        if "sigma" in method:
            return run(rows, options, self.backend).samples
        sigmas = sigmas or self.taken.sigmas
        if self.declared:
            usable = {sigma for sigma in set(sigmas) if supports(options, sigma, rows.shape[-2])}
            sigmas = [sigma if sigma in usable else options.sigma for sigma in sigmas]
        return run_with_noise(rows, options, sigmas, self.backend).samples

    def _verdict(self, trial: Trial) -> harm.Verdict:
        """Return the verdict of the trust report on a method, for sections on the first one."""
        taken = self.taken
        count = taken.rows.shape[1] if taken.ndim == 2 else len(taken.rows)

        def again(rows: Floats) -> Array:
            own = rows.astype(taken.rows.dtype).reshape(-1, *rows.shape[2 - taken.ndim :])
            return self._denoised({**self.common, **trial.own}, own, [self.sigma] * len(own)).reshape(rows.shape)

        return harm.verdict(harm.find(self.x[:count], trial.denoised[:count], again, self.sigma))

    @property
    def noise(self) -> str:
        """Origin of the noise model in words."""
        clock = replace(self.whole.recording.clock(0), interval=self.whole.interval)
        return self.model.words(clock, self.declared.source if self.declared else "")

    @property
    def best(self) -> Trial:
        """The first method that is not harmful; the first one if none is recommended."""
        return next((trial for trial in self.trials if trial.verdict != "harmful"), self.trials[0])

    @property
    def recommended(self) -> bool:
        """Whether `best` is recommended: False if all methods are harmful."""
        return self.best.verdict != "harmful"

    @property
    def options(self) -> dict[str, Any]:
        """Options of `wavefilt.denoise` for the best method."""
        return self.best.options

    @property
    def python(self) -> str:
        """A line of Python that denoises with the best method."""
        return self.taken.python(self.options)

    @property
    def tied(self) -> tuple[Trial, ...]:
        """The first method and all methods that cannot be distinguished from it."""
        return tuple(trial for trial in self.trials if trial.tied)

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return a table and notes."""
        shown = self.trials if len(self.trials) <= ROWS else self.trials[: ROWS - 1]
        width = max(len(trial.name) for trial in shown)
        rows = [f"{'':{width + 2}}{'gain':>14}  {'residual':>8}  verdict"]
        for trial in shown:
            mark = "=" if trial.tied and len(self.tied) > 1 else " "
            gain = f"{trial.gain_db:+.1f} ±{trial.gain_error_db:.1f} dB"
            verdict = "" if trial.verdict == "untested" else trial.verdict
            rows.append(f"{mark} {trial.name:{width}}{gain:>14}  {trial.residual:8.1%}  {verdict}".rstrip())
        if rest := self.trials[len(shown) :]:
            rows.append(f"  and {len(rest)} more, from {rest[0].gain_db:+.1f} to {rest[-1].gain_db:+.1f} dB")
        return rows + [f"note: {note}" for note in self.notes()]

    def notes(self) -> list[str]:
        """Return notes on the table for the user."""
        share = f"{100 * self.noise_share:.0f} % of the energy"
        notes = [f"gain in signal-to-noise ratio, estimated; noise: {self.noise}, {share}"]
        if not self.complete:
            notes.append("stopped at the time limit; the search was not finished")
        if others := [trial.name for trial in self.tied[1:]]:
            notes.append(f"within the standard error of the estimate, as good as {self.trials[0].name}: {some(others)}")
        if not self.recommended:
            notes.append("all methods that were tested are harmful: none is recommended")
        elif self.best is not self.trials[0]:
            notes.append(f"not recommended, because harmful: {self.trials[0].name}")
        if self.best.verdict == "undecided":
            notes.append(f"whether {self.best.name} is harmful depends on the noise: give {self.model.advice}")
        if self.traces < self.of:
            notes.append(f"compared on {self.traces} of {self.of} live traces")
        if self.noise_share > MUCH and self.model.kind != "declared":
            notes.append("if less of the energy is noise, this order is wrong: give a noise window")
        if idle := [trial.name for trial in self.trials if trial.residual == 0]:
            notes.append(f"nothing is removed by {some(idle)}: often too few samples or traces for a level")
        shorter = dict[tuple[str, str], None]()
        for trial in self.trials if self.taken.ndim == 2 else ():
            options = Options(**{**trial.options, "sigma": "level"}, ndim=2)
            used = options.fitting(*self.taken.rows.shape[1:]).filters.name
            if used != options.filters.name:
                shorter[options.filters.name, used] = None
        notes += [f"{used} is used instead of {name}, because there are few traces" for name, used in shorter]
        return notes + [f"left out: {name}: {why}" for name, why in self.skipped.items()]


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
        the noise, "global" declares it white. Windows that differ between traces declare it where they overlap.
        Otherwise the median spectrum of the whole trace is used if the record contains a quiet window, and the
        spectrum of the three highest octaves, extrapolated, if it does not.
    wavelet, axis, axes, backend, **options
        As for `denoise`, the same for all methods. Streams and recordings take ``sigma`` in seconds, times and picks;
        with any ``axes`` they are a section.
    progress : callable, optional
        Takes the list of names and yields them one by one: `tqdm.tqdm` draws a bar.

    Returns
    -------
    Comparison
        ``trials``, the best first, with their estimated gain; ``best``, ``tied``, ``python``. Methods that cannot be
        combined with the other options are ``skipped``.

    Raises
    ------
    ValueError, TypeError
        As `denoise`, if no method can be combined with the other options, and where no trace has noise; TypeError for
        complex samples.

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
    found = Comparison(x, given, axis, axes, backend, MOST)
    if methods is None:
        rules = [rule] if isinstance(rule, str) or not isinstance(rule, Sequence) else rule
        transforms = [transform] if isinstance(transform, str) else transform
        methods = found.candidates(transforms, list(RULES) if rule is None else rules)
        if rule is None and set(given) <= {"sigma"}:
            methods = [*found.presets(), *methods]
    found.attempt(methods, progress)
    return found.judge()


def tune(
    x: Any,
    *,
    seconds: float = 30.0,
    sigma: NoiseForm | None = None,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    progress: Progress = iter,
) -> Comparison:
    """Search for the method with the lowest estimated error on your own samples.

    All rules with the default options are compared as `wavefilt.compare` does. Then transform, wavelet, level,
    threshold function, noise and boundary mode are changed, one after the other, in the three best methods so far. Of
    many traces, some are used.

    Parameters
    ----------
    x, axis, axes, backend, progress
        As for `wavefilt.compare`.
    seconds : float
        Time limit of the search. The rules with default options are always compared.
    sigma
        As for `wavefilt.compare`: the noise, which may be changed to "level" or "global" for single methods.

    Returns
    -------
    Comparison
        ``options`` and ``python`` have the best method.

    Raises
    ------
    ValueError, TypeError
        As `wavefilt.compare`, and if ``seconds`` is not a positive number.

    Examples
    --------
    >>> import numpy as np
    >>> import wavefilt
    >>> t = np.arange(2000) / 1000
    >>> x = np.exp(-3 * t) * np.sin(2 * np.pi * 12 * t) + 0.3 * np.random.default_rng(0).standard_normal((4, 2000))
    >>> found = wavefilt.tune(x, sigma="global", seconds=1)
    >>> y = wavefilt.denoise(x, **found.options)
    """
    if not seconds > 0:
        raise ValueError(f"`seconds` must be a positive number, not {seconds!r}")
    end = time.monotonic() + seconds
    found = Comparison(x, {} if sigma is None else {"sigma": sigma}, axis, axes, backend, MOST // 4)
    found.attempt([*found.presets(), *found.candidates(["dwt"], list(RULES))], progress)
    for option, values in GRID.items():
        if option == "sigma" and (found.declared is not None or isinstance(sigma, tuple)):
            continue  # the noise is declared
        best = [trial.own for trial in found.trials[:KEPT]]
        changed = [{**own, option: value} for own in best for value in values if value != own.get(option)]
        if not found.attempt(changed, progress, end=end):
            break
    found.skipped.clear()
    found.trials = _different(found.trials)
    return found.judge()


def _different(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return one trial for each different result: the one with the fewest options."""
    found = dict[bytes, Trial]()
    for trial in sorted(trials, key=lambda trial: len(trial.own)):
        found.setdefault(trial.errors.tobytes(), trial)
    return tuple(trial for trial in trials if found[trial.errors.tobytes()] is trial)


def _standard_error(values: Floats) -> float:
    """Return the standard error of the mean of independent values."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def _words(options: Mapping[str, Any]) -> str:
    """Return options in a few words; names and numbers that need no explanation stand alone."""
    alone = ("rule", "shrink", "wavelet", "transform")
    ordered = sorted(options.items(), key=lambda pair: alone.index(pair[0]) if pair[0] in alone else len(alone))
    said = [f"{value}" if name in alone and isinstance(value, str) else f"{name} {value}" for name, value in ordered]
    return ", ".join(said) or "the defaults"


def _part_of(taken: Container, most: int) -> Container:
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
