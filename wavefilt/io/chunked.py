"""HDF5 through h5py and Zarr (extra `formats`): one array is denoised, everything else in the file or store is kept.

The traces of an array of any number of axes, chunked or not, lie along one axis.
"""

from __future__ import annotations

import io
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from itertools import pairwise, product
from math import inf, prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from wavefilt.arrays import Array
from wavefilt.errors import DamagedSamples, FormatError, OutputExists
from wavefilt.io.atomic import temporary
from wavefilt.io.base import Contents, Format, Headers, Layout, refuse_dataset, refused
from wavefilt.io.npy import chosen, sample_axis, written
from wavefilt.io.sources import Source, StreamedFormat, Target

if TYPE_CHECKING:
    import h5py
    import zarr

BLOCK = 1 << 20
"""Bytes read or written at a time; one chunk if it is larger."""
COPIES = 13
"""Copies of a block in memory at once: encoded, decoded and assembled, by a reader and by a writer that reads first,
and memory that the threads of Zarr have freed but not returned to the system (`tests/outofcore/test_memory.py`)."""

INTERVAL = "sampling_interval"
"""Attribute of a dataset: seconds."""
METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


class ChunkedArray:
    """Samples of an array of h5py or zarr; traces are numbered in C order of all axes except the axis of samples."""

    name = ""
    """The name of the file or store, for errors."""

    def __init__(self, array: h5py.Dataset | zarr.Array, axis: int | None) -> None:
        """Raise FormatError for an array without samples, or of other things than numbers."""
        self.array, self.dtype = array, np.dtype(array.dtype)
        self._axis = sample_axis(array.shape, self.dtype, axis)
        note = f"integer samples are written as {written(self.dtype)}"
        self.notes: tuple[str, ...] = (note,) if self.dtype.kind in "iu" else ()
        chunks = getattr(array, "shards", None) or array.chunks  # the unit of decoding, None without chunks
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
        with refused(f"{self.name}: a part of the array is missing or damaged", DamagedSamples):
            for place, part in self._blocks(rows, first, out):
                part[:] = np.moveaxis(self.array[place], self._axis, -1)

    def write(self, rows: slice, first: int, values: Array) -> None:
        for place, part in self._blocks(rows, first, values):
            self.array[place] = np.moveaxis(part, -1, self._axis).astype(self.array.dtype, copy=False)

    def _blocks(self, rows: slice, first: int, samples: Array) -> Iterator[tuple[tuple[slice, ...], Array]]:
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


def boxes(first: int, last: int, shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
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


def _package(name: str) -> ModuleType:
    """Import a package of the extra. Raises FormatError if it is not installed."""
    with refused(f'{name} is needed: pip install "wavefilt[formats]"'):
        return import_module(name)


# ---------------------------------------------------------------------------------------------------------- HDF5


class Hdf5File(ChunkedArray, Source):
    """A `Source` of a dataset. Raises FormatError for a damaged file, and a dataset that cannot be denoised."""

    def __init__(self, file: BinaryIO, layout: Layout) -> None:
        layout.only("hdf5", "dt", "axis", "component")
        self._layout = layout
        with ExitStack() as stack, refused("damaged or truncated HDF5 file"):
            self._hdf5 = stack.enter_context(_opened(file, "r"))
            self._dataset, dataset = _found(self._hdf5, layout)
            ChunkedArray.__init__(self, dataset, layout.axis)
            self.attributes: dict[str, Any] = {}
            for name in dataset.attrs:
                with suppress(OSError, TypeError, RuntimeError):  # of a type that h5py cannot read
                    self.attributes[name] = dataset.attrs[name]
            stack.pop_all()
        interval = self.attributes.get(INTERVAL)
        interval = float(interval) if isinstance(interval, float) and 0 < interval < inf else None
        Source.__init__(self, file, "hdf5", layout.dt or interval)

    def __reduce__(self) -> tuple[type[Hdf5File], tuple[BinaryIO, Layout]]:
        return type(self), (self._file, self._layout)

    @contextmanager
    def rewritten(self, file: BinaryIO) -> Iterator[ChunkedArray]:
        self._file.seek(0)
        shutil.copyfileobj(self._file, file, 1 << 20)
        file.flush()
        with _opened(file, "r+") as copy:
            yield ChunkedArray(_rewritten(copy, self._dataset), self._axis)

    def close(self) -> None:
        self._hdf5.close()
        super().close()


class Hdf5(StreamedFormat):
    name, label, endings, datasets, seismic = "hdf5", "HDF5", (".h5", ".hdf5"), True, False
    marks = rb"\x89HDF\r\n\x1a\n"
    keeps = f"samples, as dataset `traces`, and the sampling interval in seconds, as its attribute `{INTERVAL}`"

    def open(self, file: BinaryIO, layout: Layout) -> Hdf5File:
        return Hdf5File(file, layout)

    def convert(self, contents: Contents) -> bytes:
        samples, out = contents.samples, io.BytesIO()
        with _opened(out, "w") as file:
            dataset = file.create_dataset("traces", data=samples)
            if len(set(contents.intervals)) == 1 and contents.interval:
                dataset.attrs[INTERVAL] = contents.interval
        return out.getvalue()

    def headers(self, contents: Contents) -> Headers:
        """Return the attributes of the dataset."""
        return Headers(contents.origin.attributes)


def _opened(file: BinaryIO, mode: str) -> h5py.File:
    return _package("h5py").File(file if isinstance(file, io.BytesIO) else file.name, mode)  # faster by its name


def _found(file: h5py.File, layout: Layout) -> tuple[str, h5py.Dataset]:
    """Return the name asked for, or the only one, and its dataset. Raises FormatError if there is none."""
    import h5py

    names: list[str] = []

    def note(name: str, node: h5py.Dataset | h5py.Group) -> None:
        if isinstance(node, h5py.Dataset) and node.ndim and node.dtype.kind in "iufc":
            names.append(name)

    asked = (layout.component or "").strip("/")
    if not asked or not isinstance(file.get(asked), h5py.Dataset):
        file.visititems(note)
        asked = chosen(layout.component, names, "an HDF5 file")
    dataset = file[asked]
    if dataset.is_virtual or dataset.external or dataset.file != file:
        raise FormatError(f"the samples of {asked} are stored in other files; copy the dataset into this one first")
    return asked, dataset


def _rewritten(file: h5py.File, name: str) -> h5py.Dataset:
    """Return the dataset for denoised samples; one of integers is replaced by one of floats, otherwise like it."""
    import h5py

    old = file[name]
    dtype = written(old.dtype)
    if dtype == old.dtype:
        return old
    if h5py.h5o.get_info(old.id).rc > 1 or not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise FormatError(f"{name} has other names, which would keep the integers; copy it to a file first")
    new = file.create_dataset_like(None, old, dtype=dtype, scaleoffset=None)
    for key in old.attrs:
        if key not in ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME"):
            new.attrs.create(key, old.attrs[key], dtype=old.attrs.get_id(key).dtype)
    for before, after in zip(old.dims, new.dims, strict=True):
        for scale in before.values():
            after.attach_scale(scale)
            before.detach_scale(scale)
    del file[name]
    file[name] = new
    return new


# ---------------------------------------------------------------------------------------------------------- Zarr


class Store(ChunkedArray, Source):
    """A source of an array. Raises FormatError for a folder that is no Zarr store, or has no such array."""

    def __init__(self, path: str, layout: Layout) -> None:
        layout.only("zarr", "dt", "axis", "component")
        self.format, self.name, self.interval = "zarr", path, layout.dt
        self._component, array = _opened_store(path, layout.component)
        super().__init__(array, layout.axis)
        self._before = self._state()

    def _state(self) -> tuple[int, int, int]:
        """Return number, size and last change of the files of the array: chunks that are removed are read as empty."""
        folders = os.walk(os.path.join(self.name, self._component))
        files = [os.stat(os.path.join(folder, file)) for folder, _, names in folders for file in names]
        last = max((status.st_mtime_ns for status in files), default=0)
        return len(files), sum(status.st_size for status in files), last

    def close(self) -> None:
        """Nothing is open."""

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        """Copy the store without the samples, and yield its array to be filled; integers become floats.

        Raises FileExistsError for a folder that is not to be replaced, ValueError if one would lie in the other.
        """
        target = Path(os.path.realpath(path))
        check_folder(Path(self.name), target, overwrite=overwrite)
        inside = os.path.join(os.path.abspath(self.name), self._component).rstrip("/") + "/"

        def chunks(folder: str, names: list[str]) -> list[str]:
            within = (os.path.abspath(folder) + "/").startswith(inside)
            return [n for n in names if n not in METADATA] if within else []

        with temporary(target) as new, temporary(target) as old:
            shutil.copytree(self.name, new, ignore=chunks)
            yield ChunkedArray(_emptied(new, self._component, self.array), self._axis)
            check_folder(Path(self.name), target, overwrite=overwrite)
            try:
                if os.path.lexists(target):
                    os.rename(target, old)
                os.rename(new, target)
            except BaseException:
                if os.path.lexists(old) and not os.path.lexists(target):  # the new store did not get there
                    os.rename(old, target)
                raise


class Zarr(Format):
    """A format whose "files" are folders: they are read and written through `Store` alone."""

    name, endings, datasets, folder, streamed, seismic = "zarr", (".zarr",), True, True, True, False

    def recognise_folder(self, path: str) -> bool:
        return is_zarr(path)

    def open(self, file: str, layout: Layout) -> Store:
        return Store(file, layout)

    def write(self, contents: Contents) -> bytes:
        raise FormatError("a Zarr store is a folder of many files: give a folder name for the result")

    def headers(self, contents: Contents) -> Headers:
        """Return the attributes of the array."""
        return Headers(dict(contents.origin.array.attrs))


def is_zarr(path: str | Path) -> bool:
    """Return whether a folder is a Zarr array or group, by its metadata."""
    return any(os.path.isfile(os.path.join(path, name)) for name in ("zarr.json", ".zarray", ".zgroup"))


def _opened_store(path: str, component: str | None) -> tuple[str, zarr.Array]:
    """Return name (empty if the folder is the array) and zarr array of a folder, or of this name in its group.

    Raises FormatError, with the names of all arrays, if there is none.
    """
    zarr = _package("zarr")
    with refused("is a folder and not a zarr array or group"):
        node = zarr.open(path, mode="r")
    if isinstance(node, zarr.Array):
        if component is not None:
            raise FormatError(f"an array, not a group: there is no array {component!r} in it")
        return "", node
    asked = (component or "").strip("/")
    if asked and ".." not in asked.split("/") and isinstance(node.get(asked), zarr.Array):
        return asked, node[asked]
    arrays = [(name, member) for name, member in node.members(max_depth=None) if isinstance(member, zarr.Array)]
    names = sorted(name for name, array in arrays if array.ndim and array.dtype.kind in "iufc")
    name = chosen(component, names, "a zarr group")
    return name, node[name]


def check_folder(source: Path, target: Path, *, overwrite: bool) -> None:
    """Raise an OSError or ValueError if `Store.create` would refuse these folders."""
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
    zarr = _package("zarr")
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
        # other implementations may not know consolidated metadata
        with warnings.catch_warnings(action="ignore"):
            zarr.consolidate_metadata(str(store))
    return array
