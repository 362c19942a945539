"""Whether a file is still the one that was opened."""

from __future__ import annotations

import os


class FileState:
    """Size, modification time and identity of a file that is read by its name, or through an open descriptor."""

    def __init__(self, path: str, descriptor: int | None = None) -> None:
        self._path, self._descriptor = path, descriptor
        self._state = self._stat()

    def check(self) -> None:
        """Raise OSError if the file was written to, or replaced."""
        if self._stat() != self._state:
            raise OSError(f"{self._path}: the file was changed while it was read")

    def _stat(self) -> tuple[int, int, int]:
        found = os.stat(self._path if self._descriptor is None else self._descriptor)
        return found.st_size, found.st_mtime_ns, found.st_ino
