"""Names of array types, and arrays of any kind taken in as rows of floating samples and given back as their kind."""

from __future__ import annotations

import operator
import os
import shlex
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""Samples or coefficients in host memory, of any dtype."""
Floats: TypeAlias = NDArray[np.float64]
"""Statistics, noise levels and thresholds."""
Counts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
DType: TypeAlias = np.dtype[Any]


@dataclass(frozen=True)
class Traces:
    """An array taken in: ``rows`` (traces, samples) in the dtype of computation, and the way back.

    With two axes it is sections: (sections, rows, columns).
    """

    rows: NDArray[Any]
    original: NDArray[Any]
    axes: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        """That of the result: the original's if it is floating, else that of computation."""
        return self.original.dtype if self.original.dtype.kind in "fc" else self.rows.dtype

    def rows_of(self, out: object) -> Array | None:
        """The memory of ``out`` as rows; None if rows have to be restored first and then copied there.

        Raises TypeError unless ``out`` is a plain array, as the original must be, and ValueError unless it has the
        shape and dtype of the result and can be written.
        """
        if isinstance(self.original, np.ma.MaskedArray):
            raise TypeError("out= takes no masked samples, and x is a masked array")
        if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
            raise TypeError(f"out is a {type(out).__name__}, and the result a NumPy array")
        check_out((out.shape, out.dtype), (self.original.shape, self.dtype))
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        last = self.axes == tuple(range(-len(self.axes), 0))
        if not (last and out.flags.carray and out.dtype == self.rows.dtype) or np.may_share_memory(out, self.rows):
            return None
        return out.reshape(self.rows.shape)

    def restore(self, rows: NDArray[Any]) -> NDArray[Any]:
        """``rows`` as an array of the original's shape, floating dtype and kind (plain or masked)."""
        last = tuple(range(-len(self.axes), 0))
        if self.axes == last:
            y = rows.reshape(self.original.shape)
        else:
            y = np.moveaxis(rows.reshape(np.moveaxis(self.original, self.axes, last).shape), last, self.axes)
        if self.original.dtype.kind in "fc":
            y = y.astype(self.original.dtype, copy=False)
        if isinstance(self.original, np.ma.MaskedArray):
            masked = np.ma.getmaskarray(self.original)
            y = np.ma.MaskedArray(np.where(masked, self.original.data, y), self.original.mask)
            y.fill_value = self.original.fill_value
        return y


@cache
def dtype_name(dtype: Any) -> str:
    """NumPy's name of a dtype, also of another library's.

    NumPy spells it anew each time: in 7 us, a part in a hundred of denoising 64 Ki samples.
    """
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype).rpartition(".")[2]


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype samples are computed in.

    float32, float64, complex64 and complex128 as they are; float16 and integers of up to 16 bits in float32;
    wider integers and long double in float64 (complex128). Raises TypeError for anything else.
    """
    if dtype.kind == "c":
        return np.dtype(np.complex64 if dtype.itemsize <= 8 else np.complex128)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    if dtype.kind in "iu":
        return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
    raise TypeError(f"samples of dtype {dtype} cannot be denoised; integer, floating or complex samples can")


def check_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Raise ValueError for a scalar, an axis out of range or without samples, or one and the same axis twice."""
    if not shape:
        raise ValueError("x is a single number; an array with samples along an axis is needed")
    for axis in axes:
        if not -len(shape) <= operator.index(axis) < len(shape):
            raise ValueError(f"axis={axis} is out of range for an array of {len(shape)} dimensions")
        if shape[axis] == 0:
            raise ValueError(f"x of shape {shape} has no samples along axis {axis}")
    if len({axis % len(shape) for axis in axes}) < len(axes):
        raise ValueError(f"axes={axes} are one and the same axis of an array of {len(shape)} dimensions")


def check_out(given: tuple[tuple[int, ...], DType], wanted: tuple[tuple[int, ...], DType]) -> None:
    """Raise ValueError unless shape and dtype of an ``out`` are those of the result."""
    if given != wanted:
        has, result = (f"{shape} and dtype {dtype}" for shape, dtype in (given, wanted))
        raise ValueError(f"out has shape {has}, and the result has shape {result}")


def take(x: Any, *axes: int) -> Traces:
    """Any host array (or nested sequence) as C-contiguous rows along an axis, or sections along two.

    Masked samples become NaN. The input is never modified. Raises TypeError for a dtype or kind of array that cannot
    be computed with, and ValueError for a scalar, an axis out of range, one and the same axis twice, or no samples
    along an axis.
    """
    if isinstance(x, (list, tuple)) and any(isinstance(part, np.ma.MaskedArray) for part in x):
        x = np.ma.array(x)  # numpy would take what lies under the masks
    array = np.asanyarray(x)
    if not isinstance(array, np.ma.MaskedArray):
        array = np.asarray(array)
    dtype = compute_dtype(array.dtype)
    check_axes(array.shape, axes)
    if isinstance(array, np.ma.MaskedArray):
        # ma.filled would cast NaN to the dtype first
        samples = np.where(np.ma.getmaskarray(array), dtype.type(np.nan), array.data.astype(dtype))
    else:
        samples = array
    last = tuple(range(-len(axes), 0))
    moved = samples if axes == last else np.moveaxis(samples, axes, last)
    shape = moved.shape[-len(axes) :]
    return Traces(np.ascontiguousarray(moved.reshape(moved.size // prod(shape), *shape), dtype), array, axes)


def constant(x: Array, gaps: bool = False) -> Mask:
    """Whether all samples of a trace (..., samples) are equal: a dead trace. Few are read where they are not.

    With ``gaps`` there may be NaN, which are left out.
    """
    last, first = x.shape[-1] - 1, x[..., 0]

    def alike(place: int) -> Mask:
        other = x[..., place]
        same: Mask = first == other
        return same | np.isnan(first) | np.isnan(other) if gaps else same

    found = alike(last)
    for place in (last // 2, last // 4, 3 * last // 4):
        if not found.any():
            return found
        found &= alike(place)
    rows = x[found]
    there = ~np.isnan(rows) if gaps else np.ones((1, rows.shape[-1]), bool)
    value = np.take_along_axis(rows, np.argmax(there, axis=-1)[..., None], axis=-1)
    found[found] = ((rows == value) | ~there).all(axis=-1)
    return found


INSTEAD = {
    "obspy.Stream": "wavefilt.obspy.denoise(x) denoises it and keeps its headers",
    "obspy.Trace": "wavefilt.obspy.denoise(x) denoises it and keeps its header; its samples are x.data",
    "xarray.DataArray": "import wavefilt.xarray, then x.wavefilt.denoise(dim) denoises it; its samples are x.values",
    "xarray.Dataset": "import wavefilt.xarray, then x.wavefilt.denoise(dim) denoises it",
    "dascore.Patch": "x.wavefilt.denoise(dim) denoises it; its samples are x.data",
    "dask.Array": "wavefilt.dask.denoise(x) denoises it lazily; its samples are x.compute()",
    "wavefilt.Recording": "x.denoise() denoises it; its samples are x.samples",
    "pandas.DataFrame": "its samples are x.to_numpy(), with time along the first axis",
    "polars.DataFrame": "its samples are x.to_numpy(), with time along the first axis",
    "polars.Series": "its samples are x.to_numpy()",
}
"""What to write for objects that are no arrays, though NumPy would make one of them, by library and class."""
TABLES = ("pandas.DataFrame", "polars.DataFrame", "xarray.Dataset")
"""Those whose last axis is not time."""


def kind_of(x: object) -> str:
    """Library and class of an object of `INSTEAD` or of a pandas Series, "path" for a path, "" for all else."""
    return _kind(type(x))  # type: ignore[arg-type]  # a type of any object is hashable


@cache
def _kind(cls: type) -> str:
    if issubclass(cls, np.ndarray | list | tuple):
        return ""
    if issubclass(cls, str | bytes | os.PathLike):
        return "path"
    kinds = map(_full_name, cls.__mro__)
    return next((kind for kind in kinds if kind in INSTEAD or kind == "pandas.Series"), "")


def _full_name(cls: type) -> str:
    """Of a class, with the package it comes from."""
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def refuse_kinds(x: Any, kinds: Container[str] = TABLES) -> None:
    """Raise a TypeError that says what to write instead, for a path and for objects of these kinds."""
    kind = kind_of(x)
    if kind == "path":
        path = os.fsdecode(x)
        instead = f"wavefilt.read({path!r}).denoise(), or wavefilt.denoise_file({path!r}, target)"
        if os.path.isdir(path):
            every = shlex.quote(os.path.join(path, "*"))
            instead = f"wavefilt.denoise_file(source, target) for each file, or the command wavefilt denoise {every}"
        raise TypeError(f"{path!r} is a path, and samples are needed: {instead}")
    if kind in kinds:
        raise TypeError(f"x is a {kind}, not an array: {INSTEAD[kind]}")


DLPACK_CUDA = 2
"""DLPack's number for memory of a CUDA device."""


ON_GPU: dict[str, Callable[[Any], bool]] = {
    "cupy.ndarray": lambda x: True,
    "numba.DeviceNDArray": lambda x: True,
    "torch.Tensor": lambda x: bool(x.is_cuda),
}
"""Whether arrays of some libraries live on a GPU: the interface that all have takes some microseconds to ask."""


@cache
def _tells(cls: type) -> Callable[[Any], bool]:
    return ON_GPU.get(_full_name(cls), _interface_on_gpu)


def on_gpu(x: Any) -> bool:
    """Whether an array lives in the memory of a CUDA device."""
    return _tells(type(x))(x)  # type: ignore[arg-type]  # a type of any object is hashable


def _interface_on_gpu(x: Any) -> bool:
    found = hasattr(x, "__cuda_array_interface__")
    if not found and hasattr(x, "__dlpack_device__"):
        found = x.__dlpack_device__()[0] == DLPACK_CUDA
    return found


def known(trace: Array) -> Array:
    """The samples outside gaps; the trace itself where it has none."""
    gaps = np.ma.filled(np.isnan(trace), True)
    return np.asarray(trace[~gaps] if gaps.any() else trace)
