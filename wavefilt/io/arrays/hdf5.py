"""HDF5 through h5py (extra `formats`): one dataset is denoised, everything else in the file is kept as it is."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError
from wavefilt.io import replacing
from wavefilt.io.arrays.grid import Grid, chosen
from wavefilt.io.layout import Layout
from wavefilt.io.paths import check_alone
from wavefilt.io.sources import Target
from wavefilt.io.unchanged import Unchanged
from wavefilt.recording import Recording

from . import npy


@dataclass(frozen=True)
class Origin:
    """The file as it was read, the dataset in it, and the axis of the samples."""

    file: bytes
    name: str
    axis: int | None


class Container:
    """A `wavefilt.io.sources.Source`. Raises FormatError for a damaged file, and a dataset that cannot be denoised."""

    format = "hdf5"

    def __init__(self, path: str, layout: Layout) -> None:
        layout.only("hdf5", "dt", "axis", "component")
        self._path, self._axis, self.interval = path, layout.axis, layout.dt
        self.check_unchanged = Unchanged(path).check
        self._file = _opened(path, "r")
        try:
            self._name, self._grid = _found(self._file, layout)
        except BaseException:
            self._file.close()
            raise
        grid = self._grid
        self.shape, self.dtype, self.neighbours, self.overhead = grid.shape, grid.dtype, grid.neighbours, grid.overhead
        self.notes = notes(grid.dtype)

    def read(self, rows: slice, first: int, out: NDArray[Any]) -> None:
        try:
            self._grid.read(rows, first, out)
        except (OSError, RuntimeError) as error:
            raise OSError(f"{self._path}: the file became shorter, or is damaged ({error})") from error

    @contextmanager
    def create(self, path: Path, *, overwrite: bool) -> Iterator[Target]:
        check_alone(path)
        with replacing(path, overwrite=overwrite) as copy:
            with open(self._path, "rb") as file:
                shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            with _opened(copy.name, "r+") as file:
                yield _rewritten(file, self._name, self._axis)

    def close(self) -> None:
        self._file.close()


def notes(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """What a user should know of an array of this dtype in HDF5 or Zarr."""
    return (f"integer samples are written as {npy.written(dtype)}",) if dtype.kind in "iu" else ()


def _opened(file: Any, mode: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise FormatError(f'HDF5 needs h5py ({error}): pip install "wavefilt[formats]"') from error
    try:
        return h5py.File(file, mode)
    except (OSError, RuntimeError, ValueError) as error:
        raise FormatError(f"damaged or truncated HDF5 file ({error})") from error


def _found(file: Any, layout: Layout) -> tuple[str, Grid]:
    """The name and samples of the dataset asked for, or the only one. Raises FormatError where there is none."""
    import h5py

    names: list[str] = []

    def note(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and node.ndim and node.dtype.kind in "iufc":
            names.append(name)

    asked = (layout.component or "").strip("/")
    try:
        if not asked or not isinstance(file.get(asked), h5py.Dataset):
            file.visititems(note)
            asked = chosen(layout.component, names, "an HDF5 file")
        dataset = file[asked]
        if dataset.is_virtual or dataset.external or dataset.file != file:
            raise FormatError(f"the samples of {asked} lie in other files, which would be changed; copy it into this "
                              "one first")  # fmt: skip
        return asked, Grid(dataset, layout.axis, dataset.chunks)
    except (OSError, RuntimeError, KeyError) as error:
        raise FormatError(f"damaged or truncated HDF5 file ({error})") from error


def _rewritten(file: Any, name: str, axis: int | None) -> Grid:
    """The dataset, for denoised samples; of integers one of floats takes its place, with all but that as it was."""
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
    return Grid(old, axis, old.chunks)


def _hard_links(file: Any, name: str) -> list[str]:
    """Every name of the dataset of this name, but for soft links, which follow."""
    import h5py

    dataset, found = file[name], []

    def note(other: str, link: Any) -> None:
        if isinstance(link, h5py.HardLink) and file[other] == dataset:
            found.append(other)

    if h5py.h5o.get_info(dataset.id).rc == 1 and isinstance(file.get(name, getlink=True), h5py.HardLink):
        return [name]  # a file of many groups takes long to search
    file.visititems_links(note)
    return found


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The dataset's samples as traces along ``layout.axis``, the last by default."""
    layout.only("hdf5", "dt", "axis", "component")
    with _opened(io.BytesIO(data), "r") as file:
        name, grid = _found(file, layout)
        traces = np.empty(grid.shape, grid.dtype)
        try:
            grid.read(slice(0, len(traces)), 0, traces)
        except (OSError, RuntimeError) as error:
            raise FormatError(f"damaged or truncated HDF5 file ({error})") from error
    origin = Origin(data, name, layout.axis)
    return Recording(traces, (layout.dt,) * len(traces), "hdf5", origin, notes=notes(traces.dtype))


def encode(recording: Recording) -> bytes:
    """The file it came from with new samples in the dataset."""
    origin: Origin = recording.origin
    out = io.BytesIO(origin.file)
    with _opened(out, "r+") as file:
        samples = recording.samples
        _rewritten(file, origin.name, origin.axis).write(slice(0, len(samples)), 0, samples)
    return out.getvalue()
