"""ObsPy's readers in a subprocess: the decoders of some formats can crash or hang on damaged data.

The process is this file run as a script. It reads one file after another, so that ObsPy is imported once, and ends with
the process that started it, however that ends.
"""

from __future__ import annotations

import atexit
import faulthandler
import glob
import io
import json
import os
import subprocess
import sys
import threading
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obspy import Stream

BY_NAME = ("DMX", "PDAS", "REFTEK130", "SEISAN", "WIN", "Y")
"""Formats that ObsPy reads from a named file alone."""
SECONDS, RATE = 60, 1 << 20
"""Time allowed for a file: so many seconds, and a second more for so many bytes."""


class SubprocessReader:
    """The subprocess, started for the first file, and again for the next one after a file that could not be read."""

    def __init__(self) -> None:
        self._begin()
        atexit.register(self.end)
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def failure(self, data: bytes, format: str) -> str | None:
        """Why ObsPy cannot read these bytes in its format of this name; None if it can."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.end()
                self._process = _started()
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            seconds = SECONDS + len(data) // RATE
            failure: str | None = f"its decoder crashed, or took more than {seconds} s"
            try:
                self._process.stdin.write(f"{format} {len(data)} {seconds}\n".encode())
                self._process.stdin.write(data)
                self._process.stdin.flush()
                failure = json.loads(self._process.stdout.readline())
            except (OSError, ValueError):  # no answer: it is gone
                pass
            finally:  # interrupted, it would answer what nobody asked
                if failure is not None:
                    self.end()
            return failure

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _started() -> subprocess.Popen[bytes]:
    # in a session of its own, because Ctrl-C in a terminal is not for it
    command, pipe = [sys.executable, "-P", "-W", "ignore", __file__], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)


def read_stream(data: bytes, format: str) -> Stream:
    """What ObsPy reads as its format of this name. Raises anything."""
    import obspy

    if format not in BY_NAME:
        return obspy.read(io.BytesIO(bytearray(data)), format=format)  # a copy: the decoder of GCF writes to it
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "traces")
        with open(path, "wb") as file:
            file.write(data)
        return obspy.read(glob.escape(path), format=format)


def _serve() -> None:
    """Read files from standard input until it ends; for each a line of JSON, why it cannot be read or null."""
    import obspy  # noqa: F401  # once, before the clock of the first file runs

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a decoder may print
    for line in sys.stdin.buffer:
        format, size, seconds = line.decode().split()
        data = sys.stdin.buffer.read(int(size))
        faulthandler.dump_traceback_later(float(seconds), exit=True)
        failure = None
        try:
            read_stream(data, format)
        except Exception as error:  # readers raise anything on damaged files
            failure = f"{type(error).__name__}: {error}"
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(failure), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
