"""Zarr arrays as dask arrays, and back: chunk by chunk, never whole in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wavefilt.arrays import Array
from wavefilt.io.zarr import array_unchanged, copied, reading

if TYPE_CHECKING:
    import dask.array as da
    import zarr
    from distributed import Future

Place: TypeAlias = tuple[slice, ...]

BLOCK = 128 << 20
"""Bytes of a block that is read at a time, or of one chunk of the file where that has more."""


class Stored:
    """A zarr array as tasks read and write it, wherever they run: where its store is not, that is an OSError.

    Zarr itself reads what is not there as empty chunks, and makes the folders that it writes to.
    """

    def __init__(self, array: zarr.Array) -> None:
        import zarr

        self._path = str(array.store.root)
        self._folder = os.path.abspath(self._path)  # workers have folders of their own
        self._array = zarr.open_array(self._folder, path=array.path, mode="r" if array.read_only else "r+")
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, array.dtype

    def __getitem__(self, place: Place) -> Array:
        self._check_there()
        with reading(self._path):
            found: Array = self._array[place]
            return found

    def __setitem__(self, place: Place, values: Array) -> None:
        self._check_there()
        self._array[place] = values

    def _check_there(self) -> None:
        if not os.path.isdir(self._folder):
            raise FileNotFoundError(f"{self._path}: there is no folder {self._folder} where a worker runs")


def lazily(volume: zarr.Array, axis: int = -1, limit: int = BLOCK) -> da.Array:
    """A zarr array as a dask array, in blocks of whole chunks: whole traces where a chunk of traces has ``limit`` bytes
    or fewer, else so much of them. Raises ValueError for an axis out of range."""
    import dask.array as da

    if not -volume.ndim <= axis < volume.ndim:
        raise ValueError(f"axis={axis} is out of range for an array of {volume.ndim} dimensions")
    axis %= volume.ndim
    chunks = list(volume.shards or volume.chunks)
    one = prod(chunks) * volume.dtype.itemsize
    chunks[axis] *= min(max(limit // one, 1), ceil(volume.shape[axis] / chunks[axis]))
    return da.from_array(Stored(volume), chunks=tuple(chunks), name=False, lock=False)


def save(
    array: da.Array,
    target: str | Path,
    like: zarr.Array,
    overwrite: bool = False,
    workers: AbstractContextManager[Any] | None = None,
    watch: Callable[[Future[None]], object] | None = None,
) -> None:
    """Compute a dask array into a copy of the store of ``like``, a zarr array, whose samples it has in their place.

    Its blocks must be of whole chunks, as those of `lazily` are. It takes the name ``target`` once all of it is there.
    ``workers`` is a context to compute it in, such as `cluster.connected`: left before a copy that failed is removed.
    ``watch`` is called with the future of that, before it is waited for.
    Raises FileExistsError unless ``overwrite``, ValueError for blocks that end inside chunks: two of them would write
    the same chunk, OSError if chunks of ``like`` are changed meanwhile.
    """
    for axis, (sizes, chunk) in enumerate(zip(array.chunks, like.shards or like.chunks, strict=True)):
        if any(edge % chunk for edge in accumulate(sizes[:-1])):
            raise ValueError(
                f"blocks of {sizes} along axis {axis} end inside the file's chunks of {chunk}: rechunk to multiples"
            )
    source = str(like.store.root)
    check_unchanged = array_unchanged(source, like.path)
    with copied(source, like.path, like, Path(target), overwrite=overwrite) as out:
        with workers or nullcontext() as client:
            if client is None or watch is None:
                array.store(Stored(out), lock=False)
            else:
                future = client.compute(array.store(Stored(out), lock=False, compute=False))
                watch(future)
                future.result()
        check_unchanged()
