"""`wavefilt.tune`: search for the method with the lowest estimated error by changing one option after the other."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wavefilt.backends import Backend
from wavefilt.errors import OptionError
from wavefilt.options import NoiseForm

from .comparison import MOST, Comparison, Contest, Progress, words

KEPT = 3
"""Methods, the best so far, of which every option is changed."""
GRID: dict[str, tuple[Any, ...]] = {
    "transform": ("modwt", "dtcwt", "fk"),
    "wavelet": ("haar", "db4", "sym8", "coif3"),
    "level": (3, 4, 6, 7, 8),
    "shrink": ("hard", "firm", "mean"),
    "sigma": ("level", "global"),
    "mode": ("reflect", "periodization"),
}
"""Options that are changed, in this order, and their values."""


@dataclass(frozen=True)
class Tuning:
    """The result of `wavefilt.tune`.

    Attributes
    ----------
    options : dict
        Options of `wavefilt.denoise` for the best method.
    python : str
        A line of Python that denoises with it.
    comparison : Comparison
        All methods that were tried, the best first.
    complete : bool
        Whether the search was finished before the time limit.
    """

    comparison: Comparison
    complete: bool

    @property
    def options(self) -> dict[str, Any]:
        return self.comparison.best.options

    @property
    def python(self) -> str:
        return self.comparison.python

    def __repr__(self) -> str:
        return "\n".join([self.python, *(f"note: {note}" for note in self.notes())])

    def notes(self) -> list[str]:
        """Return what a user should know about the choice."""
        best, tried = self.comparison.best, len(self.comparison.trials)
        verdict = "" if best.verdict == "untested" else f", {best.verdict}"
        notes = [f"{best.gain_db:+.1f} dB estimated{verdict}, the best of {tried} methods"]
        if not self.complete:
            notes.append("stopped at the time limit; the search was not finished")
        default = next((trial for trial in self.comparison.trials if trial.name == "bayes"), None)
        if default is not None:
            notes.append(f"the default rule, bayes: {default.gain_db:+.1f} dB")
        return [*notes, *self.comparison.notes()]


def tune(
    x: Any,
    *,
    seconds: float = 30.0,
    sigma: NoiseForm | None = None,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    seed: int = 0,
    progress: Progress = iter,
) -> Tuning:
    """Search for the method with the lowest estimated error on your own samples.

    All rules with the default options are compared as `wavefilt.compare` does. Then transform, wavelet, level,
    threshold function, noise and boundary mode are changed, one after the other, in the three best methods so far. Of
    many traces, some are used.

    Parameters
    ----------
    x, axis, axes, backend, seed, progress
        As for `wavefilt.compare`.
    seconds : float
        Time limit of the search. The rules with default options are always compared.
    sigma
        As for `wavefilt.compare`: the noise, which may be changed to "level" or "global" for single methods.

    Returns
    -------
    Tuning
        ``options``, ``python`` and ``comparison``.

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
    common = {} if sigma is None else {"sigma": sigma}
    contest = Contest(x, common, axis, axes, backend, seed, MOST // 4)
    _try(contest, contest.candidates(), progress, None)
    complete = True
    for option, values in GRID.items():
        best = [contest.own[name] for name in contest.ranked()[:KEPT]]
        changed = [{**own, option: value} for own in best for value in values if value != own.get(option)]
        complete = _try(contest, changed, progress, end)
        if not complete:
            break
    contest.skipped.clear()
    return Tuning(contest.result(), complete)


def _try(contest: Contest, methods: list[dict[str, Any]], progress: Progress, end: float | None) -> bool:
    """Try methods whose options can be combined until the time limit, and return whether it was not reached."""
    by_name = {words(own): own for own in methods}
    for name in progress(list(by_name)):
        if end is not None and time.monotonic() > end:
            return False
        with suppress(OptionError if end is None else ValueError):  # filters of the wrong kind raise plain ValueErrors
            contest.enter(by_name[name])
    return True
