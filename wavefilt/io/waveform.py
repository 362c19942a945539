"""Every other waveform format, through ObsPy when it is installed (extra `seismic`)."""

from __future__ import annotations

import importlib.util
import io
import warnings
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io.layout import Layout
from wavefilt.recording import Recording

OBSPY_NAMES = {"mseed": "MSEED", "sac": "SAC", "gse2": "GSE2", "segy": "SEGY", "su": "SU", "tspair": "TSPAIR",
               "slist": "SLIST"}  # fmt: skip
"""Formats recognised here, with ObsPy's name."""

NEVER = ("PICKLE", "ALSEP")
"""Not asked: loading a pickle can run any program, and the ALSEP readers claim files of random bytes."""


def how_tried() -> str:
    """What the error for an unknown file says of ObsPy."""
    if importlib.util.find_spec("obspy"):
        return "the formats of ObsPy"
    return 'but not ObsPy\'s formats, which pip install "wavefilt[seismic]" adds'


@dataclass(frozen=True)
class Origin:
    """ObsPy's stream, with all headers, and its name of the format."""

    stream: Any
    format: str


def recognised_by_obspy(file: BinaryIO) -> str | None:
    """ObsPy's name of the waveform format of an opened file; None if it has none or ObsPy is missing."""
    if importlib.util.find_spec("obspy") is None:
        return None
    for plugin in entry_points(group="obspy.plugin.waveform"):
        if plugin.name.startswith(NEVER):
            continue
        (is_format,) = entry_points(group=f"obspy.plugin.waveform.{plugin.name}", name="isFormat")
        file.seek(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if is_format.load()(file):
                    return plugin.name
        except Exception:  # third-party recognisers raise anything on bytes that are not theirs
            continue
    return None


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The traces of ObsPy's stream, in counts."""
    layout.only(format)
    try:
        import obspy
    except ImportError as error:
        raise FormatError(f'a {format} file, which needs ObsPy: pip install "wavefilt[seismic]"') from error
    name = OBSPY_NAMES.get(format) or recognised_by_obspy(io.BytesIO(data))
    if name is None:
        raise FormatError("ObsPy knows no waveform format like it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stream = obspy.read(io.BytesIO(data), format=name)
    except Exception as error:  # readers raise anything on damaged files
        raise FormatError(f"ObsPy cannot read it as {name} ({type(error).__name__}: {error})") from error
    traces = [np.asarray(trace.data) for trace in stream]
    if not traces or not any(map(len, traces)):
        raise FormatError(f"{name} file without samples")
    if any(trace.dtype.kind not in "iuf" for trace in traces):
        raise FormatError(f"{name} file with samples that are not numbers")
    intervals = tuple(float(trace.stats.delta) for trace in stream)
    notes = ("GSE2 holds 32-bit integers: samples are rounded",) if name == "GSE2" else ()
    return Recording(traces, intervals, format, Origin(stream, name), notes=notes)


def encode(recording: Recording) -> bytes:
    """ObsPy's stream with new samples, in the format it was read from; integer samples as floats where it can."""
    origin: Origin = recording.origin
    stream = origin.stream.copy()
    options: dict[str, Any] = {}
    for trace, samples in zip(stream, recording.traces, strict=True):
        trace.data = np.ascontiguousarray(samples)
        if origin.format == "GSE2":
            trace.data = np.rint(trace.data).astype(np.int32)
        elif origin.format in ("SEGY", "SU", "SAC"):
            trace.data = trace.data.astype(np.float32)
        elif origin.format == "MSEED":
            stats = trace.stats.mseed
            options["reclen"] = stats.record_length
            if trace.data.dtype.kind == "f":
                stats.encoding = "FLOAT64" if trace.data.dtype.itemsize == 8 else "FLOAT32"
    if origin.format == "SEGY":
        ibm = stream.stats.binary_file_header.data_sample_format_code == 1
        options["data_encoding"] = 1 if ibm else 5
        for trace in stream:
            trace.stats.segy.pop("data_encoding", None)
    try:
        with warnings.catch_warnings(), TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            path = Path(folder) / "traces"  # by way of a file: not all of ObsPy's writers take a stream
            stream.write(str(path), format=origin.format, **options)
            return path.read_bytes()
    except Exception as error:  # writers raise anything
        raise FormatError(
            f"ObsPy cannot write these traces as {origin.format} ({type(error).__name__}: {error}); "
            "convert the file to MiniSEED first"
        ) from error
