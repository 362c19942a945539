"""A terminal for processes under test."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress

from tests.support.checkout import ROOT

ROWS, COLUMNS = 24, 100


def opened() -> tuple[int, int]:
    """File descriptors of the side that shows, and of the side that a process writes to."""
    shows, written = pty.openpty()
    fcntl.ioctl(written, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return shows, written


def everything(shows: int) -> str:
    """What is written until the other side is closed by all."""
    parts = []
    with suppress(OSError):
        while part := os.read(shows, 1 << 16):
            parts.append(part)
    os.close(shows)
    return b"".join(parts).decode()


def run(*arguments: str | os.PathLike[str], code: int = 0, cwd: str | os.PathLike[str] | None = None) -> str:
    """What `python ARGUMENTS` writes to its standard error, a terminal."""
    shows, written = opened()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=written, cwd=cwd, env=environment
    )
    os.close(written)
    text = everything(shows)
    assert process.wait(timeout=120) == code, text
    return text
