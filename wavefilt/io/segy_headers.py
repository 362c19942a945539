"""The layout of a SEG-Y or SU file by its headers and its size."""

from __future__ import annotations

from dataclasses import dataclass

from wavefilt.errors import FormatError
from wavefilt.io.detection import Probe

IBM, IEEE = 1, 5
SEGY_HEADERS, TRACE_HEADER = 3600, 240
"""Bytes of SEG-Y's textual and binary header, and of a trace header, which is also SU's."""

SEGY_WIDTHS = {1: 4, 2: 4, 3: 2, 4: 4, 5: 4, 6: 8, 7: 3, 8: 1, 9: 8, 10: 4, 11: 2, 12: 8, 15: 3, 16: 1}
"""Bytes per sample for each sample format code of SEG-Y, revisions 0 to 2."""

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
    """Byte order, sample format code, bytes before the first trace, samples per trace, and traces."""

    endian: str
    code: int
    begin: int
    samples: int
    traces: int


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
    fits = _su_orders(probe)
    if not fits:
        samples = min((s for e in "<>" if (s := probe.unpack(e + "H", 114)[0])), default=0)
        if not samples:
            raise FormatError("not an SU file: the first trace header says 0 samples (bytes 115-116)")
        _traces(probe.size, samples, 4, "")
    # where both orders fit, the one of the shorter interval
    return min(fits, key=lambda headers: probe.unpack(headers.endian + "H", 116))


def _su_orders(probe: Probe) -> list[Headers]:
    """The headers in each byte order in which the file is a whole number of traces."""
    found = []
    for endian in "<>":
        (samples,) = probe.unpack(endian + "H", 114)
        traces, rest = divmod(probe.size, TRACE_HEADER + 4 * samples)
        if samples and traces and not rest:
            found.append(Headers(endian, IEEE, 0, samples, traces))
    return found


def _traces(body: int, samples: int, width: int, first: str) -> int:
    """The number of traces of this length. Raises FormatError if that is not a whole number, or 0."""
    trace = TRACE_HEADER + samples * width
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
        if len(examined) == 1 and probe.unpack(headers.endian + "H", 116) != (0,):
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
