"""The words users choose from, each list once: type hints, CLI choices, checks and documentation read them here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Real
from typing import Any, Literal, TypeGuard, get_args

from wavefilt.errors import OptionError, options

Mode = Literal[
    "zero", "constant", "symmetric", "periodic", "smooth",
    "periodization", "reflect", "antisymmetric", "antireflect",
]  # fmt: skip
Rule = Literal[
    "universal",
    "minimax",
    "sure",
    "hybrid",
    "bayes",
    "fdr",
    "blockjs",
    "neighblock",
    "js",
    "bivariate",
    "ebayes",
    "ebayes-cauchy",
]
Shrink = Literal["soft", "hard", "garrote", "firm"]
Estimator = Literal["median", "mean"]
Sigma = Literal["level", "global"]
Window = tuple[Literal["window"], int, int]
Moment = Any
"""A sample; a time in seconds, or of another kind; a pick; a list of moments."""
Scope = Literal["trace", "record"]
Transform = Literal["dwt", "modwt", "dtcwt", "fk", "wp"]
Basis = Literal["risk", "entropy", "full"]
Detrend = Literal["mean", "line"]
Hiding = Literal["product", "separate", "swapped"]
Display = Literal["seismogram", "wiggle", "density"]
TracesBy = Literal["trace", "offset", "id"]

MODES: tuple[str, ...] = get_args(Mode)
RULES: tuple[str, ...] = get_args(Rule)
SHRINKS: tuple[str, ...] = get_args(Shrink)
ESTIMATORS: tuple[str, ...] = get_args(Estimator)
SIGMAS: tuple[str, ...] = get_args(Sigma)
SCOPES: tuple[str, ...] = get_args(Scope)
TRANSFORMS: tuple[str, ...] = get_args(Transform)
BASES: tuple[str, ...] = get_args(Basis)
DETRENDS: tuple[str, ...] = get_args(Detrend)
HIDINGS: tuple[str, ...] = get_args(Hiding)
DISPLAYS: tuple[str, ...] = get_args(Display)
TRACES_BY: tuple[str, ...] = get_args(TracesBy)
PANELS = ("before", "after", "residual", "spectrograms", "spectra", "levels")
"""The panels of a figure."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check(name: str, value: object, allowed: Iterable[str], otherwise: str = "") -> None:
    """Raise an OptionError that says what came, what is allowed and the nearest word, unless ``value`` is allowed.

    ``otherwise`` names what is allowed beside the words.
    """
    words = list(allowed)
    if value in words:
        return
    near = difflib.get_close_matches(str(value), words, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    beside = f", or {otherwise}" if otherwise else ""
    raise OptionError(options(**{name: value}), f" is not one of {', '.join(words)}{beside}{hint}")
