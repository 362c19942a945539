"""Arrays that live on a GPU, of any library: in without a copy where possible, out as the caller's own kind.

Arrays of libraries have no types here.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from wavefilt import arrays
from wavefilt.arrays import Array, DType, check_axes, check_out, compute_dtype, on_gpu

from .graph import handle
from .interfaces import DeviceArray, Samples, Stream
from .target import SIMULATED, CudaAPIError, DeviceNDArray, cuda

on_device = on_gpu


@dataclass(frozen=True)
class Library:
    """An array library, and how it is asked in its own words."""

    exhausted: type[Exception]
    """What it raises when a GPU's memory is used up."""
    stream_number: Callable[[Any], int]
    """The driver's number of the stream on which it would work on an array now."""
    address: Callable[[Any], int]
    """Where an array begins."""
    device_of: Callable[[Any], int]
    """The number of the GPU on which an array lives."""
    current: Callable[[int], AbstractContextManager[Any]]
    """Context that makes a GPU the current one, for the library and with it for numba."""
    empty: Callable[[tuple[int, ...], DTypeLike, Any], Any]
    """A new array of a shape and dtype on the device of another."""
    ordered: Callable[[Any, tuple[int, ...]], Any]
    """A view with the dimensions in another order."""
    contiguous: Callable[[Any, DType], Any]
    """An array in contiguous memory and of a dtype: itself, or a copy."""
    to_host: Callable[[Any], Array]
    """A copy in host memory."""
    as_floating: Callable[[Any, Any], Any] = lambda y, original: y
    """An array in the dtype of the original, if that is floating."""


@cache
def _cupy() -> Library:
    import cupy

    return Library(
        exhausted=cupy.cuda.memory.OutOfMemoryError,
        stream_number=lambda x: int(cupy.cuda.get_current_stream().ptr),
        address=lambda x: int(x.data.ptr),
        device_of=lambda x: int(x.device.id),
        current=cupy.cuda.Device,
        empty=lambda shape, dtype, like: cupy.empty(shape, dtype),
        ordered=lambda x, order: x.transpose(order),
        contiguous=lambda x, dtype: cupy.ascontiguousarray(x, dtype=dtype),
        to_host=lambda x: x.get(),
        as_floating=lambda y, x: y.astype(x.dtype, copy=False) if y.dtype != x.dtype and x.dtype.kind == "f" else y,
    )


@cache
def _torch() -> Library:
    import torch

    names = vars(torch)

    def own(dtype: DTypeLike) -> Any:
        return names[arrays.dtype_name(np.dtype(dtype))]

    def contiguous(x: Any, dtype: DType) -> Any:
        x = x.detach() if x.requires_grad else x
        return x if x.dtype == own(dtype) and x.is_contiguous() else x.to(own(dtype)).contiguous()

    return Library(
        exhausted=torch.cuda.OutOfMemoryError,
        stream_number=lambda x: int(torch.cuda.current_stream(x.device).cuda_stream),
        address=lambda x: int(x.data_ptr()),
        device_of=lambda x: int(x.device.index),
        current=torch.cuda.device,
        empty=lambda shape, dtype, like: torch.empty(shape, dtype=own(dtype), device=like.device),
        ordered=lambda x, order: x.permute(order),
        contiguous=contiguous,
        to_host=lambda x: x.detach().cpu().numpy(),
        as_floating=lambda y, x: y.to(x.dtype) if y.dtype != x.dtype and x.is_floating_point() else y,
    )


def _stream_number(x: Any) -> int:
    if isinstance(x, DeviceNDArray):  # the interface would take 20 us
        return handle(x.stream) if x.stream else 0
    return int(x.__cuda_array_interface__.get("stream") or 0)


def _address(x: Any) -> int:
    if isinstance(x, DeviceNDArray):
        return int(x.device_ctypes_pointer.value or 0)
    return int(x.__cuda_array_interface__["data"][0])


def _device_of(x: Any) -> int:
    if isinstance(x, DeviceNDArray):
        return int(x.gpu_data.context.device.id)
    try:
        return int(x.__dlpack_device__()[1])
    except AttributeError:
        raise TypeError(f"{type(x).__name__} does not tell its GPU: it has no __dlpack_device__") from None


def _ordered(x: Any, order: tuple[int, ...]) -> Any:
    """Return a view with the dimensions in another order; numba itself only transposes matrices."""
    if SIMULATED:
        return x.transpose(order)
    shape, strides = (tuple(own[i] for i in order) for own in (x.shape, x.strides))
    return type(x)(shape=shape, strides=strides, dtype=x.dtype, stream=x.stream, gpu_data=x.gpu_data)


_numba = Library(
    exhausted=CudaAPIError,
    stream_number=_stream_number,
    address=_address,
    device_of=_device_of,
    current=lambda number: cuda.gpus[number],
    empty=lambda shape, dtype, like: cuda.device_array(shape, dtype),
    ordered=_ordered,
    contiguous=lambda x, dtype: x if x.is_c_contiguous() and x.dtype == dtype else copied(x, dtype),
    to_host=lambda x: np.asarray(x.copy_to_host() if isinstance(x, DeviceNDArray) else x),
)
"""Takes the arrays of any library that has ``__cuda_array_interface__``."""
if SIMULATED:  # there are no addresses
    _numba = replace(
        _numba,
        stream_number=lambda x: 0,
        address=lambda x: 0,
        device_of=lambda x: 0,
    )
LIBRARIES = {"cupy": _cupy, "torch": _torch}
"""By package: what whoever has its arrays has imported."""


@cache
def _library_of(kind: type) -> Library:
    return LIBRARIES.get(kind.__module__.partition(".")[0], lambda: _numba)()


def library_of(x: object) -> Library:
    """Return the library of an array, by the package of its type."""
    return _library_of(type(x))  # type: ignore[arg-type]  # a type of any object is hashable


def library_of_type(kind: type) -> Library | None:
    """Return the library of arrays of a type; None for a type that is known by its interface alone."""
    found = _library_of(kind)
    return None if found is _numba and not issubclass(kind, DeviceNDArray) else found


def exhausted() -> list[type[Exception]]:
    """Return the errors that imported libraries raise when a GPU's memory is used up."""
    return [library().exhausted for name, library in LIBRARIES.items() if name in sys.modules]


def stream_number(x: Samples) -> int:
    """The driver's number of the stream on which the caller's library would work on ``x`` now."""
    return library_of(x).stream_number(x)


def stream_of(number: int) -> Stream:
    """The stream of this number, for numba."""
    if SIMULATED:
        return cuda.stream()  # type: ignore[no-any-return]
    # 1 and 2 are the default streams
    return cuda.external_stream(number) if number > 2 else cuda.default_stream()  # type: ignore[no-any-return]


def address(x: Samples | DeviceArray) -> int:
    """Return the address of an array on a GPU."""
    return library_of(x).address(x)


def aligned(flat: DeviceArray, rows: int, samples: int) -> bool:
    """Whether every row of a flat array begins at a multiple of 16 bytes."""
    return (rows == 1 or samples % 4 == 0) and address(flat) % 16 == 0


def device_of(x: Samples) -> int:
    """The number of the GPU on which an array lives. Raises TypeError for one that does not tell."""
    return library_of(x).device_of(x)


def on_device_of(x: Samples) -> AbstractContextManager[object]:
    """Context that makes the GPU of an array the current one, for the array's library and with it for numba."""
    return library_of(x).current(device_of(x))


def dtype_name(x: Samples) -> str:
    """NumPy's name of the dtype of an array of any library."""
    return arrays.dtype_name(x.dtype)


def flat(x: Samples) -> DeviceArray:
    """A C-contiguous array of any library as a flat numba array on the same memory."""
    return cuda.as_cuda_array(x, sync=False).reshape(-1)  # type: ignore[no-any-return]


def empty(shape: tuple[int, ...], dtype: DTypeLike, like: Samples) -> Samples:
    """A new array of the library and on the device of ``like``."""
    return library_of(like).empty(shape, dtype, like)  # type: ignore[no-any-return]


class Traces(arrays.Traces):
    """As `wavefilt.arrays.Traces`, for an array on a GPU."""

    __slots__ = ()

    def restore(self, rows: Samples) -> Samples:
        """``rows`` as an array of the original's shape, floating dtype and library."""
        shape, library = tuple(self.original.shape), library_of(rows)
        found = layout(shape, tuple(map(operator.index, self.axes)))
        y = rows if found.moved == found.rows else rows.reshape(found.moved)
        if found.orders is not None:
            y = library.ordered(y, found.orders[1])
        return library.as_floating(y, self.original)  # type: ignore[no-any-return]

    def rows_of(self, out: Any) -> Samples | None:
        """The memory of ``out`` as rows; None if rows have to be restored first and then copied there.

        Raises TypeError unless ``out`` is of the original's library, and ValueError unless it has the shape and dtype
        of the result and is on the same GPU.
        """
        if not on_gpu(out) or library_of(_readable(out)) is not library_of(self.original):
            raise TypeError(f"out is a {type(out).__name__}, and the result a {type(self.original).__name__}")
        out, rows = _readable(out), self.rows
        dtype, computed = np.dtype(dtype_name(self.original)), np.dtype(dtype_name(rows))
        own = tuple(out.shape), np.dtype(dtype_name(out))
        check_out(own, (tuple(self.original.shape), dtype if dtype.kind == "f" else computed))
        if device_of(out) != device_of(rows):
            raise ValueError(f"out is on GPU {device_of(out)}, and x on GPU {device_of(rows)}")
        last = self.axes == tuple(range(-len(self.axes), 0))
        if not last or dtype_name(out) != computed.name:
            return None
        flat, apart = library_of(out).contiguous(out, computed), abs(address(out) - address(rows))
        if address(flat) != address(out) or apart < prod(rows.shape) * computed.itemsize:
            return None
        return flat.reshape(tuple(rows.shape))  # type: ignore[no-any-return]


def take(x: Samples, *axes: int) -> Traces:
    """Rows along an axis of an array on a GPU, or panels along two, C-contiguous, in the dtype of computation.

    ``x`` is not modified.

    Raises what `wavefilt.arrays.take` raises.
    """
    x = _readable(x)
    dtype, library = computed(x.dtype), library_of(x)
    found = layout(tuple(x.shape), tuple(map(operator.index, axes)))
    ordered = x if found.orders is None else library.ordered(x, found.orders[0])
    rows = library.contiguous(ordered, dtype)
    return Traces(rows if found.moved == found.rows else rows.reshape(found.rows), x, axes)


@cache
def computed(dtype: Any) -> DType:
    """The dtype in which samples on a GPU are computed."""
    found = compute_dtype(np.dtype(arrays.dtype_name(dtype)))
    if found.kind == "c":
        raise TypeError("complex samples on a GPU are not supported; copy them to the host")
    return found


def _readable(x: Samples) -> Samples:
    """An array of a library that is known here, on the same memory."""
    if library_of(x) is not _numba or isinstance(x, DeviceNDArray):
        return x
    if cuda.is_cuda_array(x):
        found: Samples = cuda.as_cuda_array(x)
        return found
    for name in LIBRARIES:  # DLPack alone
        if name in sys.modules:
            return sys.modules[name].from_dlpack(x)  # type: ignore[no-any-return]
    raise TypeError(f"{type(x).__name__} offers DLPack only; import cupy or torch first, which can read it")


class Layout(NamedTuple):
    """How an array becomes rows: the shape with its axes last, that of the rows, and the orders of its dimensions.

    Those are there and back, and None where the axes are the last already.
    """

    moved: tuple[int, ...]
    rows: tuple[int, ...]
    orders: tuple[tuple[int, ...], tuple[int, ...]] | None


@lru_cache(maxsize=1024)
def layout(shape: tuple[int, ...], axes: tuple[int, ...]) -> Layout:
    """How an array of this shape becomes rows along these axes.

    Raises ValueError for axes that an array of this shape does not have."""
    check_axes(shape, axes)
    last = tuple(axis % len(shape) for axis in axes)
    order = (*(i for i in range(len(shape)) if i not in last), *last)
    moved = tuple(shape[i] for i in order)
    rows = (prod(moved[: -len(axes)]), *moved[-len(axes) :])
    there = order == tuple(range(len(shape)))
    return Layout(moved, rows, None if there else (order, tuple(np.argsort(order).tolist())))


def to_host(x: Samples) -> Array:
    """A copy in host memory; an array that is there as it is."""
    return x if isinstance(x, np.ndarray) else library_of(x).to_host(x)


def copied(x: Any, dtype: DTypeLike) -> Any:
    """A copy of a numba array in contiguous memory and of this dtype, made by a kernel."""
    out = cuda.device_array(x.shape, dtype)
    _copy[-(-x.size // 256), 256](x, out.reshape(-1), x.size)
    return out


@cuda.jit
def _copy(x, out, size):
    i = cuda.grid(1)
    if i < size:
        out[i] = x.flat[i]
