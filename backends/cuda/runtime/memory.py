"""What to do when the device's memory is used up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .graph import DriverError
from .libraries import exhausted
from .target import CudaAPIError

Result = TypeVar("Result")
OUT_OF_MEMORY = 2
"""The driver's CUDA_ERROR_OUT_OF_MEMORY."""


class OutOfMemory(Exception):
    """The device has too little free memory, even with nothing kept for later calls."""


def guarded(work: Callable[[], Result], clear: Callable[[], None]) -> Result:
    """The result of ``work``, tried once more with the kept buffers freed if memory is used up."""
    try:
        return work()
    except Exception as error:
        if not _exhausted(error):
            raise
    clear()
    try:
        return work()
    except Exception as error:
        if _exhausted(error):
            raise OutOfMemory(str(error)) from error
        raise


def _exhausted(error: Exception) -> bool:
    """Whether an error says that memory is used up: ours, the driver's, or that of the caller's library."""
    if isinstance(error, (CudaAPIError, DriverError)):
        return int(error.args[0]) == OUT_OF_MEMORY
    return isinstance(error, (OutOfMemory, *exhausted()))
