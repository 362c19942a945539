"""Waveform formats through ObsPy, if it is installed (extra `seismic`)."""

from __future__ import annotations

import glob
import importlib.util
import io
import os
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io.base import Contents, Format, Headers, Layout, known_interval, named, refused
from wavefilt.io.sources import rounded, smallest

if TYPE_CHECKING:
    from obspy import Stream, Trace

NEVER = ("PICKLE", "ALSEP", "SEGY", "SU")
"""Formats that ObsPy is not asked about: loading a pickle can run any program, the tests for ALSEP accept random bytes,
and SEG-Y and SU have a reader here."""
BY_NAME = ("DMX", "PDAS", "REFTEK130", "SEISAN", "WIN", "Y")
"""Formats that ObsPy reads from a named file alone."""
COMPRESSED_GSE = re.compile(rb"(?ms)^WID[12][^\n]*\bCM.*?^DAT[12]\b(.*?)(?:^CHK|\Z)")
LONGEST_GSE_LINE = 82
"""Characters of a line of compressed samples: on longer ones ObsPy's decoder crashes."""
HEAD = 1 << 18
"""Bytes of a file that ObsPy's tests are given: some of them read up to the end of a line."""
INTEGERS = ("GSE2", "GCF")
"""Formats of 32-bit integers; all others take floats."""
MSEED_INTEGERS = {"STEIM1": "i4", "STEIM2": "i4", "INT32": "i4", "INT16": "i2"}
"""Encodings of integers that ObsPy writes; samples in others become floats."""
MISSING = 'pip install "wavefilt[seismic]"'


class ObspyFormat(Format):
    """A format of ObsPy by its name in lower case; "obspy" stands for the one that ObsPy recognises.

    ``Contents.origin`` is the stream.
    """

    def __init__(self, name: str, marks: bytes = b"", endings: tuple[str, ...] = ()) -> None:
        self.name, self.marks, self.shared_endings = name, marks, endings

    def read(self, data: bytes, layout: Layout) -> Contents:
        layout.only(self.name)
        name = recognised_by_obspy(io.BytesIO(data)) if self.name == "obspy" else self.name
        if not name:
            raise FormatError("ObsPy recognises none of its formats" if _tests() else f"needs ObsPy: {MISSING}")
        packed = COMPRESSED_GSE.findall(data) if name.startswith("gse") else []
        if max((len(line) for part in packed for line in part.split(b"\n")), default=0) > LONGEST_GSE_LINE:
            raise FormatError(f"damaged {name.upper()} file: lines of samples are too long")
        format = name.upper()
        stream = _stream(data, format)
        traces = [np.asarray(trace.data) for trace in stream]
        if not traces or not any(map(len, traces)):
            raise FormatError(f"{format} file without samples")
        for trace, samples in zip(stream, traces, strict=True):
            if samples.dtype.kind not in "iuf":
                raise FormatError(f"{format} file with samples that are not numbers: those of {trace.id}")
            if trace.stats.npts != len(samples):
                raise FormatError(f"{trace.id} claims {trace.stats.npts} samples and holds {len(samples)}")
        intervals = tuple(float(trace.stats.delta) for trace in stream)
        integers = any(_integers(trace, format) for trace in stream)
        notes = (f"{format} file of integers: samples are rounded when written",) if integers else ()
        ids, starts = tuple(trace.id for trace in stream), tuple(trace.stats.starttime.ns for trace in stream)
        if not any(one.strip(".") for one in ids) or not any(starts):
            ids = starts = ()
        times = tuple(np.datetime64(start, "ns") for start in starts)
        return Contents(traces, intervals, name, stream, "", notes, ids, times)

    def write(self, contents: Contents) -> bytes:
        """Return ObsPy's stream with new samples, in the format it was read from."""
        stream, format = contents.origin.copy(), contents.format.upper()
        for trace, samples in zip(stream, contents.traces, strict=True):
            integers = _integers(trace, format)
            trace.data = np.ascontiguousarray(rounded(samples, np.dtype(integers)) if integers else samples)
            if format == "MSEED" and trace.data.dtype.kind == "f":
                trace.stats.mseed.encoding = "FLOAT64" if trace.data.dtype.itemsize == 8 else "FLOAT32"
            elif format == "GSE2":
                trace.stats.get("gse2", {}).pop("datatype", None)  # written compressed, whatever it was
        return _written(stream, format)

    def headers(self, contents: Contents) -> Headers:
        """Return the fields of ``Trace.stats``."""
        traces = []
        for trace in contents.origin:
            start = np.datetime64(trace.stats.starttime.ns, "ns")
            time = start if start.astype(int) else None
            traces.append(Headers(dict(trace.stats), onset=_onset(trace), time=time, utc=True))
        return Headers({}, tuple(traces))


class Mseed(ObspyFormat):
    label, endings = "MiniSEED", (".mseed", ".miniseed")
    keeps = "samples, sampling interval, network, station, location and channel codes, times"

    def convert(self, contents: Contents) -> bytes:
        return waveform_bytes(contents, "MSEED", ("i2", "i4", "f4", "f8"))


ONSETS = {
    ("sac", "a"): "first arrival",
    ("sh", "P-ONSET"): "first arrival",
    ("sac", "o"): "origin time",
    ("sh", "ORIGIN"): "origin time",
    ("knet", "evot"): "origin time",
    ("seg2", "DELAY"): "trigger",
}
"""Places in ``Trace.stats`` of the event before which there is only noise, and its name."""


def _onset(trace: Trace) -> tuple[float, str] | None:
    """Return the seconds from the first sample to the first arrival, origin or trigger, and its name."""
    stats = trace.stats
    for (format, field), name in ONSETS.items():
        with suppress(KeyError, TypeError, ValueError):  # most formats have none of these fields
            value = stats[format][field]
            if format == "seg2":
                seconds = -float(value) - _from_first(stats, 0.0)
            elif format == "sac":
                seconds = float(value) - _from_first(stats, float(stats.sac.get("b", 0)))
            else:
                seconds = value - stats.starttime
            if seconds > 0:
                return seconds, f"the {name} (header {field})"
    return None


def _from_first(stats: Any, begin: float) -> float:
    """Return the seconds from the reference time of a header to the first sample, by ``begin`` those in the file.

    Raises ValueError if samples were cut off before it, and the header has no date for its reference time.
    """
    from obspy.io.sac.util import get_sac_reftime

    if not any("trim(" in step for step in stats.get("processing", ())):
        return begin
    return float(stats.starttime - get_sac_reftime(stats.get("sac", {})))


def waveform_bytes(contents: Contents, format: str, dtypes: tuple[str, ...]) -> bytes:
    """Return traces of any format as MiniSEED or SAC, in the first dtype that holds their samples."""
    with refused(f"{format} needs ObsPy: {MISSING}"):
        import obspy
    if None in contents.intervals:
        known_interval(contents, format)
    traces, headers = obspy.Stream(), contents.headers.traces
    stream = contents.origin if isinstance(named(contents.format), ObspyFormat) else None
    count, channels = len(contents.traces), [header.channel for header in headers]
    numbers = channels if len(set(channels)) == count and None not in channels else range(1, count + 1)
    for i, (samples, interval) in enumerate(zip(contents.traces, contents.intervals, strict=True)):
        trace = obspy.Trace() if stream is None else stream[i].copy()
        trace.data = np.ascontiguousarray(smallest(samples, dtypes, format))
        stats = trace.stats
        stats.pop("mseed", None)
        stats.delta = interval
        time = contents.starts[i] if contents.starts else headers[i].first_sample if headers else None
        if time is not None:
            stats.starttime = obspy.UTCDateTime(ns=int(time.astype("datetime64[ns]").astype(int)))
        if contents.ids:
            stats.network, stats.station, stats.location, stats.channel = contents.ids[i].split(".")
        elif stream is None:
            stats.station = f"{numbers[i]:0{len(str(count))}}"[-5:]
        for code in ("network", "station", "location", "channel"):
            stats[code] = stats[code].strip()
        traces.append(trace)
    if format == "MSEED" and len({trace.id for trace in traces}) < len(traces):
        traces.merge(method=-1)  # as reading does with consecutive traces
    return _written(traces, format)


def recognised_by_obspy(file: BinaryIO) -> str | None:
    """Return the name, in lower case, of ObsPy's format of an open file; None if there is none, or no ObsPy."""
    tests = _tests()
    if not tests:
        return None
    file.seek(0)
    head = file.read(HEAD)
    with TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        path = os.path.join(folder, "head")  # a file, because some tests need its name
        with open(path, "wb") as copy:
            copy.write(head)
        for name, is_format in tests.items():
            try:
                if is_format(path) and (name != "WIN" or _is_win(head)):
                    return name.lower()
            except MemoryError:
                raise
            except Exception:  # tests of other packages raise anything on bytes of other formats
                continue
    return None


def _is_win(head: bytes) -> bool:
    """Return whether blocks follow each other up to the end: size, then the time in binary-coded decimals.

    ObsPy's test, of one such time, accepts other files too.
    """
    at = 0
    while at + 10 <= len(head) and head[at + 4 : at + 10].hex().isdecimal():
        at += int.from_bytes(head[at : at + 4], "big") or HEAD
    return at == len(head) < HEAD or (at >= HEAD == len(head))


@cache
def _tests() -> dict[str, Callable[[str], bool]]:
    """Return the tests for each of ObsPy's formats and for the formats of its plug-ins."""
    from importlib.metadata import entry_points  # takes 20 ms to import

    if importlib.util.find_spec("obspy") is None:
        return {}
    names = [plugin.name for plugin in entry_points(group="obspy.plugin.waveform")]
    tests = {}
    for name in names:
        if not name.startswith(NEVER):
            (plugin,) = entry_points(group=f"obspy.plugin.waveform.{name}", name="isFormat")
            with warnings.catch_warnings(action="ignore"), suppress(ImportError):
                tests[name] = plugin.load()
    return tests


def has_writer(format: str) -> bool:
    """Return whether ObsPy, or a package that plugs into it, writes its format of this name."""
    from importlib.metadata import entry_points

    return bool(entry_points(group=f"obspy.plugin.waveform.{format.upper()}", name="writeFormat"))


def _stream(data: bytes, format: str) -> Stream:
    """Return the traces that ObsPy reads. Raises FormatError."""
    with refused(f"a {format.lower()} file, which needs ObsPy: {MISSING}"):
        import obspy
    with (
        refused(f"ObsPy cannot read it as {format}"),
        warnings.catch_warnings(action="ignore"),
        TemporaryDirectory() as folder,
    ):
        if format not in BY_NAME:
            return obspy.read(io.BytesIO(bytearray(data)), format=format)  # a copy: the decoder of GCF writes to it
        path = os.path.join(folder, "traces")
        with open(path, "wb") as file:
            file.write(data)
        return obspy.read(glob.escape(path), format=format)


def _integers(trace: Trace, format: str) -> str | None:
    """Return the integers in which a trace is stored, None if it is stored as floats."""
    if format == "MSEED":
        return MSEED_INTEGERS.get(trace.stats.mseed.encoding)
    return "i4" if format in INTEGERS else None


def _written(stream: Stream, format: str) -> bytes:
    """Write a stream in a format of ObsPy's. Raises FormatError if reading it again does not give it back."""
    with (
        TemporaryDirectory() as folder,
        refused(f"ObsPy cannot write {format}"),
        warnings.catch_warnings(action="ignore"),
    ):
        if format == "MSEED":  # for a file, errors in writing would be printed and lost
            out = io.BytesIO()
            stream.write(out, format=format)
            data = out.getvalue()
        else:
            path = os.path.join(folder, "traces")  # a file: not all writers take a stream
            stream.write(path, format=format)
            with open(path, "rb") as file:
                data = file.read()
    try:
        lost = _lost(stream, _stream(data, format))
    except FormatError:
        lost = "samples"
    if lost:
        raise FormatError(f"ObsPy's {format} writer does not give these {lost} back; nothing was written")
    return data


def _lost(stream: Stream, again: Stream) -> str | None:
    """Return the difference between a stream that was written and the one that is read again."""
    if len(stream) != len(again):
        return "traces"
    for old, new in zip(stream, again, strict=True):
        # to the digits of the text formats
        tolerance = 1e-5 * float(np.nanmax(np.abs(np.asarray(old.data)), initial=0))
        if len(old.data) != len(new.data) or not np.allclose(new.data, old.data, 1e-4, tolerance, equal_nan=True):
            return "samples"
        if abs(old.stats.starttime - new.stats.starttime) > 2e-6:  # formats store few digits
            return f"start times ({old.stats.starttime})"
        if abs(old.stats.delta - new.stats.delta) > 1e-6 * old.stats.delta:
            return f"sampling intervals ({old.stats.delta} s)"
        if old.id != new.id:
            return f"codes of network, station and channel ({old.id})"
    return None
