"""What to do when the device's memory is used up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


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
    return isinstance(error, OutOfMemory) or "OUT_OF_MEMORY" in str(error).upper().replace(" ", "_")
