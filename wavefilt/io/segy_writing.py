"""New SEG-Y and SU files, for recordings of other formats.

Places of headers are those of "SEG-Y_r2.1", SEG (2023), which are those of revision 1 where that is enough.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io import seg2
from wavefilt.io.conversion import equal_lengths, stored
from wavefilt.io.segy import FEET, METRES, SegyFile
from wavefilt.io.segy_headers import SEGY_HEADERS, TRACE_HEADER

if TYPE_CHECKING:
    from wavefilt.recording import Recording

CODES = {"i2": 3, "i4": 2, "f4": 5, "f8": 6}
LOCAL, UTC = 1, 4
MILLIVOLTS = 3
SCALES = (1000, 100, 10, 1)
"""Of coordinates: as many decimals as fit in four bytes."""
Fields = dict[tuple[str, int], int | float]
"""Numbers by their struct format and place, counted from 1 as the standard does."""


def convert(recording: Recording, format: str) -> bytes:
    """The recording as SEG-Y or SU, big-endian unless its headers are not.

    Raises FormatError for traces of several lengths or intervals, and what the headers cannot hold.
    """
    samples, origin = equal_lengths(recording, format), recording.origin
    if len(set(recording.intervals)) > 1:
        raise FormatError(f"{format} holds traces of one sampling interval")
    interval = 1e6 * (recording.interval or 0)
    count, whole = samples.shape[1], abs(interval - round(interval)) < 1e-6 and interval < 1 << 15
    if format == "su" and not (whole and count < 1 << 16):
        raise FormatError(f"SU holds at most 65535 samples and whole microseconds, not {count} and {interval:.7g}")
    given = origin.trace_headers() if isinstance(origin, SegyFile) else []
    order = origin.order if isinstance(origin, SegyFile) else "<" if format == "su" else ">"
    content = stored(samples, ("f4",) if format == "su" else tuple(CODES))
    kind = content.dtype.str[1:]
    about = seg2.headers(origin) if recording.format == "seg2" else []
    out = []
    if format == "segy":
        second = not whole or count >= 1 << 16 or kind == "f8"
        out += [_text(recording, second)]
        out += [_binary(recording, order, content.shape, CODES[kind], interval, second, about)]
    shared: Fields = {("H", 115): count if count < 1 << 16 else 0, ("H", 117): round(interval) if whole else 0}
    for i, trace in enumerate(content.astype(order + kind)):
        if given:
            header = given[i]
        else:
            fields: Fields = {("i", 1): i + 1, ("i", 5): i + 1, ("i", 13): i + 1, ("h", 29): 1}
            start = recording.starts[i] if recording.starts else about[i].start if about else None
            fields |= _time(start, UTC if recording.starts else LOCAL) | (_described(about[i]) if about else {})
            header = _packed(TRACE_HEADER, order, fields | shared)
        out += [header, trace.tobytes()]
    return b"".join(out)


def _packed(size: int, order: str, fields: Fields, first: int = 1) -> bytes:
    """A header of so many bytes. Raises FormatError for a number that does not fit in its place."""
    header = bytearray(size)
    for (form, at), value in fields.items():
        try:
            struct.pack_into(order + form, header, at - first, value)
        except struct.error as error:
            raise FormatError(f"{value} does not fit in bytes {at} to {at + struct.calcsize(form) - 1}") from error
    return bytes(header)


def _text(recording: Recording, second: bool) -> bytes:
    lines = [f"written by wavefilt from a file of format {recording.format}"]
    if recording.format == "seg2":
        lines += [f"{key}: {value}" for key, value in seg2.file_strings(recording.origin).items()]
    lines = [" ".join(line.encode("ascii", "replace").decode().split())[:75] for line in lines[:38]]
    lines += [""] * (38 - len(lines)) + ["SEG-Y_REV2.1" if second else "SEG Y REV1", "END TEXTUAL HEADER"]
    return "".join(f"C{i:2d} {line}".ljust(80) for i, line in enumerate(lines, 1)).encode("cp037")


def _binary(
    recording: Recording,
    order: str,
    shape: tuple[int, ...],
    code: int,
    interval: float,
    second: bool,
    about: list[seg2.TraceHeaders],
) -> bytes:
    traces, count = shape
    feet = bool(about) and seg2.in_feet(recording.origin)
    fields: Fields = {("h", 3213): min(traces, 32767), ("H", 3221): count if count < 1 << 16 else 0, ("h", 3225): code}
    fields |= {("h", 3255): FEET if feet else METRES, ("B", 3501): 1 + second, ("B", 3502): second, ("h", 3503): 1}
    fields[("H", 3217)] = round(interval) if interval < 1 << 15 else 0
    if second:
        fields |= {("I", 3269): count, ("d", 3273): interval, ("I", 3297): 0x01020304, ("Q", 3513): traces}
    return _packed(SEGY_HEADERS - 3200, order, fields, 3201)


def _time(start: np.datetime64 | None, basis: int) -> Fields:
    if start is None:
        return {}
    year, day = start.astype("datetime64[Y]"), start.astype("datetime64[D]")
    seconds = int((start.astype("datetime64[s]") - day.astype("datetime64[s]")).astype(int))
    fields: Fields = {("h", 157): int(year.astype(int)) + 1970, ("h", 159): int((day - year).astype(int)) + 1}
    clock = {("h", 161): seconds // 3600, ("h", 163): seconds // 60 % 60, ("h", 165): seconds % 60, ("h", 167): basis}
    return fields | clock


def _described(trace: seg2.TraceHeaders) -> Fields:
    """What SEG-2 says of a trace; a coordinate that it does not give is 0."""
    numbers = {("i", 9): trace.shot, ("i", 13): trace.channel, ("i", 17): trace.source_station, ("i", 21): trace.cdp}
    fields: Fields = {place: number for place, number in numbers.items() if number is not None}
    receiver, source = (_three(position) for position in (trace.receiver, trace.source))
    scale = next((s for s in SCALES if _largest(receiver, source) * s < 1 << 31), 1)
    if trace.receiver or trace.source:
        fields |= {("h", 69): -scale if scale > 1 else 1, ("h", 71): -scale if scale > 1 else 1, ("h", 89): 1}
        places = zip((73, 77, 45, 81, 85, 41), (*source, *receiver), strict=True)
        fields |= {("i", at): round(scale * value) for at, value in places}
        if trace.receiver and trace.source:
            fields[("i", 37)] = round(trace.offset)
    if trace.delay:
        fields[("h", 109)] = round(1000 * trace.delay)
    if trace.descaling:
        mantissa, exponent = f"{trace.descaling:.8e}".split("e")
        fields |= {("i", 205): round(float(mantissa) * 10**8), ("h", 209): int(exponent) - 8, ("h", 211): MILLIVOLTS}
    return fields


def _three(position: tuple[float, ...]) -> tuple[float, float, float]:
    x, y, z = (*position, 0.0, 0.0, 0.0)[:3]
    return x, y, z


def _largest(*positions: Iterable[float]) -> float:
    return max(abs(value) for position in positions for value in position)
