"""Files that are written back with other samples and everything else kept, in memory or in parts."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.atomic import replacing
from wavefilt.io.layout import Layout
from wavefilt.io.registry import FORMATS
from wavefilt.io.sources import Source, Target, read_all
from wavefilt.io.writing import refuse_conversion
from wavefilt.recording import Recording


def unchanged_since(state: Callable[[], object], message: str) -> Callable[[], None]:
    """A function that raises OSError with this message if the state differs from the present one."""
    before = state()

    def check() -> None:
        if state() != before:
            raise OSError(message)

    return check


def opened(file: str | BinaryIO) -> AbstractContextManager[BinaryIO]:
    """A file opened by its name, or as it is."""
    return open(file, "rb") if isinstance(file, str) else nullcontext(file)


class FileSource(ABC):
    """A `Source` of a file, by its name or in memory; a subclass adds ``shape``, ``dtype``, `read` and `rewritten`."""

    shape: tuple[int, int]
    dtype: DType
    neighbours, overhead = 1, 0
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    starts: tuple[np.datetime64, ...] = ()

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
        found = os.fstat(self._file.fileno())
        return found.st_size, found.st_mtime_ns, found.st_ino

    @abstractmethod
    def read(self, rows: slice, first: int, out: Array) -> None:
        """As `Source.read`."""

    @abstractmethod
    def rewritten(self, file: BinaryIO) -> AbstractContextManager[Target]:
        """A copy of this file in an empty one, for other samples."""

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        """As `Source.create`."""
        refuse_conversion(self.format, self._name, path)
        with replacing(path, overwrite=overwrite) as file, self.rewritten(file) as target:
            yield target


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """A file in memory, by the source of its format."""
    open_source = cast("Callable[[BinaryIO, Layout], Source]", FORMATS[format].open_source)
    try:
        source = open_source(io.BytesIO(data), layout)
        recording = recording_of(source)
    except OSError as error:  # what damage is called in a file that is read in parts
        raise FormatError(f"damaged or truncated ({error})") from error
    return replace(recording, ids=source.ids, starts=source.starts) if isinstance(source, FileSource) else recording


def recording_of(source: Source, path: str = "") -> Recording:
    """The traces of a file or folder; it is written back through the source, `Recording.origin`."""
    traces = read_all(source)
    return Recording(traces, (source.interval,) * len(traces), source.format, source, path, source.notes)


def encode(recording: Recording) -> bytes:
    """The file that a recording came from with its samples. Raises FormatError if it has not as many."""
    source: FileSource = recording.origin
    samples, out = recording.samples, io.BytesIO()
    if samples.shape != source.shape:
        raise FormatError(f"samples of shape {samples.shape}; the file has {source.shape}")
    with source.rewritten(out) as target:
        target.write(slice(0, len(samples)), 0, samples)
    return out.getvalue()
