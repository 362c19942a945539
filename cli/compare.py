"""`wavefilt compare`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavefilt import transforms
from wavefilt.backends.registry import check_name
from wavefilt.errors import OptionError, printable
from wavefilt.io import Layout
from wavefilt.options import DEFAULTS, Options, to_argv
from wavefilt.recording import Recording
from wavefilt.stages import stage
from wavefilt.thresholding.rules import RULES

from .denoise.main import BACKEND, DETAILS, EDGES, FILTERS, NOISE, PANEL, SHRINK, word_or_numbers
from .denoise.options import noise_of
from .failure import run_errors, usage_errors
from .options import FILE, INPUT, Named, Text, add, as_json
from .progress import bar, line, shown
from .reading import LAYOUT, read

if TYPE_CHECKING:
    from wavefilt.advice import Comparison

METHOD = ("wavelet", "level", "mode", "shrink", "scope", "keep", "spins", "detrend", "blend", "basis")
RULES_AND_TRANSFORMS = [
    click.option(
        "--rule",
        "rules",
        cls=Named,
        multiple=True,
        metavar="NAME|T",
        type=Text(word_or_numbers, names=RULES),
        help="Compare this rule or threshold, and those named by other --rule; by default all:",
    ),
    click.option(
        "--transform",
        "kinds",
        cls=Named,
        multiple=True,
        default=["dwt"],
        type=Text(names=transforms.words),
        help="With this transform, and those named by other --transform:",
    ),
]
OUTPUT = [
    click.option("--plot", type=FILE, help="Draw gains, and a trace before and after (png, pdf, svg)."),
    click.option("--overwrite", is_flag=True, help="Replace an existing picture."),
]


@click.command("compare", epilog="Example: wavefilt compare seismic.dat --rule bayes --rule js --plot rules.png")
@click.argument("source", type=INPUT, metavar="FILE")
@add(*RULES_AND_TRANSFORMS, *FILTERS, *SHRINK, *DETAILS, *NOISE, *EDGES, *PANEL, *BACKEND, *LAYOUT, *OUTPUT, as_json)
def command(source: str, rules: tuple[Any, ...], kinds: tuple[str, ...], **parsed: Any) -> None:
    """Rank threshold rules on a file of your own, by an estimate of their error that needs no clean signal.

    The gain is how much less error there is than noise was. The estimate adds noise of the file's own spectrum and
    watches what becomes of it; it takes most of every trace for noise, or, better, what lies in --noise-window. Rules
    that it cannot tell apart are marked with =. Nothing is written but --plot.
    """
    common, layout = options_of(parsed)
    with usage_errors():
        if parsed["plot"]:
            from wavefilt.io import check_destination
            from wavefilt.plotting.figure import check_target

            check_target(parsed["plot"])
            check_destination(Path(parsed["plot"]), overwrite=parsed["overwrite"])
        check(common, rules, kinds, parsed["two_dimensional"])
    given = {"rule": rules or None, "transform": kinds, **common}
    with run_errors(source):
        recording = recorded(source, layout, parsed)
        found = compared(recording, given, parsed)
        if parsed["plot"]:
            found.plot(parsed["plot"], overwrite=parsed["overwrite"])
    best = found.best
    told = denoise_command(source, best.options, parsed)
    if parsed["as_json"]:
        click.echo(json.dumps({"input": source, **facts(found), "command": told}, allow_nan=False))
        return
    click.echo("\n".join(map(printable, [*found.lines(), f"best: {told}"])))


def options_of(parsed: dict[str, Any]) -> tuple[dict[str, Any], Layout]:
    """Options of `denoise` that are not the defaults, and the layout. Raises UsageError for what makes no sense."""
    with usage_errors():
        check_name(parsed["backend"])
        layout = Layout(**{field.name: parsed[field.name] for field in fields(Layout)})
        common = {name: parsed[name] for name in METHOD if name in parsed}
        common = {name: value for name, value in common.items() if value not in (None, DEFAULTS.get(name))}
        panel = parsed["two_dimensional"]
        noise = noise_of(parsed, Options(sigma=parsed["sigma"], dimensions=2 if panel else 1))
        if noise is not None or parsed["sigma"] != "level":
            common["sigma"] = parsed["sigma"] if noise is None else noise
    return common, layout


def check(common: dict[str, Any], rules: Sequence[Any], kinds: Sequence[str], panel: bool) -> None:
    """Raise the first error of options that do not go with a rule that is named, or with any if none is."""
    errors, plain = [], {name: value for name, value in common.items() if name != "sigma"}
    pairs = list(product(kinds, rules or list(RULES)))
    for kind, rule in pairs:
        try:
            Options(**plain, rule=rule, transform=kind, dimensions=2 if panel else 1)
        except OptionError as error:
            errors.append(error)
    if errors and (rules or len(errors) == len(pairs)):
        raise errors[0]


def recorded(source: str, layout: Layout, parsed: dict[str, Any]) -> Recording:
    """The file, read."""
    with line(quiet=False), stage(f"reading {source}"):
        return read(source, layout, parsed["format"])[0]


def compared(recording: Recording, given: dict[str, Any], parsed: dict[str, Any]) -> Comparison:
    from wavefilt.advice import compare

    axes = (0, 1) if parsed["two_dimensional"] else None
    return compare(recording, **given, axes=axes, backend=parsed["backend"], progress=progress)


def progress(names: Sequence[str]) -> Iterator[str]:
    """The names of what is tried, with a bar on standard error where that is a terminal."""
    if not shown(quiet=False):
        yield from names
        return
    with bar("comparing", total=len(names)) as drawn:
        for name in names:
            drawn.set_postfix_str(name)
            yield name
            drawn.update()


def facts(found: Comparison) -> dict[str, Any]:
    """What was found, for JSON."""
    return {
        "traces": found.traces,
        "live_traces": found.of,
        "noise": found.noise,
        "noise_share": found.noise_share,
        "trials": [{**vars(trial), "gain_db": trial.gain_db, "tied": trial.tied} for trial in found.trials],
        "skipped": found.skipped,
        "notes": found.notes(),
        "python": found.python,
    }


def denoise_command(source: str, options: dict[str, Any], parsed: dict[str, Any]) -> str:
    """The command that denoises the file with these options."""
    layout = {name: parsed[name] for name in ("format", *(field.name for field in fields(Layout)), "two_dimensional")}
    return shlex.join(["wavefilt", "denoise", source, *to_argv({**options, **layout}, interval=1.0)])
