"""Whether a file is still the one that was opened."""

from __future__ import annotations

import os


class Unchanged:
    """Size, time of the last change and identity of a file that is read by its name."""

    def __init__(self, path: str) -> None:
        self._path, self._state = path, self._stat(path)

    def check(self) -> None:
        """Raise OSError if the file was written to, or replaced."""
        if self._stat(self._path) != self._state:
            raise OSError(f"{self._path}: the file was changed while it was read")

    @staticmethod
    def _stat(path: str) -> tuple[int, int, int]:
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns, found.st_ino
