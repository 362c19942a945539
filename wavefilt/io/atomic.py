"""Writing a file or folder so that it is complete or absent, even if the process is interrupted."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from wavefilt.errors import OutputExists

TRIES, PAUSE = 20, 0.1
"""Attempts to remove a folder to which other processes still write, and seconds between them."""


def check_destination(path: Path, *, overwrite: bool) -> None:
    """Raise an OSError if `write_atomically` would refuse ``path``."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    if path.is_file():
        if not overwrite:
            raise OutputExists(path)
        if not path.stat().st_mode & 0o222:
            raise PermissionError(f"{path} is read-only; it is not replaced")
    if os.path.islink(os.path.realpath(path)):
        raise OSError(f"{path} is a link that leads to itself")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist")


def write_atomically(path: Path, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file that is either complete or absent, even if the process is interrupted.

    A symbolic link stays and its target is written; a device or pipe is written to directly. Raises
    FileExistsError if ``path`` is a file and ``overwrite`` is not set, PermissionError if it is read-only.
    """
    check_destination(path, overwrite=overwrite)
    if path.exists() and not path.is_file():
        try:
            path.write_bytes(data)
        except OSError as error:
            error.filename = str(path)
            raise
        return
    with replacing(path, overwrite=overwrite) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Yield a new file, open for reading and writing, that replaces ``path`` at the end and is removed on an error.

    A symbolic link stays and its target is replaced; permissions are kept. Raises FileExistsError if ``path`` is a file
    and ``overwrite`` is not set, PermissionError if it is read-only, ValueError if it is a device or pipe.
    """
    path = Path(os.path.realpath(path))
    check_destination(path, overwrite=overwrite)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file, so it cannot be replaced once everything is written")
    with temporary(path) as new:
        with open(new, "x+b") as file:
            if path.exists():
                os.chmod(new, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_destination(path, overwrite=overwrite)
        os.replace(new, path)


@contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """Yield a name beside ``target`` for an unfinished file or folder; remove what has this name at the end.

    An OSError without a file, or about the temporary one, names the target.
    """
    new = target.parent / f".wavefilt-{secrets.token_hex(6)}.tmp"
    try:
        try:
            yield new
        except OSError as error:
            if error.errno and (error.filename is None or str(error.filename).startswith(str(new))):
                error.filename = str(target)  # as when the disk is full
            raise
        finally:
            remove(new)
    finally:
        remove(new)  # again, if Ctrl-C has interrupted the first attempt


def remove(path: Path) -> None:
    """Remove a file, or a folder to which other processes may still write their last files, if it exists."""
    for _ in range(TRIES):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        if not os.path.lexists(path):
            return
        time.sleep(PAUSE)
