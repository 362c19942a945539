"""SEG-Y and SU through segyio (extra `seismic`): samples are rewritten in place, every header byte is kept.

Inline and crossline numbers are not looked at: sorted or not, traces are taken in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError
from wavefilt.io import replacing
from wavefilt.io.detection import TRACE_HEADER
from wavefilt.io.layout import Layout
from wavefilt.io.segy.layout import CODE_AT, IBM, Form, form_of, from_ibm
from wavefilt.io.sources import Target
from wavefilt.io.unchanged import Unchanged
from wavefilt.recording import Recording

SCRATCH = 2 << 20
"""Bytes copied, or handed to segyio, at a time."""


def _segyio() -> Any:
    try:
        import segyio
        import segyio.su
    except ImportError as error:
        raise FormatError(f'SEG-Y and SU need segyio ({error}): pip install "wavefilt[seismic]"') from error
    return segyio


class Traces:
    """A `wavefilt.io.sources.Source`. Raises FormatError for a file that is damaged or not of the format."""

    neighbours, overhead = 1, 0

    def __init__(self, path: str, format: str, layout: Layout) -> None:
        layout.only(format, "dt")
        self.format, self._path = format, path
        with open(path, "rb") as file:
            self._form = form_of(file, format)
        self.check_unchanged = Unchanged(path).check
        self._file = _opened(path, self._form, "r")
        self.shape = (self._form.traces, self._form.samples)
        self.dtype = np.dtype(self._file.dtype)
        self.interval = _interval(self._file, self._form) or layout.dt
        integers = self.dtype.kind != "f"
        self.notes = tuple(["integer samples are written as 32-bit floats, sample format code 5"] if integers else [])

    def read(self, rows: slice, first: int, out: NDArray[Any]) -> None:
        try:
            if out.shape[1] < self.shape[1]:
                for row, values in zip(range(rows.start, rows.stop), out, strict=True):
                    values[:] = self._samples(slice(row, row + 1))[0, first : first + len(values)]
            else:
                for part in _parts(rows, self._form):
                    out[part.start - rows.start : part.stop - rows.start] = self._samples(part)
        except (OSError, RuntimeError) as error:
            raise OSError(f"{self._path}: the file became shorter while it was read ({error})") from error

    def _samples(self, part: slice) -> NDArray[Any]:
        """Whole traces."""
        if self._form.code != IBM:
            return np.asarray(self._file.trace.raw[part])
        # segyio 1.9 reads an IBM float whose fraction begins with four zero bits as another number
        stored = ("samples", f"{self._form.endian}u4", self._form.samples)
        item, count = np.dtype([("header", f"V{TRACE_HEADER}"), stored]), part.stop - part.start
        traces = np.fromfile(self._path, item, count, offset=self._form.begin + part.start * item.itemsize)
        if len(traces) < count:
            raise OSError(f"it ends after trace {part.start + len(traces)}")
        return from_ibm(traces["samples"])

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        form = self._form.as_written
        with replacing(path, overwrite=overwrite) as file:
            self._copy(file, form)
            file.flush()
            result = _opened(file.name, form, "r+")
            try:
                yield _Rewritten(result, form)
                result.flush()
            finally:
                result.close()

    def _copy(self, to: BinaryIO, form: Form) -> None:
        """The file with all headers; samples, which are to be rewritten, as they are or zeros of another width."""
        items = [np.dtype([("header", f"V{TRACE_HEADER}"), ("samples", f"V{f.samples * f.width}")])
                 for f in (self._form, form)]  # fmt: skip
        with open(self._path, "rb") as file:
            head = bytearray(file.read(form.begin))
            if form.code != self._form.code:
                head[CODE_AT : CODE_AT + 2] = form.code.to_bytes(2, "big" if form.endian == ">" else "little")
            to.write(head)
            for part in _parts(slice(0, form.traces), self._form):
                block = np.fromfile(file, items[0], part.stop - part.start)
                if len(block) < part.stop - part.start:
                    raise OSError(f"{self._path}: the file became shorter while it was read")
                if form.width != self._form.width:
                    wide = np.zeros(len(block), items[1])
                    wide["header"] = block["header"]
                    block = wide
                to.write(block.tobytes())

    def close(self) -> None:
        self._file.close()


class _Rewritten:
    """Samples put in the place of others; copies of them, because segyio swaps and converts in place."""

    def __init__(self, file: Any, form: Form) -> None:
        self._file, self._form = file, form

    def write(self, rows: slice, first: int, values: NDArray[Any]) -> None:
        if values.shape[1] < self._form.samples:
            for row, some in zip(range(rows.start, rows.stop), values, strict=True):
                whole = self._file.trace[row]
                whole[first : first + len(some)] = some
                self._file.trace[row] = whole
            return
        for part in _parts(rows, self._form):
            block = values[part.start - rows.start : part.stop - rows.start]
            self._file.trace[part] = np.array(block, self._file.dtype, order="C")


def _opened(path: str, form: Form, mode: str) -> Any:
    segyio = _segyio()
    library = segyio.su if form.begin == 0 else segyio
    try:
        return library.open(path, mode, ignore_geometry=True, endian="big" if form.endian == ">" else "little")
    except (OSError, RuntimeError, ValueError, IndexError) as error:
        raise FormatError(f"segyio cannot read it ({error})") from error


def _interval(file: Any, form: Form) -> float | None:
    """Sampling interval in seconds; None where headers have none, or contradict each other."""
    segyio = _segyio()
    found = segyio.tools.dt(file, fallback_dt=0) if form.begin else file.header[0][segyio.su.dt]
    return float(found) / 1e6 if found > 0 else None


def _parts(rows: slice, form: Form) -> Iterator[slice]:
    """These traces, so many at a time as there is room for."""
    together = max(SCRATCH // (TRACE_HEADER + form.samples * form.width), 1)
    for start in range(rows.start, rows.stop, together):
        yield slice(start, min(start + together, rows.stop))


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """All traces, in counts. segyio reads files only, so that a temporary one is made."""
    with TemporaryDirectory() as folder:
        file = _spooled(data, folder)
        source = Traces(file, format, layout)
        try:
            traces = np.empty(source.shape, source.dtype)
            source.read(slice(0, len(traces)), 0, traces)
        finally:
            source.close()
    return Recording(traces, (source.interval,) * len(traces), format, data, notes=source.notes)


def encode(recording: Recording) -> bytes:
    """The file it came from with new samples."""
    with TemporaryDirectory() as folder:
        source = Traces(_spooled(recording.origin, folder), recording.format, Layout())
        try:
            target = Path(folder) / "result"
            with source.create(target, overwrite=False) as out:
                samples = recording.samples
                out.write(slice(0, len(samples)), 0, samples)
        finally:
            source.close()
        return target.read_bytes()


def _spooled(data: bytes, folder: str) -> str:
    path = Path(folder) / "traces"
    path.write_bytes(data)
    return str(path)
