"""`wavefilt compare` and `wavefilt tune`."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from wavefilt.backends.registry import check_name
from wavefilt.errors import printable
from wavefilt.options import DEFAULTS, Options

from . import as_flags, run_errors, usage_errors
from .files import read
from .options import (
    COMPARISON,
    INPUT,
    LAYOUT,
    METHOD,
    NOISE,
    OPTION_NAMES,
    TIME_LIMIT,
    chosen,
    command,
    layout_of,
    noise_of,
)
from .progress import steps

if TYPE_CHECKING:
    from wavefilt.advice import Comparison

TRIAL = ("options", "name", "gain_db", "gain_error_db", "tied", "residual", "verdict")
"""The facts of a method in JSON."""
SOURCE = click.Argument(["source"], type=INPUT, metavar="FILE")


@command(
    "compare",
    SOURCE,
    *COMPARISON,
    *(option for option in chosen(METHOD) if option.name not in ("rule", "transform", "preset", "wavelet", "level")),
    *chosen(NOISE, "backend", LAYOUT, "as_json"),
    example="wavefilt compare seismic.dat --rule bayes --rule js",
)
def compare(source: str, rules: tuple[Any, ...], transforms: tuple[str, ...], **parsed: Any) -> None:
    """Rank threshold rules on your own file by an estimate of their error, which needs no clean signal.

    The gain is the reduction of the error in dB. To estimate it, noise with the spectrum of the noise in the file is
    added to a preliminary result, and the sum is denoised. Give a --noise-window if you can. The three best methods are
    tested as for --report, and a harmful one is not recommended. A = marks methods that cannot be distinguished from
    the best one. Without options, the recipe and the preset strong are compared too. No file is written.
    """
    common = _common(parsed)
    with usage_errors():
        for rule, transform in product(rules or [None], transforms):
            checked = common | {"rule": rule, "transform": transform, "sigma": "level"}
            if rule is None:  # all rules are compared, and some have no `shrink`
                checked["shrink"] = None
            Options(**checked, ndim=2 if parsed["two_dimensional"] else 1)
    from wavefilt.advice import compare

    _rank(source, parsed, compare, rule=rules or None, transform=transforms, **common)


@command(
    "tune",
    SOURCE,
    TIME_LIMIT,
    *chosen("two_dimensional", NOISE, "backend", LAYOUT, "as_json"),
    example="wavefilt tune seismic.dat --noise-window 0 0.15",
)
def tune(source: str, seconds: float, **parsed: Any) -> None:
    """Search for the options with the least estimated error on a file, and print the command that uses them.

    All rules are compared as in `wavefilt compare`; then transform, wavelet, level, threshold function, noise and
    boundary mode of the three best methods so far are changed one at a time. No file is written.
    """
    common = _common(parsed)
    from wavefilt.advice import tune

    _rank(source, parsed, tune, seconds=seconds, **common)


def _common(parsed: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `denoise` that differ from their defaults. Raises UsageError."""
    with usage_errors():
        check_name(parsed["backend"])
        given = {name: parsed[name] for name in OPTION_NAMES if name in parsed}
        common = {name: value for name, value in given.items() if value not in (None, DEFAULTS[name])}
        noise = noise_of(parsed, Options(sigma=parsed["sigma"], ndim=2 if parsed["two_dimensional"] else 1))
        return common | ({} if noise is None else {"sigma": noise})


def _rank(source: str, parsed: dict[str, Any], search: Callable[..., Comparison], **given: Any) -> None:
    """Rank methods on a file by `wavefilt.compare` or `wavefilt.tune`, and print the result.

    That is the table, the notes, and the lines that denoise with the best method, or JSON.
    """
    with usage_errors():
        layout = layout_of(parsed)
    with run_errors(source):
        recording = read(source, layout, parsed["format"])
        axes = (0, 1) if parsed["two_dimensional"] else None
        found = search(recording, **given, axes=axes, backend=parsed["backend"], progress=steps)
    python, line = found.python, found.whole.command(found.options)
    if not parsed["as_json"]:
        label = "best, but undecided" if found.best.verdict == "undecided" else "best"
        best = [f"in Python: {python}", f"{label}: {line}"] if found.recommended else []
        click.echo("\n".join([*(as_flags(printable(text)) for text in found.lines()), *map(printable, best)]))
        return
    facts = {
        "input": source,
        "traces": found.traces,
        "live_traces": found.of,
        "noise": found.noise,
        "noise_share": found.noise_share,
        "trials": [{name: getattr(trial, name) for name in TRIAL} for trial in found.trials],
        "skipped": found.skipped,
        "complete": found.complete,
        "notes": found.notes(),
        "python": python,
        "command": line,
    }
    click.echo(json.dumps(facts, allow_nan=False))
