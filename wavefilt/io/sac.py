"""SAC: samples are rewritten in place; of the header only minimum, maximum and mean, if they are given, change.

Layout after the manual of Seismic Analysis Code, "SAC data file format" (IRIS).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io.base import Contents, Headers, Layout, Probe, moment
from wavefilt.io.obspy import waveform_bytes
from wavefilt.io.sources import ContiguousFile, Places, StreamedFormat

HEADER = 632
UNDEFINED = -12345
_FLOATS = """
delta depmin depmax scale odelta b e o a - t0 t1 t2 t3 t4 t5 t6 t7 t8 t9 f resp0 resp1 resp2 resp3 resp4 resp5 resp6
resp7 resp8 resp9 stla stlo stel stdp evla evlo evel evdp mag user0 user1 user2 user3 user4 user5 user6 user7 user8
user9 dist az baz gcarc - - depmen cmpaz cmpinc xminimum xmaximum yminimum ymaximum
"""
_INTEGERS = """
nzyear nzjday nzhour nzmin nzsec nzmsec nvhdr norid nevid npts - nwfid nxsize nysize - iftype idep iztype - iinst
istreg ievreg ievtyp iqual isynth imagtyp imagsrc - - - - - - - - leven lpspol lovrok lcalda
"""
_TEXTS = """
kstnm kevnm - khole ko ka kt0 kt1 kt2 kt3 kt4 kt5 kt6 kt7 kt8 kt9 kf kuser0 kuser1 kuser2 kcmpnm knetwk
"""
FLOATS, INTEGERS, TEXTS = _FLOATS.split(), _INTEGERS.split(), _TEXTS.split()
"""Names of the header fields in their order; the others are unused or internal."""
TYPES = {1: "a time series", 4: "x and y", UNDEFINED: "of no type"}
"""Types of file (``iftype``) that hold one component of samples."""
UNITS = {6: "nm", 7: "nm/s", 8: "nm/s^2", 50: "V"}
"""Units of samples by ``idep``."""
LONGEST = 1e9
"""Seconds between the reference time and others: larger values are damage."""
BLOCK = 1 << 18
"""Samples whose extremes are found at a time."""


class SacFile(ContiguousFile):
    """A `Source` of a SAC file. Raises FormatError if it is damaged or of another format."""

    def __init__(self, file: BinaryIO, layout: Layout) -> None:
        layout.only("sac", "dt")
        probe = Probe(file)
        self.order = byte_order(probe)
        if self.order is None:
            raise FormatError(f"SAC: {probe.size} bytes are not a header of {HEADER} bytes and its samples")
        self.fields = fields = _fields(probe, self.order)
        evenly = probe.unpack(self.order + "i", 420) != (0,)
        count = fields["npts"]
        if count == 0:
            raise FormatError("SAC: no samples")
        if fields.get("iftype", UNDEFINED) not in TYPES or not evenly:
            raise FormatError("SAC: a spectrum, or samples that are not evenly spaced")
        interval = _shortest(fields["delta"]) if fields.get("delta", 0) > 0 else layout.dt
        super().__init__(file, "sac", Places(HEADER, np.dtype(self.order + "f4"), 1, count), interval)
        codes = [fields.get(name, "") for name in ("knetwk", "kstnm", "khole", "kcmpnm")]
        time = _time(fields)
        if time is not None and any(codes):
            start = time + np.timedelta64(round(fields.get("b", 0.0) * 1e6), "us")
            self.ids, self.starts = (".".join(codes),), (start,)

    def header(self) -> Headers:
        """Return the defined fields by their names in the manual.

        The delay counts from the origin time, if it is given. Noise ends at the first arrival or the origin time.
        """
        fields = self.fields
        source, receiver = (
            (fields[f"{end}lo"], fields[f"{end}la"], fields.get(f"{end}el", 0.0))
            if {f"{end}lo", f"{end}la"} <= fields.keys()
            else ()
            for end in ("ev", "st")
        )
        begin, origin, time = _shortest(fields.get("b", 0.0)), _shortest(fields.get("o", 0.0)), _time(fields)
        origin = origin if abs(origin) < LONGEST else 0.0
        marks = (("a", "the first arrival (header a)"), ("o", "the origin time (header o)"))
        marked = ((_shortest(fields[name]) - origin, words) for name, words in marks if name in fields)
        return Headers(
            fields,
            delay=round(begin - origin, 9),
            onset=next((mark for mark in marked if mark[0] > begin - origin), None),
            time=None if time is None else time + np.timedelta64(round(origin * 1e6), "us"),
            utc=True,
            source=source,
            receiver=receiver,
            length_unit="deg",
            units=UNITS.get(fields.get("idep", 0)),
        )

    def delays(self) -> tuple[float, ...]:
        delay = self.header().delay
        return (delay,) if delay else ()

    @contextmanager
    def rewritten(self, file: BinaryIO) -> Iterator[ContiguousFile]:
        with super().rewritten(file) as new:
            yield new
        low, high, total, count = np.inf, -np.inf, 0.0, self.shape[1]
        for at in range(0, count, BLOCK):
            block = np.empty((1, min(BLOCK, count - at)), np.float32)
            new.read(slice(0, 1), at, block)
            low, high = min(low, float(block.min())), max(high, float(block.max()))
            total += block.sum(dtype=np.float64)
        for name, value in (("depmin", low), ("depmax", high), ("depmen", total / count)):
            at = 4 * FLOATS.index(name)
            file.seek(at)
            if struct.unpack(f"{self.order}f", file.read(4)) != (UNDEFINED,):
                file.seek(at)
                file.write(struct.pack(f"{self.order}f", value))


class Sac(StreamedFormat):
    name, label, endings, may_be_raw = "sac", "SAC", (".sac",), True
    keeps = "as MiniSEED, one trace, samples as 32-bit floats"

    def recognise(self, probe: Probe) -> bool:
        return byte_order(probe) is not None

    def open(self, file: BinaryIO, layout: Layout) -> SacFile:
        return SacFile(file, layout)

    def convert(self, contents: Contents) -> bytes:
        if len(contents.traces) > 1:
            raise FormatError(f"a SAC file holds one trace, not {len(contents.traces)}; write MiniSEED (.mseed)")
        return waveform_bytes(contents, "SAC", ("f4",))

    def headers(self, contents: Contents) -> Headers:
        return Headers(traces=(contents.origin.header(),))


def byte_order(probe: Probe) -> str | None:
    """Return the byte order of a SAC file, None for another file. Version 7 has a footer of 22 double numbers."""
    for order in "<>":
        version, samples = probe.unpack(order + "i8xi", 304)
        if (version, probe.size - HEADER - 4 * samples) in ((6, 0), (7, 0), (7, 176)) and samples >= 0:
            return order
    return None


def _fields(probe: Probe, order: str) -> Mapping[str, Any]:
    """Return the fields that are defined."""
    fields: dict[str, Any] = dict(zip(FLOATS, probe.unpack(f"{order}{len(FLOATS)}f", 0), strict=True))
    fields |= zip(INTEGERS, probe.unpack(f"{order}{len(INTEGERS)}i", 280), strict=True)
    for i, name in enumerate(TEXTS):
        text = probe.bytes(440 + 8 * i, 16 if name == "kevnm" else 8)
        fields[name] = text.split(b"\0")[0].decode("latin-1").strip()
    del fields["-"]
    return {name: value for name, value in fields.items() if value not in (UNDEFINED, str(UNDEFINED), "")}


def _shortest(value: float) -> float:
    """Return the shortest number that is the same 32-bit float: 0.01 instead of 0.009999999776."""
    return float(str(np.float32(value)))


def _time(fields: Mapping[str, Any]) -> np.datetime64 | None:
    """Return the reference time, None if it is not defined."""
    year, day, *clock = (fields.get(name, -1) for name in INTEGERS[:6])
    if not (0 < year < 3000 and 0 < day < 367 and min(clock) >= 0 and abs(fields.get("b", 0.0)) < LONGEST):
        return None
    hour, minute, second, millisecond = clock
    return moment(year, day, hour, minute, second + millisecond / 1000)
