"""Whether a file is still the one that was opened."""

from __future__ import annotations

import os
from collections.abc import Callable


def unchanged_since(state: Callable[[], object], message: str) -> Callable[[], None]:
    """A function that raises OSError with this message if the state differs from the present one."""
    before = state()

    def check() -> None:
        if state() != before:
            raise OSError(message)

    return check


def file_unchanged(path: str, descriptor: int | None = None) -> Callable[[], None]:
    """The same for a file, read by its name or through an open descriptor: its size, modification time and identity."""

    def state() -> tuple[int, int, int]:
        found = os.stat(path if descriptor is None else descriptor)
        return found.st_size, found.st_mtime_ns, found.st_ino

    return unchanged_since(state, f"{path}: the file was changed while it was read")
