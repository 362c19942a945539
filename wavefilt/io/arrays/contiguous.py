"""Files that consist of a header and samples (npy, raw binary), read and written in parts."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.io.atomic import replacing
from wavefilt.io.file_state import file_unchanged

if TYPE_CHECKING:
    from wavefilt.io.sources import Target

WORKSPACE = 4 << 20
"""Bytes converted, or gathered from among those of other traces, at a time."""


@dataclass(frozen=True)
class Places:
    """Where samples lie in a file: ``header`` bytes, then items of a dtype.

    ``others`` and ``strides`` are the lengths of the axes of traces, the last varying fastest, and the items between
    neighbours along each; ``samples`` and ``step`` are the same for the axis of samples.
    """

    header: int
    dtype: DType
    others: tuple[int, ...]
    strides: tuple[int, ...]
    samples: int
    step: int

    def spans(self, rows: slice) -> Iterator[tuple[slice, int]]:
        """Runs of adjacent rows (counted from rows.start), and the item at which each run begins."""
        numbers = np.unravel_index(np.arange(rows.start, rows.stop), self.others) if self.others else ()
        starts = sum((n * s for n, s in zip(numbers, self.strides, strict=True)), np.zeros(rows.stop - rows.start, int))
        apart = 1 if self.step > 1 else self.samples
        ends = np.flatnonzero(np.diff(starts, append=-1) != apart) + 1
        begin = 0
        for end in ends.tolist():
            yield slice(begin, end), int(starts[begin])
            begin = end


class Header(NamedTuple):
    """What comes before the samples of a file, and their dtype."""

    content: bytes
    dtype: DType


class Samples:
    """Samples of one dtype in an open file: what `Source.read` and `Target.write` have in common."""

    def __init__(self, file: BinaryIO, name: str, places: Places) -> None:
        self._file, self._name, self._places, self._lock = file, name, places, threading.Lock()

    def read(self, rows: slice, first: int, out: Array) -> None:
        """As `Source.read`."""
        for run, offset, a, b in self._blocks(rows, first, out.shape[1]):
            part = out[run, a:b]
            if self._places.step == 1 and part.flags.c_contiguous and part.dtype == self._places.dtype:
                self._fill(offset, part)
            elif self._places.step == 1:
                block = np.empty(part.shape, self._places.dtype)
                self._fill(offset, block)
                part[:] = block
            else:
                part[:] = self._interleaved(offset, *part.shape)[:, : len(part)].T

    def write(self, rows: slice, first: int, values: Array) -> None:
        """As `Target.write`."""
        for run, offset, a, b in self._blocks(rows, first, values.shape[1]):
            part = values[run, a:b].astype(self._places.dtype, copy=False)
            if self._places.step == 1:
                self._put(offset, np.ascontiguousarray(part))
            else:
                block = self._interleaved(offset, *part.shape)
                block[:, : len(part)] = part.T
                self._put(offset, block.reshape(-1)[: (b - a - 1) * self._places.step + len(part)])

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

    def _interleaved(self, offset: int, rows: int, count: int) -> Array:
        """Everything between the first and the last sample of adjacent rows, shape (count, step)."""
        step = self._places.step
        block = np.empty((count, step), self._places.dtype)
        self._fill(offset, block.reshape(-1)[: (count - 1) * step + rows])
        return block

    def _blocks(self, rows: slice, first: int, count: int) -> Iterator[tuple[slice, int, int, int]]:
        """Adjacent rows, where their samples a to b begin in the file, a and b: `WORKSPACE` bytes at most."""
        size, step = self._places.dtype.itemsize, self._places.step
        most = max(WORKSPACE // size // step, 1)
        for run, start in self._places.spans(rows):
            begin = self._places.header + size * start
            if step > 1:
                for a in range(0, count, most):
                    yield run, begin + size * step * (first + a), a, min(a + most, count)
            elif count < self._places.samples or count > most:
                for row in range(run.start, run.stop):
                    at = begin + size * ((row - run.start) * self._places.samples + first)
                    for a in range(0, count, most):
                        yield slice(row, row + 1), at + size * a, a, min(a + most, count)
            else:
                share = most // count
                for row in range(run.start, run.stop, share):
                    together = slice(row, min(row + share, run.stop))
                    yield together, begin + size * (row - run.start) * count, 0, count


class ContiguousFile:
    """A `wavefilt.io.sources.Source` of a file that consists of a header and samples: `.npy` and raw binary."""

    neighbours, overhead = 1, 0
    notes: tuple[str, ...] = ()

    def __init__(self, path: str, format: str, places: Places, result: Header, interval: float | None) -> None:
        self.format, self.dtype, self.interval = format, places.dtype, interval
        self.shape = (math.prod(places.others), places.samples)
        self._places, self._result = places, result
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by `close`
        self.read = Samples(self._file, path, places).read
        self.check_unchanged = file_unchanged(path, self._file.fileno())
        self.close = self._file.close

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        header, dtype = self._result.content, self._result.dtype
        with replacing(path, overwrite=overwrite) as file:
            file.write(header)
            file.flush()
            file.truncate(len(header) + math.prod(self.shape) * dtype.itemsize)  # unwritten parts read as zeros
            yield Samples(file, str(path), replace(self._places, header=len(header), dtype=dtype))
