"""Raw binary: samples without any header, read only with an explicit layout."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import numpy as np

from wavefilt.errors import FormatError, LayoutError
from wavefilt.io.base import Layout
from wavefilt.io.contiguous import ContiguousFile, Places
from wavefilt.io.sources import StreamedFormat, opened

DTYPES = ("f4", "f8", "i2", "i4")
ENDIANS = {"little": "<", "big": ">"}


class Raw(StreamedFormat):
    name, label, shared_endings = "raw", "raw binary", (".bin", ".raw", ".dat")

    def open(self, file: str | BinaryIO, layout: Layout) -> ContiguousFile:
        """Open traces one after another. Raises LayoutError for a missing or wrong layout."""
        layout.only("raw", "dtype", "endian", "ns", "dt")
        missing = [f"`{name}`" for name in ("dtype", "endian", "ns") if getattr(layout, name) is None]
        if layout.dtype not in (None, *DTYPES) or layout.endian not in (None, *ENDIANS) or missing:
            wrong = f"raw binary needs {', '.join(missing)}" if missing else "an unknown raw layout"
            raise LayoutError(f"{wrong}: `dtype` is one of {', '.join(DTYPES)}, `endian` {' or '.join(ENDIANS)}")
        assert layout.dtype is not None and layout.endian is not None and layout.ns is not None  # noqa: PT018
        with opened(file) as stream:
            size = stream.seek(0, 2)
        dtype = np.dtype(ENDIANS[layout.endian] + layout.dtype)
        trace = layout.ns * dtype.itemsize
        if size % trace:
            what = f"traces of {layout.ns} {layout.dtype} samples ({trace} bytes)"
            raise FormatError(f"{size} bytes are not a whole number of {what}")
        # floats keep their type, integers become f4 of their byte order
        written = dtype if dtype.kind == "f" else np.dtype("f4").newbyteorder(dtype.byteorder)
        places = Places(0, dtype, (size // trace,), (layout.ns,), layout.ns, 1)
        source = ContiguousFile(file, "raw", places, layout.dt, replace(places, dtype=written), b"")
        source.notes = ("integer samples are written as f4",) if dtype.kind == "i" else ()
        return source
