"""Types of the parts of numba's device arrays, streams, events and compiled functions that the backend uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from wavefilt.arrays import Array, DType

DeviceFunction: TypeAlias = Callable[..., Any]
"""A function that kernels call; numba infers its types at the call."""


Samples: TypeAlias = Array
"""An array of any library, in host memory or on a GPU: what is used of CuPy's and PyTorch's is named as in NumPy."""


class Build(NamedTuple):
    """The constants of all kernels of a plan."""

    dtype: str
    threads: int
    fastmath: bool = False
    padding: bool = True


class Stream(Protocol):
    """A queue of work on a GPU."""

    @property
    def handle(self) -> Any: ...
    def synchronize(self) -> None: ...


class Event(Protocol):
    """A place in a stream."""

    def record(self, stream: Stream) -> None: ...
    def wait(self, stream: Stream) -> None: ...
    def synchronize(self) -> None: ...


class DeviceArray(Protocol):
    """Memory on a GPU, with the type of its elements."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __getitem__(self, place: slice | tuple[slice | int, ...]) -> DeviceArray: ...
    def reshape(self, *shape: int) -> DeviceArray: ...
    def view(self, dtype: DType) -> DeviceArray: ...
    def copy_to_host(self, out: Array | None = None, stream: Stream | None = None) -> Array: ...
    def copy_to_device(self, source: Array | DeviceArray, stream: Stream | None = None) -> None: ...


class Kernel(Protocol):
    """A compiled kernel: ``kernel[blocks, threads, stream](*arguments)`` launches it."""

    def __getitem__(self, launch: tuple[Any, ...]) -> Callable[..., None]: ...
