"""HDF5 through h5py (extra `formats`): one dataset is denoised, everything else in the file is kept as it is."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from wavefilt.arrays import Array
from wavefilt.errors import FormatError, reason
from wavefilt.io.base import Contents, Headers, Layout, Probe, equal_lengths, known_interval
from wavefilt.io.chunked import ChunkedArray, chosen, notes
from wavefilt.io.npy import written
from wavefilt.io.sources import FileSource, StreamedFormat

if TYPE_CHECKING:
    import h5py

INTERVAL = "sampling_interval"
"""Attribute of a dataset: seconds."""


class Hdf5File(FileSource):
    """A `Source` of a dataset. Raises FormatError for a damaged file, and a dataset that cannot be denoised."""

    def __init__(self, file: str | BinaryIO, layout: Layout) -> None:
        layout.only("hdf5", "dt", "axis", "component")
        self._axis = layout.axis
        self._hdf5 = _opened(file, "r")
        try:
            self._dataset, self._array = _found(self._hdf5, layout)
            self.attributes = _attributes(self._array.array)
        except BaseException:
            self._hdf5.close()
            raise
        interval = self.attributes.get(INTERVAL)
        interval = float(interval) if isinstance(interval, float) and 0 < interval < float("inf") else None
        super().__init__(file, "hdf5", layout.dt or interval)
        array = self._array
        self.shape, self.dtype, self.notes = array.shape, array.dtype, notes(array.dtype)
        self.neighbours, self.overhead = array.neighbours, array.overhead

    def read(self, rows: slice, first: int, out: Array) -> None:
        try:
            self._array.read(rows, first, out)
        except (OSError, RuntimeError) as error:
            raise OSError(f"{self.name}: the file became shorter, or is damaged ({reason(error)})") from error

    @contextmanager
    def rewritten(self, file: BinaryIO) -> Iterator[ChunkedArray]:
        self._file.seek(0)
        shutil.copyfileobj(self._file, file, 1 << 20)
        file.flush()
        with _opened(file if isinstance(file, io.BytesIO) else file.name, "r+") as copy:
            yield _rewritten(copy, self._dataset, self._axis)

    def close(self) -> None:
        self._hdf5.close()
        self._file.close()


class Hdf5(StreamedFormat):
    name, label, endings, datasets, seismic = "hdf5", "HDF5", (".h5", ".hdf5"), True, False
    keeps = f"samples, as dataset `traces`, and the sampling interval in seconds, as its attribute `{INTERVAL}`"

    def recognise(self, probe: Probe) -> bool:
        return probe.head.startswith(b"\x89HDF\r\n\x1a\n")

    def open(self, file: str | BinaryIO, layout: Layout) -> Hdf5File:
        return Hdf5File(file, layout)

    def convert(self, contents: Contents) -> bytes:
        samples, intervals, out = equal_lengths(contents, "HDF5"), set(contents.intervals), io.BytesIO()
        with _opened(out, "w") as file:
            dataset = file.create_dataset("traces", data=samples)
            if len(intervals) == 1 and None not in intervals:
                dataset.attrs[INTERVAL] = known_interval(contents, "HDF5")
        return out.getvalue()

    def headers(self, contents: Contents) -> Headers:
        """Return the attributes of the dataset."""
        return Headers(contents.origin.attributes)


def _attributes(dataset: h5py.Dataset) -> dict[str, object]:
    """Return the attributes that h5py can read."""
    found: dict[str, object] = {}
    for name in dataset.attrs:
        try:
            found[name] = dataset.attrs[name]
        except (OSError, TypeError, RuntimeError):
            continue
    return found


def _opened(file: str | BinaryIO, mode: str) -> h5py.File:
    try:
        import h5py
    except ImportError as error:
        raise FormatError(f'HDF5 needs h5py ({error}): pip install "wavefilt[formats]"') from error
    try:
        return h5py.File(file, mode)
    except (OSError, RuntimeError, ValueError) as error:
        raise FormatError(f"damaged or truncated HDF5 file ({reason(error)})") from error


def _found(file: h5py.File, layout: Layout) -> tuple[str, ChunkedArray]:
    """Return name and samples of the dataset asked for, or of the only one. Raises FormatError if there is none."""
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
        raise FormatError(f"damaged or truncated HDF5 file ({reason(error)})") from error


def _rewritten(file: h5py.File, name: str, axis: int | None) -> ChunkedArray:
    """Return the dataset for denoised samples; one of integers is replaced by one of floats, otherwise like it."""
    import h5py

    old = file[name]
    dtype = written(old.dtype)
    if dtype == old.dtype:
        return ChunkedArray(old, axis, old.chunks)
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
    return ChunkedArray(new, axis, new.chunks)
