"""What to do when memory is used up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import graph
from .interop import exhausted
from .target import SIMULATED, CudaAPIError, cuda

Result = TypeVar("Result")
Given = ParamSpec("Given")
OUT_OF_MEMORY = 2
"""The driver's CUDA_ERROR_OUT_OF_MEMORY."""


class OutOfMemory(MemoryError):
    """The device has too little free memory, even with nothing kept for later calls."""


def guarded(work: Callable[[], Result], clear: Callable[[], None]) -> Result:
    """The result of ``work``, tried once more with the kept buffers freed if memory is used up. Raises OutOfMemory."""
    try:
        return work()
    except Exception as error:
        if not used_up(error):
            raise
    clear()
    if not SIMULATED:
        with suppress(CudaAPIError):  # what numba frees later, and for its own allocations alone
            cuda.current_context().deallocations.clear()
    try:
        return work()
    except Exception as error:
        if used_up(error):
            raise OutOfMemory(str(error)) from error
        raise


def retried(method: Callable[Concatenate[Any, Given], Result]) -> Callable[Concatenate[Any, Given], Result]:
    """Decorator of a method: call it as `guarded` does, with the ``clear`` of its object."""

    @wraps(method)
    def call(self: Any, /, *arguments: Given.args, **named: Given.kwargs) -> Result:
        return guarded(partial(method, self, *arguments, **named), self.clear)

    return call


def used_up(error: Exception) -> bool:
    """Whether an error says that memory is used up: ours, the driver's, or that of the caller's library."""
    if isinstance(error, (CudaAPIError, graph.DriverError)):
        return int(error.args[0]) == OUT_OF_MEMORY
    if type(error).__module__.startswith("cuda.core"):  # which launches kernels and loads them
        return "CUDA_ERROR_OUT_OF_MEMORY" in str(error)
    return isinstance(error, (OutOfMemory, *exhausted()))
