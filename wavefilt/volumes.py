"""Zarr arrays as dask arrays, and back: chunk by chunk, never whole in memory."""

from __future__ import annotations

from itertools import accumulate
from math import ceil, prod
from pathlib import Path
from typing import Any

from wavefilt.io.zarr import copied

BLOCK = 128 << 20
"""Bytes of a block that is read at a time, or of one chunk of the file where that has more."""


def lazily(volume: Any, axis: int = -1, limit: int = BLOCK) -> Any:
    """A zarr array as a dask array, in blocks of whole chunks: whole traces where a chunk of traces has ``limit`` bytes
    or fewer, else so much of them. Raises ValueError for an axis out of range."""
    import dask.array as da

    if not -volume.ndim <= axis < volume.ndim:
        raise ValueError(f"axis={axis} is out of range for an array of {volume.ndim} dimensions")
    axis %= volume.ndim
    chunks = list(volume.shards or volume.chunks)
    one = prod(chunks) * volume.dtype.itemsize
    chunks[axis] *= min(max(limit // one, 1), ceil(volume.shape[axis] / chunks[axis]))
    return da.from_array(volume, chunks=tuple(chunks), name=False, lock=False)


def save(array: Any, target: str | Path, like: Any, overwrite: bool = False) -> None:
    """Compute a dask array into a copy of the store of ``like``, a zarr array, whose samples it has in their place.

    Its blocks must be of whole chunks, as those of `lazily` are. It takes the name ``target`` once all of it is there.
    Raises FileExistsError unless ``overwrite``, ValueError for blocks that end inside chunks: two of them would write
    the same chunk.
    """
    for axis, (sizes, chunk) in enumerate(zip(array.chunks, like.shards or like.chunks, strict=True)):
        if any(edge % chunk for edge in accumulate(sizes[:-1])):
            raise ValueError(
                f"blocks of {sizes} along axis {axis} end inside the file's chunks of {chunk}: rechunk to multiples"
            )
    with copied(str(like.store.root), like.path, like, Path(target), overwrite=overwrite) as out:
        array.store(out, lock=False)
