"""Options that say how a file is laid out, and reading it with them: shared by the commands that read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from wavefilt.errors import FormatError
from wavefilt.recording import Recording

from .failure import Failure

F = TypeVar("F", bound=Callable[..., Any])


def columns(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Whole numbers and ranges: ``2,4-6``."""
    if value is None:
        return None
    chosen: list[int] = []
    for part in value.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise click.BadParameter(f"{value!r} is not a list like 2,4-6", ctx, param)
        chosen += range(int(first), int(last if dash else first) + 1)
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
    click.option("--component", metavar="NAME", help="npz: the array to read."),
    click.option("--axis", type=int, metavar="N", help="npy, npz: the axis of the samples; the last by default."),
]


def layout_options(function: F) -> F:
    """Add the options to a command; they arrive as keywords of `wavefilt.read`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def read(path: str, layout: dict[str, Any]) -> Recording:
    """Read a file, or standard input for ``-``. Raises Failure with exit code 3 (2 for a wrong option value)."""
    import wavefilt

    try:
        return wavefilt.read(sys.stdin.buffer if path == "-" else path, **layout)
    except FormatError as error:
        raise Failure(str(error), 3) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}", 3) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except MemoryError as error:
        raise Failure(f"{path}: not enough memory to read it", 1) from error
