"""How the format of a file is recognised from its content alone."""

from __future__ import annotations

import codecs
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

HEAD = 1 << 16
"""Bytes read from the start of a file."""


class Probe:
    """A seekable file under examination.

    Attributes
    ----------
    file : binary file
        Left at any position by the checks.
    size : int
        Its bytes.
    head : bytes
        The first 64 KiB.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = file.seek(0, 2)
        file.seek(0)
        self.head = file.read(HEAD)

    def unpack(self, format: str, offset: int) -> tuple[int, ...]:
        """Numbers at ``offset``; zeros where the file ends first, which no format has there."""
        width = struct.calcsize(format)
        return struct.unpack(format, self.bytes(offset, width).ljust(width, b"\0"))

    def bytes(self, offset: int, count: int) -> bytes:
        """So many bytes from ``offset`` on, or those before the end of the file."""
        self.file.seek(min(offset, self.size))
        return self.file.read(count)


Check = Callable[[Probe], bool]


def starts_with(*prefixes: bytes) -> Check:
    return lambda probe: probe.head.startswith(prefixes)


def sac_order(probe: Probe) -> str | None:
    """The byte order of a SAC file, None for another one. Version 7 has a footer of 22 double precision numbers."""
    for order in "<>":
        version, samples = probe.unpack(order + "i8xi", 304)
        if (version, probe.size - 632 - 4 * samples) in ((6, 0), (7, 0), (7, 176)) and samples >= 0:
            return order
    return None


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file are text: no NUL, UTF-8 or Latin-1, at least 99 % printable."""
    head = head[:HEAD]
    if not head or b"\0" in head:
        return False
    printable = bytes([9, 10, 12, 13, *range(32, 127), *range(160, 256)])
    try:
        # Not final: a character cut at the end of the head is no error.
        codecs.getincrementaldecoder("utf-8")().decode(head)
        printable += bytes(range(128, 160))
    except UnicodeDecodeError:
        pass
    return len(head.translate(None, printable)) <= 0.01 * len(head)


def is_zarr(path: str | Path) -> bool:
    """Whether a folder is a Zarr array or group, by its metadata."""
    return any(os.path.isfile(os.path.join(path, name)) for name in ("zarr.json", ".zarray", ".zgroup"))
