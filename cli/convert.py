"""`wavefilt convert`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wavefilt.io import check_destination, encode, write_atomically
from wavefilt.io.files import endings, other_format

from . import run_errors, usage_errors
from .files import read
from .options import FILE, INPUT, LAYOUT, Option, chosen, command, layout_of


@command(
    "convert",
    click.Argument(["source"], type=INPUT, metavar="IN"),
    click.Argument(["target"], type=FILE, metavar="[OUT]", required=False),
    Option("-o", "--output", type=FILE, metavar="OUT", help="The same as OUT."),
    *chosen("overwrite", LAYOUT, "as_json"),
    example="wavefilt convert shot.dat shot.sgy",
)
def convert(
    source: str, target: str | None, output: str | None, overwrite: bool, as_json: bool, format: str | None,
    **layout: object,
) -> None:  # fmt: skip
    """Write a file in another format, by the extension of OUT: .npy, .h5, .wav, .sgy, .su, .csv, .sac or .mseed.

    Samples are not changed. The documentation lists the headers that are kept, under "File formats".
    """
    if target is not None and output is not None:
        raise click.UsageError("OUT and -o both name the output: give one")
    target = target or output
    if not target:
        raise click.UsageError("name the output: wavefilt convert IN OUT")
    path = Path(target)
    with usage_errors():
        described = layout_of(layout)
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise ValueError(f"{target} is the input; choose another output")
        check_destination(path, overwrite=overwrite)
    with run_errors(source):
        recording = read(source, described, format)
        with usage_errors():
            other = other_format(recording.format, "", path)
        if other is None:
            what = f"{recording.format} to a file named {path.name}"
            raise click.UsageError(f"{source}: {what}; the name must end with another of {', '.join(endings())}")
        write_atomically(path, encode(recording, other), overwrite=overwrite)
    facts: dict[str, object] = {"input": source, "output": target, "from": recording.format, "to": other}
    facts |= {"traces": len(recording.traces), "notes": list(recording.notes)}
    count = len(recording.traces)
    words = f"{source} -> {target}  {recording.format} to {other}, {count} trace{'s' * (count != 1)}"
    click.echo(json.dumps(facts) if as_json else words)
