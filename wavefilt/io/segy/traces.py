"""SEG-Y and SU through segyio (extra `seismic`): samples are rewritten in place, every header byte is kept.

Inline and crossline numbers are ignored: sorted or not, traces are taken in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.atomic import replacing
from wavefilt.io.detection import TRACE_HEADER
from wavefilt.io.file_state import file_unchanged
from wavefilt.io.layout import Layout
from wavefilt.io.segy.headers import CODE_AT, IBM, Headers, from_ibm, read_headers
from wavefilt.io.sources import read_all
from wavefilt.recording import Recording

if TYPE_CHECKING:
    from segyio import SegyFile

    from wavefilt.io.sources import Target

WORKSPACE = 2 << 20
"""Bytes copied, or handed to segyio, at a time."""


def _segyio() -> ModuleType:
    try:
        import_module("segyio.su")
        return import_module("segyio")
    except ImportError as error:
        raise FormatError(f'SEG-Y and SU need segyio ({error}): pip install "wavefilt[seismic]"') from error


class SegyTraces:
    """A `wavefilt.io.sources.Source`. Raises FormatError for a file that is damaged or not of the format."""

    neighbours, overhead = 1, 0

    def __init__(self, path: str, layout: Layout, format: str) -> None:
        layout.only(format, "dt")
        self.format, self._path = format, path
        with open(path, "rb") as file:
            self._headers = read_headers(file, format)
        self.check_unchanged = file_unchanged(path)
        self._file = _opened(path, self._headers, "r")
        self.shape = (self._headers.traces, self._headers.samples)
        self.dtype = np.dtype(self._file.dtype)
        self.interval = _interval(self._file, self._headers) or layout.dt
        integers = self.dtype.kind != "f"
        self.notes = tuple(["integer samples are written as 32-bit floats, sample format code 5"] if integers else [])

    def read(self, rows: slice, first: int, out: Array) -> None:
        try:
            if out.shape[1] < self.shape[1]:
                for row, values in zip(range(rows.start, rows.stop), out, strict=True):
                    values[:] = self._samples(slice(row, row + 1))[0, first : first + len(values)]
            else:
                for part in _parts(rows, self._headers):
                    out[part.start - rows.start : part.stop - rows.start] = self._samples(part)
        except (OSError, RuntimeError) as error:
            raise OSError(f"{self._path}: the file became shorter while it was read ({error})") from error

    def _samples(self, part: slice) -> Array:
        """Whole traces."""
        if self._headers.code != IBM:
            return np.asarray(self._file.trace.raw[part])
        # segyio 1.9 reads an IBM float whose fraction begins with four zero bits as another number
        item = _trace_dtype(f"({self._headers.samples},){self._headers.endian}u4")
        count = part.stop - part.start
        traces = np.fromfile(self._path, item, count, offset=self._headers.begin + part.start * item.itemsize)
        if len(traces) < count:
            raise OSError(f"it ends after trace {part.start + len(traces)}")
        return from_ibm(traces["samples"])

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        headers = self._headers.as_written
        with replacing(path, overwrite=overwrite) as file:
            self._copy(file, headers)
            file.flush()
            result = _opened(file.name, headers, "r+")
            try:
                yield _Rewritten(result, headers)
                result.flush()
            finally:
                result.close()

    def _copy(self, to: BinaryIO, headers: Headers) -> None:
        """Copy all headers, and samples, which will be rewritten: as they are, or zeros of another width."""
        items = [_trace_dtype(f"V{h.samples * h.width}") for h in (self._headers, headers)]
        with open(self._path, "rb") as file:
            head = bytearray(file.read(headers.begin))
            if headers.code != self._headers.code:
                head[CODE_AT : CODE_AT + 2] = headers.code.to_bytes(2, "big" if headers.endian == ">" else "little")
            to.write(head)
            for part in _parts(slice(0, headers.traces), self._headers):
                block = np.fromfile(file, items[0], part.stop - part.start)
                if len(block) < part.stop - part.start:
                    raise OSError(f"{self._path}: the file became shorter while it was read")
                if headers.width != self._headers.width:
                    wide = np.zeros(len(block), items[1])
                    wide["header"] = block["header"]
                    block = wide
                to.write(block.tobytes())

    def close(self) -> None:
        self._file.close()


def _trace_dtype(samples: str) -> DType:
    return np.dtype([("header", f"V{TRACE_HEADER}"), ("samples", samples)])


class _Rewritten:
    """Samples that replace others. They are copied, because segyio swaps and converts in place."""

    def __init__(self, file: SegyFile, headers: Headers) -> None:
        self._file, self._headers = file, headers

    def write(self, rows: slice, first: int, values: Array) -> None:
        if values.shape[1] < self._headers.samples:
            for row, part in zip(range(rows.start, rows.stop), values, strict=True):
                whole = self._file.trace[row]
                whole[first : first + len(part)] = part
                self._file.trace[row] = whole
            return
        for part in _parts(rows, self._headers):
            block = values[part.start - rows.start : part.stop - rows.start]
            self._file.trace[part] = np.array(block, self._file.dtype, order="C")


def _opened(path: str, headers: Headers, mode: str) -> SegyFile:
    segyio = _segyio()
    library = segyio.su if headers.begin == 0 else segyio
    try:
        return library.open(path, mode, ignore_geometry=True, endian="big" if headers.endian == ">" else "little")
    except (OSError, RuntimeError, ValueError, IndexError) as error:
        raise FormatError(f"segyio cannot read it ({error})") from error


def _interval(file: SegyFile, headers: Headers) -> float | None:
    """Sampling interval in seconds; None where headers have none, or contradict each other."""
    segyio = _segyio()
    found = segyio.tools.dt(file, fallback_dt=0) if headers.begin else file.header[0][segyio.su.dt]
    return float(found) / 1e6 if found > 0 else None


def _parts(rows: slice, headers: Headers) -> Iterator[slice]:
    """These traces, as many at a time as fit in `WORKSPACE`."""
    together = max(WORKSPACE // (TRACE_HEADER + headers.samples * headers.width), 1)
    for start in range(rows.start, rows.stop, together):
        yield slice(start, min(start + together, rows.stop))


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """All traces, in counts, by way of a temporary file, because segyio reads nothing else."""
    with TemporaryDirectory() as folder, closing(SegyTraces(_temporary(data, folder), layout, format)) as source:
        traces = read_all(source)
    return Recording(traces, (source.interval,) * len(traces), format, data, notes=source.notes)


def encode(recording: Recording) -> bytes:
    """The file it came from with new samples."""
    with TemporaryDirectory() as folder:
        source = SegyTraces(_temporary(recording.origin, folder), Layout(), recording.format)
        target = Path(folder) / "result"
        with closing(source), source.create(target, overwrite=False) as out:
            out.write(slice(0, source.shape[0]), 0, recording.samples)
        return target.read_bytes()


def _temporary(data: bytes, folder: str) -> str:
    path = Path(folder) / "traces"
    path.write_bytes(data)
    return str(path)


open_source = SegyTraces
