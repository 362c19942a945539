"""Arrays that live on a GPU, of any library: in without a copy where possible, out as the caller's own kind."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from wavefilt.arrays import compute_dtype
from wavefilt.backends import on_gpu

from .graph import checked, handle
from .target import SIMULATED, cuda

on_device = on_gpu


def kind(x: Any) -> str:
    """The library of an array: "cupy", "torch", or "numba" for everything else."""
    root = type(x).__module__.partition(".")[0]
    return root if root in ("cupy", "torch") else "numba"


def stream_number(x: Any) -> int:
    """The driver's number of the stream on which the caller's library would work on ``x`` now."""
    if kind(x) == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    if kind(x) == "torch":
        return int(sys.modules["torch"].cuda.current_stream(x.device).cuda_stream)
    if hasattr(x, "gpu_data"):  # numba's own: the interface would take 20 µs
        return handle(x.stream) if x.stream else 0
    return int((getattr(x, "__cuda_array_interface__", None) or {}).get("stream") or 0)


def stream_of(number: int) -> Any:
    """The stream of this number, for numba."""
    if SIMULATED:
        return cuda.stream()
    return cuda.external_stream(number) if number > 2 else cuda.default_stream()  # 1 and 2 are the default streams


def current_stream(x: Any) -> Any:
    """The stream on which the caller's library would work on ``x`` now, for numba."""
    return stream_of(stream_number(x))


def address(x: Any) -> int:
    """Where an array on a GPU begins."""
    if SIMULATED:
        return 0
    if kind(x) == "torch":
        return int(x.data_ptr())
    if hasattr(x, "gpu_data"):
        return int(x.device_ctypes_pointer.value or 0)
    return int(x.__cuda_array_interface__["data"][0])


def aligned(flat: Any, rows: int, samples: int) -> bool:
    """Whether every row of a flat array begins at a multiple of 16 bytes."""
    return (rows == 1 or samples % 4 == 0) and address(flat) % 16 == 0


def device_of(x: Any) -> int:
    """The number of the GPU on which an array lives."""
    if kind(x) == "cupy":
        return int(x.device.id)
    if kind(x) == "torch":
        return int(x.device.index)
    if SIMULATED:
        return 0
    if hasattr(x, "gpu_data"):
        return int(x.gpu_data.context.device.id)
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[1])
    raise TypeError(f"{type(x).__name__} does not tell its GPU: it has no __dlpack_device__")


class _Current:
    """A GPU's context made the current one by the driver itself: numba's own way takes 8 µs."""

    def __init__(self, number: int) -> None:
        from cuda.bindings import driver

        self._driver, self._context = driver, cuda.gpus[number].get_primary_context().handle

    def __enter__(self) -> None:
        checked(self._driver.cuCtxPushCurrent(self._context))

    def __exit__(self, *_: object) -> None:
        checked(self._driver.cuCtxPopCurrent())


def on_device_of(x: Any) -> AbstractContextManager[Any]:
    """Context that makes the GPU of an array the current one, for the array's library and with it for numba."""
    number = device_of(x)
    if kind(x) == "cupy":
        return sys.modules["cupy"].cuda.Device(number)  # type: ignore[no-any-return]
    if kind(x) == "torch":
        return sys.modules["torch"].cuda.device(number)  # type: ignore[no-any-return]
    return cuda.gpus[0] if SIMULATED else _Current(number)


def flat(x: Any) -> Any:
    """A C-contiguous array of any library as a flat numba array on the same memory."""
    if kind(x) == "torch":
        x = x.detach()
    return cuda.as_cuda_array(x, sync=False).reshape(-1)


def empty(shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
    """A new array of the library and on the device of ``like``."""
    if kind(like) == "cupy":
        return sys.modules["cupy"].empty(shape, dtype)
    if kind(like) == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, np.dtype(dtype).name), device=like.device)
    return cuda.device_array(shape, dtype)


@dataclass(frozen=True)
class Traces:
    """As `wavefilt.arrays.Traces`, for an array on a GPU."""

    rows: Any
    original: Any
    axes: tuple[int, ...]

    def restore(self, rows: Any) -> Any:
        """``rows`` as an array of the original's shape, floating dtype and library."""
        shape = tuple(self.original.shape)
        order = _last(len(shape), self.axes)
        y = _ordered(rows.reshape(tuple(shape[i] for i in order)), tuple(np.argsort(order).tolist()))
        if kind(y) == "torch" and self.original.is_floating_point():
            return y.to(self.original.dtype)
        if kind(y) == "cupy" and self.original.dtype.kind == "f":
            return y.astype(self.original.dtype, copy=False)
        return y


def take(x: Any, *axes: int) -> Traces:
    """Rows along an axis of an array on a GPU, or sections along two, C-contiguous, in the dtype of computation.

    ``x`` is not modified.

    Raises what `wavefilt.arrays.take` raises.
    """
    if not hasattr(x, "__cuda_array_interface__"):  # DLPack alone
        x = _from_dlpack(x)
    if kind(x) == "numba" and not hasattr(x, "copy_to_host"):
        x = cuda.as_cuda_array(x)
    shape = tuple(x.shape)
    name = str(x.dtype).rpartition(".")[2]
    dtype = compute_dtype(np.dtype(name))
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
    if kind(x) == "torch":
        torch = sys.modules["torch"]
        rows = x.detach().permute(order).to(getattr(torch, dtype.name)).contiguous()
    elif kind(x) == "cupy":
        rows = sys.modules["cupy"].ascontiguousarray(x.transpose(order), dtype=dtype)
    else:
        rows = _contiguous(_ordered(x, order), dtype)
    return Traces(rows.reshape(prod(moved[: -len(axes)]), *moved[-len(axes) :]), x, axes)


def _last(dimensions: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The order of the dimensions in which ``axes`` are the last."""
    last = tuple(axis % dimensions for axis in axes)
    return (*(i for i in range(dimensions) if i not in last), *last)


def _ordered(x: Any, order: tuple[int, ...]) -> Any:
    """A view with the dimensions in another order."""
    if order == tuple(range(len(order))):
        return x
    if kind(x) == "torch":
        return x.permute(order)
    if kind(x) == "cupy" or SIMULATED:
        return x.transpose(order)
    return strided(x, tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order))


def strided(x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of the memory of a numba array from where it begins; ``strides`` in bytes."""
    if SIMULATED:
        return type(x)(np.lib.stride_tricks.as_strided(x._ary, shape, strides))
    return type(x)(shape=shape, strides=strides, dtype=x.dtype, stream=x.stream, gpu_data=x.gpu_data)


def _from_dlpack(x: Any) -> Any:
    for name in ("cupy", "torch"):
        if name in sys.modules:
            return sys.modules[name].from_dlpack(x)
    raise TypeError(f"{type(x).__name__} offers DLPack only; import cupy or torch first, which can read it")


def _contiguous(moved: Any, dtype: np.dtype[Any]) -> Any:
    """A numba array in contiguous memory and of this dtype: itself, or a copy made by a kernel."""
    if moved.is_c_contiguous() and moved.dtype == dtype:
        return moved
    out = cuda.device_array(moved.shape, dtype)
    size = int(np.prod(moved.shape))
    _copy[-(-size // 256), 256](moved, out.reshape(-1), size)
    return out


@cuda.jit
def _copy(x, out, size):
    i = cuda.grid(1)
    if i < size:
        out[i] = x.flat[i]


def to_host(x: Any) -> Any:
    """A copy in host memory."""
    if kind(x) == "cupy":
        return x.get()
    if kind(x) == "torch":
        return x.detach().cpu().numpy()
    return x.copy_to_host() if hasattr(x, "copy_to_host") else np.asarray(x)


def shown(views: tuple[Any, ...], stream: Any, on_host: bool) -> tuple[Any, ...]:
    """Coefficients in the buffers of a plan: as they are, or copied to host memory."""
    return tuple(host_rows(view, stream) for view in views) if on_host else views


def host_rows(view: Any, stream: Any) -> Any:
    """Rows of a flat buffer, cut to their length, copied to host memory."""
    if SIMULATED:
        return np.ascontiguousarray(view.copy_to_host())
    if not view.is_c_contiguous():
        copy = cuda.device_array(view.shape, view.dtype)
        _copy[-(-view.size // 256), 256, stream](view, copy.reshape(-1), view.size)
        view = copy
    host = view.copy_to_host(stream=stream)
    stream.synchronize()
    return host
