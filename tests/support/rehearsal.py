"""The GPU backend on a GPU that does not exist: its launches are noted, with the types of their arguments.

For a process that does nothing else: numba's driver is replaced for good. Kernels can then be compiled for a compute
capability without a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from ctypes import c_void_p
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from wavefilt.arrays import Array
from wavefilt.backends.cuda.denoiser import Denoiser
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import Shape
from wavefilt.backends.cuda.plans import FAMILIES
from wavefilt.backends.cuda.runtime import compiler, graph
from wavefilt.backends.cuda.runtime.compiler import Launch
from wavefilt.backends.cuda.runtime.target import DeviceNDArray, cuda
from wavefilt.options import Options
from wavefilt.ske.occupancy import CAPABILITIES

SHAPES: dict[int, list[tuple[int, tuple[int, ...]]]] = {
    1: [(1, (1 << 16,)), (1, (1 << 20,)), (24, (1024,)), (240, (1 << 13,)), (64, (1 << 14,)), (4096, (1 << 14,))],
    2: [(1, (512, 512))],
}
"""Rows and size of the arrays that are rehearsed, by the number of axes."""
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

    def memalloc(self, size: int) -> Any:
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
    compiler._Dispatcher.allow = _nothing
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


def _mapped(size: int, dtype: DTypeLike) -> Any:
    return _Mapped((size,), (np.dtype(dtype).itemsize,), dtype)


def _to_device(array: Array, stream: object = None) -> Any:
    return cuda.device_array(np.shape(array), array.dtype)  # type: ignore[no-any-return]


def _note(kernel: Any, arguments: tuple[object, ...]) -> None:
    launch = kernel, tuple(map(kernel.typeof_pyval, arguments))
    if launch not in launches:
        launches.append(launch)


def needed(methods: str, dtypes: Sequence[str], capability: tuple[int, int], **options: Any) -> Sequence[Launch]:
    """Return the kernels that `denoise` launches, those that take longest to compile first.

    ``methods`` are options of denoising, as JSON; ``options`` are those of the backend.
    """
    begin(capability)
    for own in json.loads(methods):
        method = Options(**own)
        for dtype in dtypes:
            for rows, size in SHAPES[method.ndim]:
                _rehearse(method, dtype, rows, size, KernelOptions(**options))
    return sorted(launches, key=lambda launch: -len(launch[1]))


def _rehearse(method: Options, dtype: str, rows: int, size: tuple[int, ...], options: KernelOptions) -> None:
    """Note all launches of a denoising run, and those that it makes if a search has not ended."""
    shape = Shape.of(method.analysis(method.level_for(*size)), dtype, rows, size)
    plan = FAMILIES[shape.transform](shape, options)
    denoiser = Denoiser(plan, method, False)
    x, y = (cuda.device_array(rows * shape.samples, dtype) for _ in range(2))
    stream = graph.stream()
    denoiser.run(x, y, stream)
    denoiser.make_all_passes()
    denoiser.run(x, y, stream)
