"""`wavefilt info`."""

from __future__ import annotations

import json

import click

from wavefilt.io import Layout

from .failure import run_errors, usage_errors
from .options import INPUT, add, as_json
from .reading import LAYOUT, read


@click.command("info")
@click.argument("path", type=INPUT, metavar="FILE")
@add(*LAYOUT, as_json)
def command(path: str, as_json: bool, format: str | None, **layout: object) -> None:
    """Show what a file holds: format, traces, sampling interval, noise and energy by level.

    The noise is estimated with the default wavelet: the median absolute detail over 0.6745, median of all traces.
    """
    from wavefilt import report

    with usage_errors():
        described = Layout(**layout)  # type: ignore[arg-type]
    with run_errors(path):
        recording, _ = read(path, described, format)
        facts = report.examine(recording) | {"input": path}
    if as_json:
        click.echo(json.dumps(facts, allow_nan=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        text = ", ".join(v if isinstance(v, str) else f"{v:.4g}" for v in value) if isinstance(value, list) else value
        click.echo(f"{name.replace('_', ' '):{width}}  {'unknown' if text is None else text}")
