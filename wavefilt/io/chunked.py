"""Arrays of any number of axes, chunked or not, as traces along one axis: the common part of HDF5 and Zarr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.npy import sample_axis, written

if TYPE_CHECKING:
    import h5py
    import zarr

BLOCK = 1 << 20
"""Bytes read or written at a time; one chunk if it is larger."""
COPIES = 13
"""Copies of a block in memory at once: encoded, decoded and assembled, by a reader and by a writer that reads first,
and memory that the threads of Zarr have freed but not returned to the system (`tests/outofcore/test_memory.py`)."""
NAMES = 20
"""Names that an error lists at most."""

Box = tuple[slice, ...]


class ChunkedArray:
    """Samples of an array of h5py or zarr; traces are numbered in C order of all axes except the axis of samples."""

    def __init__(self, array: h5py.Dataset | zarr.Array, axis: int | None, chunks: Sequence[int] | None) -> None:
        """``chunks`` is the shape of the unit of decoding, None for an array stored without chunks.

        Raises FormatError for an array without samples, or of other things than numbers.
        """
        self.array, self.dtype = array, np.dtype(array.dtype)
        if self.dtype.kind not in "iufc":
            raise FormatError(f"an array of dtype {self.dtype}; integer, floating or complex samples can be denoised")
        self._axis = sample_axis(array.shape, axis)
        if prod(array.shape) == 0:
            raise FormatError(f"an array of shape {array.shape} has no samples")
        lengths = [*chunks] if chunks else [1] * len(array.shape)
        size = self.dtype.itemsize
        self._samples = lengths.pop(self._axis)
        self._samples *= max(BLOCK // (prod(lengths) * self._samples * size), 1)
        self._chunks, self._others = lengths, [n for i, n in enumerate(array.shape) if i != self._axis]
        self.shape = (prod(self._others), array.shape[self._axis])
        deep = next((i for i, n in enumerate(lengths) if n > 1), len(lengths))
        self.neighbours = min(lengths[deep] * prod(self._others[deep + 1 :]), self.shape[0]) if lengths[deep:] else 1
        self.overhead = COPIES * max(prod(lengths) * self._samples * size, BLOCK)

    def read(self, rows: slice, first: int, out: Array) -> None:
        for place, part in self._blocks(rows, first, out):
            part[:] = np.moveaxis(self.array[place], self._axis, -1)

    def write(self, rows: slice, first: int, values: Array) -> None:
        for place, part in self._blocks(rows, first, values):
            self.array[place] = np.moveaxis(part, -1, self._axis).astype(self.array.dtype, copy=False)

    def _blocks(self, rows: slice, first: int, samples: Array) -> Iterator[tuple[Box, Array]]:
        """Yield boxes in the array, each within one chunk or of whole chunks, and the part of ``samples`` for each."""
        count, at = samples.shape[1], 0
        for box in boxes(rows.start, rows.stop, self._others):
            shape = [side.stop - side.start for side in box]
            inside = samples[at : at + prod(shape)].reshape(*shape, count)
            at += prod(shape)
            whole = (*box, slice(first, first + count))
            for piece in product(*map(_divided, whole, (*self._chunks, self._samples))):
                within = (slice(p.start - w.start, p.stop - w.start) for p, w in zip(piece, whole, strict=True))
                yield (*piece[: self._axis], piece[-1], *piece[self._axis : -1]), inside[tuple(within)]


def boxes(first: int, last: int, shape: Sequence[int]) -> Iterator[Box]:
    """Yield boxes that together, in order, are the items ``first`` to ``last`` (C order) of an array of this shape."""
    if not shape:
        yield ()
        return
    inner = prod(shape[1:])
    begin, end = first // inner, last // inner
    if first % inner:
        stop = min(last - begin * inner, inner)
        yield from ((slice(begin, begin + 1), *box) for box in boxes(first % inner, stop, shape[1:]))
        begin += 1
    if begin < end:
        yield (slice(begin, end), *(slice(0, n) for n in shape[1:]))
    if begin <= end and last % inner:
        yield from ((slice(end, end + 1), *box) for box in boxes(0, last % inner, shape[1:]))


def _divided(side: slice, length: int) -> list[slice]:
    """Divide a side at multiples of a length."""
    edges = [side.start, *range((side.start // length + 1) * length, side.stop, length), side.stop]
    return [slice(a, b) for a, b in pairwise(edges)]


def chosen(component: str | None, names: Sequence[str], holder: str) -> str:
    """Return the array asked for, or the only one. Otherwise raise FormatError with the names of all arrays."""
    listed = ", ".join(names[:NAMES]) + (f" and {len(names) - NAMES} more" if len(names) > NAMES else "")
    if not names:
        raise FormatError(f"{holder} without arrays of numbers")
    if component is None:
        if len(names) > 1:
            raise FormatError(f"{holder} of {len(names)} arrays; choose one with ::NAME or `component`: {listed}")
        return names[0]
    if component.strip("/") not in names:
        raise FormatError(f"{holder} has no array {component!r}; it has {listed}")
    return component.strip("/")


def notes(dtype: DType) -> tuple[str, ...]:
    """Return the remark about an array of this dtype in HDF5 or Zarr."""
    return (f"integer samples are written as {written(dtype)}",) if dtype.kind in "iu" else ()
