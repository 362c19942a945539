"""`wavefilt`, and `python -m wavefilt`."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False  # importing typing takes time
try:
    from wavefilt import interrupts, limits
except KeyboardInterrupt:
    os._exit(130)

if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer


class Messages(io.RawIOBase):
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


def main() -> None:
    """Run the command; a signal while it loads ends it without a traceback."""
    interrupts.end_at_once()
    if sys.stderr is not None:
        messages = io.BufferedWriter(Messages(sys.stderr))
        sys.stderr = io.TextIOWrapper(messages, sys.stderr.encoding, "backslashreplace", line_buffering=True)
    try:
        limits.need((128 + 16 * (os.cpu_count() or 1)) * limits.MIB)  # most of it for NumPy, which starts threads
        from wavefilt import cli
    except Exception as error:
        if not limits.out_of_memory(error):
            raise
        sys.exit("wavefilt: error: not enough memory")
    cli.main()


if __name__ == "__main__":  # spawned processes import this module as well
    main()
