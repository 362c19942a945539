"""Helpers shared by the other entry points: options checked by name, and the line they leave in a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Literal, TypedDict

from wavefilt import backends
from wavefilt._version import __version__
from wavefilt.options import Options
from wavefilt.vocabulary import Detrend, Estimator, Mode, Noise, Rule, Scope, Shrink, Transform, check
from wavefilt.wavelets.filters import WaveletLike

DEFAULTS: dict[str, object] = {option.name: option.default for option in fields(Options) if option.init}
"""Of the options of a method, by name."""


class Common(TypedDict, total=False):
    """What `wavefilt.denoise` takes beside the wavelet, the rule and the transform."""

    level: int | None
    mode: Mode
    shrink: Shrink | Estimator | None
    sigma: Noise
    scope: Scope
    keep: int
    spins: int
    detrend: Detrend | None
    blend: float


class Keywords(Common, total=False):
    """What `wavefilt.denoise` takes beside the wavelet, and every other entry point with it."""

    rule: Rule | float | Sequence[float] | None
    transform: Transform


class Along(TypedDict, total=False):
    """What is transformed, as `wavefilt.denoise` takes it."""

    axis: int
    axes: tuple[int, int]


def along(axes: Sequence[int]) -> Along:
    """One axis, or the pair of a panel."""
    return {"axis": axes[0]} if len(axes) == 1 else {"axes": (axes[0], axes[1])}


def method(
    wavelet: WaveletLike | None,
    options: Keywords,
    backend: str | backends.Backend = "auto",
    *others: str,
    dimensions: Literal[1, 2] = 1,
) -> Options:
    """The method with these options of `wavefilt.denoise`; ``others`` are the caller's own option names.

    Raises ValueError for an unknown option or backend, with the known ones, and as `Options` does.
    """
    check_names(options, backend, *others)
    return Options(wavelet, **options, dimensions=dimensions)


def check_names(options: Mapping[str, object], backend: str | backends.Backend, *others: str) -> None:
    """Raise ValueError as `method` does for names."""
    for name in options:
        check("option", name, [*_names(), "backend", *others])
    if isinstance(backend, str):
        check("backend", backend, ["auto", *backends.names()])


def history_line(method: Options, level: int, separator: str = ", ", **more: object) -> str:
    """One line of history, every option as it was used: ``wavefilt 0.1.0: denoise(keep=0, level=5, ...)``.

    ``level`` is the one that was used, ``more`` are the caller's own options.
    """
    used = {name: vars(method)[name] for name in _names()} | more
    used |= {"wavelet": method.filters.name, "level": level if method.transform.has_levels else None}
    if not method.rule.own_function:
        used["shrink"] = method.shrink_word
    used["detrend"], used["blend"] = method.trend, method.blend or None
    used |= {"rule": method.rule.option, "transform": method.transform.word}
    call = separator.join(f"{name}={used[name]!r}" for name in sorted(used) if used[name] is not None)
    return f"wavefilt {__version__}: denoise({call})"


def _names() -> list[str]:
    """The options beside the wavelet."""
    return [field.name for field in fields(Options) if field.init and field.name not in ("wavelet", "dimensions")]
