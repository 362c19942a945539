"""`wavefilt convert`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wavefilt.io import Layout, check_destination

from .failure import run_errors, usage_errors
from .options import FILE, INPUT, add, as_json
from .reading import LAYOUT, read


@click.command("convert")
@click.argument("source", type=INPUT, metavar="IN")
@click.argument("target", type=FILE, metavar="OUT")
@add(*LAYOUT, click.option("--overwrite", is_flag=True, help="Replace OUT if it exists."), as_json)
def command(source: str, target: str, overwrite: bool, as_json: bool, format: str | None, **layout: object) -> None:
    """Write a file in another format, which the ending of OUT tells: .npy, .wav, .sgy, .su, .sac or .mseed.

    Samples stay as they are. What is kept of the headers is listed in the documentation, under "File formats".
    """
    from wavefilt.io import write_atomically
    from wavefilt.io.base import endings, other_format
    from wavefilt.io.files import converted

    path = Path(target)
    with usage_errors():
        described = Layout(**layout)  # type: ignore[arg-type]
        check_destination(path, overwrite=overwrite)
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise ValueError(f"{target} is the input")
    with run_errors(source):
        recording, _ = read(source, described, format)
        with usage_errors():
            other = other_format(recording.format, "", path)
        if other is None:
            what = f"{recording.format} to a file named {path.name}"
            raise click.UsageError(f"{source}: {what}; the name must end with another of {', '.join(endings())}")
        write_atomically(path, converted(recording, other), overwrite=overwrite)
    facts: dict[str, object] = {"input": source, "output": target, "from": recording.format, "to": other}
    facts |= {"traces": len(recording.traces), "notes": list(recording.notes)}
    words = f"{source} -> {target}  {recording.format} to {other}, {len(recording.traces)} traces"
    click.echo(json.dumps(facts) if as_json else words)
