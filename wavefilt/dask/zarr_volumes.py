"""Zarr arrays as dask arrays, and back: chunk by chunk, never the whole array in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import accumulate
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING

from wavefilt.arrays import Array
from wavefilt.io.chunked import array_unchanged, copied, reading

if TYPE_CHECKING:
    import dask.array as da
    import zarr
    from distributed import Client, Future

BLOCK = 128 << 20
"""Bytes of a block that is read at a time, or of one chunk of the file if that is larger."""


class Stored:
    """A Zarr array that tasks read and write on any machine; OSError if the machine does not have its folder.

    Zarr itself reads missing files as empty chunks, and creates missing folders.
    """

    def __init__(self, array: zarr.Array) -> None:
        import zarr

        self._path = str(array.store.root)
        self._folder = os.path.abspath(self._path)  # workers have other current folders
        self._array = zarr.open_array(self._folder, path=array.path, mode="r" if array.read_only else "r+")
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, array.dtype

    def __getitem__(self, place: tuple[slice, ...]) -> Array:
        self._check_folder()
        with reading(self._path):
            samples: Array = self._array[place]
            return samples

    def __setitem__(self, place: tuple[slice, ...], values: Array) -> None:
        self._check_folder()
        self._array[place] = values

    def _check_folder(self) -> None:
        if not os.path.isdir(self._folder):
            raise FileNotFoundError(f"{self._path}: the worker has no folder {self._folder}")


def lazily(volume: zarr.Array, axis: int = -1, limit: int = BLOCK) -> da.Array:
    """Return a Zarr array as a dask array, in blocks of whole chunks of at most ``limit`` bytes, or of one chunk.

    Blocks are extended along ``axis`` only, up to whole traces. Raises ValueError for an axis out of range.
    """
    import dask.array as da

    if not -volume.ndim <= axis < volume.ndim:
        raise ValueError(f"`axis={axis}` is out of range for an array of {volume.ndim} dimensions")
    chunks = list(volume.shards or volume.chunks)
    chunk_bytes = prod(chunks) * volume.dtype.itemsize
    chunks[axis] *= min(max(limit // chunk_bytes, 1), ceil(volume.shape[axis] / chunks[axis]))
    return da.from_array(Stored(volume), chunks=tuple(chunks), name=False, lock=False)


def save(
    array: da.Array,
    target: str | Path,
    like: zarr.Array,
    overwrite: bool,
    workers: AbstractContextManager[Client],
    watch: Callable[[Future[None]], object] | None = None,
) -> None:
    """Compute a dask array into a copy of the store of the Zarr array ``like``, in place of the samples of ``like``.

    The blocks of ``array`` must consist of whole chunks, as the blocks of `lazily` do. The copy gets the name
    ``target`` when it is complete. ``workers`` is a context such as `cluster.connected` for the computation; it ends
    before an incomplete copy is removed. ``watch`` is called with the future of the computation before the wait for it.

    Raises FileExistsError unless ``overwrite``, ValueError if blocks end inside chunks, which two tasks would then
    write, and OSError if chunks of ``like`` change during the computation.
    """
    for axis, (sizes, chunk) in enumerate(zip(array.chunks, like.shards or like.chunks, strict=True)):
        if any(edge % chunk for edge in accumulate(sizes[:-1])):
            blocks = f"blocks of {sizes} along axis {axis}"
            raise ValueError(f"{blocks} end inside the file's chunks of {chunk}: rechunk to multiples")
    source = str(like.store.root)
    check_unchanged = array_unchanged(source, like.path)
    with copied(source, like.path, like, Path(target), overwrite=overwrite) as out:
        with workers as client:
            future = client.compute(array.store(Stored(out), lock=False, compute=False))
            if watch is not None:
                watch(future)
            future.result()
        check_unchanged()
