"""Standard error as the command writes to it. Loaded before all that takes time."""

from __future__ import annotations

import io
import os
from contextlib import suppress

TYPE_CHECKING = False  # importing typing takes time
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer


class _Messages(io.RawIOBase):
    """Standard error, of which the outcome of a run does not depend: what cannot be written is lost."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def write(self, data: ReadableBuffer) -> int:
        with suppress(OSError):
            return os.write(self.fileno(), data)
        return len(memoryview(data))


def messages(stream: TextIO) -> TextIO:
    """The stream, on which a character it cannot show is escaped and a failure to write is no error."""
    raw = io.BufferedWriter(_Messages(stream))
    return io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=True)
