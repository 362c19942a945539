"""Options for the layout of a file, and reading it with them: shared by the commands that read."""

from __future__ import annotations

import hashlib
import io
import sys
from dataclasses import asdict, replace
from pathlib import Path

import click

import wavefilt
from wavefilt.io import FORMATS, Layout
from wavefilt.recording import Recording

from .failure import Failure, read_errors
from .options import Named, Text

MOST_COLUMNS = 1 << 16


def columns(text: str) -> tuple[int, ...]:
    """Whole numbers and ranges: ``2,4-6``."""
    chosen: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{text!r} is not a list like 2,4-6")
        chosen += range(int(first), min(int(last if dash else first), int(first) + MOST_COLUMNS) + 1)
        if len(chosen) > MOST_COLUMNS:
            raise ValueError(f"{text!r} names more than {MOST_COLUMNS} columns")
    return tuple(chosen)


LAYOUT = [
    click.option(
        "--format", cls=Named, type=Text(names=FORMATS), help="By default found by content: one of ObsPy's, or"
    ),
    click.option("--dtype", type=Text(names=("f4", "f8", "i2", "i4")), metavar="TYPE", help="Raw: f4, f8, i2 or i4."),
    click.option("--endian", type=Text(names=("little", "big")), metavar="ORDER", help="Raw: little or big."),
    click.option("--ns", type=int, metavar="N", help="Raw: samples per trace."),
    click.option("--dt", type=float, metavar="SECONDS", help="Sampling interval, if the file records none."),
    click.option(
        "--columns", metavar="LIST", type=Text(columns), help="ASCII: trace columns, counted from 1, as 2,4-6."
    ),
    click.option("--delimiter", metavar="CHAR", help="ASCII: comma, semicolon, tab or space."),
    click.option("--component", metavar="NAME", help="npz, HDF5, Zarr: the array to read; FILE::NAME does the same."),
    click.option(
        "--axis", type=int, metavar="N", help="npy, npz, HDF5, Zarr: axis of the samples. [default: the last]"
    ),
]
"""They arrive as the fields of `wavefilt.io.Layout`, and ``format``."""


def read(path: str, layout: Layout, format: str | None, digest: bool = False) -> tuple[Recording, str | None]:
    """Read a file, or standard input for ``-``; with ``digest`` also the SHA-256 of its bytes (not of a folder).

    Raises Failure with exit code 3, UsageError (2) for an option value that makes no sense, MemoryError.
    """
    from wavefilt.io.files import resolve

    with read_errors(path):
        file, described = resolve(path, layout)
        if path != "-" and (not digest or Path(file).is_dir()):
            return wavefilt.read(path, format=format, **asdict(layout)), None
        content = io.BytesIO(_content(file))
        content.name = file  # for messages
        layout = replace(layout, component=described.component)
        sha256 = hashlib.sha256(content.getbuffer()).hexdigest() if digest else None
        return wavefilt.read(content, format=format, **asdict(layout)), sha256


def _content(path: str) -> bytes:
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise Failure("standard input is closed", 3)
    return sys.stdin.buffer.read()
