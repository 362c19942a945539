"""How a SEG-Y or SU file is laid out, by its headers and its size, before segyio opens it.

segyio takes a code it does not know for IBM floats and says little about a size that does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError
from wavefilt.io import detection
from wavefilt.io.detection import SEGY_HEADERS, SEGY_WIDTHS, TRACE_HEADER, Probe

CODE_AT = 3224
"""Where the binary header holds the sample format code."""
IBM, IEEE = 1, 5
FLOATS = (IBM, IEEE, 6)
NOT_READ = {4: "32-bit fixed point with gain", 7: "24-bit integers", 15: "24-bit unsigned integers"}
"""Codes of the standard that segyio does not read."""


@dataclass(frozen=True)
class Form:
    """Byte order, sample format code, bytes before the first trace, samples a trace, and traces."""

    endian: str
    code: int
    begin: int
    samples: int
    traces: int

    @property
    def width(self) -> int:
        """Bytes of a sample."""
        return SEGY_WIDTHS[self.code]

    @property
    def as_written(self) -> Form:
        """That of the result: floats as they are, integers as IEEE floats."""
        return self if self.code in FLOATS else replace(self, code=IEEE)


def form_of(file: BinaryIO, format: str) -> Form:
    """The form of a SEG-Y or SU file. Raises FormatError for one that is truncated or contradicts itself."""
    probe = Probe(file)
    return _su(probe) if format == "su" else _segy(probe)


def _segy(probe: Probe) -> Form:
    if probe.size < SEGY_HEADERS + TRACE_HEADER:
        raise FormatError(f"truncated SEG-Y file: {probe.size} bytes, where its headers take {SEGY_HEADERS} and a "
                          f"trace {TRACE_HEADER} more")  # fmt: skip
    found = {endian: detection.segy_header(probe, endian) for endian in "><"}
    orders = [endian for endian, (_, code, _) in found.items() if code in SEGY_WIDTHS]
    if not orders:
        raise FormatError(f"unknown sample format code {found['>'][1]} (bytes 3225-3226); read are "
                          f"{', '.join(str(c) for c in SEGY_WIDTHS if c not in NOT_READ)}")  # fmt: skip
    endian = orders[0]
    samples, code, extended = found[endian]
    if code in NOT_READ:
        raise FormatError(f"samples of format code {code} ({NOT_READ[code]}) are not read; convert the file first")
    if extended > detection.MOST_EXTENDED:
        raise FormatError(
            f"{extended - (extended >> 15 << 16)} extended textual headers (bytes 3505-3506) are not read"
        )
    begin = SEGY_HEADERS + 3200 * extended
    (told,) = probe.unpack(endian + "H", begin + 114)
    first = f"; the first trace header says {told}" if told != samples else ""
    if samples == 0:
        raise FormatError(f"the binary header says 0 samples a trace (bytes 3221-3222){first}")
    return Form(endian, code, begin, samples, _traces(probe.size - begin, samples, SEGY_WIDTHS[code], first))


def _su(probe: Probe) -> Form:
    told = {endian: probe.unpack(endian + "2H", 114) for endian in "<>"}
    fits = [e for e, (samples, _) in told.items() if samples and probe.size % (TRACE_HEADER + 4 * samples) == 0]
    if not fits:
        samples = min((s for s, _ in told.values() if s), default=0)
        if not samples:
            raise FormatError("not an SU file: the first trace header says 0 samples (bytes 115-116)")
        _traces(probe.size, samples, 4, "")
    endian = min(fits, key=lambda e: told[e][1])  # where both orders fit, the one of the shorter interval
    samples = told[endian][0]
    return Form(endian, IEEE, 0, samples, probe.size // (TRACE_HEADER + 4 * samples))


def _traces(body: int, samples: int, width: int, first: str) -> int:
    """How many traces of a length there are. Raises FormatError if that is no whole number, or none."""
    trace = TRACE_HEADER + samples * width
    if body < trace or body % trace:
        raise FormatError(f"traces of {samples} samples take {trace} bytes each, and {body} bytes are no whole number "
                          f"of them: the file is truncated, or its traces have different lengths{first}")  # fmt: skip
    return body // trace


def from_ibm(words: NDArray[Any]) -> NDArray[np.float32]:
    """IBM's 4-byte floats: a sign, an exponent of 16 plus 64, 24 bits of fraction. Above float32's range infinite."""
    exponent = (words >> 24 & 0x7F).astype(np.int32)
    size = np.ldexp((words & 0xFFFFFF).astype(np.float64), 4 * exponent - 4 * 64 - 24)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(words >> 31, -size, size).astype(np.float32)
