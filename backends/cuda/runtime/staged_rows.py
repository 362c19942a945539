"""Device-resident rows that come and go piece by piece, through pinned memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from .memory import OutOfMemory, guarded
from .target import cuda


class StagedRows:
    """The part of `Cuda` for rows that host memory does not hold at once (`wavefilt.outofcore.device_staging`)."""

    clear: Callable[[], None]

    def resident(self, shape: tuple[int, int], dtype: Any) -> Any:
        """Room for rows on the current GPU. Raises MemoryError."""
        try:
            return guarded(lambda: cuda.device_array(shape, dtype), self.clear)
        except OutOfMemory as error:
            raise MemoryError(str(error)) from error

    def host_buffer(self, size: int, dtype: Any) -> NDArray[Any]:
        """Pinned memory."""
        buffer: NDArray[Any] = cuda.pinned_array(size, dtype)
        return buffer

    def send(self, samples: NDArray[Any], resident: Any, place: int) -> None:
        resident.reshape(-1)[place : place + samples.size].copy_to_device(samples.reshape(-1))

    def fetch(self, resident: Any, place: int, out: NDArray[Any]) -> None:
        resident.reshape(-1)[place : place + out.size].copy_to_host(out.reshape(-1))
