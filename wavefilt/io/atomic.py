"""Writing a file so that it is whole or not there at all, whatever interrupts it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from wavefilt.errors import OutputExists
from wavefilt.io.unfinished import put_new, remove, temporary


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
        path.write_bytes(data)
        return
    try:
        with replacing(path, overwrite=overwrite) as file:
            file.write(data)
    except OSError as error:
        if error.errno and not error.filename:  # as when there is no space left
            error.filename = str(path)
        raise


@contextmanager
def replacing(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """A new file, open for reading and writing, that replaces ``path`` on a normal exit and is removed on an error.

    A symbolic link stays and its target is replaced, its permissions kept. Raises FileExistsError if ``path`` is a file
    and ``overwrite`` is not set, PermissionError if it is read-only, ValueError if it is a device or pipe.
    """
    path = Path(os.path.realpath(path))
    check_destination(path, overwrite=overwrite)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file, so it cannot be replaced once everything is written")
    new = temporary(path.parent)  # in the same folder, so that renaming is atomic
    try:
        with open(new, "x+b") as file:
            if path.exists():
                os.chmod(new, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            check_destination(path, overwrite=True)
            os.replace(new, path)
        else:
            put_new(new, path)
    except BaseException:
        remove(new)
        raise
