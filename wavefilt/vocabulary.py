"""The words users choose from, each list once: type hints, CLI choices, checks and documentation read them here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Real
from typing import Any, Literal, TypeGuard, get_args

from wavefilt.errors import OptionError

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
SYNONYMS = {
    "swt": "modwt", "udwt": "modwt", "stationary": "modwt", "undecimated": "modwt", "atrous": "modwt", "cwt": "dtcwt",
    "dual-tree": "dtcwt", "wavedec": "dwt", "fwt": "dwt", "wpt": "wp", "packets": "wp", "fft": "fk",
    "visushrink": "universal", "sureshrink": "sure", "bayesshrink": "bayes", "neighshrink": "neighblock",
    "bishrink": "bivariate", "pywt": "pywavelets", "numpy": "pywavelets", "cpu": "numba", "gpu": "cuda", "cupy": "cuda",
    "mirror": "reflect", "wrap": "periodic", "nearest": "constant", "edge": "constant",
}  # fmt: skip
"""Words of other libraries and of the literature, and the nearest word here."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check(name: str, value: object, allowed: Iterable[str], otherwise: str = "") -> None:
    """Raise OptionError, with the allowed words and the nearest one, unless ``value`` is allowed.

    ``otherwise`` names values that are allowed in addition to the words.
    """
    words = list(allowed)
    if value in words:
        return
    synonym = SYNONYMS.get(str(value).lower(), "")
    near = [synonym] if synonym in words else difflib.get_close_matches(str(value), words, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    beside = f", or {otherwise}" if otherwise else ""
    raise OptionError(f"`{name}={value!r}` is not one of {', '.join(words)}{beside}{hint}")
