"""NumPy's `.npy` and `.npz`, arrays with samples along one axis, and raw binary, samples without any header.

Python objects are never unpickled.
"""

from __future__ import annotations

import copy
import io
import shutil
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from wavefilt.arrays import DType, compute_dtype
from wavefilt.errors import FormatError, LayoutError
from wavefilt.io.base import Contents, Format, Layout, refused
from wavefilt.io.sources import ContiguousFile, Places, StreamedFormat, contents_of

if TYPE_CHECKING:
    from zipfile import ZipFile

DTYPES = ("f4", "f8", "i2", "i4")
NAMES = 20
"""Names that an error lists at most."""
ENDIANS = {"little": "<", "big": ">"}


class NpyFile(ContiguousFile):
    """A `Source` of a `.npy` file. Raises FormatError if it cannot be denoised."""

    def __init__(self, file: BinaryIO, layout: Layout) -> None:
        layout.only("npy", "dt", "axis")
        shape, fortran, dtype = header(file, file.seek(0, 2) - file.seek(0))
        begin = file.tell()
        axis = sample_axis(shape, dtype, layout.axis)
        # traces of several axes are numbered in the order of storage
        inner = prod(shape[:axis] if fortran else shape[axis + 1 :])
        places = Places(begin, dtype, prod(shape) // shape[axis], shape[axis], inner)
        result = written(dtype)
        several = sum(n > 1 for n in shape) > 1  # an array with one long axis is in C order too, and saved as such
        entries = {"descr": np.lib.format.dtype_to_descr(result), "fortran_order": fortran and several}
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {**entries, "shape": shape})
        after = replace(places, header=head.tell(), dtype=result)
        super().__init__(file, "npy", places, layout.dt, after, head.getvalue())


class Npy(StreamedFormat):
    name, marks, endings, seismic = "npy", rb"\x93NUMPY", (".npy",), False
    keeps = "samples, of traces of equal length"

    def open(self, file: BinaryIO, layout: Layout) -> NpyFile:
        return NpyFile(file, layout)

    def convert(self, contents: Contents) -> bytes:
        out = io.BytesIO()
        np.lib.format.write_array(out, np.asarray(contents.samples), allow_pickle=False)
        return out.getvalue()


class Npz(Format):
    """Archives of `.npy` files; ``Contents.origin`` is the array to denoise, the archive, and the name in it."""

    name, marks, endings, seismic = "npz", rb"PK(\x03\x04|\x05\x06)", (".npz",), False

    def read(self, data: bytes, layout: Layout) -> Contents:
        layout.only("npz", "dt", "axis", "component")
        name, content = _member(data, layout.component)
        npy = NpyFile(io.BytesIO(content), replace(layout, component=None))
        return replace(contents_of(npy), format="npz", origin=(npy, data, name))

    def write(self, contents: Contents) -> bytes:
        """Return the archive with the new array; every other member is kept. Raises FormatError if one is damaged."""
        import zipfile

        npy, archive, name = contents.origin
        new_array, out = Npy().write(replace(contents, origin=npy)), io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
            for entry in old.infolist():
                with refused(f"{entry.filename!r} of the archive cannot be kept; repack it without that one"):
                    if entry.filename == name:
                        new.writestr(entry, new_array, compress_type=entry.compress_type)
                        continue
                    with old.open(entry) as source, new.open(copy.copy(entry), "w") as target:
                        shutil.copyfileobj(source, target)
        return out.getvalue()


class Raw(StreamedFormat):
    name, label, shared_endings = "raw", "raw binary", (".bin", ".raw", ".dat")

    def open(self, file: BinaryIO, layout: Layout) -> ContiguousFile:
        """Open traces one after another. Raises LayoutError for a missing or wrong layout."""
        layout.only("raw", "dtype", "endian", "ns", "dt")
        missing = [f"`{name}`" for name in ("dtype", "endian", "ns") if getattr(layout, name) is None]
        if layout.dtype not in (None, *DTYPES) or layout.endian not in (None, *ENDIANS) or missing:
            wrong = f"raw binary needs {', '.join(missing)}" if missing else "an unknown raw layout"
            raise LayoutError(f"{wrong}: `dtype` is one of {', '.join(DTYPES)}, `endian` {' or '.join(ENDIANS)}")
        assert layout.dtype is not None and layout.endian is not None and layout.ns is not None  # noqa: PT018
        size = file.seek(0, 2)
        dtype = np.dtype(ENDIANS[layout.endian] + layout.dtype)
        trace = layout.ns * dtype.itemsize
        if size % trace:
            what = f"traces of {layout.ns} {layout.dtype} samples ({trace} bytes)"
            raise FormatError(f"{size} bytes are not a whole number of {what}")
        # floats keep their type, integers become f4 of their byte order
        written = dtype if dtype.kind == "f" else np.dtype("f4").newbyteorder(dtype.byteorder)
        places = Places(0, dtype, size // trace, layout.ns)
        source = ContiguousFile(file, "raw", places, layout.dt, replace(places, dtype=written), b"")
        source.notes = ("integer samples are written as f4",) if dtype.kind == "i" else ()
        return source


def header(stream: BinaryIO, size: int) -> tuple[tuple[int, ...], bool, DType]:
    """Return shape, Fortran order and dtype by the header of a `.npy` of ``size`` bytes; the stream is left after it.

    Raises FormatError if it is damaged, does not fit the size, or describes Python objects.
    """
    # Python warns about the literal, NumPy about headers of Python 2
    with refused("damaged .npy header"), warnings.catch_warnings(action="ignore"):
        version = np.lib.format.read_magic(stream)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read_header:
            raise FormatError(f".npy version {version[0]}.{version[1]} is not known")
        shape, fortran, dtype = read_header[version](stream)
    if dtype.hasobject:
        raise FormatError("an array of Python objects, which is never unpickled; save numbers")
    if any(n < 0 for n in shape):
        raise FormatError(f"damaged .npy header (shape {shape})")
    claimed, held = prod(shape) * dtype.itemsize, size - stream.tell()
    if claimed != held:
        raise FormatError(f"the header claims {shape} samples of {dtype} ({claimed} bytes); the file holds {held}")
    with refused(f"an array of {len(shape)} axes that NumPy cannot hold"):
        np.broadcast_to(np.empty((), dtype), shape)
    return shape, fortran, dtype


def sample_axis(shape: tuple[int, ...], dtype: DType, axis: int | None) -> int:
    """Return the axis of the samples, from 0, the last by default.

    Raises FormatError if there is no such axis, for an array without samples, or of other things than numbers.
    """
    if dtype.kind not in "iufc":
        raise FormatError(f"an array of dtype {dtype}; integer, floating or complex samples can be denoised")
    wrong = FormatError if axis is None else LayoutError
    axis = -1 if axis is None else axis
    if not -len(shape) <= axis < len(shape):
        raise wrong(f"an array of shape {shape} has no axis {axis} of samples")
    if prod(shape) == 0:
        raise FormatError(f"an array of shape {shape} has no samples")
    return axis % len(shape)


def written(dtype: DType) -> DType:
    """Return the dtype in which denoised samples are stored: floats as they are, integers as they are computed."""
    return dtype if dtype.kind in "fc" else compute_dtype(dtype)


def chosen(component: str | None, names: Sequence[str], holder: str) -> str:
    """Return the array asked for, or the only one. Otherwise raise FormatError with the names of all arrays."""
    listed = ", ".join(names[:NAMES]) + (f" and {len(names) - NAMES} more" if len(names) > NAMES else "")
    if not names:
        raise FormatError(f"{holder} without arrays of numbers")
    if component is None:
        if len(names) > 1:
            raise FormatError(f"{holder} of {len(names)} arrays; choose one with ::NAME or `component`: {listed}")
        return names[0]
    if component.strip("/") not in names:
        raise FormatError(f"{holder} has no array {component!r}; it has {listed}")
    return component.strip("/")


def _dtype(archive: ZipFile, name: str) -> DType:
    """Return the dtype of a member. Raises FormatError unless it has the header of an array of its size."""
    with archive.open(f"{name}.npy") as stream:
        return header(stream, archive.getinfo(f"{name}.npy").file_size)[2]  # type: ignore[arg-type]


def _numeric(archive: ZipFile, name: str) -> bool:
    """Return whether a member is an array of numbers, or is damaged."""
    with suppress(FormatError):
        return _dtype(archive, name).kind in "iufc"
    return True


def _member(data: bytes, component: str | None) -> tuple[str, bytes]:
    """Return name and bytes of the array to denoise; only a member with the header of an array is decompressed."""
    import zipfile

    with refused("damaged or encrypted archive"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if not names:
            raise FormatError("a zip archive without arrays; unpack it first")
        if component is None and len(names) > 1:
            names = [name for name in names if _numeric(archive, name)] or names
        name = chosen(component, names, "an archive")
        _dtype(archive, name)
        return f"{name}.npy", archive.read(f"{name}.npy")
