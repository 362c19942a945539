"""A GPU that is not there, on which work is rehearsed: its launches are noted with the types of their arguments.

For a process that does nothing else: numba's driver is replaced for good. Kernels are compiled for a named compute
capability, into the same cache on disk as those of a process that has such a GPU.
"""

from __future__ import annotations

from contextlib import nullcontext
from ctypes import c_void_p
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from wavefilt.arrays import Array
from wavefilt.ske.occupancy import CAPABILITIES

from . import compiler, graph
from .compiler import Launch
from .interfaces import DeviceArray, Stream
from .target import DeviceNDArray, cuda

if TYPE_CHECKING:
    from numba.cuda.cudadrv.driver import MemoryPointer
    from numba.cuda.dispatcher import CUDADispatcher

LEAST_SHARED = 48 << 10
"""Bytes of shared memory that a block of every GPU may have."""
launches: list[Launch] = []
"""Noted so far, each once."""


class _Context:
    """What numba asks of the context of a GPU."""

    def __init__(self, capability: tuple[int, int]) -> None:
        known = CAPABILITIES.get("{}.{}".format(*capability))
        shared = known.shared - known.shared_reserved if known else LEAST_SHARED
        self.device = SimpleNamespace(compute_capability=capability, id=0, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=shared)
        self.deallocations = SimpleNamespace(clear=lambda: None)

    def memalloc(self, size: int) -> MemoryPointer:
        return cuda.cudadrv.driver.MemoryPointer(self, c_void_p(graph.STAND_INS[0]), size)

    def get_memory_info(self) -> SimpleNamespace:
        return SimpleNamespace(free=1 << 40, total=1 << 40)


class _Mapped(DeviceNDArray):  # type: ignore[misc]  # numba has no types
    """Memory of the host that a GPU sees too."""

    def __setitem__(self, place: object, value: object) -> None:
        pass


def begin(capability: tuple[int, int]) -> None:
    """From now on this process has a GPU of a compute capability, such as (9, 0)."""
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import devices

    context = _Context(capability)
    vars(devices).update(get_context=lambda *_: context, _runtime=SimpleNamespace(ensure_context=nullcontext))
    vars(dispatcher).update(get_context=lambda *_: context, get_current_device=lambda: context.device)
    vars(cuda.cudadrv.driver).update(host_to_device=_nothing, device_to_host=_nothing, device_to_device=_nothing)
    nowhere = SimpleNamespace(handle=c_void_p(0), synchronize=_nothing)
    vars(graph)["stream"] = lambda: nowhere
    vars(compiler)["allow"] = _nothing
    own: dict[str, object] = {
        "event": lambda: SimpleNamespace(record=_nothing, wait=_nothing),
        "stream": lambda: nowhere,
    }
    own |= {"mapped_array": _mapped, "to_device": _to_device, "current_context": lambda *_: context}
    own |= {"get_current_device": lambda: context.device}
    vars(cuda).update(own)
    dispatcher.CUDADispatcher.__getitem__ = lambda kernel, _: lambda *arguments: _note(kernel, arguments)
    dispatcher._Kernel.bind = lambda kernel: kernel._codelibrary.get_cubin()


def _nothing(*_: object, **__: object) -> None:
    pass


def _mapped(size: int, dtype: DTypeLike) -> DeviceArray:
    return _Mapped((size,), (np.dtype(dtype).itemsize,), dtype)


def _to_device(array: Array, stream: Stream | None = None) -> DeviceArray:
    return cuda.device_array(np.shape(array), array.dtype)  # type: ignore[no-any-return]


def _note(kernel: CUDADispatcher, arguments: tuple[object, ...]) -> None:
    launch = kernel, tuple(map(kernel.typeof_pyval, arguments))
    if launch not in launches:
        launches.append(launch)
