"""`wavefilt tune`."""

from __future__ import annotations

import json
from typing import Any

import click

from wavefilt.errors import printable

from .compare import denoise_command, facts, options_of, progress, recorded
from .denoise.main import BACKEND, NOISE, PANEL
from .failure import run_errors
from .options import INPUT, add, as_json
from .reading import LAYOUT


@click.command("tune", epilog="Example: wavefilt tune seismic.dat --noise-window 0 0.15")
@click.argument("source", type=INPUT, metavar="FILE")
@add(
    click.option(
        "--seconds", type=click.FloatRange(min=0, min_open=True), default=30.0, help="Time after which the search ends."
    ),
    *NOISE,
    *PANEL,
    *BACKEND,
    *LAYOUT,
    as_json,
)
def command(source: str, seconds: float, as_json: bool, **parsed: Any) -> None:
    """Search for the options with the least estimated error on a file, and print the command that denoises it so.

    All rules are compared as `wavefilt compare` does; then transform, wavelet, level, threshold function, noise and
    boundary mode are changed, one after the other, in the three best methods so far. Nothing is written.
    """
    common, layout = options_of(parsed)
    from wavefilt.advice import tune

    with run_errors(source):
        recording = recorded(source, layout, parsed)
        axes = (0, 1) if parsed["two_dimensional"] else None
        sigma = common.get("sigma", "level")
        found = tune(recording, seconds=seconds, sigma=sigma, axes=axes, backend=parsed["backend"], progress=progress)
    told = denoise_command(source, found.options, parsed)
    if as_json:
        about = {"input": source, "command": told, "python": found.python, "complete": found.complete}
        click.echo(json.dumps({**about, **facts(found.comparison), "notes": found.notes()}, allow_nan=False))
        return
    click.echo("\n".join(map(printable, [told, found.python, *(f"note: {note}" for note in found.notes())])))
