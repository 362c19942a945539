"""The layout of a SEG-Y or SU file by its headers and its size."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavefilt.errors import FormatError
from wavefilt.io.detection import Probe

IBM, IEEE = 1, 5
SEGY_HEADERS, TRACE_HEADER = 3600, 240
"""Bytes of SEG-Y's textual and binary header, and of a trace header, which is also SU's."""

SEGY_WIDTHS = {1: 4, 2: 4, 3: 2, 4: 4, 5: 4, 6: 8, 7: 3, 8: 1, 9: 8, 10: 4, 11: 2, 12: 8, 15: 3, 16: 1}
"""Bytes per sample for each sample format code of SEG-Y, revisions 0 to 2."""

FOOT = 0.3048
"""Metres."""
MOST_EXTENDED = 100
"""Extended textual headers that a plausible SEG-Y file has at most."""
NOT_READ = {4: "32-bit fixed point with gain", 7: "24-bit integers", 15: "24-bit unsigned integers"}
"""Codes of the standard that are not read."""


def segy_header(probe: Probe, endian: str) -> tuple[int, int, int]:
    """Samples per trace, sample format code and number of extended textual headers, by the binary header."""
    (samples, _, code), (extended,) = probe.unpack(endian + "3H", 3220), probe.unpack(endian + "H", 3504)
    return samples, code, extended


@dataclass(frozen=True)
class Headers:
    """Byte order, sample format code, bytes before the first trace, samples per trace, traces, bytes of their headers.

    The interval is in seconds; None where headers have none, or contradict each other.
    """

    endian: str
    code: int
    begin: int
    samples: int
    traces: int
    header: int = TRACE_HEADER
    interval: float | None = None


def read_headers(probe: Probe, format: str) -> Headers:
    """The headers of a SEG-Y or SU file. Raises FormatError for one that is truncated or contradicts itself."""
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
    major, minor = probe.unpack("2B", 3500)
    written_as_one_number = endian == "<" and (major, minor) == (0, 2)
    second = _Second(probe, endian) if major == 2 or written_as_one_number else None
    begin = second.begin if second and second.begin else SEGY_HEADERS + 3200 * _text_headers(probe, extended)
    samples = second.samples if second and second.samples else samples
    (stated,) = probe.unpack(endian + "H", begin + 114)
    first = f"; the first trace header says {stated}" if stated != samples else ""
    if samples == 0:
        raise FormatError(f"the binary header says 0 samples a trace (bytes 3221-3222){first}")
    interval = _interval(probe, endian, begin, second.interval if second else 0)
    body, width = probe.size - begin, samples * SEGY_WIDTHS[code]
    if second is None:
        header, traces = TRACE_HEADER, _traces(body, samples, TRACE_HEADER + width, first)
    else:
        header, traces = second.traces_in(body, samples, width, first)
    return Headers(endian, code, begin, samples, traces, header, interval)


class _Second:
    """What revision 2 adds to the binary header, 0 where it says nothing. Raises FormatError for what is not read."""

    def __init__(self, probe: Probe, endian: str) -> None:
        (self.samples,), (self.interval,) = probe.unpack(endian + "I", 3268), probe.unpack(endian + "d", 3272)
        (order,), (self.begin,) = probe.unpack(endian + "I", 3296), probe.unpack(endian + "Q", 3520)
        if order not in (0, 0x01020304):
            raise FormatError(f"the byte order constant (bytes 3297-3300) is {order:#010x}, which contradicts the rest")
        if self.begin and not SEGY_HEADERS <= self.begin < probe.size:
            raise FormatError(f"the first trace is said to begin at byte {self.begin} (bytes 3521-3528)")
        # four bytes in revision 2.0, where some files have two, as all have in 2.1
        kinds = "H" if probe.unpack("2B", 3500) > (2, 0) else "IH"
        self.additional = [probe.unpack(endian + kind, 3506)[0] for kind in kinds]
        (self.traces,), (self.trailer,) = probe.unpack(endian + "Q", 3512), probe.unpack(endian + "i", 3528)

    def traces_in(self, body: int, samples: int, width: int, first: str) -> tuple[int, int]:
        """Bytes of the headers of a trace, and the number of traces, in so many bytes of traces and trailer."""
        if self.trailer < 0 and not self.traces:
            raise FormatError("a data trailer of unknown length (bytes 3529-3532) and no number of traces")
        for additional in self.additional:
            trace = TRACE_HEADER * (1 + additional) + width
            end = self.traces * trace if self.trailer < 0 else body - 3200 * self.trailer
            if 0 < end <= body and end % trace == 0 and self.traces in (0, end // trace):
                return TRACE_HEADER * (1 + additional), end // trace
        raise FormatError(
            f"{body} bytes are not {self.traces or 'a whole number of'} traces of {samples} samples with "
            f"{self.additional[-1]} additional trace headers each (bytes 3507-3510, 3513-3520) and {self.trailer} "
            f"records of trailer (bytes 3529-3532){first}"
        )


def _text_headers(probe: Probe, stated: int) -> int:
    """The number of extended textual headers; -1 stands for as many as there are before the one that ends them."""
    if stated == 0xFFFF:
        for count in range(MOST_EXTENDED):
            record = probe.bytes(SEGY_HEADERS + 3200 * count, 3200)
            if any("((SEG:ENDTEXT))" in record.decode(c).replace(" ", "").upper() for c in ("latin-1", "cp037")):
                return count + 1
    if stated > MOST_EXTENDED:
        signed = stated - (stated >> 15 << 16)
        raise FormatError(f"{signed} extended textual headers (bytes 3505-3506) are not read")
    return stated


def _interval(probe: Probe, endian: str, begin: int, extended: float = 0) -> float | None:
    if extended > 0 and math.isfinite(extended):
        return extended / 1e6
    places = [begin + 116] + ([3216] if begin else [])
    found = {value for at in places if (value := probe.unpack(endian + "h", at)[0]) > 0}
    return found.pop() / 1e6 if len(found) == 1 else None


def _su(probe: Probe) -> Headers:
    fits = _su_orders(probe)
    if not fits:
        samples = min((s for e in "<>" if (s := probe.unpack(e + "H", 114)[0])), default=0)
        if not samples:
            raise FormatError("not an SU file: the first trace header says 0 samples (bytes 115-116)")
        _traces(probe.size, samples, TRACE_HEADER + 4 * samples, "")
    # where both orders fit, the one of the shorter interval
    return min(fits, key=lambda headers: probe.unpack(headers.endian + "H", 116))


def _su_orders(probe: Probe) -> list[Headers]:
    """The headers in each byte order in which the file is a whole number of traces."""
    found = []
    for endian in "<>":
        (samples,) = probe.unpack(endian + "H", 114)
        traces, rest = divmod(probe.size, TRACE_HEADER + 4 * samples)
        if samples and traces and not rest:
            found.append(Headers(endian, IEEE, 0, samples, traces, interval=_interval(probe, endian, 0)))
    return found


def _traces(body: int, samples: int, trace: int, first: str) -> int:
    """The number of traces of so many bytes. Raises FormatError if that is not a whole number, or 0."""
    if body < trace or body % trace:
        raise FormatError(
            f"traces of {samples} samples take {trace} bytes each, and {body} bytes are not a whole number of them: "
            f"the file is truncated, or its traces have different lengths{first}"
        )
    return body // trace


def is_segy(probe: Probe) -> bool:
    try:
        return _segy(probe).samples > 1
    except FormatError:
        return False


def is_su(probe: Probe) -> bool:
    for headers in _su_orders(probe):
        starts = range(0, probe.size, TRACE_HEADER + 4 * headers.samples)
        examined = {probe.unpack(headers.endian + "H", start + 114) for start in [*starts[:100], starts[-1]]}
        # without an interval other marks are needed: several traces, and SU's unassigned bytes
        quiet = len(starts) > 1 and not any(probe.bytes(204, 36))
        if len(examined) == 1 and (quiet or probe.unpack(headers.endian + "H", 116) != (0,)):
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
