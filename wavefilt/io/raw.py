"""Raw binary: samples without any header, read only with an explicit layout."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import numpy as np

from wavefilt.arrays import DType
from wavefilt.errors import FormatError, LayoutError, options
from wavefilt.io.arrays.contiguous import ContiguousFile, Places
from wavefilt.io.file_source import opened
from wavefilt.io.layout import Layout

DTYPES = ("f4", "f8", "i2", "i4")
ENDIANS = {"little": "<", "big": ">"}
WORDS = f"samples are {', '.join(DTYPES)}, byte orders {' and '.join(ENDIANS)}"


def shape(size: int, layout: Layout) -> tuple[DType, int, int]:
    """Dtype, traces and samples of a file of ``size`` bytes. Raises LayoutError for a missing or wrong layout."""
    layout.only("raw", "dtype", "endian", "ns", "dt")
    if layout.dtype is None or layout.endian is None or layout.ns is None:
        missing = options(**{name: ... for name in ("dtype", "endian", "ns") if vars(layout)[name] is None})
        raise LayoutError("raw binary needs an explicit layout; missing ", missing, f" ({WORDS})")
    if layout.dtype not in DTYPES or layout.endian not in ENDIANS:
        raise LayoutError(options(dtype=layout.dtype, endian=layout.endian), f": {WORDS}")
    dtype = np.dtype(ENDIANS[layout.endian] + layout.dtype)
    trace = layout.ns * dtype.itemsize
    if size % trace:
        raise FormatError(
            f"{size} bytes are not a whole number of traces of {layout.ns} {layout.dtype} samples ({trace} bytes)"
        )
    return dtype, size // trace, layout.ns


def open_source(file: str | BinaryIO, layout: Layout, format: str) -> ContiguousFile:
    """Traces one after another. Raises FormatError where the layout is missing or does not fit."""
    with opened(file) as stream:
        dtype, rows, samples = shape(stream.seek(0, 2), layout)
    # floats stay as they came, integers become f4 of their byte order
    written = dtype if dtype.kind == "f" else np.dtype("f4").newbyteorder(dtype.byteorder)
    places = Places(0, dtype, (rows,), (samples,), samples, 1)
    source = ContiguousFile(file, "raw", places, layout.dt, replace(places, dtype=written), b"")
    source.notes = ("integer samples are written as f4",) if dtype.kind == "i" else ()
    return source
