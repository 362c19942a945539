"""SEG-2, the usual `.dat` of field seismographs: read, and written back with every header byte kept.

Layout after Pullan (1990), "Recommended standard for seismic (/radar) data files in the personal computer
environment", Geophysics 55, 1260-1271.
"""

from __future__ import annotations

import math
import struct
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np

from wavefilt.arrays import Array
from wavefilt.errors import FormatError, LayoutError
from wavefilt.io.base import FOOT, Contents, Format, Headers, Layout

DTYPES = {1: "i2", 2: "i4", 4: "f4", 5: "f8"}
"""NumPy type of each sample code; code 3 packs four 20-bit samples into ten bytes."""
MARKS = {b"\x55\x3a": "<", b"\x3a\x55": ">"}
"""Byte order of a file that begins with these bytes."""
IDENTIFIER = 0x4422
"""Start of every trace descriptor block."""
DESCRIPTOR = 32
"""Bytes of the fixed part of the file and trace descriptor blocks; free-form strings follow."""


@dataclass(frozen=True)
class Trace:
    """The place of a trace in the file: its descriptor block, then its samples, in bytes from the start."""

    pointer: int
    data: int
    end: int
    samples: int
    code: int


@dataclass(frozen=True)
class Origin:
    """The file that was read, its byte order and its traces in the order of the pointers."""

    file: bytes
    endian: str
    traces: tuple[Trace, ...]

    def strings(self, trace: Trace) -> dict[str, str]:
        """Return the free-form strings of a trace."""
        return _strings(self.file, self.endian, trace.pointer + DESCRIPTOR, trace.data)


class Seg2(Format):
    name, label, marks = "seg2", "SEG-2", rb"\x55\x3a\x01\x00|\x3a\x55\x00\x01"
    endings, shared_endings = (".seg2", ".sg2"), (".dat",)

    def read(self, data: bytes, layout: Layout) -> Contents:
        """Read the traces in counts, in the order of the file's pointers; integer codes as integers."""
        layout.only("seg2", "dt")
        origin = _scan(data)
        samples = [_samples(origin, trace) for trace in origin.traces]
        alike = len({(len(row), row.dtype) for row in samples}) == 1
        strings = [origin.strings(trace) for trace in origin.traces]
        intervals = tuple(_interval(own, layout.dt) for own in strings)
        delays = [next(iter(_numbers(own.get("DELAY", ""))), 0.0) for own in strings]
        integers = any(trace.code < 4 for trace in origin.traces)
        notes = ("integer samples are written as 32-bit floats",) if integers else ()
        traces, delays = np.array(samples) if alike else samples, delays if any(delays) else []
        return Contents(traces, intervals, "seg2", origin, notes=notes, delays=delays)

    def write(self, contents: Contents) -> bytes:
        """Return the file with new samples; integer codes become code 4 and the pointers move accordingly."""
        origin: Origin = contents.origin
        out, cursor, moved = bytearray(), 0, dict[int, int]()
        for i in sorted(range(len(origin.traces)), key=lambda i: origin.traces[i].pointer):
            trace = origin.traces[i]
            out += origin.file[cursor : trace.pointer]
            moved[i] = len(out)
            out += origin.file[trace.pointer : trace.data]
            dtype = origin.endian + ("f8" if trace.code == 5 else "f4")
            samples = np.asarray(contents.traces[i]).astype(dtype).tobytes()
            if trace.code < 4:
                (block,) = struct.unpack_from(origin.endian + "I", out, moved[i] + 4)
                grown = max(0, block + len(samples) - (trace.end - trace.data))
                struct.pack_into(origin.endian + "I", out, moved[i] + 4, grown)
                out[moved[i] + 12] = 4
            out += samples
            cursor = trace.end
        out += origin.file[cursor:]
        if max(moved.values()) >= 1 << 32:
            raise FormatError("as 32-bit floats the traces need pointers beyond the 4 GiB that SEG-2 can hold")
        struct.pack_into(f"{origin.endian}{len(moved)}I", out, DESCRIPTOR, *(moved[i] for i in range(len(moved))))
        return bytes(out)

    def headers(self, contents: Contents) -> Headers:
        """Return the free-form strings by their keywords."""
        origin: Origin = contents.origin
        (pointers,) = struct.unpack_from(origin.endian + "H", origin.file, 4)
        end = min(trace.pointer for trace in origin.traces)
        fields = _strings(origin.file, origin.endian, DESCRIPTOR + pointers, end)
        unit, time = "ft" if "FEET" in fields.get("UNITS", "").upper() else "m", _time(fields)
        return Headers(fields, tuple(_header(origin.strings(trace), time, unit) for trace in origin.traces))


def _scan(data: bytes) -> Origin:
    """Find the traces. Raises FormatError for a damaged file."""
    endian = MARKS.get(data[:2])
    if endian is None or len(data) < DESCRIPTOR:
        raise FormatError("no SEG-2 file descriptor block at the start")
    revision, pointer_bytes, count = struct.unpack_from(endian + "3H", data, 2)
    if revision != 1 or count == 0 or not 4 * count <= pointer_bytes <= len(data) - DESCRIPTOR:
        sizes = f"pointers to {count} traces in a block of {pointer_bytes} bytes, in a file of {len(data)} bytes"
        raise FormatError(f"damaged file descriptor block, or not of revision 1: revision {revision}, {sizes}")
    pointers = struct.unpack_from(f"{endian}{count}I", data, DESCRIPTOR)
    traces = tuple(_trace(data, endian, number, at) for number, at in enumerate(pointers, 1))
    for before, after in pairwise(sorted(traces, key=lambda trace: trace.pointer)):
        if after.pointer < before.end:
            raise FormatError(f"trace blocks at bytes {before.pointer} and {after.pointer} overlap")
    return Origin(data, endian, traces)


def _trace(data: bytes, endian: str, number: int, pointer: int) -> Trace:
    """Return the trace whose descriptor block is at ``pointer``, checked against the size of the file."""
    beyond = f"beyond the end of the file ({len(data)} bytes)"
    if pointer + DESCRIPTOR > len(data):
        raise FormatError(f"trace {number} starts at byte {pointer}, {beyond}")
    identifier, block, _, samples = struct.unpack_from(endian + "2H2I", data, pointer)
    code = data[pointer + 12]
    if identifier != IDENTIFIER:
        raise FormatError(f"no trace descriptor block at byte {pointer}, where trace {number} should start")
    if code not in (*DTYPES, 3) or block < DESCRIPTOR or samples == 0 or (code == 3 and samples % 4):
        what = f"a descriptor block of {block} bytes and {samples} samples of code {code}"
        raise FormatError(f"trace {number} has {what}; codes 1 to 5 are known, and code 3 has samples in fours")
    start = pointer + block
    end = start + (samples * 5 // 2 if code == 3 else samples * int(DTYPES[code][1]))
    if end > len(data):
        raise FormatError(f"trace {number} of {samples} samples ends at byte {end}, {beyond}")
    return Trace(pointer, start, end, samples, code)


def _samples(origin: Origin, trace: Trace) -> Array:
    if trace.code != 3:
        dtype = np.dtype(origin.endian + DTYPES[trace.code])
        return np.frombuffer(origin.file, dtype, trace.samples, trace.data).astype(dtype.newbyteorder("="))
    # a word of four 4-bit exponents, lowest first, then four 16-bit ones'-complement mantissas
    stored = np.frombuffer(origin.file, origin.endian + "i2", trace.samples * 5 // 4, trace.data)
    words = stored.reshape(-1, 5).astype(np.int32)
    exponents = (words[:, :1] >> np.array([0, 4, 8, 12])) & 15
    mantissas = words[:, 1:] + (words[:, 1:] < 0)
    samples: Array = (mantissas << exponents).astype(np.int32).ravel()
    return samples


def _strings(data: bytes, endian: str, start: int, end: int) -> dict[str, str]:
    """Return the free-form strings between two places: keyword -> value, the first of each keyword.

    A string that runs past the end, as some instruments write, ends the list.
    """
    found: dict[str, str] = {}
    while start + 2 <= end:
        (step,) = struct.unpack_from(endian + "H", data, start)
        if step < 3 or start + step > end:
            break
        text = data[start + 2 : start + step].split(b"\0")[0].decode("latin-1").strip()
        keyword, _, value = text.partition(" ")
        found.setdefault(keyword.upper(), value.strip())
        start += step
    return found


def _interval(strings: dict[str, str], given: float | None) -> float | None:
    """Return SAMPLE_INTERVAL in seconds; if it is missing or no positive number, the interval given by the user."""
    try:
        value = float(strings["SAMPLE_INTERVAL"])
    except (KeyError, ValueError):
        return given
    if not (math.isfinite(value) and value > 0):
        return given
    if given is not None and not math.isclose(given, value, rel_tol=1e-6):
        raise LayoutError(f"`dt={given}` contradicts SAMPLE_INTERVAL {value} in the file")
    return value


def _header(strings: dict[str, str], time: np.datetime64 | None, unit: str) -> Headers:
    numbers = {key: _numbers(value) for key, value in strings.items()}
    first = {key: value[0] for key, value in numbers.items() if value}
    whole = {key: int(value) for key, value in first.items() if abs(value) < 1 << 31}
    receiver, source = (numbers.get(f"{end}_LOCATION", ())[:3] for end in ("RECEIVER", "SOURCE"))
    offset = None
    if receiver and source:
        (x, y), (other_x, other_y) = ((*place, 0.0)[:2] for place in (receiver, source))
        offset = math.copysign(math.hypot(x - other_x, y - other_y), x - other_x) * (FOOT if unit == "ft" else 1.0)
    delay = first.get("DELAY")
    return Headers(
        strings,
        delay=delay,
        onset=(0.0, "the trigger (header DELAY)") if (delay or 0) < 0 else None,
        time=time,
        source=source,
        receiver=receiver,
        offset=offset,
        length_unit=unit,
        units="mV" if "DESCALING_FACTOR" in first else None,
        factor=first.get("DESCALING_FACTOR"),
        shot=whole.get("SHOT_SEQUENCE_NUMBER"),
        channel=whole.get("CHANNEL_NUMBER", whole.get("RECEIVER_STATION_NUMBER")),
        station=whole.get("SOURCE_STATION_NUMBER"),
        cdp=whole.get("CDP_NUMBER"),
    )


def _numbers(text: str) -> tuple[float, ...]:
    """Return the finite numbers at the start of a string."""
    numbers: list[float] = []
    with suppress(ValueError):
        for word in text.split():
            if not math.isfinite(value := float(word)):
                break
            numbers.append(value)
    return tuple(numbers)


def _time(fields: dict[str, str]) -> np.datetime64 | None:
    """Return ACQUISITION_DATE (11/JUN/2024, 11/06/2024) and ACQUISITION_TIME (10:42:17.5); None if they are no such."""
    date, clock = fields.get("ACQUISITION_DATE", "").replace("-", "/"), fields.get("ACQUISITION_TIME", "").split(".")
    for form in ("%d/%b/%Y", "%d/%m/%Y"):
        with suppress(ValueError):
            whole = np.datetime64(datetime.strptime(f"{date} {clock[0].strip()}", f"{form} %H:%M:%S"), "ns")
            fraction = clock[1].strip() if len(clock) > 1 else "0"
            nanoseconds = int(f"{fraction:<09.9}".replace(" ", "0")) if fraction.isdecimal() else 0
            return whole + np.timedelta64(nanoseconds, "ns")
    return None
