"""Options that say how a file is laid out, and reading it with them: shared by the commands that read."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from wavefilt.errors import FormatError
from wavefilt.recording import Recording

from .failure import Failure

F = TypeVar("F", bound=Callable[..., Any])


MOST_COLUMNS = 1 << 16


def columns(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Whole numbers and ranges: ``2,4-6``."""
    if value is None:
        return None
    chosen: list[int] = []
    for part in value.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise click.BadParameter(f"{value!r} is not a list like 2,4-6", ctx, param)
        chosen += range(int(first), min(int(last if dash else first), int(first) + MOST_COLUMNS) + 1)
        if len(chosen) > MOST_COLUMNS:
            raise click.BadParameter(f"{value!r} names more than {MOST_COLUMNS} columns", ctx, param)
    return tuple(chosen)


OPTIONS = [
    click.option("--format", "format", metavar="NAME", help="Read as this format instead of looking at the content."),
    click.option("--dtype", metavar="TYPE", help="Raw: f4, f8, i2 or i4."),
    click.option("--endian", metavar="ORDER", help="Raw: little or big."),
    click.option("--ns", type=int, metavar="N", help="Raw: samples a trace."),
    click.option("--dt", type=float, metavar="SECONDS", help="Sampling interval, where the file has none."),
    click.option(
        "--columns", metavar="LIST", callback=columns, help="ASCII: columns that are traces, from 1, as 2,4-6."
    ),
    click.option("--delimiter", metavar="CHAR", help="ASCII: comma, semicolon, tab or space."),
    click.option("--component", metavar="NAME", help="npz, HDF5, Zarr: the array to read; FILE::NAME does the same."),
    click.option("--axis", type=int, metavar="N", help="npy, npz, HDF5, Zarr: the axis of the samples; else the last."),
]


def layout_options(function: F) -> F:
    """Add the options to a command; they arrive as keywords of `wavefilt.read`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def read(path: str, layout: dict[str, Any], digest: bool = False) -> tuple[Recording, str | None]:
    """Read a file, or standard input for ``-``; with ``digest`` also the SHA-256 of the very bytes read (of no folder).

    Raises Failure with exit code 3, UsageError (2) for an option value that makes no sense, MemoryError.
    """
    import wavefilt
    from wavefilt.io.dataset_paths import resolve

    try:
        file, described = resolve(path, wavefilt.io.Layout(**{k: v for k, v in layout.items() if k != "format"}))
        if path != "-" and (not digest or Path(file).is_dir()):
            return wavefilt.read(path, **layout), None
        content = NamedBytes(_content(file), file)
        layout = layout | {"component": described.component}
        sha256 = hashlib.sha256(content.getbuffer()).hexdigest() if digest else None
        return wavefilt.read(content, **layout), sha256
    except FormatError as error:
        raise Failure(str(error), 3) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}", 3) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


class NamedBytes(io.BytesIO):
    """Bytes that know which file they came from, for messages."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def _content(path: str) -> bytes:
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise Failure("standard input is closed", 3)
    return sys.stdin.buffer.read()
