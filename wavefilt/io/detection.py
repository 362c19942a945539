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

SEG2_TRACE = 0x4422
"""Identifier at the start of every SEG-2 trace descriptor block."""

SEGY_HEADERS, TRACE_HEADER = 3600, 240
"""Bytes of SEG-Y's textual and binary header, and of a trace header, which is also SU's."""

SEGY_WIDTHS = {1: 4, 2: 4, 3: 2, 4: 4, 5: 4, 6: 8, 7: 3, 8: 1, 9: 8, 10: 4, 11: 2, 12: 8, 15: 3, 16: 1}
"""Bytes per sample for each sample format code of SEG-Y, revisions 0 to 2."""

MOST_EXTENDED = 100
"""Extended textual headers that a plausible SEG-Y file has at most."""


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
        self.file.seek(offset)
        return struct.unpack(format, self.file.read(width).ljust(width, b"\0"))


Check = Callable[[Probe], bool]


def starts_with(*prefixes: bytes) -> Check:
    return lambda probe: probe.head.startswith(prefixes)


def is_seg2(probe: Probe) -> bool:
    endian = {b"\x55\x3a": "<", b"\x3a\x55": ">"}.get(probe.head[:2])
    if endian is None:
        return False
    revision, pointer_bytes, traces = probe.unpack(endian + "3H", 2)
    (pointer,) = probe.unpack(endian + "I", 32)
    plausible = revision == 1 and 4 * traces <= pointer_bytes and 0 < pointer < probe.size
    return plausible and probe.unpack(endian + "H", pointer) == (SEG2_TRACE,)


def is_sac(probe: Probe) -> bool:
    headers = (probe.unpack(endian + "i8xi", 304) for endian in "<>")  # version, samples
    return any(version in (6, 7) and probe.size == 632 + 4 * samples for version, samples in headers)


def segy_header(probe: Probe, endian: str) -> tuple[int, int, int]:
    """Samples per trace, sample format code and number of extended textual headers, by the binary header."""
    (samples, _, code), (extended,) = probe.unpack(endian + "3H", 3220), probe.unpack(endian + "H", 3504)
    return samples, code, extended


def is_segy(probe: Probe) -> bool:
    for endian in "<>":
        samples, code, extended = segy_header(probe, endian)
        body = probe.size - SEGY_HEADERS - 3200 * extended
        whole = body > 0 and body % (TRACE_HEADER + samples * SEGY_WIDTHS.get(code, 0)) == 0
        if samples > 1 and code in SEGY_WIDTHS and extended <= MOST_EXTENDED and whole:
            return True
    return False


def is_su(probe: Probe) -> bool:
    for endian in "<>":
        samples, interval = probe.unpack(endian + "2H", 114)
        trace = TRACE_HEADER + 4 * samples
        if samples and interval and probe.size >= trace and probe.size % trace == 0:
            starts = range(0, probe.size, trace)
            examined = [*starts[:100], starts[-1]]
            if all(probe.unpack(endian + "H", start + 114) == (samples,) for start in examined):
                return True
    return False


def resembles_segy(probe: Probe) -> bool:
    """Whether a file that `is_segy` rejects has SEG-Y's 40 lines of text, each of which begins with C.

    Or headers whose numbers agree: known code, and the same samples and interval in the binary and first trace header.
    """
    lines = probe.head[:3200:80]
    for endian in "<>":
        samples, code, extended = segy_header(probe, endian)
        first = probe.unpack(endian + "2H", SEGY_HEADERS + 3200 * extended + 114)
        if samples > 1 and code in SEGY_WIDTHS and first == (samples, *probe.unpack(endian + "H", 3216)) and first[1]:
            return True
    return len(lines) > 30 and max(lines.count(b"C"), lines.count(b"\xc3")) > 30


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
