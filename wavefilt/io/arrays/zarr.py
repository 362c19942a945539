"""Zarr arrays (extra `formats`): one array of a store is denoised, everything else in the store is kept as it is."""

from __future__ import annotations

import os
import secrets
import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError
from wavefilt.io.arrays.grid import Grid, chosen
from wavefilt.io.arrays.hdf5 import notes
from wavefilt.io.layout import Layout
from wavefilt.io.paths import check_alone
from wavefilt.io.sources import Target
from wavefilt.recording import Recording

from . import npy

METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
TRIES, PAUSE = 20, 0.1
"""A folder that others still write to is removed so often at most, with so many seconds in between."""


class Store:
    """A `wavefilt.io.sources.Source`. Raises FormatError for a folder that is no Zarr, or has no such array."""

    format = "zarr"

    def __init__(self, path: str, layout: Layout) -> None:
        layout.only("zarr", "dt", "axis", "component")
        self._path, self._axis, self.interval = path, layout.axis, layout.dt
        self._name, self._array = opened(path, layout.component)
        grid = self._grid = _grid(self._array, layout.axis)
        self.shape, self.dtype, self.neighbours, self.overhead = grid.shape, grid.dtype, grid.neighbours, grid.overhead
        self.notes = notes(grid.dtype)
        self.check_unchanged = Unchanged(path, self._name).check

    def read(self, rows: slice, first: int, out: NDArray[Any]) -> None:
        with reading(self._path):
            self._grid.read(rows, first, out)

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        with copied(self._path, self._name, self._array, path, overwrite=overwrite) as array:
            yield _grid(array, self._axis)

    def close(self) -> None:
        """Nothing is held."""


class Unchanged:
    """Files of an array, their bytes, and when the last of them was written: a chunk that goes reads as empty."""

    def __init__(self, path: str, name: str) -> None:
        self._path, self._name = path, name
        self._state = self._stat()

    def check(self) -> None:
        """Raise OSError if chunks were written, or went."""
        if self._stat() != self._state:
            raise OSError(f"{self._path}: chunks were changed while they were read")

    def _stat(self) -> tuple[int, int, int]:
        count = size = last = 0
        for folder, _, files in os.walk(os.path.join(self._path, self._name)):
            for file in files:
                found = os.stat(os.path.join(folder, file))
                count, size, last = count + 1, size + found.st_size, max(last, found.st_mtime_ns)
        return count, size, last


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Whatever goes wrong with chunks of a store is raised as an OSError that names it."""
    try:
        yield
    except Exception as error:  # codecs raise anything on a damaged chunk
        raise OSError(f"{path}: a chunk became shorter, or is damaged ({error})") from error


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise FormatError(f'Zarr needs zarr ({error}): pip install "wavefilt[formats]"') from error
    return zarr


def opened(path: str | Path, component: str | None = None) -> tuple[str, Any]:
    """Name (empty where the folder is the array) and zarr array at a path, or of this name in the group there.

    Raises FormatError where there is none, naming what there is.
    """
    zarr = _zarr()
    if not os.path.isdir(path):
        raise FormatError(f"{path}: no zarr array: there is no such folder")
    try:
        node = zarr.open(str(path), mode="r")
    except Exception as error:  # what zarr raises for a damaged or foreign folder changes between its versions
        raise FormatError(f"{path}: is a folder and not a zarr array or group ({error})") from error
    if isinstance(node, zarr.Array):
        if component is not None:
            raise FormatError(f"{path}: an array, not a group: there is no array {component!r} in it")
        return "", node
    if component is not None and isinstance(node.get(component.strip("/")), zarr.Array):
        return component.strip("/"), node[component.strip("/")]
    found = sorted(name for name, array in node.members(max_depth=None)
                   if isinstance(array, zarr.Array) and array.ndim and array.dtype.kind in "iufc")  # fmt: skip
    name = chosen(component, found, f"{path}: a zarr group")
    return name, node[name]


def _grid(array: Any, axis: int | None) -> Grid:
    return Grid(array, axis, array.shards or array.chunks)


@contextmanager
def copied(source: str | Path, name: str, array: Any, target: Path, *, overwrite: bool) -> Iterator[Any]:
    """A copy of a store whose array of this name is yet without samples: what is yielded, to be filled.

    It takes the place of ``target`` when left without an error, and else goes. Chunks, shards, compressors and
    attributes are kept; integers become floats. Raises FileExistsError for what is not to be replaced, ValueError where
    one folder would lie in the other.
    """
    target = Path(os.path.realpath(target))
    check_folder(Path(source), target, overwrite=overwrite)
    partly = target.parent / f".wavefilt-{secrets.token_hex(6)}.tmp"
    own = os.path.join(os.path.abspath(source), name).rstrip("/")

    def chunks(folder: str, names: list[str]) -> list[str]:
        beside = (os.path.abspath(folder) + "/").startswith(own + "/")
        return [n for n in names if n not in METADATA] if beside else []

    try:
        shutil.copytree(source, partly, ignore=chunks)
        yield _emptied(partly, name, array)
        _put(partly, target)
    finally:
        _remove(partly)


def check_folder(source: Path, target: Path, *, overwrite: bool) -> None:
    """Raise an OSError or ValueError if `copied` would refuse these."""
    check_alone(target)
    a, b = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if a == b or a in b.parents or b in a.parents:
        raise ValueError(f"{target} is the input, or lies in it, or around it; choose another output")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist")
    if os.path.lexists(target):
        if not overwrite:
            raise FileExistsError(f"{target} exists; use --overwrite (overwrite=True) to replace it")
        if not is_store(target):
            raise FileExistsError(f"{target} is no zarr store, and is not replaced by one")


def is_store(path: str | Path) -> bool:
    """Whether a folder is a Zarr array or group, by its metadata."""
    return any(os.path.isfile(os.path.join(path, name)) for name in METADATA[:3])


def _emptied(store: Path, name: str, like: Any) -> Any:
    """The array without chunks in a copy of its store; integers as floats."""
    zarr = _zarr()
    dtype = npy.written(np.dtype(like.dtype))
    if dtype == like.dtype:
        return zarr.open_array(str(store), path=name, mode="r+")
    form = like.metadata.zarr_format
    if form == 2:
        separator = like.metadata.dimension_separator
        more = {"order": like.order, "chunk_key_encoding": {"name": "v2", "separator": separator}}
    else:
        more = {"dimension_names": like.metadata.dimension_names}
    array = zarr.create_array(str(store), name=name or None, shape=like.shape, dtype=dtype, chunks=like.chunks,
                              shards=like.shards, compressors=like.compressors, fill_value=like.fill_value,
                              attributes=dict(like.attrs), zarr_format=form, overwrite=True, **more)  # fmt: skip
    if name and zarr.open_group(str(store), mode="r").metadata.consolidated_metadata is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that other implementations may not know what was there before
            zarr.consolidate_metadata(str(store))
    return array


def _put(folder: Path, target: Path) -> None:
    """Give a folder its name; one that has it already is moved away first, and comes back if that fails."""
    if not target.exists():
        folder.rename(target)
        return
    old = folder.with_suffix(".old")
    target.rename(old)
    try:
        folder.rename(target)
    except BaseException:
        old.rename(target)
        raise
    with suppress(OSError):
        shutil.rmtree(old)


def _remove(folder: Path) -> None:
    """Remove a folder, if it is there, in which the last files of others may yet appear."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(PAUSE)


def load(path: str, layout: Layout) -> Recording:
    """The array's samples as traces along ``layout.axis``, the last by default."""
    source = Store(path, layout)
    traces = np.empty(source.shape, source.dtype)
    source.read(slice(0, len(traces)), 0, traces)
    return Recording(traces, (layout.dt,) * len(traces), "zarr", source, notes=source.notes)


def save(recording: Recording, path: Path, *, overwrite: bool) -> None:
    """A store like the one it was read from, which must still be as it was, with new samples."""
    source: Store = recording.origin
    samples = recording.samples
    with source.create(path, overwrite=overwrite) as out:
        out.write(slice(0, len(samples)), 0, samples)
        source.check_unchanged()
