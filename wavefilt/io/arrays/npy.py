"""NumPy's `.npy` and `.npz`: arrays of numbers with samples along one axis; Python objects are never unpickled."""

from __future__ import annotations

import io
import warnings
import zipfile
from dataclasses import dataclass, replace
from math import prod
from typing import BinaryIO

import numpy as np

from wavefilt.arrays import Array, DType, compute_dtype
from wavefilt.errors import FormatError, LayoutError, options, reason
from wavefilt.io.arrays.contiguous import ContiguousFile, Places
from wavefilt.io.file_source import opened
from wavefilt.io.layout import Layout
from wavefilt.recording import Recording


@dataclass(frozen=True)
class Origin:
    """Shape, axis and order of the array; for npz also the archive and the member that holds the array."""

    shape: tuple[int, ...]
    axis: int
    fortran: bool
    archive: bytes | None = None
    member: str | None = None


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The array as traces along ``layout.axis``, the last by default."""
    layout.only(format, *(("dt", "axis", "component") if format == "npz" else ("dt", "axis")))
    archive = data if format == "npz" else None
    member, content = _member(data, layout.component) if archive else (None, data)
    array = _array(content)
    axis = sample_axis(array.shape, layout.axis)
    if array.size == 0:
        raise FormatError(f"an array of shape {array.shape} has no samples")
    moved = np.moveaxis(array, axis, -1)
    traces = moved.reshape(-1, moved.shape[-1])
    origin = Origin(array.shape, axis, array.flags.f_contiguous and not array.flags.c_contiguous, archive, member)
    return Recording(traces, (layout.dt,) * len(traces), format, origin)


def _array(content: bytes) -> Array:
    """The array of a `.npy`, after its header has been checked against the bytes there are."""
    stream = io.BytesIO(content)
    shape, fortran, dtype = header(stream, len(content))
    flat = np.frombuffer(content, dtype, prod(shape), stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def header(stream: BinaryIO, size: int) -> tuple[tuple[int, ...], bool, DType]:
    """Shape, Fortran order and dtype by the header of a `.npy` of ``size`` bytes; the stream is left after it.

    Raises FormatError if it is damaged, does not fit the size, or describes anything but numbers.
    """
    try:
        version = np.lib.format.read_magic(stream)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read_header:
            raise FormatError(f".npy version {version[0]}.{version[1]} is not known")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's about the literal, NumPy's about headers of Python 2
            shape, fortran, dtype = read_header[version](stream)
    except (FormatError, MemoryError):
        raise
    except Exception as error:  # the header is a Python literal: damage shows as any of many errors
        raise FormatError(f"damaged .npy header ({reason(error)})") from error
    if dtype.hasobject:
        raise FormatError("an array of Python objects, which is never unpickled; save numbers")
    if dtype.kind not in "iufc":
        raise FormatError(f"an array of dtype {dtype}; integer, floating or complex samples can be denoised")
    if any(n < 0 for n in shape):
        raise FormatError(f"damaged .npy header (shape {shape})")
    claimed, held = prod(shape) * dtype.itemsize, size - stream.tell()
    if claimed != held:
        raise FormatError(f"the header claims {shape} samples of {dtype} ({claimed} bytes); the file holds {held}")
    try:
        np.broadcast_to(np.empty((), dtype), shape)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"an array of {len(shape)} axes that NumPy cannot hold ({reason(error)})") from error
    return shape, fortran, dtype


def sample_axis(shape: tuple[int, ...], axis: int | None) -> int:
    """The axis of the samples, from 0, the last by default. Raises FormatError if the array has no such axis."""
    wrong = FormatError if axis is None else LayoutError
    axis = -1 if axis is None else axis
    if not -len(shape) <= axis < len(shape):
        raise wrong(f"an array of shape {shape} has no axis {axis} of samples")
    return axis % len(shape)


def written(dtype: DType) -> DType:
    """The dtype that denoised samples are stored in: that of floats, for integers that of computation."""
    return dtype if dtype.kind in "fc" else compute_dtype(dtype)


def header_of(shape: tuple[int, ...], fortran: bool, dtype: DType) -> bytes:
    """The header that `numpy.save` writes for such an array."""
    stream = io.BytesIO()
    several = sum(n > 1 for n in shape) > 1  # axes of which one alone lies in both orders
    entries = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": fortran and several, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, entries)
    return stream.getvalue()


def _member(data: bytes, component: str | None) -> tuple[str, bytes]:
    """Name and bytes of the array to denoise in an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            if not members:
                raise FormatError("a zip archive without arrays; unpack it first")
            names = ", ".join(name.removesuffix(".npy") for name in members)
            if component is None and len(members) > 1:
                what = f"holds {len(members)} arrays; choose one with "
                raise FormatError(what, options("component"), f": {names}")
            member = members[0] if component is None else f"{component}.npy"
            if member not in members:
                raise FormatError(options(component=component), f" is not in the archive; it holds {names}")
            return member, archive.read(member)
    except (FormatError, MemoryError):
        raise
    except Exception as error:  # zipfile's, and the decompressors'
        raise FormatError(f"damaged or encrypted archive ({reason(error)})") from error


def encode(recording: Recording) -> bytes:
    """The array in its shape and order; every other member of an archive as it was.

    Raises FormatError if one of them cannot be read.
    """
    origin: Origin = recording.origin
    moved_shape = np.moveaxis(np.empty(origin.shape, np.bool_), origin.axis, -1).shape
    array = np.moveaxis(recording.samples.reshape(moved_shape), -1, origin.axis)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array, order="F" if origin.fortran else "C"), allow_pickle=False)
    if origin.archive is None:
        return stream.getvalue()
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(origin.archive)) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            try:
                content = stream.getvalue() if entry.filename == origin.member else old.read(entry)
                new.writestr(entry, content, compress_type=entry.compress_type)
            except MemoryError:
                raise
            except Exception as error:  # zipfile's, and the decompressors'
                raise FormatError(
                    f"{entry.filename!r} of the archive cannot be kept ({reason(error)}); repack it without that one"
                ) from error
    return out.getvalue()


def open_source(file: str | BinaryIO, layout: Layout, format: str) -> ContiguousFile:
    """The array of a `.npy` as traces along an axis. Raises FormatError for what cannot be denoised."""
    layout.only("npy", "dt", "axis")
    with opened(file) as stream:
        shape, fortran, dtype = header(stream, stream.seek(0, 2) - stream.seek(0))
        begin = stream.tell()
    axis = sample_axis(shape, layout.axis)
    if prod(shape) == 0:
        raise FormatError(f"an array of shape {shape} has no samples")
    strides = [prod(shape[:i] if fortran else shape[i + 1 :]) for i in range(len(shape))]
    step = strides.pop(axis)
    places = Places(
        begin, dtype, (*shape[:axis], *shape[axis + 1 :]), tuple(strides), shape[axis], step if shape[axis] > 1 else 1
    )
    result = written(dtype)
    head = header_of(shape, fortran, result)
    return ContiguousFile(file, "npy", places, layout.dt, replace(places, header=len(head), dtype=result), head)
