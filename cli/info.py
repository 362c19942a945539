"""`wavefilt info`."""

from __future__ import annotations

import json
from typing import Any

import click

from .failure import Failure
from .reading import layout_options, read


@click.command("info")
@click.argument("path", metavar="FILE")
@layout_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def command(path: str, as_json: bool, **layout: Any) -> None:
    """Say what is in a file: format, traces, sampling interval, noise and energy by level.

    The noise is that of the default wavelet: the median absolute detail over 0.6745, median of all traces.
    """
    from wavefilt import report

    try:
        recording, _ = read(path, layout)
        facts = report.examine(recording) | {"input": path}
    except MemoryError as error:
        raise Failure(f"{path}: not enough memory", 1) from error
    except (ValueError, TypeError) as error:
        raise Failure(f"{path}: {error}", 1) from error
    if as_json:
        click.echo(json.dumps(facts, allow_nan=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        text = ", ".join(v if isinstance(v, str) else f"{v:.4g}" for v in value) if isinstance(value, list) else value
        click.echo(f"{name.replace('_', ' '):{width}}  {'unknown' if text is None else text}")
