"""Arrays that live on a GPU, of any library: in without a copy where possible, out as the caller's own kind."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from wavefilt.arrays import Array, compute_dtype, on_gpu

from .interfaces import DeviceArray, Samples, Stream
from .libraries import LIBRARIES, copied, library_of, strided
from .target import SIMULATED, DeviceNDArray, cuda

__all__ = [
    "Traces",
    "address",
    "aligned",
    "current_stream",
    "device_of",
    "dtype_name",
    "empty",
    "flat",
    "host_rows",
    "on_device",
    "on_device_of",
    "stream_number",
    "stream_of",
    "strided",
    "take",
    "to_host",
]  # fmt: skip

on_device = on_gpu


def stream_number(x: Samples) -> int:
    """The driver's number of the stream on which the caller's library would work on ``x`` now."""
    return library_of(x).stream_number(x)


def stream_of(number: int) -> Stream:
    """The stream of this number, for numba."""
    if SIMULATED:
        found: Stream = cuda.stream()
    else:
        found = cuda.external_stream(number) if number > 2 else cuda.default_stream()  # 1 and 2 are the default streams
    return found


def current_stream(x: Samples) -> Stream:
    """The stream on which the caller's library would work on ``x`` now, for numba."""
    return stream_of(stream_number(x))


def address(x: Samples | DeviceArray) -> int:
    """Where an array on a GPU begins."""
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
    return str(x.dtype).rpartition(".")[2]


def flat(x: Samples) -> DeviceArray:
    """A C-contiguous array of any library as a flat numba array on the same memory."""
    found: DeviceArray = cuda.as_cuda_array(library_of(x).plain(x), sync=False).reshape(-1)
    return found


def empty(shape: tuple[int, ...], dtype: DTypeLike, like: Samples) -> Samples:
    """A new array of the library and on the device of ``like``."""
    found: Samples = library_of(like).empty(shape, dtype, like)
    return found


@dataclass(frozen=True)
class Traces:
    """As `wavefilt.arrays.Traces`, for an array on a GPU."""

    rows: Samples
    original: Samples
    axes: tuple[int, ...]

    def restore(self, rows: Samples) -> Samples:
        """``rows`` as an array of the original's shape, floating dtype and library."""
        shape = tuple(self.original.shape)
        order = _last(len(shape), self.axes)
        y = _ordered(rows.reshape(*(shape[i] for i in order)), tuple(np.argsort(order).tolist()))
        found: Samples = library_of(y).as_floating(y, self.original)
        return found


def take(x: Samples, *axes: int) -> Traces:
    """Rows along an axis of an array on a GPU, or panels along two, C-contiguous, in the dtype of computation.

    ``x`` is not modified.

    Raises what `wavefilt.arrays.take` raises.
    """
    x = _readable(x)
    shape = tuple(x.shape)
    dtype = compute_dtype(np.dtype(dtype_name(x)))
    if dtype.kind == "c":
        raise TypeError("complex samples on a GPU are not supported; copy them to the host")
    if not shape:
        raise ValueError("x is a single number; an array with samples along an axis is needed")
    for axis in axes:
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"axis={axis} is out of range for an array of {len(shape)} dimensions")
        if shape[axis] == 0:
            raise ValueError(f"x of shape {shape} has no samples along axis {axis}")
    if len({axis % len(shape) for axis in axes}) < len(axes):
        raise ValueError(f"axes={axes} are one and the same axis of an array of {len(shape)} dimensions")
    order = _last(len(shape), axes)
    moved = tuple(shape[i] for i in order)
    rows = library_of(x).contiguous(_ordered(x, order), dtype)
    return Traces(rows.reshape(prod(moved[: -len(axes)]), *moved[-len(axes) :]), x, axes)


def _readable(x: Samples) -> Samples:
    """An array of a library that is known here, on the same memory."""
    library = library_of(x)
    if library.name in LIBRARIES or isinstance(x, DeviceNDArray):
        return x
    if cuda.is_cuda_array(x):
        found: Samples = cuda.as_cuda_array(x)
        return found
    for name in LIBRARIES:  # DLPack alone
        if name in sys.modules:
            return sys.modules[name].from_dlpack(x)  # type: ignore[no-any-return]
    raise TypeError(f"{type(x).__name__} offers DLPack only; import cupy or torch first, which can read it")


def _last(dimensions: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The order of the dimensions in which ``axes`` are the last."""
    last = tuple(axis % dimensions for axis in axes)
    return (*(i for i in range(dimensions) if i not in last), *last)


def _ordered(x: Samples, order: tuple[int, ...]) -> Samples:
    """A view with the dimensions in another order."""
    if order == tuple(range(len(order))):
        return x
    found: Samples = library_of(x).ordered(x, order)
    return found


def to_host(x: Samples) -> Array:
    """A copy in host memory; an array that is there as it is."""
    return x if isinstance(x, np.ndarray) else library_of(x).to_host(x)


def host_rows(view: DeviceArray, stream: Stream) -> Array:
    """Rows of a flat buffer, cut to their length, copied to host memory."""
    if SIMULATED:
        return np.ascontiguousarray(view.copy_to_host())
    view = view if view.is_c_contiguous() else copied(view, view.dtype, stream)
    host = view.copy_to_host(stream=stream)
    stream.synchronize()
    return host
