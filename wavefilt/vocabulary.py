"""The values of options that are words, each list once: for type hints, the command, checks and documentation."""

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
"""A sample, a time (in seconds or as an object), a pick, or a list of these."""
Scope = Literal["trace", "record"]
Transform = Literal["dwt", "modwt", "dtcwt", "fk", "wp"]
Basis = Literal["risk", "entropy", "full"]
Preset = Literal["gentle", "section", "strong"]
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
PANELS = ("before", "after", "residual", "spectrograms", "spectra", "levels", "statics")
"""The panels of a figure."""
SYNONYMS = {
    "swt": "modwt", "udwt": "modwt", "stationary": "modwt", "undecimated": "modwt", "atrous": "modwt", "cwt": "dtcwt",
    "dual-tree": "dtcwt", "wavedec": "dwt", "fwt": "dwt", "wpt": "wp", "wavelet packets": "wp", "fft": "fk",
    "visushrink": "universal", "sureshrink": "hybrid", "bayesshrink": "bayes", "benjamini-hochberg": "fdr",
    "james-stein": "js", "neighshrink": "neighblock", "bishrink": "bivariate", "garotte": "garrote", "nng": "garrote",
    "mad": "level", "linear": "line", "constant": "mean", "reflection": "symmetric", "mirror": "reflect",
    "wrap": "periodic", "nearest": "constant", "edge": "constant", "pywt": "pywavelets", "numpy": "pywavelets",
    "cpu": "numba", "gpu": "cuda", "cupy": "cuda",
    "noise_window": "sigma", "noise": "sigma", "axes": "two_dimensional", "threshold": "rule",
}  # fmt: skip
"""Other words for options and their values, suggested in error messages."""


def check(name: str, value: object, allowed: Iterable[str], otherwise: str = "") -> None:
    """Raise an OptionError with the allowed words and the nearest one, unless the option's value is allowed.

    ``otherwise`` describes further allowed values.
    """
    words = list(allowed)
    if value in words:
        return
    others = f", or {otherwise}" if otherwise else ""
    raise OptionError(f"`{name}={value!r}` is not one of {', '.join(words)}{others}{nearest(value, words)}")


def nearest(value: object, words: list[str]) -> str:
    """Return a question about the word that was probably meant, or nothing."""
    synonyms, word = {word: meant for word, meant in SYNONYMS.items() if meant in words}, str(value).lower()
    near = [word] if word in synonyms else []
    for text, known in ((str(value), words), (word, [*words, *synonyms])):
        near = near or difflib.get_close_matches(text, known, n=1)
    return f"; did you mean {synonyms.get(near[0], near[0])!r}?" if near else ""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether this is a real number; True, False and durations are not."""
    return isinstance(value, Real) and type(value).__name__ not in ("bool", "timedelta64")  # both are integers
