"""`wavefilt.tune`: the method with the least estimated error, found by changing one option after the other."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wavefilt.backends import Backend
from wavefilt.errors import OptionError
from wavefilt.options import NoiseForm
from wavefilt.thresholding.rules import RULES

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
"""What is tried beside the rules, in this order, at the values that the best methods do not have."""


@dataclass(frozen=True)
class Tuning:
    """What `wavefilt.tune` found.

    Attributes
    ----------
    options : dict
        Those of `wavefilt.denoise` for the best method.
    python : str
        A line of Python that denoises with it.
    comparison : Comparison
        Everything that was tried, the best first.
    complete : bool
        Whether the search ended before its time was over.
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
        """What a user should know of the choice."""
        best, tried = self.comparison.best, len(self.comparison.trials)
        rest = "" if self.complete else ", and the time was over before the search was: a longer one may find better"
        gain = f"{best.gain_db:+.1f} dB estimated, the best of {tried} methods tried{rest}"
        default = next((trial for trial in self.comparison.trials if trial.name == "bayes"), None)
        beside = [] if default is None else [f"the default rule, bayes: {default.gain_db:+.1f} dB"]
        return [gain, *beside, *self.comparison.notes()]


def tune(
    x: Any,
    *,
    seconds: float = 30.0,
    sigma: NoiseForm = "level",
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    seed: int = 0,
    progress: Progress = iter,
) -> Tuning:
    """The method of least estimated error on one's own samples: wavelet, level, rule, shrink, transform, and others.

    All rules with the defaults are compared as `wavefilt.compare` does. Then one option after the other is changed
    in the three best methods so far, and kept where the estimate is lower. On many traces, some of them are used.

    Parameters
    ----------
    x, axis, axes, backend, seed, progress
        As for `wavefilt.compare`.
    seconds : float
        After which no more methods are tried; the rules with the defaults all are.
    sigma
        As for `wavefilt.compare`: the noise, which for the methods may be changed to "level" or "global".

    Returns
    -------
    Tuning
        ``options``, ``python`` and ``comparison``.

    Raises
    ------
    ValueError, TypeError
        As `wavefilt.compare`, and for ``seconds`` that are not a positive number.

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
        raise ValueError(f"seconds={seconds!r} must be a positive number")
    end = time.monotonic() + seconds
    common = {} if sigma == "level" else {"sigma": sigma}
    contest = Contest(x, common, axis, axes, backend, seed, MOST // 4)
    _try(contest, [{"rule": rule} for rule in list(RULES)], progress, None)
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
    """Try methods, but for those whose options do not go together, until the time is over: whether it was not."""
    by_name = {words(own): own for own in methods}
    for name in progress(list(by_name)):
        if end is not None and time.monotonic() > end:
            return False
        with suppress(OptionError if end is None else ValueError):  # some say of filters that they are of another kind
            contest.enter(by_name[name])
    return True
