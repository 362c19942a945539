"""Raw binary: samples without any header, read only with an explicit layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io.layout import Layout
from wavefilt.recording import Recording

DTYPES = ("f4", "f8", "i2", "i4")
ENDIANS = {"little": "<", "big": ">"}


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """Traces one after another, ``ns`` samples each, of the dtype and byte order given."""
    dtype, rows, samples = shape(len(data), layout)
    traces = np.frombuffer(data, dtype).reshape(rows, samples)
    return Recording(traces, (layout.dt,) * rows, "raw", dtype, notes=notes(dtype))


def shape(size: int, layout: Layout) -> tuple[np.dtype[Any], int, int]:
    """Dtype, traces and samples of a file of so many bytes. Raises FormatError where its layout is missing or wrong."""
    layout.only("raw", "dtype", "endian", "ns", "dt")
    missing = [f"--{o} {v}" for o, v in _OPTIONS.items() if getattr(layout, o) is None]
    if missing:
        raise FormatError(f"raw binary needs an explicit layout; missing {', '.join(missing)}")
    if layout.dtype not in DTYPES or layout.endian not in ENDIANS:
        raise FormatError(
            f"--dtype {layout.dtype} --endian {layout.endian}: "
            f"raw samples are one of {', '.join(DTYPES)} and {' or '.join(ENDIANS)}"
        )
    assert layout.ns is not None
    dtype = np.dtype(ENDIANS[layout.endian] + layout.dtype)
    trace = layout.ns * dtype.itemsize
    if size % trace:
        raise FormatError(
            f"{size} bytes are no whole number of traces of {layout.ns} {layout.dtype} samples ({trace} bytes)"
        )
    return dtype, size // trace, layout.ns


def notes(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """What a user should know of samples of this dtype."""
    return ("integer samples are written as f4",) if dtype.kind == "i" else ()


def written(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that denoised samples are stored in: the one they came in, for integers f4 of their byte order."""
    return dtype if dtype.kind == "f" else np.dtype("f4").newbyteorder(dtype.byteorder)


_OPTIONS = {"dtype": "|".join(DTYPES), "endian": "|".join(ENDIANS), "ns": "SAMPLES_PER_TRACE"}


def encode(recording: Recording) -> bytes:
    """The samples in the dtype and byte order they came in; integers as f4."""
    return recording.samples.astype(written(recording.origin)).tobytes()
