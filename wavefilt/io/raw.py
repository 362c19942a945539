"""Raw binary: samples without any header, read only with an explicit layout."""

from __future__ import annotations

import os

import numpy as np

from wavefilt.arrays import DType
from wavefilt.errors import FormatError
from wavefilt.io.arrays.contiguous import ContiguousFile, Header, Places
from wavefilt.io.layout import Layout
from wavefilt.recording import Recording

DTYPES = ("f4", "f8", "i2", "i4")
ENDIANS = {"little": "<", "big": ">"}


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """Traces one after another, ``ns`` samples each, of the dtype and byte order given."""
    dtype, rows, samples = shape(len(data), layout)
    traces = np.frombuffer(data, dtype).reshape(rows, samples)
    return Recording(traces, (layout.dt,) * rows, "raw", dtype, notes=notes(dtype))


def shape(size: int, layout: Layout) -> tuple[DType, int, int]:
    """Dtype, traces and samples of a file of ``size`` bytes. Raises FormatError for a missing or wrong layout."""
    layout.only("raw", "dtype", "endian", "ns", "dt")
    if layout.dtype is None or layout.endian is None or layout.ns is None:
        options = {"dtype": "|".join(DTYPES), "endian": "|".join(ENDIANS), "ns": "SAMPLES_PER_TRACE"}
        missing = [f"--{name} {values}" for name, values in options.items() if vars(layout)[name] is None]
        raise FormatError(f"raw binary needs an explicit layout; missing {', '.join(missing)}")
    if layout.dtype not in DTYPES or layout.endian not in ENDIANS:
        raise FormatError(
            f"--dtype {layout.dtype} --endian {layout.endian}: "
            f"raw samples are one of {', '.join(DTYPES)} and {' or '.join(ENDIANS)}"
        )
    dtype = np.dtype(ENDIANS[layout.endian] + layout.dtype)
    trace = layout.ns * dtype.itemsize
    if size % trace:
        raise FormatError(
            f"{size} bytes are not a whole number of traces of {layout.ns} {layout.dtype} samples ({trace} bytes)"
        )
    return dtype, size // trace, layout.ns


def notes(dtype: DType) -> tuple[str, ...]:
    """What a user should know about samples of this dtype."""
    return ("integer samples are written as f4",) if dtype.kind == "i" else ()


def written(dtype: DType) -> DType:
    """The dtype that denoised samples are stored in: the one they came in, for integers f4 of their byte order."""
    return dtype if dtype.kind == "f" else np.dtype("f4").newbyteorder(dtype.byteorder)


def encode(recording: Recording) -> bytes:
    """The samples in the dtype and byte order they came in; integers as f4."""
    return recording.samples.astype(written(recording.origin)).tobytes()


def open_source(path: str, layout: Layout, format: str) -> ContiguousFile:
    """Traces one after another. Raises FormatError where the layout is missing or does not fit."""
    dtype, rows, samples = shape(os.path.getsize(path), layout)
    places = Places(0, dtype, (rows,), (samples,), samples, 1)
    source = ContiguousFile(path, "raw", places, Header(b"", written(dtype)), layout.dt)
    source.notes = notes(dtype)
    return source
