"""Which format a file has, from its content alone."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import BinaryIO

HEAD = 1 << 16
"""Bytes looked at from the start of a file."""

SEG2_TRACE = 0x4422
"""Identifier at the start of every SEG-2 trace descriptor block."""

SEGY_HEADERS, TRACE_HEADER = 3600, 240
"""Bytes of SEG-Y's textual and binary header, and of a trace header, which is also SU's."""

SEGY_WIDTHS = {1: 4, 2: 4, 3: 2, 4: 4, 5: 4, 6: 8, 7: 3, 8: 1, 9: 8, 10: 4, 11: 2, 12: 8, 15: 3, 16: 1}
"""Bytes of a sample for each sample format code of SEG-Y, revisions 0 to 2."""

MOST_EXTENDED = 100
"""Extended textual headers that a plausible SEG-Y file has."""

Check = Callable[["Probe"], bool]


class Probe:
    """A seekable file under examination: its first bytes, its size, and a few bytes from anywhere."""

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


def _seg2(probe: Probe) -> bool:
    endian = {b"\x55\x3a": "<", b"\x3a\x55": ">"}.get(probe.head[:2])
    if endian is None:
        return False
    revision, pointer_bytes, traces = probe.unpack(endian + "3H", 2)
    (pointer,) = probe.unpack(endian + "I", 32)
    plausible = revision == 1 and 4 * traces <= pointer_bytes and 0 < pointer < probe.size
    return plausible and probe.unpack(endian + "H", pointer) == (SEG2_TRACE,)


def _sac(probe: Probe) -> bool:
    for endian in "<>":
        (version,), (samples,) = probe.unpack(endian + "i", 304), probe.unpack(endian + "i", 316)
        if version in (6, 7) and probe.size == 632 + 4 * samples:
            return True
    return False


def segy_header(probe: Probe, endian: str) -> tuple[int, int, int]:
    """Samples a trace, sample format code and number of extended textual headers by the binary header."""
    (samples, _, code), (extended,) = probe.unpack(endian + "3H", 3220), probe.unpack(endian + "H", 3504)
    return samples, code, extended


def _segy(probe: Probe) -> bool:
    for endian in "<>":
        samples, code, extended = segy_header(probe, endian)
        body = probe.size - SEGY_HEADERS - 3200 * extended
        whole = body > 0 and body % (TRACE_HEADER + samples * SEGY_WIDTHS.get(code, 0)) == 0
        if samples > 1 and code in SEGY_WIDTHS and extended <= MOST_EXTENDED and whole:
            return True
    return False


def _su(probe: Probe) -> bool:
    for endian in "<>":
        samples, interval = probe.unpack(endian + "2H", 114)
        trace = TRACE_HEADER + 4 * samples
        if samples and interval and probe.size >= trace and probe.size % trace == 0:
            starts = range(0, probe.size, trace)
            some = [*starts[:100], starts[-1]]
            if all(probe.unpack(endian + "H", start + 114) == (samples,) for start in some):
                return True
    return False


def _starts(*prefixes: bytes) -> Check:
    return lambda probe: probe.head.startswith(prefixes)


CHECKS: dict[str, Check] = {
    "gzip": _starts(b"\x1f\x8b"),
    "zip": _starts(b"PK\x03\x04", b"PK\x05\x06"),
    "npy": _starts(b"\x93NUMPY"),
    "hdf5": _starts(b"\x89HDF\r\n\x1a\n"),
    "pickle": lambda probe: re.match(rb"\x80[\x02-\x05]", probe.head) is not None and probe.head[2:3] in b"}c\x95c(]",
    "wav": lambda probe: probe.head[:4] in (b"RIFF", b"RIFX", b"RF64") and probe.head[8:12] == b"WAVE",
    "seg2": _seg2,
    "sac": _sac,
    "mseed": lambda probe: re.match(rb"\d{6}[DRQM][ \0]|MS\x03", probe.head) is not None,
    "gse2": _starts(b"WID2"),
    "tspair": lambda probe: re.match(rb"TIMESERIES [^\n]*TSPAIR", probe.head) is not None,
    "slist": lambda probe: re.match(rb"TIMESERIES [^\n]*SLIST", probe.head) is not None,
    "rsf": lambda probe: all(key in probe.head for key in (b"data_format=", b"n1=", b"in=")),
    "segy": _segy,
    "su": _su,
}
"""One check a format, each on its own evidence; a file that satisfies two is ambiguous."""

REFUSED = {
    "gzip": "compressed with gzip; decompress it first: gunzip -k FILE, or gunzip -c FILE | wavefilt denoise - -o OUT",
    "pickle": "a Python pickle, which is never opened because loading one can run any program",
    "rsf": "a Madagascar header without samples; read the binary file named after in= with "
    "--format raw --dtype f4 --endian little --ns N1",
}
"""Formats that are recognised and not read, with what to do instead."""


WITHOUT_MAGIC = ("sac", "segy", "su")
"""Formats told by numbers in their headers alone, which raw binary may have by chance."""


def recognise(probe: Probe) -> list[str]:
    """Names of all formats whose identifying marks the file bears, in the order of the table."""
    return [name for name, check in CHECKS.items() if check(probe)]


def starts_like_seg2(probe: Probe) -> bool:
    """Whether a file that fails the SEG-2 checks still starts like one, so that the error can say so."""
    return probe.head[:4] in (b"\x55\x3a\x01\x00", b"\x3a\x55\x00\x01")


def starts_like_segy(probe: Probe) -> bool:
    """Whether a file that fails the SEG-Y checks has its 40 lines of text, each of which begins with C.

    Or headers whose numbers agree: known code, and the same samples and interval in the binary and first trace header.
    """
    lines = probe.head[:3200:80]
    for endian in "<>":
        samples, code, extended = segy_header(probe, endian)
        told = probe.unpack(endian + "2H", SEGY_HEADERS + 3200 * extended + 114)
        if samples > 1 and code in SEGY_WIDTHS and told == (samples, *probe.unpack(endian + "H", 3216)) and told[1]:
            return True
    return len(lines) > 30 and max(lines.count(b"C"), lines.count(b"\xc3")) > 30
