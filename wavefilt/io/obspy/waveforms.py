"""Every other waveform format, through ObsPy when it is installed (extra `seismic`)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array
from wavefilt.errors import FormatError
from wavefilt.io.layout import Layout
from wavefilt.io.obspy.recognition import recognised_by_obspy, without_warnings
from wavefilt.io.obspy.subprocess_reader import SubprocessReader
from wavefilt.io.reading import read
from wavefilt.recording import Recording

if TYPE_CHECKING:
    from obspy import Stream, Trace

WRITTEN_AS = {"SAC": "f4", "GSE2": "i4", "GCF": "i4"}
"""Sample type of the formats that have one; all others take floats."""

MSEED_INTEGERS = {"STEIM1": "i4", "STEIM2": "i4", "INT32": "i4", "INT16": "i2"}
"""Encodings of integers that ObsPy writes; samples in others become floats."""

CRASHING = ("GSE1", "GSE2")
"""Formats whose C decoder can crash the process on damaged data: tried in a subprocess first."""

SUBPROCESS = SubprocessReader()


@dataclass(frozen=True)
class Origin:
    """ObsPy's stream, with all headers, its name of the format, and options of its writer that depend on the file."""

    stream: Stream
    format: str
    options: dict[str, str]


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The traces of ObsPy's stream, in counts."""
    layout.only(format)
    try:
        import obspy
    except ImportError as error:
        raise FormatError(f'a {format} file, which needs ObsPy: pip install "wavefilt[seismic]"') from error
    name = (recognised_by_obspy(io.BytesIO(data)) or "") if format == "obspy" else format
    name = name.upper()
    if not name:
        raise FormatError("ObsPy knows no waveform format like it")
    failure = SUBPROCESS.failure(data, name) if name in CRASHING else None
    if failure is not None:
        raise FormatError(f"ObsPy cannot read it as {name} ({failure})")
    try:
        with without_warnings():
            stream = obspy.read(io.BytesIO(data), format=name)
    except Exception as error:  # readers raise anything on damaged files
        raise FormatError(f"ObsPy cannot read it as {name} ({type(error).__name__}: {error})") from error
    traces = [np.asarray(trace.data) for trace in stream]
    if not traces or not any(map(len, traces)):
        raise FormatError(f"{name} file without samples")
    for trace, samples in zip(stream, traces, strict=True):
        if samples.dtype.kind not in "iuf":
            raise FormatError(f"{name} file with samples that are not numbers: those of {trace.id}")
        if trace.stats.npts != len(samples):
            raise FormatError(f"{trace.id} claims {trace.stats.npts} samples and holds {len(samples)}")
    intervals = tuple(float(trace.stats.delta) for trace in stream)
    integers = any(_integers(trace, name) for trace in stream)
    notes = (f"{name} holds integers here: samples are rounded",) if integers else ()
    options = {"byteorder": "<" if data[304:308] in _SAC_LITTLE else ">"} if name == "SAC" else {}
    return Recording(traces, intervals, name.lower(), Origin(stream, name, options), notes=notes, **_identity(stream))


def _identity(stream: Stream) -> dict[str, Any]:
    """Ids and times of the traces, where a header tells them."""
    if not any(trace.id.strip(".") for trace in stream) or not any(trace.stats.starttime.ns for trace in stream):
        return {}
    starts = tuple(np.datetime64(trace.stats.starttime.ns, "ns") for trace in stream)
    return {"ids": tuple(trace.id for trace in stream), "starts": starts}


_SAC_LITTLE = (b"\6\0\0\0", b"\7\0\0\0")
"""The version in the header of a SAC file of that byte order."""


def _integers(trace: Trace, format: str) -> str | None:
    """The integers that a trace is stored in, None where that is floats."""
    if format == "MSEED":
        return MSEED_INTEGERS.get(trace.stats.mseed.encoding)
    return "i4" if WRITTEN_AS.get(format) == "i4" else None


def encode(recording: Recording) -> bytes:
    """ObsPy's stream with new samples, in the format it was read from, checked by reading it again."""
    origin: Origin = recording.origin
    stream = origin.stream.copy()
    for trace, samples in zip(stream, recording.traces, strict=True):
        trace.data = _storable(samples, _integers(trace, origin.format), WRITTEN_AS.get(origin.format))
        _describe(trace, origin.format)
    try:
        with without_warnings(), TemporaryDirectory() as folder:
            path = Path(folder) / "traces"  # by way of a file: not all of ObsPy's writers take a stream
            stream.write(str(path), format=origin.format, **origin.options)
            data = path.read_bytes()
    except Exception as error:  # writers raise anything
        raise FormatError(f"ObsPy cannot write {origin.format} ({type(error).__name__}: {error})") from error
    try:
        again = read(io.BytesIO(data)).traces
    except FormatError:
        again = []
    written = [np.asarray(trace.data) for trace in stream]
    if [len(a) for a in again] != [len(w) for w in written] or not all(map(_same, again, written)):
        raise FormatError(f"ObsPy's {origin.format} writer does not give these samples back; nothing was written")
    return data


def _storable(samples: Array, integers: str | None, dtype: str | None) -> Array:
    """The samples in the type the format stores; rounded, and limited to their range, where that is integers."""
    if integers is None:
        return np.ascontiguousarray(samples, dtype)
    limits = np.iinfo(integers)
    return np.ascontiguousarray(np.clip(np.rint(samples.astype("f8")), limits.min, limits.max), integers)


def _describe(trace: Trace, format: str) -> None:
    """Correct the headers that describe the stored type."""
    if format == "MSEED" and trace.data.dtype.kind == "f":
        trace.stats.mseed.encoding = "FLOAT64" if trace.data.dtype.itemsize == 8 else "FLOAT32"
    elif format == "GSE2":
        trace.stats.get("gse2", {}).pop("datatype", None)  # written compressed, whatever it was


def _same(again: Array, written: Array) -> bool:
    """Whether samples came back, to the digits of the text formats."""
    scale = float(np.nanmax(np.abs(written), initial=0))
    return bool(np.allclose(again, written, rtol=1e-4, atol=1e-5 * scale, equal_nan=True))
