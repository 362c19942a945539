"""The lines of Python, and the command, that give what is shown."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from wavefilt.backends import Backend
from wavefilt.backends.registry import REFERENCE
from wavefilt.options import DEFAULTS, Clock

from .source import Source
from .state import Chosen

NOISE = {
    "seconds": "noise-window",
    "window": "noise-window",
    "before": "noise-before",
    "running": "noise-running",
    "intervals": "noise-intervals",
}
"""The option of the command for each kind of noise that is a tuple."""


def python(source: Source, options: Chosen, backend: str | Backend = REFERENCE) -> str:
    """Import, and the call that gives the denoised samples."""
    said = _said(options) | _named(backend)
    own = source.two if said.pop("two_dimensional", False) else source.one
    if source.counted and source.interval and "sigma" in said:
        clock = Clock(source.interval, None, source.rows.shape[1], source.name)
        said["sigma"] = clock.in_samples(said["sigma"])
    words = [*source.arguments, *own, *(f"{name}={_plain(value)!r}" for name, value in said.items())]
    return f"{source.imports}\ndenoised = {source.function}({', '.join(words)})"


def command(
    source: Source, options: Chosen, target: str | None = None, backend: str | Backend = REFERENCE
) -> str | None:
    """`wavefilt denoise` with these options, which writes to ``target``; None for what is in no file."""
    if not source.file:
        return None
    words = ["wavefilt", "denoise", *source.file, *(["-o", target] if target else [])]
    for name, value in (_said(options) | _named(backend)).items():
        if name == "sigma" and isinstance(value, tuple):
            words += _noise(source, *value)
        elif value is True:
            words.append(f"--{name.replace('_', '-')}")
        else:
            words += [f"--{name}", _text(value)]
    return shlex.join(words)


def _said(options: Chosen) -> Chosen:
    """Those that are not as they are anyway."""
    said = {name: value for name, value in options.items() if value is not None and value is not False}
    return {name: value for name, value in said.items() if not _default(name, value)}


def _default(name: str, value: object) -> bool:
    default = DEFAULTS.get(name)
    return isinstance(value, type(default)) and value == default


def _named(backend: str | Backend) -> Chosen:
    """A backend, unless it is the one that is chosen for few samples in any case."""
    name = backend if isinstance(backend, str) else backend.name
    return {} if name == REFERENCE else {"backend": name}


def _noise(source: Source, kind: str, *values: Any) -> list[str]:
    """Words for noise in seconds; in samples of unknown interval the command counts seconds of one sample."""
    interval = source.interval
    unit = [] if interval or "--dt" in source.file or kind == "intervals" else ["--dt", "1"]
    if kind == "window" and interval:
        values = tuple(seconds(value, interval) for value in values)
    return [*unit, f"--{NOISE[kind]}", *map(_text, values)]


def seconds(samples: int, interval: float) -> float:
    """A time that is rounded to this sample again, in few digits."""
    return float(f"{samples * interval:.9g}")


def _text(value: Any) -> str:
    parts = value if isinstance(value, list | tuple | np.ndarray) else [value]
    return ",".join(str(_plain(part)) for part in parts)


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python, which say no type when they are printed."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value
