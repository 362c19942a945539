"""The array libraries whose arrays on a GPU are taken as they are: what each is asked, in its own words."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from wavefilt.arrays import Array, DType

from .graph import checked, handle
from .interfaces import DeviceArray
from .target import SIMULATED, CudaAPIError, DeviceNDArray, cuda


class Library:
    """A library of arrays on a GPU: numba itself, which takes those of any that has ``__cuda_array_interface__``.

    Arrays of libraries have no types here.
    """

    name = "numba"

    @property
    def module(self) -> ModuleType:
        """The library, which whoever has its arrays has imported."""
        return sys.modules[self.name]

    @property
    def exhausted(self) -> type[Exception]:
        """What it raises when a GPU's memory is used up."""
        return CudaAPIError

    def stream_number(self, x: Any) -> int:
        """The driver's number of the stream on which the library would work on ``x`` now."""
        if isinstance(x, DeviceNDArray):  # the interface would take 20 us
            return handle(x.stream) if x.stream else 0
        return int(x.__cuda_array_interface__.get("stream") or 0)

    def address(self, x: Any) -> int:
        """Where an array begins."""
        if isinstance(x, DeviceNDArray):
            return int(x.device_ctypes_pointer.value or 0)
        return int(x.__cuda_array_interface__["data"][0])

    def device_of(self, x: Any) -> int:
        """The number of the GPU on which an array lives."""
        if isinstance(x, DeviceNDArray):
            return int(x.gpu_data.context.device.id)
        try:
            return int(x.__dlpack_device__()[1])
        except AttributeError:
            raise TypeError(f"{type(x).__name__} does not tell its GPU: it has no __dlpack_device__") from None

    def current(self, number: int) -> AbstractContextManager[Any]:
        """Context that makes a GPU the current one, for the library and with it for numba."""
        return _Current(number)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, like: Any) -> Any:
        """A new array on the device of ``like``."""
        return cuda.device_array(shape, dtype)

    def ordered(self, x: Any, order: tuple[int, ...]) -> Any:
        """A view with the dimensions in another order."""
        return strided(x, tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order))

    def contiguous(self, x: Any, dtype: DType) -> Any:
        """``x`` in contiguous memory and of this dtype: itself, or a copy."""
        return x if x.is_c_contiguous() and x.dtype == dtype else copied(x, dtype)

    def to_host(self, x: Any) -> Array:
        """A copy in host memory."""
        return np.asarray(x.copy_to_host() if isinstance(x, DeviceNDArray) else x)

    def plain(self, x: Any) -> Any:
        """``x`` as numba can take it."""
        return x

    def as_floating(self, y: Any, original: Any) -> Any:
        """``y`` in the dtype of the original, if that is floating."""
        return y


class Cupy(Library):
    name = "cupy"

    @property
    def exhausted(self) -> type[Exception]:
        return self.module.cuda.memory.OutOfMemoryError  # type: ignore[no-any-return]

    def stream_number(self, x: Any) -> int:
        return int(self.module.cuda.get_current_stream().ptr)

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def device_of(self, x: Any) -> int:
        return int(x.device.id)

    def current(self, number: int) -> AbstractContextManager[Any]:
        return self.module.cuda.Device(number)  # type: ignore[no-any-return]

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, like: Any) -> Any:
        return self.module.empty(shape, dtype)

    def ordered(self, x: Any, order: tuple[int, ...]) -> Any:
        return x.transpose(order)

    def contiguous(self, x: Any, dtype: DType) -> Any:
        return self.module.ascontiguousarray(x, dtype=dtype)

    def to_host(self, x: Any) -> Array:
        return np.asarray(x.get())

    def as_floating(self, y: Any, original: Any) -> Any:
        return y.astype(original.dtype, copy=False) if original.dtype.kind == "f" else y


class Torch(Library):
    name = "torch"

    @property
    def exhausted(self) -> type[Exception]:
        return self.module.cuda.OutOfMemoryError  # type: ignore[no-any-return]

    def stream_number(self, x: Any) -> int:
        return int(self.module.cuda.current_stream(x.device).cuda_stream)

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def device_of(self, x: Any) -> int:
        return int(x.device.index)

    def current(self, number: int) -> AbstractContextManager[Any]:
        return self.module.cuda.device(number)  # type: ignore[no-any-return]

    def _dtype(self, dtype: DTypeLike) -> Any:
        return vars(self.module)[np.dtype(dtype).name]

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, like: Any) -> Any:
        return self.module.empty(shape, dtype=self._dtype(dtype), device=like.device)

    def ordered(self, x: Any, order: tuple[int, ...]) -> Any:
        return x.permute(order)

    def contiguous(self, x: Any, dtype: DType) -> Any:
        return x.detach().to(self._dtype(dtype)).contiguous()

    def to_host(self, x: Any) -> Array:
        return np.asarray(x.detach().cpu().numpy())

    def plain(self, x: Any) -> Any:
        return x.detach()

    def as_floating(self, y: Any, original: Any) -> Any:
        return y.to(original.dtype) if original.is_floating_point() else y


class Simulated(Library):
    """The arrays of numba's simulator, which have no addresses."""

    def stream_number(self, x: Any) -> int:
        return 0

    def address(self, x: Any) -> int:
        return 0

    def device_of(self, x: Any) -> int:
        return 0

    def current(self, number: int) -> AbstractContextManager[Any]:
        return cuda.gpus[0]  # type: ignore[no-any-return]

    def ordered(self, x: Any, order: tuple[int, ...]) -> Any:
        return x.transpose(order)


LIBRARIES: dict[str, Library] = {library.name: library for library in (Cupy(), Torch())}
_OTHER = Simulated() if SIMULATED else Library()


def library_of(x: object) -> Library:
    """That of an array, by the package of its type."""
    return LIBRARIES.get(type(x).__module__.partition(".")[0], _OTHER)


def exhausted() -> list[type[Exception]]:
    """What the libraries that are in use raise when a GPU's memory is used up."""
    return [library.exhausted for library in LIBRARIES.values() if library.name in sys.modules]


class _Current:
    """A GPU's context made the current one by the driver itself: numba's own way takes 8 us."""

    def __init__(self, number: int) -> None:
        from cuda.bindings import driver

        self._driver, self._context = driver, cuda.gpus[number].get_primary_context().handle

    def __enter__(self) -> None:
        checked(self._driver.cuCtxPushCurrent(self._context))

    def __exit__(self, *_: object) -> None:
        checked(self._driver.cuCtxPopCurrent())


def strided(x: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> DeviceArray:
    """A view of the memory of a numba array from where it begins; ``strides`` in bytes."""
    if SIMULATED:
        return type(x)(np.lib.stride_tricks.as_strided(x._ary, shape, strides))  # type: ignore
    return type(x)(shape=shape, strides=strides, dtype=x.dtype, stream=x.stream, gpu_data=x.gpu_data)  # type: ignore


def copied(x: Any, dtype: DTypeLike, stream: Any = 0) -> Any:
    """A copy of a numba array in contiguous memory and of this dtype, made by a kernel."""
    out = cuda.device_array(x.shape, dtype)
    _copy[-(-x.size // 256), 256, stream](x, out.reshape(-1), x.size)
    return out


@cuda.jit
def _copy(x, out, size):
    i = cuda.grid(1)
    if i < size:
        out[i] = x.flat[i]
