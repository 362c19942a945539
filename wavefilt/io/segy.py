"""SEG-Y and SU: samples are rewritten in place, every header byte is kept; new files for recordings of other formats.

Layout after Hagelund and Levin (ed., 2023), "SEG-Y_r2.1: SEG-Y revision 2.1 data exchange format", SEG. Inline and
crossline numbers are ignored: traces are taken in the order of the file. Header fields have the names of segyio.
"""

from __future__ import annotations

import math
import shutil
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array
from wavefilt.errors import FormatError
from wavefilt.io.base import FOOT, Contents, Headers, Layout, Probe, known_interval, moment
from wavefilt.io.sources import Codec, ContiguousFile, Places, StreamedFormat, smallest

IBM, IEEE = 1, 5
DTYPES = {1: "u4", 2: "i4", 3: "i2", 5: "f4", 6: "f8", 8: "i1", 9: "i8", 10: "u4", 11: "u2", 12: "u8", 16: "u1"}
"""NumPy type of each sample format code that is read, IBM floats as words."""
NOT_READ = {4: "32-bit fixed point with gain", 7: "24-bit integers", 15: "24-bit unsigned integers"}
FLOATS = (IBM, IEEE, 6)
NEW_CODES = {"i2": 3, "i4": 2, "f4": IEEE, "f8": 6}
"""Sample format codes of new files."""
TEXT, FILE_HEADERS, TRACE_HEADER = 3200, 3600, 240
"""Bytes of SEG-Y's textual header, of it and the binary header, and of a trace header, which is also SU's."""
CODE_AT = 3224
BLOCK = 1 << 15
"""Bytes read at a time for the headers of all traces: those of short traces are read with the samples between them."""
MOST_EXTENDED = 100
"""Extended textual headers that a plausible SEG-Y file has at most."""
METRES, FEET = 1, 2
LOCAL, GREENWICH, UTC = 1, 2, 4
ONSET = (0.0, "the trigger (header DelayRecordingTime)")
"""`Headers.onset` of a trace that begins before the trigger."""
UNITS = {1: "Pa", 2: "V", 3: "mV", 4: "A", 5: "m", 6: "m/s", 7: "m/s^2", 8: "N", 9: "W"}
SCALES = (1000, 100, 10, 1)
"""Factors of coordinates in new files: the first with which they fit in four bytes is taken."""

BINARY = "3i2h4H18h2iI2d3I200x2B2hih2Qi68x"
_BINARY_NAMES = """
JobID LineNumber ReelNumber Traces AuxTraces Interval IntervalOriginal Samples SamplesOriginal Format EnsembleFold
SortingCode VerticalSum SweepFrequencyStart SweepFrequencyEnd SweepLength Sweep SweepChannel SweepTaperStart
SweepTaperEnd Taper CorrelatedTraces BinaryGainRecovery AmplitudeRecovery MeasurementSystem ImpulseSignalPolarity
VibratoryPolarity ExtTraces ExtAuxTraces ExtSamples ExtInterval ExtIntervalOriginal ExtSamplesOriginal ExtEnsembleFold
IntegerConstant SEGYRevision SEGYRevisionMinor TraceFlag ExtendedHeaders MaxExtTraceHeaders SurveyType ExtTraceCount
FirstTrace Trailers
"""
TRACE = "7i4h8i2h4i13h2H31h5i2hi5h22x"
_TRACE_NAMES = """
TRACE_SEQUENCE_LINE TRACE_SEQUENCE_FILE FieldRecord TraceNumber EnergySourcePoint CDP CDP_TRACE
TraceIdentificationCode NSummedTraces NStackedTraces DataUse offset ReceiverGroupElevation SourceSurfaceElevation
SourceDepth ReceiverDatumElevation SourceDatumElevation SourceWaterDepth GroupWaterDepth ElevationScalar
SourceGroupScalar SourceX SourceY GroupX GroupY CoordinateUnits WeatheringVelocity SubWeatheringVelocity
SourceUpholeTime GroupUpholeTime SourceStaticCorrection GroupStaticCorrection TotalStaticApplied LagTimeA LagTimeB
DelayRecordingTime MuteTimeStart MuteTimeEND TRACE_SAMPLE_COUNT TRACE_SAMPLE_INTERVAL GainType InstrumentGainConstant
InstrumentInitialGain Correlated SweepFrequencyStart SweepFrequencyEnd SweepLength SweepType
SweepTraceTaperLengthStart SweepTraceTaperLengthEnd TaperType AliasFilterFrequency AliasFilterSlope
NotchFilterFrequency NotchFilterSlope LowCutFrequency HighCutFrequency LowCutSlope HighCutSlope YearDataRecorded
DayOfYear HourOfDay MinuteOfHour SecondOfMinute TimeBaseCode TraceWeightingFactor GeophoneGroupNumberRoll1
GeophoneGroupNumberFirstTraceOrigField GeophoneGroupNumberLastTraceOrigField GapSize OverTravel CDP_X CDP_Y INLINE_3D
CROSSLINE_3D ShotPoint ShotPointScalar TraceValueMeasurementUnit TransductionConstantMantissa
TransductionConstantPower TransductionUnit TraceIdentifier ScalarTraceHeader SourceType
"""
BINARY_NAMES, TRACE_NAMES = _BINARY_NAMES.split(), _TRACE_NAMES.split()
PLACES = (("SourceX", "SourceY", "SourceSurfaceElevation"), ("GroupX", "GroupY", "ReceiverGroupElevation"))
"""Fields of `Headers.source` and `Headers.receiver`."""
NUMBERS = {"FieldRecord": "shot", "TraceNumber": "channel", "EnergySourcePoint": "station", "CDP": "cdp"}
"""Fields that are attributes of `Headers` too; 0 is unknown."""
CLOCK = ("YearDataRecorded", "DayOfYear", "HourOfDay", "MinuteOfHour", "SecondOfMinute", "TimeBaseCode")


@dataclass(frozen=True)
class Sizes:
    """Byte order, sample format code, bytes before the first trace, samples per trace, traces, bytes of their headers.

    The interval is in seconds, None if the headers give none or contradict each other; in microseconds for writing.
    """

    endian: str
    code: int
    begin: int
    samples: int
    traces: int
    header: int = TRACE_HEADER
    interval: float | None = None

    @property
    def stride(self) -> int:
        """Bytes from one trace header to the next."""
        return self.header + self.samples * int(DTYPES[self.code][1])

    def places(self) -> Places:
        """Return the places of the samples."""
        stored = np.dtype(self.endian + DTYPES[self.code])
        gap, codec = self.header // stored.itemsize, Codec(from_ibm, to_ibm) if self.code == IBM else None
        return Places(self.begin + self.header, stored, self.traces, self.samples, 1, gap, codec)


class SegyFile(ContiguousFile):
    """A `Source` of a SEG-Y or SU file. Raises FormatError if it is damaged or of another format."""

    def __init__(self, file: BinaryIO, layout: Layout, format: str) -> None:
        layout.only(format, "dt")
        self.sizes = sizes = (_su if format == "su" else _segy)(Probe(file))
        # floats stay as they are, integers become IEEE floats
        self._result = sizes if sizes.code in FLOATS else replace(sizes, code=IEEE)
        super().__init__(file, format, sizes.places(), sizes.interval or layout.dt, self._result.places())
        self.dtype = np.dtype("f4" if sizes.code == IBM else DTYPES[sizes.code])
        if self._result != sizes:
            self.notes = ("integer samples are written as 32-bit floats, sample format code 5",)

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields of the binary header, and the text as ``TextualHeader``; nothing for SU."""
        self._file.seek(0)
        head = self._file.read(min(FILE_HEADERS, self.sizes.begin))
        if not head:
            return {}
        text = head[:TEXT].decode("ascii" if head[:1] == b"C" else "cp037", "replace")
        return _unpacked(BINARY, BINARY_NAMES, self.sizes.endian, head[TEXT:]) | {"TextualHeader": text}

    def trace_header(self, trace: int) -> bytes:
        """Return the header of a trace, without additional ones, with number of samples and interval filled in."""
        self._file.seek(self.sizes.begin + trace * self.sizes.stride)
        header = bytearray(self._file.read(TRACE_HEADER))
        struct.pack_into(self.sizes.endian + "H", header, 114, min(self.sizes.samples, 0xFFFF))
        if not any(header[116:118]) and (self.interval or 1) < 0.065:
            struct.pack_into(self.sizes.endian + "H", header, 116, round(1e6 * (self.interval or 0)))
        return bytes(header)

    def header(self, trace: int) -> Headers:
        row = _unpacked(TRACE, TRACE_NAMES, self.sizes.endian, self.trace_header(trace))
        return _header(row, self.fields.get("MeasurementSystem") == FEET)

    def delays(self) -> list[float]:
        sizes, stride = self.sizes, self.sizes.stride
        together, found = max(BLOCK // stride, 1), np.empty((2, sizes.traces), np.int16)
        for first in range(0, sizes.traces, together):
            count = min(together, sizes.traces - first)
            self._file.seek(sizes.begin + first * stride)
            headers = self._file.read((count - 1) * stride + TRACE_HEADER)
            # DelayRecordingTime and ScalarTraceHeader
            found[:, first : first + count] = np.ndarray((2, count), f"{sizes.endian}i2", headers, 108, (106, stride))
        pairs = list(zip(*found.tolist(), strict=True))
        seconds = {pair: _scaled(*pair) / 1000 for pair in set(pairs)}
        return [seconds[pair] for pair in pairs] if any(seconds.values()) else []

    def copy(self, to: BinaryIO) -> None:
        """Write all headers, and the samples, or zeros of another width."""
        sizes = self.sizes
        if self._result == sizes:
            super().copy(to)
            return
        self._file.seek(0)
        head = bytearray(self._file.read(sizes.begin))
        struct.pack_into(sizes.endian + "H", head, CODE_AT, IEEE)
        to.write(head)
        stored, samples = sizes.samples * int(DTYPES[sizes.code][1]), bytes(4 * sizes.samples)
        for _ in range(sizes.traces):
            to.write(self._file.read(sizes.header) + samples)
            self._file.seek(stored, 1)
        shutil.copyfileobj(self._file, to, 1 << 20)


class Segy(StreamedFormat):
    name, label, may_be_raw = "segy", "SEG-Y", True
    new_dtypes, new_order = tuple(NEW_CODES), ">"
    endings: tuple[str, ...] = (".sgy", ".segy")
    keeps = (
        "samples (codes 2, 3, 5, 6), sampling interval, times to the second; from SEG-2 also coordinates, elevations, "
        "shot and channel numbers, delay, descaling factor, units and notes; from SAC files without a pick, the delay "
        "from the origin time; from SU all trace headers"
    )

    def recognise(self, probe: Probe) -> bool:
        with suppress(FormatError):
            return _segy(probe).samples > 1
        return False

    def resembles(self, probe: Probe) -> bool:
        """Return whether the file has 40 lines of text, each beginning with C, or headers whose numbers agree."""
        lines = probe.head[:TEXT:80]
        for endian in "<>":
            fields = _unpacked(BINARY, BINARY_NAMES, endian, probe.bytes(TEXT, FILE_HEADERS - TEXT))
            samples, interval = fields["Samples"], fields["Interval"]
            first = probe.unpack(endian + "2H", FILE_HEADERS + TEXT * (fields["ExtendedHeaders"] & 0xFFFF) + 114)
            if samples > 1 and interval and fields["Format"] in (*DTYPES, *NOT_READ) and first == (samples, interval):
                return True
        return len(lines) > 30 and max(lines.count(b"C"), lines.count(b"\xc3")) > 30

    def open(self, file: BinaryIO, layout: Layout) -> SegyFile:
        return SegyFile(file, layout, self.name)

    def convert(self, contents: Contents) -> bytes:
        """Return a new file, big-endian unless its headers come from a little-endian one; SU is little-endian."""
        interval = 1e6 * known_interval(contents, self.label)
        content = smallest(contents.samples, self.new_dtypes, self.label)
        traces, count = content.shape
        whole, kind = abs(interval - round(interval)) < 1e-6 and interval < 1 << 15, content.dtype.str[1:]
        raw, order, headers = [], self.new_order, contents.headers.traces
        if isinstance(contents.origin, SegyFile):
            raw = [contents.origin.trace_header(i) for i in range(traces)]
            order = contents.origin.sizes.endian
        sizes = Sizes(order, NEW_CODES[kind], 0, count, traces, interval=interval)
        out = self._file_headers(contents, sizes, second=not whole or count >= 1 << 16 or kind == "f8")
        shared = {"TRACE_SAMPLE_COUNT": count if count < 1 << 16 else 0}
        shared["TRACE_SAMPLE_INTERVAL"] = round(interval) if whole else 0
        for i, trace in enumerate(content.astype(order + kind)):
            if raw:
                header = raw[i]
            else:
                fields = _trace_fields(i + 1, headers[i] if headers else Headers())
                if contents.starts:
                    fields |= _clock(contents.starts[i] - np.timedelta64(fields["DelayRecordingTime"], "ms"), UTC)
                header = _packed(TRACE, TRACE_NAMES, order, fields | shared)
            out += [header, trace.tobytes()]
        return b"".join(out)

    def _file_headers(self, contents: Contents, sizes: Sizes, second: bool) -> list[bytes]:
        """Return the textual and the binary header, of revision 2 if ``second``."""
        assert sizes.interval is not None
        lines = [f"written by wavefilt from a file of format {contents.format}"]
        lines += [f"{key}: {value}" for key, value in contents.headers.items() if isinstance(value, str)]
        lines = [" ".join(line.encode("ascii", "replace").decode().split())[:75] for line in lines[:38]]
        lines += [""] * (38 - len(lines)) + ["SEG-Y_REV2.1" if second else "SEG Y REV1", "END TEXTUAL HEADER"]
        text = "".join(f"C{i:2d} {line}".ljust(80) for i, line in enumerate(lines, 1)).encode("cp037")
        feet = any(header.length_unit == "ft" for header in contents.headers.traces[:1])
        fields: dict[str, int | float] = {
            "Traces": min(sizes.traces, 32767),
            "Samples": sizes.samples if sizes.samples < 1 << 16 else 0,
            "Format": sizes.code,
            "Interval": round(sizes.interval) if sizes.interval < 1 << 15 else 0,
            "MeasurementSystem": FEET if feet else METRES,
            "SEGYRevision": 1 + second,
            "SEGYRevisionMinor": int(second),
            "TraceFlag": 1,
        }
        if second:
            fields |= {"ExtSamples": sizes.samples, "ExtInterval": sizes.interval, "IntegerConstant": 0x01020304}
            fields |= {"ExtTraceCount": sizes.traces}
        return [text, _packed(BINARY, BINARY_NAMES, sizes.endian, fields)]

    def headers(self, contents: Contents) -> Headers:
        """Return the fields of the binary and of the trace headers, and the text as ``TextualHeader``."""
        file: SegyFile = contents.origin
        return Headers(file.fields, tuple(file.header(i) for i in range(file.sizes.traces)))

    def onsets(self, contents: Contents) -> list[tuple[float, str] | None]:
        """Return the triggers, unless fewer than half of the traces begin before one: their headers may be damaged."""
        found = [ONSET if delay < 0 else None for delay in contents.delays]
        return found if 2 * sum(onset is not None for onset in found) >= max(len(found), 1) else []


class Su(Segy):
    name, label, endings = "su", "SU", (".su",)
    new_dtypes, new_order = ("f4",), "<"
    keeps = "as SEG-Y, samples as 32-bit floats; from SEG-Y all trace headers"

    def recognise(self, probe: Probe) -> bool:
        for sizes in _su_orders(probe):
            starts = range(0, probe.size, TRACE_HEADER + 4 * sizes.samples)
            examined = {probe.unpack(sizes.endian + "H", start + 114) for start in [*starts[:100], starts[-1]]}
            # without an interval other marks are needed: several traces, and SU's unassigned bytes
            quiet = len(starts) > 1 and not any(probe.bytes(204, 36))
            if len(examined) == 1 and (quiet or probe.unpack(sizes.endian + "H", 116) != (0,)):
                return True
        return False

    def resembles(self, probe: Probe) -> bool:
        return False

    def _file_headers(self, contents: Contents, sizes: Sizes, second: bool) -> list[bytes]:
        """Return nothing. Raises FormatError if the trace headers cannot hold the number of samples or the interval."""
        interval = sizes.interval or 0
        if not (abs(interval - round(interval)) < 1e-6 and interval < 1 << 15 and sizes.samples < 1 << 16):
            numbers = f"{sizes.samples} and {interval:.7g}"
            raise FormatError(f"SU holds at most 65535 samples and whole microseconds, not {numbers}")
        return []


# -------------------------------------------------------------------------------------------------- sizes of a file


def _unpacked(form: str, names: list[str], order: str, header: bytes) -> dict[str, Any]:
    """Return the fields of a header; bytes beyond its end count as zeros."""
    form = order + form
    return dict(zip(names, struct.unpack(form, header.ljust(struct.calcsize(form), b"\0")), strict=True))


def _segy(probe: Probe) -> Sizes:
    """Return the sizes of a SEG-Y file. Raises FormatError if it is truncated or contradicts itself."""
    if probe.size < FILE_HEADERS + TRACE_HEADER:
        least = f"its headers take {FILE_HEADERS} and a trace {TRACE_HEADER} more"
        raise FormatError(f"truncated SEG-Y file: {probe.size} bytes, where {least}")
    binary = probe.bytes(TEXT, FILE_HEADERS - TEXT)
    found = {endian: _unpacked(BINARY, BINARY_NAMES, endian, binary) for endian in "><"}
    endian = next((endian for endian, fields in found.items() if fields["Format"] in (*DTYPES, *NOT_READ)), None)
    if endian is None:
        known = ", ".join(map(str, DTYPES))
        raise FormatError(f"unknown sample format code {found['>']['Format']} (bytes 3225-3226); supported are {known}")
    fields = found[endian]
    code, revision = fields["Format"], (fields["SEGYRevision"], fields["SEGYRevisionMinor"])
    if code in NOT_READ:
        raise FormatError(f"samples of format code {code} ({NOT_READ[code]}) are not read; convert the file first")
    second = revision[0] == 2 or (endian == "<" and revision == (0, 2))  # written as one number
    if not second:
        unused = ("ExtSamples", "ExtInterval", "IntegerConstant", "FirstTrace", "ExtTraceCount", "Trailers")
        fields |= dict.fromkeys(unused, 0)
    if fields["IntegerConstant"] not in (0, 0x01020304):
        constant = f"the byte order constant (bytes 3297-3300) is {fields['IntegerConstant']:#010x}"
        raise FormatError(f"{constant}, which contradicts the rest")
    begin = fields["FirstTrace"] or FILE_HEADERS + TEXT * _text_headers(probe, fields["ExtendedHeaders"])
    if fields["FirstTrace"] and not FILE_HEADERS <= begin < probe.size:
        raise FormatError(f"the first trace is said to begin at byte {begin} (bytes 3521-3528)")
    samples = fields["ExtSamples"] or fields["Samples"]
    (stated,) = probe.unpack(endian + "H", begin + 114)
    first = f"; the first trace header says {stated}" if stated != samples else ""
    if samples == 0:
        raise FormatError(f"the binary header says 0 samples a trace (bytes 3221-3222){first}")
    # additional trace headers: four bytes in revision 2.0, where some files have two, as all have in 2.1
    kinds = "" if not second else "H" if revision > (2, 0) else "IH"
    additional = [probe.unpack(endian + kind, 3506)[0] for kind in kinds] or [0]
    width, body = samples * int(DTYPES[code][1]), probe.size - begin
    count, trailer = fields["ExtTraceCount"], fields["Trailers"]
    for more in additional:
        header = TRACE_HEADER * (1 + more)
        end = count * (header + width) if trailer < 0 else body - TEXT * trailer
        traces, rest = divmod(end, header + width)
        if 0 < end <= body and not rest and count in (0, traces):
            interval = _interval(probe, endian, begin, fields["ExtInterval"])
            return Sizes(endian, code, begin, samples, traces, header, interval)
    others = f", {additional[-1]} additional headers each (bytes 3507-3510), {count or 'any'} traces (bytes 3513-3520)"
    others = f"{others} and {trailer} records of trailer (bytes 3529-3532)" if second else ""
    raise FormatError(
        f"{body} bytes are not a whole number of traces of {samples} samples{others}: the file is truncated, or its "
        f"traces have different lengths{first}"
    )


def _text_headers(probe: Probe, stated: int) -> int:
    """Return the number of extended textual headers; -1 in the file means all up to the one that ends them."""
    for count in range(MOST_EXTENDED if stated == -1 else 0):
        record = probe.bytes(FILE_HEADERS + TEXT * count, TEXT)
        if any("((SEG:ENDTEXT))" in record.decode(c).replace(" ", "").upper() for c in ("latin-1", "cp037")):
            return count + 1
    if not 0 <= stated <= MOST_EXTENDED:
        raise FormatError(f"{stated} extended textual headers (bytes 3505-3506) are not read")
    return stated


def _interval(probe: Probe, endian: str, begin: int, extended: float = 0) -> float | None:
    if extended > 0 and math.isfinite(extended):
        return extended / 1e6
    places = [begin + 116] + ([3216] if begin else [])
    found = {value for at in places if (value := probe.unpack(endian + "h", at)[0]) > 0}
    return found.pop() / 1e6 if len(found) == 1 else None


def _su(probe: Probe) -> Sizes:
    """Return the sizes of an SU file. Raises FormatError if it is not a whole number of traces."""
    fits = _su_orders(probe)
    if not fits:
        samples = " or ".join(str(probe.unpack(order + "H", 114)[0]) for order in "<>")
        what = f"a whole number of traces of {samples} samples (bytes 115-116)"
        raise FormatError(f"not an SU file, or a truncated one: {probe.size} bytes are not {what}")
    # if both orders fit, the one of the shorter interval
    return min(fits, key=lambda sizes: probe.unpack(sizes.endian + "H", 116))


def _su_orders(probe: Probe) -> list[Sizes]:
    """Return the sizes in each byte order in which the file is a whole number of traces."""
    found = []
    for endian in "<>":
        (samples,) = probe.unpack(endian + "H", 114)
        traces, rest = divmod(probe.size, TRACE_HEADER + 4 * samples)
        if samples and traces and not rest:
            found.append(Sizes(endian, IEEE, 0, samples, traces, interval=_interval(probe, endian, 0)))
    return found


# ------------------------------------------------------------------------------------------------- fields of headers


def _header(row: Mapping[str, int], feet: bool) -> Headers:
    """Return a trace header with the values that all formats share."""
    kind = row["CoordinateUnits"]  # lengths, seconds of arc, degrees, or degrees with minutes and seconds
    scalar, unit = row["SourceGroupScalar"], 3600 if kind == 2 else 1
    source, receiver = (
        (_scaled(row[x], scalar) / unit, _scaled(row[y], scalar) / unit, _scaled(row[z], row["ElevationScalar"]))
        for x, y, z in PLACES
    )
    known = any((*source, *receiver)) and kind != 4
    mantissa, power = row["TransductionConstantMantissa"], row["TransductionConstantPower"]
    factor = mantissa * 10.0**power if mantissa and abs(power) < 100 else None
    delay = _scaled(row["DelayRecordingTime"], row["ScalarTraceHeader"]) / 1000
    numbers: dict[str, Any] = {name: row[field] or None for field, name in NUMBERS.items()}
    return Headers(
        row,
        delay=delay,
        onset=ONSET if delay < 0 else None,
        time=_time(row),
        utc=row["TimeBaseCode"] in (GREENWICH, UTC),
        source=source if known else (),
        receiver=receiver if known else (),
        offset=(FOOT if feet else 1.0) * row["offset"],
        length_unit="deg" if kind in (2, 3) else "ft" if feet else "m",
        units=UNITS.get(row["TransductionUnit"] if factor else row["TraceValueMeasurementUnit"]),
        factor=factor,
        **numbers,
    )


def _scaled(value: int, scalar: int) -> float:
    """Apply a scalar of SEG-Y: a factor if positive, a divisor if negative."""
    return float(value * scalar) if scalar > 0 else value / -(scalar or -1)


def _time(row: Mapping[str, int]) -> np.datetime64 | None:
    year, day, hour, minute, second = (row[name] for name in CLOCK[:5])
    if not (1900 < year < 2200 and 0 < day < 367 and 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 61):
        return None
    return moment(year, day, hour, minute, second)


def _clock(time: np.datetime64 | None, basis: int) -> dict[str, int]:
    if time is None:
        return {}
    date = time.astype("datetime64[s]").item().timetuple()
    values = (date.tm_year, date.tm_yday, date.tm_hour, date.tm_min, date.tm_sec, basis)
    return dict(zip(CLOCK, values, strict=True))


def _trace_fields(number: int, header: Headers) -> dict[str, int]:
    """Return the fields of a new trace header; a coordinate that is not known is 0."""
    fields = {"TRACE_SEQUENCE_LINE": number, "TRACE_SEQUENCE_FILE": number, "TraceNumber": number}
    fields["TraceIdentificationCode"] = 1
    numbers = {field: getattr(header, name) for field, name in NUMBERS.items()}
    fields |= {field: number for field, number in numbers.items() if number is not None}
    delay, (event, _) = header.delay or 0.0, header.onset or (None, "")
    # a negative delay declares noise before the trigger, which the reference time of a SAC file is not
    kept = 0 < delay < 32 or (-32 < delay < 0 and event == 0)
    fields["DelayRecordingTime"] = round(1000 * delay) if kept else 0
    fields |= _clock(header.time if kept else header.first_sample, UTC if header.utc else LOCAL)
    if (header.source or header.receiver) and header.length_unit != "deg":
        places = [(*position, 0.0, 0.0, 0.0)[i] for position in (header.source, header.receiver) for i in range(3)]
        scale = next((s for s in SCALES if max(map(abs, places)) * s < 1 << 31), 1)
        scalar = -scale if scale > 1 else 1
        fields |= {"ElevationScalar": scalar, "SourceGroupScalar": scalar, "CoordinateUnits": 1}
        fields |= {name: round(scale * value) for name, value in zip(sum(PLACES, ()), places, strict=True)}
    if header.offset is not None:
        fields["offset"] = round(header.offset / (FOOT if header.length_unit == "ft" else 1.0))
    if header.factor and header.units in UNITS.values():
        mantissa, exponent = f"{header.factor:.8e}".split("e")
        fields |= {"TransductionConstantMantissa": round(float(mantissa) * 10**8)}
        fields |= {"TransductionConstantPower": int(exponent) - 8}
        fields["TransductionUnit"] = next(code for code, unit in UNITS.items() if unit == header.units)
    return fields


def _packed(form: str, names: list[str], order: str, fields: Mapping[str, int | float]) -> bytes:
    """Return a header. Raises FormatError for a number that does not fit in its place."""
    try:
        return struct.pack(order + form, *(fields.get(name, 0) for name in names))
    except struct.error as error:
        raise FormatError(f"a header field is too large for SEG-Y ({error}): {dict(fields)}") from error


# --------------------------------------------------------------------------------------------------------- IBM floats


def from_ibm(words: Array) -> NDArray[np.float32]:
    """Convert IBM's 4-byte floats: sign, exponent of 16 plus 64, 24 bits of fraction; beyond float32 infinite."""
    exponent = (words >> 24 & 0x7F).astype(np.int32)
    size = np.ldexp((words & 0xFFFFFF).astype(np.float64), 4 * exponent - 4 * 64 - 24)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(words >> 31, -size, size).astype(np.float32)


def to_ibm(samples: Array) -> NDArray[np.uint32]:
    """Convert to IBM's 4-byte floats, with the fraction cut off after 24 bits."""
    fraction, exponent = np.frexp(samples.astype(np.float64))
    power = -(-exponent // 4)
    words: NDArray[np.uint32] = np.ldexp(np.abs(fraction), exponent - 4 * power + 24).astype(np.uint32)
    words |= np.where(words > 0, power + 64, 0).astype(np.uint32) << 24
    words |= np.signbit(samples).astype(np.uint32) << 31
    return words
