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
from wavefilt.io.arrays.contiguous import rounded
from wavefilt.io.layout import Layout
from wavefilt.io.obspy.recognition import recognised_by_obspy, without_warnings
from wavefilt.io.obspy.subprocess_reader import BY_NAME, SubprocessReader, read_stream
from wavefilt.recording import Recording

if TYPE_CHECKING:
    from obspy import Stream, Trace

WRITTEN_AS = {"SAC": "f4", "GSE2": "i4", "GCF": "i4"}
"""Sample type of the formats that have one; all others take floats."""

MSEED_INTEGERS = {"STEIM1": "i4", "STEIM2": "i4", "INT32": "i4", "INT16": "i2"}
"""Encodings of integers that ObsPy writes; samples in others become floats."""

MICROSECONDS = 2e-6
"""By how much a start time may change: formats have so many digits."""

TRIED_FIRST = ("GSE1", "GSE2", *BY_NAME)
"""Formats whose decoders can crash or hang on damaged data: tried in a subprocess first."""

SUBPROCESS = SubprocessReader()


@dataclass(frozen=True)
class Origin:
    """ObsPy's stream, with all headers, and its name of the format."""

    stream: Stream
    format: str


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The traces of ObsPy's stream, in counts."""
    layout.only(format)
    name = (recognised_by_obspy(io.BytesIO(data)) or "") if format == "obspy" else format
    name = name.upper()
    if not name:
        raise FormatError("ObsPy knows no waveform format like it")
    stream = _stream(data, name)
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
    return Recording(traces, intervals, name.lower(), Origin(stream, name), notes=notes, **_identity(stream))


def _identity(stream: Stream) -> dict[str, Any]:
    """Ids and times of the traces, where a header tells them."""
    if not any(trace.id.strip(".") for trace in stream) or not any(trace.stats.starttime.ns for trace in stream):
        return {}
    starts = tuple(np.datetime64(trace.stats.starttime.ns, "ns") for trace in stream)
    return {"ids": tuple(trace.id for trace in stream), "starts": starts}


def _stream(data: bytes, name: str) -> Stream:
    """What ObsPy reads as its format of this name. Raises FormatError."""
    try:
        import obspy  # noqa: F401
    except ImportError as error:
        raise FormatError(f'a {name.lower()} file, which needs ObsPy: pip install "wavefilt[seismic]"') from error
    failure = SUBPROCESS.failure(data, name) if name in TRIED_FIRST else None
    if failure is not None:
        raise FormatError(f"ObsPy cannot read it as {name} ({failure})")
    try:
        with without_warnings():
            return read_stream(data, name)
    except MemoryError:
        raise
    except Exception as error:  # readers raise anything on damaged files
        raise FormatError(f"ObsPy cannot read it as {name} ({type(error).__name__}: {error})") from error


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
    return written(stream, origin.format)


def written(stream: Stream, format: str, **options: object) -> bytes:
    """A stream in a format of ObsPy's. Raises FormatError if reading it again does not give it back."""
    try:
        data = _written(stream, format, options)
    except MemoryError:
        raise
    except Exception as error:  # writers raise anything
        if isinstance(error, OSError) and error.errno:  # a full disk, not the format
            raise
        raise FormatError(f"ObsPy cannot write {format} ({type(error).__name__}: {error})") from error
    try:
        lost = _lost(stream, _stream(data, format))
    except FormatError:
        lost = "samples"
    if lost:
        raise FormatError(f"ObsPy's {format} writer does not give these {lost} back; nothing was written")
    return data


def _written(stream: Stream, format: str, options: dict[str, object]) -> bytes:
    with without_warnings():
        if format == "MSEED":  # where an error in writing a file would be printed, and lost
            out = io.BytesIO()
            stream.write(out, format=format, **options)
            return out.getvalue()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "traces"  # by way of a file: not all of ObsPy's writers take a stream
            stream.write(str(path), format=format, **options)
            return path.read_bytes()


def _lost(stream: Stream, again: Stream) -> str | None:
    """What differs between a stream that was written and what is read again."""
    if len(stream) != len(again):
        return "traces"
    for old, new in zip(stream, again, strict=True):
        if len(old.data) != len(new.data) or not _same(new.data, np.asarray(old.data)):
            return "samples"
        if abs(old.stats.starttime - new.stats.starttime) > MICROSECONDS:
            return f"start times ({old.stats.starttime})"
        if abs(old.stats.delta - new.stats.delta) > 1e-6 * old.stats.delta:
            return f"sampling intervals ({old.stats.delta} s)"
        if old.id != new.id:
            return f"codes of network, station and channel ({old.id})"
    return None


def _storable(samples: Array, integers: str | None, dtype: str | None) -> Array:
    """The samples in the type the format stores; rounded, and limited to their range, where that is integers."""
    if integers is None:
        return np.ascontiguousarray(samples, dtype)
    return np.ascontiguousarray(rounded(samples, np.dtype(integers)))


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
