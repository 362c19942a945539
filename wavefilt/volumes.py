"""Zarr arrays as dask arrays, and back: chunk by chunk, never whole in memory."""

from __future__ import annotations

import os
import shutil
from math import ceil, prod
from pathlib import Path
from typing import Any

from wavefilt.errors import FormatError

BLOCK = 128 << 20
"""Bytes of a block that is read at a time, or of one chunk of the file where that has more."""


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise ImportError(f'volumes need zarr ({error}): pip install "wavefilt[dask]"') from error
    return zarr


def opened(path: str | Path, component: str | None = None) -> Any:
    """The zarr array at a path, or the array of this name in the group there.

    Raises FormatError where there is none, naming what there is.
    """
    zarr = _zarr()
    if not Path(path).is_dir():
        raise FormatError(f"{path}: no zarr array: there is no such folder")
    try:
        node = zarr.open(str(path), mode="r")
    except Exception as error:  # what zarr raises for a damaged or foreign folder changes between its versions
        raise FormatError(f"{path}: not a zarr array ({error})") from error
    if component is not None:
        if hasattr(node, "chunks") or component not in node:
            raise FormatError(f"{path}: there is no array {component!r}")
        node = node[component]
    if not hasattr(node, "chunks"):
        names = ", ".join(sorted(name for name, _ in node.arrays())) or "none"
        raise FormatError(f"{path}: a group; name one of its arrays: {names}")
    return node


def lazily(volume: Any, axis: int = -1, limit: int = BLOCK) -> Any:
    """A zarr array as a dask array, in blocks of whole chunks: whole traces where a chunk of traces has ``limit`` bytes
    or fewer, else so much of them. Raises ValueError for an axis out of range."""
    import dask.array as da

    if not -volume.ndim <= axis < volume.ndim:
        raise ValueError(f"axis={axis} is out of range for an array of {volume.ndim} dimensions")
    axis %= volume.ndim
    chunks = list(volume.chunks)
    one = prod(chunks) * volume.dtype.itemsize
    chunks[axis] *= min(max(limit // one, 1), ceil(volume.shape[axis] / chunks[axis]))
    return da.from_array(volume, chunks=tuple(chunks), name=False, lock=False)


def save(array: Any, target: str | Path, like: Any, overwrite: bool = False) -> None:
    """Compute a dask array into a new zarr array with the chunks and attributes of ``like``.

    Its blocks must be of whole chunks, as those of `lazily` are. It takes the name ``target`` once all of it is there.
    Raises FileExistsError unless ``overwrite``.
    """
    target = Path(target)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists")
    partly = target.with_name(f"{target.name}.{os.getpid()}.partial")
    metadata = like.metadata
    form = getattr(metadata, "zarr_format", 2)
    named = {"dimension_names": metadata.dimension_names} if form == 3 and metadata.dimension_names else {}
    try:
        out = _zarr().open_array(str(partly), mode="w-", shape=array.shape, dtype=array.dtype, zarr_format=form,
                                 chunks=tuple(like.chunks), **named)  # fmt: skip
        out.attrs.update(dict(like.attrs))
        array.store(out, lock=False)
        if target.exists():
            shutil.rmtree(target)
        partly.rename(target)
    finally:
        shutil.rmtree(partly, ignore_errors=True)
