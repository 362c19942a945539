"""A CUDA driver that is not there: what is enqueued on a stream happens when somebody waits for it, and no sooner."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

from wavefilt.arrays import Array

HOST = 1


class Driver(ModuleType):
    """The functions that transfers call; device memory is host memory that nothing else reads.

    ``copies`` are the bytes of each transfer, ``fails_at`` is the number of the one that is refused.
    """

    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_MEMORY_TYPE=2)
    CUmemorytype = SimpleNamespace(CU_MEMORYTYPE_HOST=HOST)

    def __init__(self) -> None:
        super().__init__("cuda.bindings.driver")
        self._lock = threading.RLock()
        self._queue: list[tuple[int, Callable[[], object]]] = []
        self._numbers = itertools.count(1)
        self._last: dict[int, int] = {}  # record of an event
        self._kept: list[object] = []
        self._arrays: list[Array] = []
        self.copies: list[int] = []
        self.fails_at = -1

    def functions(self) -> tuple[int, ...]:
        """Addresses of the C library's copy, and of the driver's functions for threads without Python."""
        kinds = {
            "cuMemcpyHtoDAsync": 4,
            "cuMemcpyDtoHAsync": 4,
            "cuEventRecord": 2,
            "cuEventSynchronize": 1,
            "cuCtxSetCurrent": 1,
        }
        if not self._kept:
            for name, count in kinds.items():
                kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * count)
                self._kept.append(kind(lambda *a, name=name: int(getattr(self, name)(*a)[0])))
        return tuple(int(ctypes.cast(f, ctypes.c_void_p).value or 0) for f in (ctypes.memmove, *self._kept))

    def cuda(self) -> SimpleNamespace:
        """What of numba's module transfers use."""
        return SimpleNamespace(
            pinned_array=self.pinned_array,
            event=lambda timing: SimpleNamespace(handle=next(self._numbers)),
            current_context=lambda: None,
        )

    def stream(self) -> SimpleNamespace:
        return SimpleNamespace(handle=7, synchronize=self.finish)

    def array(self, size: int) -> Array:
        """Memory that lives as long as what is enqueued may need it."""
        self._arrays.append(np.zeros(size, np.uint8))
        return self._arrays[-1]

    def pinned_array(self, size: int, dtype: DTypeLike) -> Array:
        array = np.full(size, 99, dtype)
        self._arrays.append(array)
        return array

    def finish(self, until: float = float("inf")) -> None:
        """Do what is enqueued."""
        with self._lock:
            while self._queue and self._queue[0][0] <= until:
                self._queue.pop(0)[1]()

    def _enqueue(self, work: Callable[[], object]) -> int:
        with self._lock:
            number = next(self._numbers)
            self._queue.append((number, work))
            return number

    def cuCtxGetCurrent(self) -> tuple[int, int]:
        return 0, 11

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        return (0 if context == 11 else 201,)

    def _copy(self, to: int, source: int, size: int) -> tuple[int]:
        with self._lock:
            self.copies.append(size)
            if len(self.copies) - 1 == self.fails_at:
                return (SimpleInvalid(),)  # type: ignore[return-value]
        self._enqueue(lambda: ctypes.memmove(to, source, size))
        return (0,)

    def cuMemcpyHtoDAsync(self, device: int, host: int, size: int, stream: int) -> tuple[int]:
        assert stream == 7
        return self._copy(device, host, size)

    def cuMemcpyDtoHAsync(self, host: int, device: int, size: int, stream: int) -> tuple[int]:
        assert stream == 7
        return self._copy(host, device, size)

    def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
        number = self._enqueue(lambda: None)
        with self._lock:
            self._last[event] = number
        return (0,)

    def cuEventSynchronize(self, event: int) -> tuple[int]:
        self.finish(self._last.get(event, 0))
        return (0,)

    def cuPointerGetAttribute(self, attribute: int, address: int) -> tuple[int, int]:
        """Return the error for memory that is not pinned."""
        return 1, 0


class SimpleInvalid:
    """An error of the driver."""

    name = "CUDA_ERROR_INVALID_VALUE"

    def __int__(self) -> int:
        return 1
