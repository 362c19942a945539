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
from wavefilt.errors import FormatError, LayoutError, options
from wavefilt.io.layout import Layout
from wavefilt.io.segy_headers import FOOT
from wavefilt.recording import Recording

DTYPES = {1: "i2", 2: "i4", 4: "f4", 5: "f8"}
"""NumPy type of each sample code; code 3 packs four 20-bit samples into ten bytes."""

IDENTIFIER = 0x4422
"""Start of every trace descriptor block."""

DESCRIPTOR = 32
"""Bytes of the fixed part of the file and trace descriptor blocks; free-form strings follow."""


@dataclass(frozen=True)
class Trace:
    """Where a trace stands in the file: its descriptor block, then its samples, in bytes from the start."""

    pointer: int
    data: int
    end: int
    samples: int
    code: int


@dataclass(frozen=True)
class Origin:
    """The file as it was read, its byte order and its traces in the order of the pointers."""

    file: bytes
    endian: str
    traces: tuple[Trace, ...]


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The traces in counts, in the order of the file's pointers; integer codes as integers."""
    layout.only("seg2", "dt")
    endian = {b"\x55\x3a": "<", b"\x3a\x55": ">"}.get(data[:2])
    if endian is None or len(data) < DESCRIPTOR:
        raise FormatError("no SEG-2 file descriptor block at the start")
    revision, pointer_bytes, count = struct.unpack_from(endian + "3H", data, 2)
    if revision != 1:
        raise FormatError(f"SEG-2 revision {revision} is not known; 1 is")
    if count == 0:
        raise FormatError("SEG-2 file without traces")
    if 4 * count > pointer_bytes or DESCRIPTOR + pointer_bytes > len(data):
        raise FormatError(
            f"{count} trace pointers do not fit their block of {pointer_bytes} bytes or the file of {len(data)}"
        )
    pointers = struct.unpack_from(f"{endian}{count}I", data, DESCRIPTOR)
    traces = tuple(_trace(data, endian, number, at) for number, at in enumerate(pointers, 1))
    for before, after in pairwise(sorted(traces, key=lambda trace: trace.pointer)):
        if after.pointer < before.end:
            raise FormatError(f"trace blocks at bytes {before.pointer} and {after.pointer} overlap")
    samples = [_samples(data, endian, trace) for trace in traces]
    alike = len({(len(row), row.dtype) for row in samples}) == 1
    intervals = tuple(_interval(data, endian, trace, layout.dt) for trace in traces)
    packed = any(trace.code < 4 for trace in traces)
    notes = ("integer samples are written as 32-bit floats",) if packed else ()
    origin = Origin(data, endian, traces)
    return Recording(np.array(samples) if alike else samples, intervals, "seg2", origin, notes=notes)


def _trace(data: bytes, endian: str, number: int, pointer: int) -> Trace:
    """The trace descriptor block at ``pointer``, checked against the size of the file."""
    if pointer + DESCRIPTOR > len(data):
        raise FormatError(f"trace {number} starts at byte {pointer}, beyond the end of the file ({len(data)} bytes)")
    identifier, block, _, samples = struct.unpack_from(endian + "2H2I", data, pointer)
    code = data[pointer + 12]
    if identifier != IDENTIFIER:
        raise FormatError(f"no trace descriptor block at byte {pointer}, where trace {number} should start")
    if code not in (*DTYPES, 3):
        raise FormatError(f"trace {number} has sample code {code}; codes 1 to 5 are known")
    if block < DESCRIPTOR or samples == 0:
        raise FormatError(f"trace {number} has a descriptor block of {block} bytes and {samples} samples")
    if code == 3 and samples % 4:
        raise FormatError(f"trace {number}: 20-bit samples come in fours, but there are {samples}")
    size = samples * 5 // 2 if code == 3 else samples * int(DTYPES[code][1])
    start = pointer + block
    if start + size > len(data):
        raise FormatError(
            f"trace {number} of {samples} samples ends at byte {start + size}, beyond the end of the file "
            f"({len(data)} bytes)"
        )
    return Trace(pointer, start, start + size, samples, code)


def _samples(data: bytes, endian: str, trace: Trace) -> Array:
    if trace.code != 3:
        dtype = np.dtype(endian + DTYPES[trace.code])
        return np.frombuffer(data, dtype, trace.samples, trace.data).astype(dtype.newbyteorder("="))
    # a word of four 4-bit exponents, lowest first, then four 16-bit ones'-complement mantissas
    words = np.frombuffer(data, endian + "i2", trace.samples * 5 // 4, trace.data).reshape(-1, 5).astype(np.int32)
    exponents = (words[:, :1] >> np.array([0, 4, 8, 12])) & 15
    mantissas = words[:, 1:] + (words[:, 1:] < 0)
    samples: Array = (mantissas << exponents).astype(np.int32).ravel()
    return samples


def strings(data: bytes, endian: str, start: int, end: int) -> dict[str, str]:
    """The free-form strings between two places: keyword -> value, the first of each keyword.

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


def _interval(data: bytes, endian: str, trace: Trace, given: float | None) -> float | None:
    """SAMPLE_INTERVAL in seconds; where it is missing or no positive number, what the user gave."""
    try:
        value = float(strings(data, endian, trace.pointer + DESCRIPTOR, trace.data)["SAMPLE_INTERVAL"])
    except (KeyError, ValueError):
        return given
    if not (math.isfinite(value) and value > 0):
        return given
    if given is not None and not math.isclose(given, value, rel_tol=1e-6):
        raise LayoutError(options(dt=given), f" contradicts SAMPLE_INTERVAL {value} in the file")
    return value


@dataclass(frozen=True)
class TraceHeaders:
    """What the strings of a trace say that other formats have places for; None, or no coordinates, where nothing.

    Coordinates in the units of the file, ``delay`` in seconds, ``descaling`` in millivolts per count; ``start`` is the
    local time of acquisition, that of the file.
    """

    shot: int | None
    channel: int | None
    source_station: int | None
    cdp: int | None
    receiver: tuple[float, ...]
    source: tuple[float, ...]
    delay: float | None
    descaling: float | None
    start: np.datetime64 | None

    @property
    def offset(self) -> float:
        """Horizontal distance of receiver and source, in the units of the file."""
        (x, y), (other_x, other_y) = ((*place, 0.0, 0.0)[:2] for place in (self.receiver, self.source))
        return math.hypot(x - other_x, y - other_y)


def headers(origin: Origin) -> list[TraceHeaders]:
    """The headers of every trace."""
    start, found = _start(file_strings(origin)), []
    for trace in origin.traces:
        said = strings(origin.file, origin.endian, trace.pointer + DESCRIPTOR, trace.data)
        whole = {key: int(value[0]) for key in said if (value := _numbers(said[key])) and abs(value[0]) < 1 << 31}
        first = {key: value[0] for key in said if (value := _numbers(said[key]))}
        channel = whole.get("CHANNEL_NUMBER", whole.get("RECEIVER_STATION_NUMBER"))
        receiver, source = (_numbers(said.get(f"{end}_LOCATION", ""))[:3] for end in ("RECEIVER", "SOURCE"))
        numbers = (
            whole.get("SHOT_SEQUENCE_NUMBER"),
            channel,
            whole.get("SOURCE_STATION_NUMBER"),
            whole.get("CDP_NUMBER"),
        )
        found.append(TraceHeaders(*numbers, receiver, source, first.get("DELAY"), first.get("DESCALING_FACTOR"), start))
    return found


def file_strings(origin: Origin) -> dict[str, str]:
    """The free-form strings of the file descriptor block."""
    (pointers,) = struct.unpack_from(origin.endian + "H", origin.file, 4)
    return strings(origin.file, origin.endian, DESCRIPTOR + pointers, min(trace.pointer for trace in origin.traces))


def offsets(recording: Recording) -> tuple[float, ...]:
    """Metres from source to receiver, negative for a receiver at a smaller x; nothing where a location is not given."""
    if not isinstance(recording.origin, Origin):
        return ()
    found = headers(recording.origin)
    if not all(trace.receiver and trace.source for trace in found) or not any(trace.offset for trace in found):
        return ()
    unit = FOOT if in_feet(recording.origin) else 1.0
    return tuple(unit * math.copysign(trace.offset, trace.receiver[0] - trace.source[0]) for trace in found)


def in_feet(origin: Origin) -> bool:
    """Whether lengths are in feet, not in metres."""
    return "FEET" in file_strings(origin).get("UNITS", "").upper()


def _numbers(text: str) -> tuple[float, ...]:
    """The finite numbers that a string begins with."""
    found: list[float] = []
    for word in text.split():
        try:
            value = float(word)
        except ValueError:
            break
        if not math.isfinite(value):
            break
        found.append(value)
    return tuple(found)


def _start(said: dict[str, str]) -> np.datetime64 | None:
    """ACQUISITION_DATE (11/JUN/2024, 11/06/2024) and ACQUISITION_TIME (10:42:17.5); None if they are no such."""
    date, clock = said.get("ACQUISITION_DATE", "").replace("-", "/"), said.get("ACQUISITION_TIME", "").split(".")
    for form in ("%d/%b/%Y", "%d/%m/%Y"):
        with suppress(ValueError):
            whole = np.datetime64(datetime.strptime(f"{date} {clock[0].strip()}", f"{form} %H:%M:%S"), "ns")
            fraction = clock[1].strip() if len(clock) > 1 else "0"
            return whole + np.timedelta64(
                int(f"{fraction:<09.9}".replace(" ", "0")) if fraction.isdecimal() else 0, "ns"
            )
    return None


def encode(recording: Recording) -> bytes:
    """The file it came from with new samples; integer codes become code 4 and the pointers move accordingly."""
    origin: Origin = recording.origin
    out = bytearray()
    cursor = 0
    moved: dict[int, int] = {}
    order = sorted(range(len(origin.traces)), key=lambda i: origin.traces[i].pointer)
    for i in order:
        trace = origin.traces[i]
        out += origin.file[cursor : trace.pointer]
        moved[i] = len(out)
        out += origin.file[trace.pointer : trace.data]
        dtype = origin.endian + ("f8" if trace.code == 5 else "f4")
        samples = np.asarray(recording.traces[i]).astype(dtype).tobytes()
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
