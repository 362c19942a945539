"""Traces read and written in parts: the interface that streaming (`wavefilt.denoise_file`) needs of a file."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.atomic import replacing
from wavefilt.io.base import Contents, Format, Headers, Layout, named, other_format, refuse_dataset


class Source(ABC):
    """Traces of one length in a file, and the way to write denoised ones. Called from one thread at a time."""

    format: str
    shape: tuple[int, int]
    """Traces, samples."""
    dtype: DType
    """As stored."""
    neighbours: int = 1
    """Traces in the same chunks of the file, best read and written together; 1 without chunks."""
    overhead: int = 0
    """Bytes of memory that reading and writing take in addition to the samples requested."""
    interval: float | None = None
    """Sampling interval in seconds, None if the file does not give it."""
    notes: tuple[str, ...] = ()
    """Remarks for the user about reading or writing this file."""
    ids: tuple[str, ...] = ()
    starts: tuple[np.datetime64, ...] = ()
    """Ids and times of the traces, as in `wavefilt.Recording`."""

    def header(self, trace: int) -> Headers:
        """Return the header of a trace."""
        return Headers()

    def delays(self) -> Sequence[float]:
        """Return the seconds from the trigger to the first sample of each trace; nothing if all are 0."""
        return ()

    @abstractmethod
    def read(self, rows: slice, first: int, out: Array) -> None:
        """Fill ``out`` (traces, samples), of a dtype of computation, with the samples from ``first``.

        Raises OSError if the file has become shorter.
        """

    @abstractmethod
    def create(self, path: Path, *, overwrite: bool) -> AbstractContextManager[Target]:
        """Make a file like this one for the result, which appears at ``path``, complete, on a normal exit."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise OSError if the file was written to since it was opened."""

    def close(self) -> None:  # noqa: B027  # not all sources keep a file open
        """Close the file."""


class Target(Protocol):
    """A file for denoised traces. Called from one thread at a time."""

    def write(self, rows: slice, first: int, values: Array) -> None:
        """Write values (traces, samples) from sample ``first``, in the dtype of the file."""


def unchanged_since(state: Callable[[], object], message: str) -> Callable[[], None]:
    """Return a function that raises OSError with this message if the state differs from the present one."""
    before = state()

    def check() -> None:
        if state() != before:
            raise OSError(message)

    return check


def opened(file: str | BinaryIO) -> AbstractContextManager[BinaryIO]:
    """Open a file given by its name; a file object stays as it is."""
    return open(file, "rb") if isinstance(file, str) else nullcontext(file)


class FileSource(Source):
    """A file on disk or in memory; a subclass adds ``shape``, ``dtype``, `read` and `rewritten`."""

    def __init__(self, file: str | BinaryIO, format: str, interval: float | None) -> None:
        self.format, self.interval, self._name = format, interval, file if isinstance(file, str) else "the file"
        self._file = open(file, "rb", buffering=0) if isinstance(file, str) else file  # noqa: SIM115  # closed by `close`
        if isinstance(file, str):
            self._check = unchanged_since(self._state, f"{file}: the file was changed while it was read")

    def check_unchanged(self) -> None:
        self._check()

    def close(self) -> None:
        self._file.close()

    def _state(self) -> tuple[int, int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns, status.st_ino

    @abstractmethod
    def rewritten(self, file: BinaryIO) -> AbstractContextManager[Target]:
        """Copy this file, except its samples, to an empty one."""

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        refuse_conversion(self.format, self._name, path)
        with replacing(path, overwrite=overwrite) as file, self.rewritten(file) as target:
            yield target


def refuse_conversion(format: str, source: str, target: Path) -> None:
    """Raise FormatError for a name that asks for another format of a file that is denoised in parts."""
    if (other := other_format(format, source, target)) is not None:
        raise FormatError(f"{target}: a file is written as {other} in memory alone; convert the result afterwards")
    if named(format).datasets:
        refuse_dataset(target)


def contents_of(source: Source, path: str = "") -> Contents:
    """Return all traces of a file or folder; ``origin`` is the source, through which they are written back."""
    traces = np.empty(source.shape, source.dtype)
    source.read(slice(0, len(traces)), 0, traces)
    intervals = (source.interval,) * len(traces)
    more = source.notes, source.ids, source.starts, source.delays()
    return Contents(traces, intervals, source.format, source, path, *more)


class StreamedFormat(Format):
    """A format with a `FileSource`, made by `open`, which serves files in memory too."""

    streamed = True

    def read(self, data: bytes, layout: Layout) -> Contents:
        try:
            return contents_of(self.open(io.BytesIO(data), layout))
        except OSError as error:  # the error for damage in a file that is read in parts
            raise FormatError(f"damaged or truncated ({error})") from error

    def write(self, contents: Contents) -> bytes:
        source: FileSource = contents.origin
        samples, out = contents.samples, io.BytesIO()
        if samples.shape != source.shape:
            raise FormatError(f"samples of shape {samples.shape}; the file has {source.shape}")
        with source.rewritten(out) as target:
            target.write(slice(0, len(samples)), 0, samples)
        return out.getvalue()
