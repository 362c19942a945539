"""Errors that end the command, each with one of the documented exit codes."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from wavefilt import limits
from wavefilt.errors import BackendUnavailable, FormatError, LayoutError, for_command, printable


def tell(*lines: str) -> None:
    """Lines on standard error."""
    for line in lines:
        click.echo(printable(line), err=True)


class Failure(Exception):
    """``str(failure)`` and the lines of ``details`` are for the user; ``code`` is the exit code."""

    def __init__(self, message: str, code: int, *details: str) -> None:
        super().__init__(message)
        self.code, self.details = code, details

    def show(self) -> None:
        tell(f"wavefilt: error: {self}", *self.details)


@contextmanager
def usage_errors() -> Iterator[None]:
    """What the user asked for is wrong: exit code 2. A backend or a GPU is missing: 5."""
    try:
        yield
    except BackendUnavailable as error:
        raise Failure(for_command(error), 5) from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise click.UsageError(for_command(error)) from error


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """The file cannot be read: exit code 3. An option of its layout is wrong or missing: 2."""
    try:
        yield
    except FormatError as error:
        if is_folder(path):
            raise Failure(_instead_of(path), 3) from error
        raise Failure(for_command(error), 2 if isinstance(error, LayoutError) else 3) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}", 3) from error
    except ValueError as error:
        raise click.UsageError(for_command(error)) from error


def is_folder(path: str) -> bool:
    """Whether it is a folder of no format, as that of a Zarr array is one."""
    from wavefilt.io import is_store

    return os.path.isdir(path) and not is_store(path)


def _instead_of(folder: str) -> str:
    """What to write for the files of a folder, of the kind of which there are most."""
    kinds = Counter(Path(name).suffix for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
    kind = kinds.most_common(1)[0][0] if kinds else ""
    here, below = (
        shlex.quote(os.path.normpath(os.path.join(folder, *parts))) for parts in ([f"*{kind}"], ["**", f"*{kind}"])
    )
    return f"{folder} is a folder and not a zarr store; name its files, as {here}, or those below it too, as {below}"


@contextmanager
def run_errors(path: str, *notes: str, more_memory: Callable[[], str] = str) -> Iterator[None]:
    """The file cannot be processed: exit code 1, and a message with the ``notes``, for memory also what would help."""
    try:
        yield
    except BackendUnavailable as error:
        raise Failure(for_command(error), 5) from error
    except (Failure, click.ClickException):
        raise
    except Exception as error:
        if limits.out_of_memory(error):
            raise Failure("; ".join([f"{path}: not enough memory{more_memory()}", *notes]), 1) from error
        if not isinstance(error, (ValueError, TypeError, ImportError, OSError, RuntimeError)):
            raise
        raise Failure("; ".join([f"{path}: {for_command(error).removeprefix(f'{path}: ')}", *notes]), 1) from error
