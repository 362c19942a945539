"""HDF5 through h5py (extra `formats`): one dataset is denoised, everything else in the file is kept as it is."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.arrays.chunked import ChunkedArray, chosen
from wavefilt.io.dataset_paths import refuse_dataset
from wavefilt.io.file_source import FileSource
from wavefilt.io.layout import Layout

from . import npy

if TYPE_CHECKING:
    import h5py

    from wavefilt.io.sources import Target


class Hdf5File(FileSource):
    """A `wavefilt.io.sources.Source`. Raises FormatError for a damaged file, and a dataset that cannot be denoised."""

    def __init__(self, file: str | BinaryIO, layout: Layout, format: str = "hdf5") -> None:
        layout.only("hdf5", "dt", "axis", "component")
        self._axis = layout.axis
        self._hdf5 = _opened(file, "r")
        try:
            self._dataset, self._array = _found(self._hdf5, layout)
        except BaseException:
            self._hdf5.close()
            raise
        super().__init__(file, "hdf5", layout.dt)
        array = self._array
        self.shape, self.dtype, self.notes = array.shape, array.dtype, notes(array.dtype)
        self.neighbours, self.overhead = array.neighbours, array.overhead

    def read(self, rows: slice, first: int, out: Array) -> None:
        try:
            self._array.read(rows, first, out)
        except (OSError, RuntimeError) as error:
            raise OSError(f"{self._name}: the file became shorter, or is damaged ({error})") from error

    @contextmanager
    def rewritten(self, file: BinaryIO) -> Iterator[ChunkedArray]:
        self._file.seek(0)
        shutil.copyfileobj(self._file, file, 1 << 20)
        file.flush()
        with _opened(file if isinstance(file, io.BytesIO) else file.name, "r+") as copy:
            yield _rewritten(copy, self._dataset, self._axis)

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        refuse_dataset(path)
        with super().create(path, overwrite=overwrite) as target:
            yield target

    def close(self) -> None:
        self._hdf5.close()
        self._file.close()


def notes(dtype: DType) -> tuple[str, ...]:
    """What a user should know about an array of this dtype in HDF5 or Zarr."""
    return (f"integer samples are written as {npy.written(dtype)}",) if dtype.kind in "iu" else ()


def _opened(file: str | BinaryIO, mode: str) -> h5py.File:
    try:
        import h5py
    except ImportError as error:
        raise FormatError(f'HDF5 needs h5py ({error}): pip install "wavefilt[formats]"') from error
    try:
        return h5py.File(file, mode)
    except (OSError, RuntimeError, ValueError) as error:
        raise FormatError(f"damaged or truncated HDF5 file ({error})") from error


def _found(file: h5py.File, layout: Layout) -> tuple[str, ChunkedArray]:
    """The name and samples of the dataset asked for, or the only one. Raises FormatError where there is none."""
    import h5py

    names: list[str] = []

    def note(name: str, node: h5py.Dataset | h5py.Group) -> None:
        if isinstance(node, h5py.Dataset) and node.ndim and node.dtype.kind in "iufc":
            names.append(name)

    asked = (layout.component or "").strip("/")
    try:
        if not asked or not isinstance(file.get(asked), h5py.Dataset):
            file.visititems(note)
            asked = chosen(layout.component, names, "an HDF5 file")
        dataset = file[asked]
        if dataset.is_virtual or dataset.external or dataset.file != file:
            raise FormatError(f"the samples of {asked} are stored in other files; copy the dataset into this one first")
        return asked, ChunkedArray(dataset, layout.axis, dataset.chunks)
    except (OSError, RuntimeError, KeyError) as error:
        raise FormatError(f"damaged or truncated HDF5 file ({error})") from error


def _rewritten(file: h5py.File, name: str, axis: int | None) -> ChunkedArray:
    """The dataset, for denoised samples; one of integers is replaced by one of floats that is like it otherwise."""
    old = file[name]
    dtype = npy.written(old.dtype)
    if dtype != old.dtype:
        new = file.create_dataset_like(None, old, dtype=dtype, scaleoffset=None)
        for key in old.attrs:
            if key not in ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME"):
                new.attrs.create(key, old.attrs[key], dtype=old.attrs.get_id(key).dtype)
        for before, after in zip(old.dims, new.dims, strict=True):
            for scale in before.values():
                after.attach_scale(scale)
                before.detach_scale(scale)
        for link in _hard_links(file, name):
            del file[link]
            file[link] = new
        old = new
    return ChunkedArray(old, axis, old.chunks)


def _hard_links(file: h5py.File, name: str) -> list[str]:
    """Every name that the dataset of this name has, except soft links, which follow."""
    import h5py

    dataset, found = file[name], []

    def note(other: str, link: h5py.HardLink | h5py.SoftLink | h5py.ExternalLink) -> None:
        if isinstance(link, h5py.HardLink) and file[other] == dataset:
            found.append(other)

    if h5py.h5o.get_info(dataset.id).rc == 1 and isinstance(file.get(name, getlink=True), h5py.HardLink):
        return [name]  # a file of many groups takes long to search
    file.visititems_links(note)
    return found


open_source = Hdf5File
