"""SEG-Y and SU: samples are rewritten in place, every header byte is kept.

Layout after Hagelund and Levin (ed., 2023), "SEG-Y_r2.1: SEG-Y revision 2.1 data exchange format", SEG. Inline and
crossline numbers are ignored: sorted or not, traces are taken in the order of the file.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array
from wavefilt.io.arrays.contiguous import Codec, ContiguousFile, Places
from wavefilt.io.detection import Probe
from wavefilt.io.file_source import opened
from wavefilt.io.layout import Layout
from wavefilt.io.segy_headers import FOOT, IBM, IEEE, SEGY_WIDTHS, TRACE_HEADER, Headers, read_headers

if TYPE_CHECKING:
    from wavefilt.recording import Recording

BLOCK = 1 << 20
"""Bytes copied at a time."""
CODE_AT = 3224
"""Where the binary header holds the sample format code."""
UNIT_AT, METRES, FEET = 3254, 1, 2
"""Where the binary header holds the unit of lengths, and what it may be."""
FLOATS = (IBM, IEEE, 6)
KINDS = {1: "u4", 2: "i4", 3: "i2", 5: "f4", 6: "f8", 8: "i1", 9: "i8", 10: "u4", 11: "u2", 12: "u8", 16: "u1"}
"""What NumPy calls the samples of each code that is read, IBM floats as words."""


def places(headers: Headers) -> Places:
    """Where the samples are."""
    stored = np.dtype(headers.endian + KINDS[headers.code])
    gap, codec = headers.header // stored.itemsize, Codec(from_ibm, to_ibm) if headers.code == IBM else None
    rows, stride = (headers.traces,), (headers.samples + gap,)
    return Places(headers.begin + headers.header, stored, rows, stride, headers.samples, 1, gap, codec)


class SegyFile(ContiguousFile):
    """A `wavefilt.io.sources.Source`. Raises FormatError for a file that is damaged or not of the format."""

    def __init__(self, file: str | BinaryIO, layout: Layout, format: str) -> None:
        layout.only(format, "dt")
        with opened(file) as stream:
            self._headers = headers = read_headers(Probe(stream), format)
        # floats stay as they are, integers become IEEE floats
        self._result = headers if headers.code in FLOATS else replace(headers, code=IEEE)
        super().__init__(file, format, places(headers), headers.interval or layout.dt, places(self._result))
        self.dtype = np.dtype("f4" if headers.code == IBM else KINDS[headers.code])
        if self._result != headers:
            self.notes = ("integer samples are written as 32-bit floats, sample format code 5",)

    @property
    def order(self) -> str:
        return self._headers.endian

    @property
    def in_feet(self) -> bool:
        """Whether lengths are in feet, not in metres."""
        self._file.seek(UNIT_AT)
        return self.format == "segy" and struct.unpack(f"{self.order}h", self._file.read(2)) == (FEET,)

    def trace_headers(self) -> list[bytes]:
        """The headers of all traces, without additional ones; samples and interval as they are here."""
        headers, found = self._headers, []
        size = headers.header + headers.samples * SEGY_WIDTHS[headers.code]
        for i in range(headers.traces):
            self._file.seek(headers.begin + i * size)
            header = bytearray(self._file.read(TRACE_HEADER))
            struct.pack_into(headers.endian + "H", header, 114, min(headers.samples, 0xFFFF))
            if not any(header[116:118]) and (self.interval or 1) < 0.065:
                struct.pack_into(headers.endian + "H", header, 116, round(1e6 * (self.interval or 0)))
            found.append(bytes(header))
        return found

    def copy(self, to: BinaryIO) -> None:
        """All headers, and the samples, or zeros of another width."""
        headers = self._headers
        if self._result == headers:
            super().copy(to)
            return
        self._file.seek(0)
        head = bytearray(self._file.read(headers.begin))
        struct.pack_into(headers.endian + "H", head, CODE_AT, IEEE)
        to.write(head)
        stored, samples = headers.samples * SEGY_WIDTHS[headers.code], bytes(4 * headers.samples)
        for _ in range(headers.traces):
            to.write(self._file.read(headers.header) + samples)
            self._file.seek(stored, 1)
        shutil.copyfileobj(self._file, to, BLOCK)


def from_ibm(words: Array) -> NDArray[np.float32]:
    """IBM's 4-byte floats: a sign, an exponent of 16 plus 64, 24 bits of fraction. Above float32's range infinite."""
    exponent = (words >> 24 & 0x7F).astype(np.int32)
    size = np.ldexp((words & 0xFFFFFF).astype(np.float64), 4 * exponent - 4 * 64 - 24)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(words >> 31, -size, size).astype(np.float32)


def to_ibm(samples: Array) -> NDArray[np.uint32]:
    """The same back, with the fraction cut off after 24 bits."""
    fraction, exponent = np.frexp(samples.astype(np.float64))
    power = -(-exponent // 4)
    words: NDArray[np.uint32] = np.ldexp(np.abs(fraction), exponent - 4 * power + 24).astype(np.uint32)
    words |= np.where(words > 0, power + 64, 0).astype(np.uint32) << 24
    words |= np.signbit(samples).astype(np.uint32) << 31
    return words


def offsets(recording: Recording) -> tuple[float, ...]:
    """Metres from source to receiver by the trace headers; nothing where all of them say 0, or of another file."""
    file = recording.origin
    if not isinstance(file, SegyFile):
        return ()
    found = [struct.unpack_from(f"{file.order}i", header, 36)[0] for header in file.trace_headers()]
    return tuple((FOOT if file.in_feet else 1.0) * value for value in found) if any(found) else ()


open_source = SegyFile
