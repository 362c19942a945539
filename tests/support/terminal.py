"""A terminal for processes under test."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from contextlib import suppress

from tests.support.checkout import ROOT


def run(*arguments: str, code: int = 0) -> str:
    """Return the output of `python ARGUMENTS` on standard error, a terminal of 24 lines of 100 characters."""
    shows, written = pty.openpty()
    termios.tcsetwinsize(written, (24, 100))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=written, env=environment)
    os.close(written)
    parts = []
    with suppress(OSError):  # raised when the process has closed its side
        while part := os.read(shows, 1 << 16):
            parts.append(part)
    os.close(shows)
    text = b"".join(parts).decode()
    assert process.wait(timeout=120) == code, text
    return text
