"""Device-resident rows that come and go piece by piece, through pinned memory."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import DTypeLike

from wavefilt.arrays import Array

from . import interop
from .interfaces import Samples
from .memory import OutOfMemory, guarded
from .target import cuda


class StagedRows:
    """The part of `Cuda` for rows that host memory does not hold at once (`wavefilt.outofcore.device_staging`)."""

    clear: Callable[[], None]

    def resident(self, shape: tuple[int, int], dtype: DTypeLike) -> Samples:
        """Room for rows on the current GPU. Raises MemoryError."""
        try:
            room: Samples = guarded(lambda: cuda.device_array(shape, dtype), self.clear)
            return room
        except OutOfMemory as error:
            raise MemoryError(str(error)) from error

    def host_buffer(self, size: int, dtype: DTypeLike) -> Array:
        """Pinned memory."""
        buffer: Array = cuda.pinned_array(size, dtype)
        return buffer

    def send(self, samples: Array, resident: Samples, place: int) -> None:
        interop.flat(resident)[place : place + samples.size].copy_to_device(samples.reshape(-1))

    def fetch(self, resident: Samples, place: int, out: Array) -> None:
        interop.flat(resident)[place : place + out.size].copy_to_host(out.reshape(-1))
