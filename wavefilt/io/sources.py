"""Traces read and written in parts: their interface, and files with samples at regular places."""

from __future__ import annotations

import io
import math
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.atomic import replacing
from wavefilt.io.base import Contents, Format, Layout


class Source(ABC):
    """Traces of one length in a file, and the way to write denoised ones. Called from one thread at a time."""

    shape: tuple[int, int]
    """Traces, samples."""
    dtype: DType
    """As stored."""
    neighbours: int = 1
    """Traces in the same chunks of the file, best read and written together; 1 without chunks."""
    overhead: int = 0
    """Bytes of memory that reading and writing take in addition to the samples requested."""
    notes: tuple[str, ...] = ()
    """Remarks for the user about reading or writing this file."""
    ids: tuple[str, ...] = ()
    starts: tuple[np.datetime64, ...] = ()
    """Ids and times of the traces, as in `wavefilt.Recording`."""

    def __init__(self, file: BinaryIO, format: str, interval: float | None) -> None:
        """Keep an open file on disk or in memory; ``interval`` in seconds is None if the file does not give it."""
        self._file, self.format, self.interval = file, format, interval
        self.name: str = getattr(file, "name", "the file")
        self._before = None if isinstance(file, io.BytesIO) else self._state()

    def delays(self) -> Sequence[float]:
        """Return the seconds from the trigger to the first sample of each trace; nothing if all are 0."""
        return ()

    @abstractmethod
    def read(self, rows: slice, first: int, out: Array) -> None:
        """Fill ``out`` (traces, samples), of a dtype of computation, with the samples from ``first``.

        Raises OSError if the file has become shorter.
        """

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        """Make a file like this one for the result, which appears at ``path``, complete, on a normal exit."""
        with replacing(path, overwrite=overwrite) as file, self.rewritten(file) as target:
            yield target

    def rewritten(self, file: BinaryIO) -> AbstractContextManager[Target]:
        """Copy this file, except its samples, to an empty one."""
        raise NotImplementedError

    def check_unchanged(self) -> None:
        """Raise OSError if the file was written to since it was opened."""
        if self._state() != self._before:
            raise OSError(f"{self.name} was changed while it was read")

    def _state(self) -> tuple[int, int, int]:
        """Return values that differ after the file was written to."""
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns, status.st_ino

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Target(Protocol):
    """A file for denoised traces. Called from one thread at a time."""

    def write(self, rows: slice, first: int, values: Array) -> None:
        """Write values (traces, samples) from sample ``first``, in the dtype of the file."""


WORKSPACE = 4 << 20
"""Bytes converted, or gathered from between those of other traces, at a time."""


class Codec(NamedTuple):
    """Conversions from stored items to numbers and back, for items that are no numbers of NumPy's."""

    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]


@dataclass(frozen=True)
class Places:
    """The places of samples in a file: ``header`` bytes, then items of a dtype.

    Every ``inner`` traces are interleaved sample by sample. ``gap`` items, such as a trace header, lie between
    consecutive traces.
    """

    header: int
    dtype: DType
    traces: int
    samples: int
    inner: int = 1
    gap: int = 0
    codec: Codec | None = None


class ContiguousFile(Source):
    """A `Source` of a file with samples at regular places, or the `Target` for its result."""

    def __init__(
        self,
        file: BinaryIO,
        format: str,
        places: Places,
        interval: float | None = None,
        result: Places | None = None,
        header: bytes | None = None,
    ) -> None:
        """``result`` and ``header`` are the places of samples in the result and the bytes before them.

        Without them the result is a copy of the file with other samples.
        """
        super().__init__(file, format, interval)
        self.dtype, self.shape = places.dtype, (places.traces, places.samples)
        self._header, self._places, self._new_places = header, places, result or places

    @contextmanager
    def rewritten(self, file: BinaryIO) -> Iterator[ContiguousFile]:
        self.copy(file)
        file.flush()
        yield ContiguousFile(file, self.format, self._new_places)

    def copy(self, to: BinaryIO) -> None:
        """Write everything except the samples, and room for them."""
        if self._header is None:
            self._file.seek(0)
            shutil.copyfileobj(self._file, to, 1 << 20)
            return
        to.write(self._header)
        to.seek(math.prod(self.shape) * self._new_places.dtype.itemsize - 1, io.SEEK_CUR)
        to.write(b"\0")

    def read(self, rows: slice, first: int, out: Array) -> None:
        places = self._places
        adjacent = places.inner == 1 and not places.gap and places.codec is None
        for block, item in self._blocks(rows, first, out.shape[1]):
            part = out[block]
            if adjacent and part.flags.c_contiguous and part.dtype == places.dtype:
                self._fill(item, part)
            else:
                samples = self._between(item, *part.shape)[1]
                part[:] = samples if places.codec is None else places.codec.decode(samples)

    def write(self, rows: slice, first: int, values: Array) -> None:
        places = self._places
        for block, item in self._blocks(rows, first, values.shape[1]):
            part = values[block] if places.codec is None else places.codec.encode(values[block])
            part = stored = part.astype(places.dtype, copy=False)
            if places.inner > 1 or places.gap:
                stored, samples = self._between(item, *part.shape)
                samples[:] = part
            self._seek(item)
            self._file.write(np.ascontiguousarray(stored).data)

    def _blocks(self, rows: slice, first: int, count: int) -> Iterator[tuple[tuple[slice, slice], int]]:
        """Yield neighbouring rows and samples, counted from the first ones, and their item: at most `WORKSPACE` bytes.

        Several traces are read together if they are interleaved, or whole.
        """
        places = self._places
        inner, distance = places.inner, places.inner * places.samples + places.gap
        # decoding takes several times the memory
        most = max((WORKSPACE >> 2 if places.codec else WORKSPACE) // places.dtype.itemsize, 1)
        together, length = max(most // distance, 1) if count == places.samples else 1, max(most // inner, 1)
        row = rows.start
        while row < rows.stop:
            group, lane = divmod(row, inner)
            stop = min(row + together if inner == 1 else (group + 1) * inner, rows.stop)
            for a in range(0, count, length):
                block = slice(row - rows.start, stop - rows.start), slice(a, min(a + length, count))
                yield block, group * distance + (first + a) * inner + lane
            row = stop

    def _between(self, item: int, traces: int, count: int) -> tuple[Array, Array]:
        """Read everything between the first and the last sample of a block; return it and its samples as a view."""
        places = self._places
        runs, length, distance = traces, count, places.samples + places.gap
        if places.inner > 1:
            runs, length, distance = count, traces, places.inner
        block = np.empty((runs, distance if runs > 1 else length), places.dtype)
        stored = block.reshape(-1)[: (runs - 1) * distance + length]
        self._fill(item, stored)
        return stored, block[:, :length].T if places.inner > 1 else block[:, :length]

    def _seek(self, item: int) -> None:
        self._file.seek(self._places.header + item * self._places.dtype.itemsize)

    def _fill(self, item: int, out: Array) -> None:
        """Fill a C-contiguous array. Raises OSError if the file ends first."""
        self._seek(item)
        if self._file.readinto(out) < out.nbytes:  # type: ignore[attr-defined]
            raise OSError(f"{self.name}: the file became shorter while it was read")


def rounded(samples: Array, dtype: DType) -> Array:
    """Round samples to integers, limited to the range of the dtype."""
    limits = np.iinfo(dtype)
    if samples.dtype.kind in "iu":
        return np.clip(samples, limits.min, limits.max).astype(dtype)
    whole = np.rint(samples)
    with np.errstate(invalid="ignore"):
        integers = whole.astype(dtype)
    # the largest 64-bit integer is no float, so the limits are applied to the integers
    integers[whole >= limits.max] = limits.max
    integers[whole <= limits.min] = limits.min
    return integers


def smallest(samples: Array, dtypes: tuple[str, ...], format: str) -> Array:
    """Return samples in the first of these dtypes that holds all values of their dtype, else in the last."""
    if samples.dtype.kind == "c":
        raise FormatError(f"{format} holds no complex samples")
    return np.asarray(samples).astype(next((name for name in dtypes if np.can_cast(samples.dtype, name)), dtypes[-1]))


def contents_of(source: Source, path: str = "") -> Contents:
    """Return all traces of a file or folder; ``origin`` is the source, through which they are written back."""
    traces = np.empty(source.shape, source.dtype)
    source.read(slice(0, len(traces)), 0, traces)
    intervals = (source.interval,) * len(traces)
    more = source.notes, source.ids, source.starts, source.delays()
    return Contents(traces, intervals, source.format, source, path, *more)


class StreamedFormat(Format):
    """A format with a `Source`, made by `open`, which serves files in memory too."""

    streamed = True

    def read(self, data: bytes, layout: Layout) -> Contents:
        try:
            return contents_of(self.open(io.BytesIO(data), layout))
        except OSError as error:  # the error for damage in a file that is read in parts
            raise FormatError(f"damaged or truncated ({error})") from error

    def write(self, contents: Contents) -> bytes:
        source: Source = contents.origin
        samples, out = contents.samples, io.BytesIO()
        if samples.shape != source.shape:
            raise FormatError(f"samples of shape {samples.shape}; the file has {source.shape}")
        with source.rewritten(out) as target:
            target.write(slice(0, len(samples)), 0, samples)
        return out.getvalue()
