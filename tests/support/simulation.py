"""Tests in numba's CUDA simulator, a job of its own: ``NUMBA_ENABLE_CUDASIM=1 pytest -n auto``.

numba reads the variable when it is imported. With it, the tests marked `inside` run and no others; without it, all
others (`tests/conftest.py`).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
inside = pytest.mark.inside
outside = pytest.mark.outside
"""For readers: whatever is not `inside` runs outside."""


def take_turns() -> None:
    """Run the threads of a simulated block one at a time, from barrier to barrier, instead of as polled system threads.

    Runs are reproducible and many times as fast. The order of the threads is reversed after each barrier, so that code
    that depends on their order fails.
    """
    cuda = import_module("wavefilt.backends.cuda.runtime.target").cuda  # imported without the warnings of that
    from greenlet import getcurrent, greenlet
    from numba.cuda.simulator import kernel, kernelapi
    from numba.np.numpy_support import as_dtype

    class Thread(greenlet):
        syncthreads_and = kernel.BlockThread.syncthreads_and
        syncthreads_or = kernel.BlockThread.syncthreads_or
        syncthreads_count = kernel.BlockThread.syncthreads_count

        def __init__(self, work: Any, manager: Any, block: Any, point: Any) -> None:
            super().__init__(work)
            self._manager = manager
            self.blockIdx, self.threadIdx = kernel.Dim3(*block), kernel.Dim3(*point)
            x, y, _ = manager._block_dim
            self.thread_id = point[0] + x * (point[1] + y * point[2])

        def syncthreads(self) -> None:
            self.parent.switch()

    def run(self: Any, block: Any, *arguments: Any) -> None:
        threads = [Thread(lambda: self._f(*arguments), self, block, point) for point in np.ndindex(*self._block_dim)]
        while threads:
            for thread in threads:
                thread.switch()
            threads = [thread for thread in reversed(threads) if not thread.dead]

    def array(self: Any, shape: Any, dtype: Any) -> Any:
        """Return the array of this line of a kernel (numba renders the whole stack to tell lines apart).

        A shape of 0 asks for the dynamic shared memory of the launch.
        """
        if shape == 0:
            kind = np.dtype(dtype)
            return np.frombuffer(self._dynshared.data, kind, self._dynshared_size // kind.itemsize)
        frame = sys._getframe(1)
        key = frame.f_code, frame.f_lineno
        if key not in self._allocations:
            self._allocations[key] = np.empty(shape, as_dtype(dtype) if hasattr(dtype, "bitwidth") else dtype)
            # a fixed pattern (as a float, 3 or 32), so that earlier tests leave nothing
            self._allocations[key].view(np.uint8).fill(0x40)
        return self._allocations[key]

    made = cuda.device_array

    def device_array(*arguments: Any, **options: Any) -> Any:
        """Fill the array with a pattern: values read beyond the end of a row, and unused, are then never infinite."""
        found = made(*arguments, **options)
        found._ary.reshape(-1).view(np.uint8).fill(0x40)
        return found

    kernel.BlockManager.run, kernelapi.FakeCUDAShared.array = run, array
    cuda.device_array = device_array
    kernelapi.threading = SimpleNamespace(current_thread=getcurrent)


SMALL = {
    "tile": 128,
    "threads": 8,
    "one_block": (32,),
    "few": 40,
    "select": 8,
    "scan": 8,
    "row": 8,
    "whole": 250,
    "chunk": 128,
    "sample": 256,
    "stage": 32,
    "sums": (32, 12),
    "blocks": (2, 2),
}
"""Options of kernels with which short rows have several tiles, chunks and lists."""


def small_options(**options: Any) -> Any:
    """Return options of the GPU backend so small that short rows reach every branch."""
    from wavefilt.backends.cuda import KernelOptions

    return KernelOptions(**SMALL | options)


def small_cuda(**options: Any) -> Any:
    """Return a backend for the simulator with `small_options`."""
    from wavefilt import backends

    return backends.get("cuda", options=small_options(**options))


def arrays_on_device(monkeypatch: pytest.MonkeyPatch, backend: Any = None) -> Any:
    """Treat the simulator's arrays as arrays on a GPU; the backend otherwise takes them for NumPy's.

    With a backend, `wavefilt.denoise` works on such arrays with it. Return the function that makes one.
    """
    from wavefilt import arrays
    from wavefilt.backends import registry
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda

    kind = type(cuda.device_array(1))
    monkeypatch.setattr(interop, "flat", lambda x: x.reshape(-1))
    monkeypatch.setattr(interop, "on_device", lambda x: isinstance(x, kind))
    monkeypatch.setattr(interop, "stream_number", lambda _: -1)
    monkeypatch.setattr(interop, "empty", lambda shape, dtype, _: cuda.device_array(shape, dtype))
    if backend is not None:
        for module in (arrays, interop):
            monkeypatch.setattr(module, "on_gpu", lambda x: isinstance(x, kind))
        monkeypatch.setattr(interop, "address", lambda x: x._ary.__array_interface__["data"][0])
        monkeypatch.setattr(registry, "home", lambda _: backend)
    return cuda.to_device
