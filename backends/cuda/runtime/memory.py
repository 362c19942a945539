"""Memory and streams that belong to a plan and are used again, and what to do when memory is used up."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial, wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from numpy.typing import DTypeLike

from wavefilt.arrays import Array

from . import graph
from .interfaces import DeviceArray, Event, Stream
from .interop import exhausted
from .target import SIMULATED, CudaAPIError, cuda

Result = TypeVar("Result")
Owner = TypeVar("Owner", bound="_Clearing")
Given = ParamSpec("Given")
OUT_OF_MEMORY = 2
"""The driver's CUDA_ERROR_OUT_OF_MEMORY."""
KEPT = 8  # methods whose launches a plan keeps


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


class _Clearing(Protocol):
    @property
    def clear(self) -> Callable[[], None]: ...


def retried(
    method: Callable[Concatenate[Owner, Given], Result],
) -> Callable[Concatenate[Owner, Given], Result]:
    """Decorator of a method: call it as `guarded` does, with the ``clear`` of its object."""

    @wraps(method)
    def call(self: Owner, *arguments: Given.args, **named: Given.kwargs) -> Result:
        return guarded(partial(method, self, *arguments, **named), self.clear)

    return call


def used_up(error: Exception) -> bool:
    """Whether an error says that memory is used up: ours, the driver's, or that of the caller's library."""
    if isinstance(error, (CudaAPIError, graph.DriverError)):
        return int(error.args[0]) == OUT_OF_MEMORY
    if type(error).__module__.startswith("cuda.core"):  # which launches kernels and loads them
        return "CUDA_ERROR_OUT_OF_MEMORY" in str(error)
    return isinstance(error, (OutOfMemory, *exhausted()))


class Kept(Protocol):
    """An object kept with a plan, and its bytes of device memory."""

    bytes: int


Made = TypeVar("Made", bound=Kept)


class Buffers:
    """Named arrays, made when they are first asked for; ``dtype`` is that of the samples."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.key: Hashable = None
        self.bytes = 0  # of device memory
        self._buffers: dict[str, DeviceArray] = {}
        self._staging: dict[str, Array] = {}
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self.stream: Stream  # that of the caller, set by whoever lends this
        self._left: Event | None = None  # recorded behind work that was not waited for
        self._told: list[Callable[[], bool]] = []  # whether that was finite, once it has ended
        self._stream: Stream | None = None
        self._side: Stream | None = None

    def release(self) -> None:
        """Let go of all memory at once, not when Python finds the cycles."""
        vars(self).clear()

    @property
    def crowded(self) -> bool:
        """Whether the work of many methods was left, none of which can be given up before it is `settled`."""
        return len(self._told) >= KEPT

    def leave(self, told: Callable[[], bool]) -> None:
        """Do not wait: the next user waits for the work on the stream, and ``told`` returns whether it was finite."""
        if graph.handle(self.stream) not in graph.DEFAULTS:
            self._left = self._left or cuda.event()
            self._left.record(self.stream)
        if told not in self._told:
            self._told.append(told)

    def take_over(self) -> None:
        """Let the stream wait for work left on it: another stream may have the same number, if not a default stream."""
        if self._told and self._left is not None:
            self._left.wait(self.stream)

    def settled(self) -> bool:
        """Wait for work left on the stream, and return whether it was finite."""
        if not self._told:
            return True
        (self._left or self.stream).synchronize()
        finite = [told() for told in self._told]
        self._told = []
        return all(finite)

    def buffer(self, name: str, size: int, dtype: DTypeLike | None = None) -> DeviceArray:
        """The plan's device array of this name, made when it is first asked for."""
        if name not in self._buffers:
            self._buffers[name] = cuda.device_array(size, dtype or self.dtype)
            self.bytes += int(self._buffers[name].nbytes)
        return self._buffers[name]

    def staging(self, name: str, size: int) -> Array:
        """The plan's pinned host array of this name."""
        if name not in self._staging:
            self._staging[name] = cuda.pinned_array(size, self.dtype)
        return self._staging[name]

    def own_stream(self) -> Stream:
        """A stream for work that comes from the host."""
        if self._stream is None:
            self._stream = graph.stream()
        return self._stream

    def side_stream(self) -> Stream:
        """A stream for what can run beside the plan's other work."""
        if self._side is None:
            self._side = graph.stream()
        return self._side

    def found(self, key: Hashable) -> object:
        """The object kept under this key; None if there is none."""
        return self._kept.get(key)

    def kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The object kept under this key, made when it is first asked for."""
        if key not in self._kept:
            self._kept[key] = make()
            self.bytes += self._kept[key].bytes
            while len(self._kept) > KEPT:
                self.bytes -= self._kept.popitem(last=False)[1].bytes
        self._kept.move_to_end(key)
        return cast(Made, self._kept[key])
