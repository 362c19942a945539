"""Tests in numba's CUDA simulator, which is chosen before numba is imported: in a process of their own.

`test_simulator.py` runs them.
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
inside = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator's process")
outside = pytest.mark.skipif(SIMULATED, reason="this is the simulator's process")


def take_turns() -> None:
    """Run the threads of a simulated block one at a time, from barrier to barrier, not all at once and polled.

    The same on every run, and many times as fast. Between two barriers the first thread goes first, then the last, so
    that what works in one order only fails.
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
        """One for each line of a kernel that asks; numba renders the whole stack to tell lines apart.

        The memory that a launch asks for, of size 0 here, is one.
        """
        if shape == 0:
            kind = np.dtype(dtype)
            return np.frombuffer(self._dynshared.data, kind, self._dynshared_size // kind.itemsize)
        frame = sys._getframe(1)
        key = frame.f_code, frame.f_lineno
        if key not in self._allocations:
            self._allocations[key] = np.empty(shape, as_dtype(dtype) if hasattr(dtype, "bitwidth") else dtype)
            self._allocations[key].view(np.uint8).fill(0x40)  # not what tests before left; as a float it is 3 or 32
        return self._allocations[key]

    made = cuda.device_array

    def device_array(*arguments: Any, **options: Any) -> Any:
        """What is read beyond the ends of rows, and used by nobody, is no infinity that other tests have left."""
        found = made(*arguments, **options)
        found._ary.reshape(-1).view(np.uint8).fill(0x40)
        return found

    kernel.BlockManager.run, kernelapi.FakeCUDAShared.array = run, array
    cuda.device_array = device_array
    kernelapi.threading = SimpleNamespace(current_thread=getcurrent)


def arrays_on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the simulator's arrays stand for arrays on a GPU, which the backend otherwise takes for NumPy's."""
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda

    monkeypatch.setattr(interop, "flat", lambda x: x.reshape(-1))
    monkeypatch.setattr(interop, "on_device", lambda x: isinstance(x, type(cuda.device_array(1))))
    monkeypatch.setattr(interop, "stream_number", lambda _: -1)
    monkeypatch.setattr(interop, "empty", lambda shape, dtype, _: cuda.device_array(shape, dtype))
