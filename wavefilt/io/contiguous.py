"""Files with samples at regular places (npy, raw binary, SEG-Y, SU, SAC, WAV), read and written in parts."""

from __future__ import annotations

import math
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.sources import FileSource

WORKSPACE = 4 << 20
"""Bytes converted, or gathered from between those of other traces, at a time."""


class Codec(NamedTuple):
    """Conversions from stored items to numbers and back, for items that are no numbers of NumPy's."""

    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]


@dataclass(frozen=True)
class Places:
    """The places of samples in a file: ``header`` bytes, then items of a dtype.

    ``others`` and ``strides`` are the lengths of the axes of traces, the last varying fastest, and the items between
    neighbours along each; ``samples`` and ``step`` are the same for the axis of samples. ``gap`` items, such as a trace
    header, lie between consecutive traces.
    """

    header: int
    dtype: DType
    others: tuple[int, ...]
    strides: tuple[int, ...]
    samples: int
    step: int
    gap: int = 0
    codec: Codec | None = None

    def spans(self, rows: slice) -> Iterator[tuple[slice, int]]:
        """Yield runs of adjacent rows, counted from rows.start, and the item at which each run begins."""
        numbers = np.unravel_index(np.arange(rows.start, rows.stop), self.others) if self.others else ()
        starts = sum((n * s for n, s in zip(numbers, self.strides, strict=True)), np.zeros(rows.stop - rows.start, int))
        distance = 1 if self.step > 1 else self.samples + self.gap
        ends = np.flatnonzero(np.diff(starts, append=-1) != distance) + 1
        begin = 0
        for end in ends.tolist():
            yield slice(begin, end), int(starts[begin])
            begin = end


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
    """Return samples in the first of these dtypes that holds all values of theirs, else in the last."""
    if samples.dtype.kind == "c":
        raise FormatError(f"{format} holds no complex samples")
    return samples.astype(next((name for name in dtypes if np.can_cast(samples.dtype, name)), dtypes[-1]))


class Samples:
    """Samples of one dtype in an open file, with `Source.read` and `Target.write`."""

    def __init__(self, file: BinaryIO, name: str, places: Places) -> None:
        self._file, self._name, self._places, self._lock = file, name, places, threading.Lock()

    def read(self, rows: slice, first: int, out: Array) -> None:
        places = self._places
        for run, offset, a, b in self._blocks(rows, first, out.shape[1]):
            part = out[run, a:b]
            adjacent = places.step == 1 and not places.gap and places.codec is None
            if adjacent and part.flags.c_contiguous and part.dtype == places.dtype:
                self._fill(offset, part)
            else:
                samples = self._between(offset, *part.shape)[1]
                part[:] = samples if places.codec is None else places.codec.decode(samples)

    def write(self, rows: slice, first: int, values: Array) -> None:
        places = self._places
        for run, offset, a, b in self._blocks(rows, first, values.shape[1]):
            part = values[run, a:b]
            part = (part if places.codec is None else places.codec.encode(part)).astype(places.dtype, copy=False)
            if places.step == 1 and not places.gap:
                self._put(offset, np.ascontiguousarray(part))
            else:
                stored, samples = self._between(offset, *part.shape)
                samples[:] = part
                self._put(offset, stored)

    def _fill(self, offset: int, out: Array) -> None:
        """Fill a C-contiguous array. Raises OSError if the file ends first."""
        view, filled = out.reshape(-1).view(np.uint8).data, 0
        with self._lock:
            self._file.seek(offset)
            while filled < len(view):
                got = self._file.readinto(view[filled:])  # type: ignore[attr-defined]
                if not got:
                    end = f"it ends at byte {offset + filled}"
                    raise OSError(f"{self._name}: the file became shorter while it was read: {end}")
                filled += got

    def _put(self, offset: int, values: Array) -> None:
        """Write a C-contiguous array."""
        view, written = values.reshape(-1).view(np.uint8).data, 0
        with self._lock:
            self._file.seek(offset)
            while written < len(view):
                written += self._file.write(view[written:])

    def _between(self, offset: int, traces: int, count: int) -> tuple[Array, Array]:
        """Read everything between the first and the last sample of a block; return it and its samples as a view."""
        places = self._places
        runs, length, distance = traces, count, places.samples + places.gap
        if places.step > 1:
            runs, length, distance = count, traces, places.step
        block = np.empty((runs, distance if runs > 1 else length), places.dtype)
        stored = block.reshape(-1)[: (runs - 1) * distance + length]
        self._fill(offset, stored)
        return stored, block[:, :length].T if places.step > 1 else block[:, :length]

    def _blocks(self, rows: slice, first: int, count: int) -> Iterator[tuple[slice, int, int, int]]:
        """Yield adjacent rows, the byte where their samples a to b begin, a and b: at most `WORKSPACE` bytes."""
        size, step, distance = self._places.dtype.itemsize, self._places.step, self._places.samples + self._places.gap
        # decoding takes several times the memory
        most = max((WORKSPACE >> 2 if self._places.codec else WORKSPACE) // size // step, 1)
        for run, start in self._places.spans(rows):
            begin = self._places.header + size * start
            if step > 1:
                for a in range(0, count, most):
                    yield run, begin + size * step * (first + a), a, min(a + most, count)
            elif count < self._places.samples or count > most:
                for row in range(run.start, run.stop):
                    at = begin + size * ((row - run.start) * distance + first)
                    for a in range(0, count, most):
                        yield slice(row, row + 1), at + size * a, a, min(a + most, count)
            else:
                share = max(most // distance, 1)
                for row in range(run.start, run.stop, share):
                    together = slice(row, min(row + share, run.stop))
                    yield together, begin + size * (row - run.start) * distance, 0, count


class ContiguousFile(FileSource):
    """A `Source` of a file with samples at regular places."""

    def __init__(
        self,
        file: str | BinaryIO,
        format: str,
        places: Places,
        interval: float | None,
        result: Places | None = None,
        header: bytes | None = None,
    ) -> None:
        """``result`` and ``header`` are the places of samples in the result and the bytes before them.

        Without them the result is a copy of the file with other samples.
        """
        super().__init__(file, format, interval)
        self.dtype, self.shape = places.dtype, (math.prod(places.others), places.samples)
        self._header, self._places = header, result or places
        self._samples = Samples(self._file, self._name, places)

    def read(self, rows: slice, first: int, out: Array) -> None:
        self._samples.read(rows, first, out)

    @contextmanager
    def rewritten(self, file: BinaryIO) -> Iterator[Samples]:
        self.copy(file)
        file.flush()
        yield Samples(file, self._name, self._places)

    def copy(self, to: BinaryIO) -> None:
        """Write everything except the samples, and room for them."""
        if self._header is None:
            self._file.seek(0)
            shutil.copyfileobj(self._file, to, 1 << 20)
            return
        to.write(self._header)
        to.truncate(len(self._header) + math.prod(self.shape) * self._places.dtype.itemsize)
