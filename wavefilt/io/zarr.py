"""Zarr arrays (extra `formats`): one array of a store is denoised, everything else in the store is kept as it is."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from wavefilt.arrays import Array
from wavefilt.errors import FormatError, OutputExists, reason
from wavefilt.io.atomic import temporary
from wavefilt.io.base import Contents, Format, Headers, Layout, refuse_dataset
from wavefilt.io.chunked import ChunkedArray, chosen, notes
from wavefilt.io.npy import written
from wavefilt.io.sources import Source, Target

if TYPE_CHECKING:
    import zarr

METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


class Store(Source):
    """A source of an array. Raises FormatError for a folder that is no Zarr store, or has no such array."""

    format = "zarr"

    def __init__(self, path: str, layout: Layout) -> None:
        layout.only("zarr", "dt", "axis", "component")
        self.name, self._axis, self.interval = path, layout.axis, layout.dt
        self._component, self.array = opened(path, layout.component)
        traces = self._traces = _traces(self.array, layout.axis)
        self.shape, self.dtype, self.notes = traces.shape, traces.dtype, notes(traces.dtype)
        self.neighbours, self.overhead = traces.neighbours, traces.overhead
        self._check = array_unchanged(path, self._component)

    def check_unchanged(self) -> None:
        self._check()

    def read(self, rows: slice, first: int, out: Array) -> None:
        with reading(self.name):
            self._traces.read(rows, first, out)

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        with copied(self.name, self._component, self.array, path, overwrite=overwrite) as array:
            yield _traces(array, self._axis)


class Zarr(Format):
    """A format whose "files" are folders: they are read and written through `Store` alone."""

    name, endings, datasets, folder, streamed, seismic = "zarr", (".zarr",), True, True, True, False

    def recognise_folder(self, path: str) -> bool:
        return is_zarr(path)

    def open(self, file: str | BinaryIO, layout: Layout) -> Store:
        return Store(str(file), layout)

    def write(self, contents: Contents) -> bytes:
        raise FormatError("a Zarr store is a folder of many files: give a folder name for the result")

    def headers(self, contents: Contents) -> Headers:
        """Return the attributes of the array."""
        return Headers(dict(contents.origin.array.attrs))


def is_zarr(path: str | Path) -> bool:
    """Return whether a folder is a Zarr array or group, by its metadata."""
    return any(os.path.isfile(os.path.join(path, name)) for name in ("zarr.json", ".zarray", ".zgroup"))


def array_unchanged(path: str, name: str) -> Callable[[], None]:
    """Return a function that raises OSError if chunks of an array were written, or removed and so read as empty."""

    def state() -> tuple[int, int, int]:
        count = size = last = 0
        for folder, _, files in os.walk(os.path.join(path, name)):
            for file in files:
                status = os.stat(os.path.join(folder, file))
                count, size, last = count + 1, size + status.st_size, max(last, status.st_mtime_ns)
        return count, size, last

    before = state()

    def check() -> None:
        if state() != before:
            raise OSError(f"{path}: chunks were changed while they were read")

    return check


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise any error about chunks of a store as an OSError that names the store."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # codecs raise anything on a damaged chunk
        raise OSError(f"{path}: a chunk became shorter, or is damaged ({reason(error)})") from error


def _zarr() -> ModuleType:
    try:
        return import_module("zarr")
    except ImportError as error:
        raise FormatError(f'Zarr needs zarr ({error}): pip install "wavefilt[formats]"') from error


def opened(path: str | Path, component: str | None = None) -> tuple[str, zarr.Array]:
    """Return name (empty if the folder is the array) and zarr array at a path, or of this name in the group there.

    Raises FormatError, with the names of all arrays, if there is none.
    """
    zarr = _zarr()
    if not os.path.isdir(path):
        raise FormatError(f"{path}: no zarr array: there is no such folder")
    try:
        node = zarr.open(str(path), mode="r")
    except MemoryError:
        raise
    except Exception as error:  # the errors of zarr for a damaged or foreign folder change between its versions
        raise FormatError(f"{path}: is a folder and not a zarr array or group ({reason(error)})") from error
    if isinstance(node, zarr.Array):
        if component is not None:
            raise FormatError(f"{path}: an array, not a group: there is no array {component!r} in it")
        return "", node
    asked = (component or "").strip("/")
    if asked and ".." not in asked.split("/") and isinstance(node.get(asked), zarr.Array):
        return asked, node[asked]
    arrays = [(name, member) for name, member in node.members(max_depth=None) if isinstance(member, zarr.Array)]
    names = sorted(name for name, array in arrays if array.ndim and array.dtype.kind in "iufc")
    name = chosen(component, names, f"{path}: a zarr group")
    return name, node[name]


def _traces(array: zarr.Array, axis: int | None) -> ChunkedArray:
    return ChunkedArray(array, axis, array.shards or array.chunks)


@contextmanager
def copied(source: str | Path, name: str, array: zarr.Array, target: Path, *, overwrite: bool) -> Iterator[zarr.Array]:
    """Copy a store and yield its array of this name, without samples yet, to be filled.

    The copy replaces ``target`` on a normal exit and is removed on an error. Chunks, shards, compressors and
    attributes are kept; integers become floats. Raises FileExistsError for a target that is not to be replaced,
    ValueError if one folder would lie in the other.
    """
    target = Path(os.path.realpath(target))
    check_folder(Path(source), target, overwrite=overwrite)
    inside = os.path.join(os.path.abspath(source), name).rstrip("/") + "/"

    def chunks(folder: str, names: list[str]) -> list[str]:
        within = (os.path.abspath(folder) + "/").startswith(inside)
        return [n for n in names if n not in METADATA] if within else []

    with temporary(target) as new, temporary(target) as old:
        shutil.copytree(source, new, ignore=chunks)
        yield _emptied(new, name, array)
        check_folder(Path(source), target, overwrite=overwrite)
        try:
            if os.path.lexists(target):
                os.rename(target, old)
            os.rename(new, target)
        except BaseException:
            if os.path.lexists(old) and not os.path.lexists(target):  # the new store did not get there
                os.rename(old, target)
            raise


def check_folder(source: Path, target: Path, *, overwrite: bool) -> None:
    """Raise an OSError or ValueError if `copied` would refuse these folders."""
    refuse_dataset(target)
    a, b = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if a == b or a in b.parents or b in a.parents:
        raise ValueError(f"{target} is the input, or lies in it, or around it; choose another output")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist")
    if os.path.lexists(target):
        if not overwrite:
            raise OutputExists(target)
        if not is_zarr(target):
            raise FileExistsError(f"{target} is no zarr store, and is not replaced by one")


def _emptied(store: Path, name: str, like: zarr.Array) -> zarr.Array:
    """Return the array without chunks in a copy of its store; integers become floats."""
    zarr = _zarr()
    dtype = written(np.dtype(like.dtype))
    if dtype == like.dtype:
        return zarr.open_array(str(store), path=name, mode="r+")
    form = like.metadata.zarr_format
    if form == 2:
        separator = like.metadata.dimension_separator
        more: dict[str, object] = {"order": like.order, "chunk_key_encoding": {"name": "v2", "separator": separator}}
    else:
        more = {"dimension_names": like.metadata.dimension_names}
    more |= {"shape": like.shape, "chunks": like.chunks, "shards": like.shards, "compressors": like.compressors}
    more |= {"fill_value": like.fill_value, "attributes": dict(like.attrs), "zarr_format": form}
    array = zarr.create_array(str(store), name=name or None, dtype=dtype, overwrite=True, **more)
    if name and zarr.open_group(str(store), mode="r").metadata.consolidated_metadata is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about other implementations that may not know consolidated metadata
            zarr.consolidate_metadata(str(store))
    return array
