"""The layout of a SEG-Y or SU file by its headers and its size, checked before segyio opens it.

segyio takes an unknown sample format code for IBM floats, and says little about a size that does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array
from wavefilt.errors import FormatError
from wavefilt.io.detection import MOST_EXTENDED, SEGY_HEADERS, SEGY_WIDTHS, TRACE_HEADER, Probe, segy_header

CODE_AT = 3224
"""Where the binary header holds the sample format code."""
IBM, IEEE = 1, 5
FLOATS = (IBM, IEEE, 6)
NOT_READ = {4: "32-bit fixed point with gain", 7: "24-bit integers", 15: "24-bit unsigned integers"}
"""Codes of the standard that segyio does not read."""


@dataclass(frozen=True)
class Headers:
    """Byte order, sample format code, bytes before the first trace, samples per trace, and traces."""

    endian: str
    code: int
    begin: int
    samples: int
    traces: int

    @property
    def width(self) -> int:
        """Bytes per sample."""
        return SEGY_WIDTHS[self.code]

    @property
    def as_written(self) -> Headers:
        """Those of the result: floats stay as they are, integers become IEEE floats."""
        return self if self.code in FLOATS else replace(self, code=IEEE)


def read_headers(file: BinaryIO, format: str) -> Headers:
    """The headers of a SEG-Y or SU file. Raises FormatError for one that is truncated or contradicts itself."""
    probe = Probe(file)
    return _su(probe) if format == "su" else _segy(probe)


def _segy(probe: Probe) -> Headers:
    if probe.size < SEGY_HEADERS + TRACE_HEADER:
        least = f"its headers take {SEGY_HEADERS} and a trace {TRACE_HEADER} more"
        raise FormatError(f"truncated SEG-Y file: {probe.size} bytes, where {least}")
    found = {endian: segy_header(probe, endian) for endian in "><"}
    orders = [endian for endian, (_, code, _) in found.items() if code in SEGY_WIDTHS]
    if not orders:
        known = ", ".join(str(code) for code in SEGY_WIDTHS if code not in NOT_READ)
        raise FormatError(f"unknown sample format code {found['>'][1]} (bytes 3225-3226); supported are {known}")
    endian = orders[0]
    samples, code, extended = found[endian]
    if code in NOT_READ:
        raise FormatError(f"samples of format code {code} ({NOT_READ[code]}) are not read; convert the file first")
    if extended > MOST_EXTENDED:
        raise FormatError(
            f"{extended - (extended >> 15 << 16)} extended textual headers (bytes 3505-3506) are not read"
        )
    begin = SEGY_HEADERS + 3200 * extended
    (stated,) = probe.unpack(endian + "H", begin + 114)
    first = f"; the first trace header says {stated}" if stated != samples else ""
    if samples == 0:
        raise FormatError(f"the binary header says 0 samples a trace (bytes 3221-3222){first}")
    return Headers(endian, code, begin, samples, _traces(probe.size - begin, samples, SEGY_WIDTHS[code], first))


def _su(probe: Probe) -> Headers:
    stated = {endian: probe.unpack(endian + "2H", 114) for endian in "<>"}
    fits = [e for e, (samples, _) in stated.items() if samples and probe.size % (TRACE_HEADER + 4 * samples) == 0]
    if not fits:
        samples = min((s for s, _ in stated.values() if s), default=0)
        if not samples:
            raise FormatError("not an SU file: the first trace header says 0 samples (bytes 115-116)")
        _traces(probe.size, samples, 4, "")
    endian = min(fits, key=lambda e: stated[e][1])  # where both orders fit, the one of the shorter interval
    samples = stated[endian][0]
    return Headers(endian, IEEE, 0, samples, probe.size // (TRACE_HEADER + 4 * samples))


def _traces(body: int, samples: int, width: int, first: str) -> int:
    """The number of traces of this length. Raises FormatError if that is not a whole number, or 0."""
    trace = TRACE_HEADER + samples * width
    if body < trace or body % trace:
        raise FormatError(
            f"traces of {samples} samples take {trace} bytes each, and {body} bytes are not a whole number of them: "
            f"the file is truncated, or its traces have different lengths{first}"
        )
    return body // trace


def from_ibm(words: Array) -> NDArray[np.float32]:
    """IBM's 4-byte floats: a sign, an exponent of 16 plus 64, 24 bits of fraction. Above float32's range infinite."""
    exponent = (words >> 24 & 0x7F).astype(np.int32)
    size = np.ldexp((words & 0xFFFFFF).astype(np.float64), 4 * exponent - 4 * 64 - 24)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(words >> 31, -size, size).astype(np.float32)
