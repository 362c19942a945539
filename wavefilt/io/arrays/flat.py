"""npy and raw binary a part at a time: files of a header and samples alone."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError
from wavefilt.io import raw, replacing
from wavefilt.io.layout import Layout
from wavefilt.io.sources import Target

from . import npy

SCRATCH = 4 << 20
"""Bytes converted, or picked out of those of other traces, at a time."""


@dataclass(frozen=True)
class Places:
    """Where samples lie in a file: ``header`` bytes, then items; row r begins at item ``starts(r)``.

    ``others`` and ``strides`` are lengths of the axes of rows, the last running fastest, and items between neighbours;
    ``step`` is that of samples.
    """

    header: int
    others: tuple[int, ...]
    strides: tuple[int, ...]
    samples: int
    step: int

    def spans(self, rows: slice) -> Iterator[tuple[slice, int]]:
        """Runs of rows (counted from rows.start) that lie side by side, and the first one's item."""
        numbers = np.unravel_index(np.arange(rows.start, rows.stop), self.others) if self.others else ()
        starts = sum((n * s for n, s in zip(numbers, self.strides, strict=True)), np.zeros(rows.stop - rows.start, int))
        beside = 1 if self.step > 1 else self.samples
        ends = np.flatnonzero(np.diff(starts, append=-1) != beside) + 1
        begin = 0
        for end in ends.tolist():
            yield slice(begin, end), int(starts[begin])
            begin = end


class File:
    """Bytes at any place of an open file, for one thread at a time."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name, self._lock = file, name, threading.Lock()

    def read(self, offset: int, out: NDArray[Any]) -> None:
        """Fill a C-contiguous array. Raises OSError if the file ends first."""
        view, filled = out.reshape(-1).view(np.uint8).data, 0
        with self._lock:
            self._file.seek(offset)
            while filled < len(view):
                got = self._file.readinto(view[filled:])  # type: ignore[attr-defined]
                if not got:
                    raise OSError(
                        f"{self._name}: the file became shorter while it was read: it ends at byte {offset + filled}"
                    )
                filled += got

    def write(self, offset: int, values: NDArray[Any]) -> None:
        """Write a C-contiguous array."""
        view, written = values.reshape(-1).view(np.uint8).data, 0
        with self._lock:
            self._file.seek(offset)
            while written < len(view):
                written += self._file.write(view[written:])


@dataclass
class Samples:
    """Samples of one dtype in a file, at places of their own; what `Source.read` and `Target.write` have in common."""

    file: File
    places: Places
    dtype: np.dtype[Any]

    def read(self, rows: slice, first: int, out: NDArray[Any]) -> None:
        """As `Source.read`."""
        for run, span, a, b in self._blocks(rows, first, out.shape[1]):
            part = out[run, a:b]
            if self.places.step == 1 and part.flags.c_contiguous and part.dtype == self.dtype:
                self.file.read(span, part)
            else:
                part[:] = self._stored(span, part.shape)

    def write(self, rows: slice, first: int, values: NDArray[Any]) -> None:
        """As `Target.write`."""
        for run, span, a, b in self._blocks(rows, first, values.shape[1]):
            part = values[run, a:b].astype(self.dtype, copy=False)
            if self.places.step == 1:
                self.file.write(span, np.ascontiguousarray(part))
            else:
                block = self._whole(span, len(part), b - a)
                block[:, : len(part)] = part.T
                self.file.write(span, block.reshape(-1)[: (b - a - 1) * self.places.step + len(part)])

    def _blocks(self, rows: slice, first: int, count: int) -> Iterator[tuple[slice, int, int, int]]:
        """Rows side by side, where their samples a to b begin in the file, a and b, all within `SCRATCH`."""
        size, step = self.dtype.itemsize, self.places.step
        most = max(SCRATCH // size // step, 1)
        for run, start in self.places.spans(rows):
            begin = self.places.header + size * start
            if step > 1:
                for a in range(0, count, most):
                    yield run, begin + size * step * (first + a), a, min(a + most, count)
            elif count < self.places.samples or count > most:
                for row in range(run.start, run.stop):
                    at = begin + size * ((row - run.start) * self.places.samples + first)
                    for a in range(0, count, most):
                        yield slice(row, row + 1), at + size * a, a, min(a + most, count)
            else:
                share = most // count
                for row in range(run.start, run.stop, share):
                    together = slice(row, min(row + share, run.stop))
                    yield together, begin + size * (row - run.start) * count, 0, count

    def _stored(self, span: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Samples (rows, some samples) as stored."""
        if self.places.step == 1:
            block = np.empty(shape, self.dtype)
            self.file.read(span, block)
            return block
        return self._whole(span, *shape)[:, : shape[0]].T

    def _whole(self, span: int, rows: int, count: int) -> NDArray[Any]:
        """What lies between the first and the last of samples of rows side by side, shape (count, step)."""
        step = self.places.step
        block = np.empty((count, step), self.dtype)
        self.file.read(span, block.reshape(-1)[: (count - 1) * step + rows])
        return block


class Flat:
    """A file of a header and samples alone: `.npy` and raw binary."""

    neighbours, overhead = 1, 0

    def __init__(self, path: str, format: str, places: Places, dtype: np.dtype[Any], written: np.dtype[Any],
                 header: bytes, file: BinaryIO, interval: float | None) -> None:  # fmt: skip
        """``written`` is the dtype of the result, ``header`` what comes before it."""
        self.interval, self.notes = interval, raw.notes(dtype) if format == "raw" else ()
        self.format, self.dtype = format, dtype
        self.shape = (math.prod(places.others), places.samples)
        self._path, self._places, self._written, self._header, self._open = path, places, written, header, file
        self._samples = Samples(File(file, path), places, dtype)
        self._state = self._stat()

    def read(self, rows: slice, first: int, out: NDArray[Any]) -> None:
        self._samples.read(rows, first, out)

    def check_unchanged(self) -> None:
        if self._stat() != self._state:
            raise OSError(f"{self._path}: the file was changed while it was read")

    def _stat(self) -> tuple[int, int]:
        found = os.fstat(self._open.fileno())
        return found.st_size, found.st_mtime_ns

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        size = len(self._header) + math.prod(self.shape) * self._written.itemsize
        with replacing(path, overwrite=overwrite) as file:
            file.write(self._header)
            file.flush()
            file.truncate(size)  # parts that are not written yet read as zeros
            places = Places(len(self._header), self._places.others, self._places.strides, self.shape[1],
                            self._places.step)  # fmt: skip
            yield Samples(File(file, str(path)), places, self._written)

    def close(self) -> None:
        self._open.close()


def npy_source(path: str, file: BinaryIO, layout: Layout) -> Flat:
    """The array of a `.npy` as traces along an axis. Raises FormatError for what cannot be denoised."""
    layout.only("npy", "dt", "axis")
    size = os.fstat(file.fileno()).st_size
    shape, fortran, dtype = npy.header(file, size)
    begin = file.tell()
    axis = npy.sample_axis(shape, layout.axis)
    if shape[axis] == 0 or math.prod(shape) == 0:
        raise FormatError(f"an array of shape {shape} has no samples")
    order = range(len(shape)) if fortran else range(len(shape) - 1, -1, -1)
    strides, items = [0] * len(shape), 1
    for i in order:
        strides[i] = items
        items *= shape[i]
    others = [i for i in range(len(shape)) if i != axis]
    step = strides[axis] if shape[axis] > 1 else 1
    places = Places(begin, tuple(shape[i] for i in others), tuple(strides[i] for i in others), shape[axis], step)
    written = npy.written(dtype)
    return Flat(path, "npy", places, dtype, written, npy.header_of(shape, fortran, written), file,
                layout.dt)  # fmt: skip


def raw_source(path: str, file: BinaryIO, layout: Layout) -> Flat:
    """Raw binary with an explicit layout. Raises FormatError where that is missing or does not fit."""
    dtype, rows, samples = raw.shape(os.fstat(file.fileno()).st_size, layout)
    return Flat(path, "raw", Places(0, (rows,), (samples,), samples, 1), dtype, raw.written(dtype), b"", file,
                layout.dt)  # fmt: skip
