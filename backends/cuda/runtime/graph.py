"""Launches recorded once as a CUDA graph: a launch costs 30 µs of Python, a whole graph 10 µs, on any arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from ctypes import POINTER, addressof, c_char, c_uint64, c_void_p, cast, memmove
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .interfaces import DeviceArray, Stream
from .target import SIMULATED, cuda, driver

STAND_INS = (0x7FFA << 48, 0x7FFC << 48)
"""Addresses that stand for the caller's input and output in a recording: of no memory, and as float64 they are NaN.

So no other parameter of a kernel has such a value, and what points into input or output is found by its value.
"""
SPAN = 1 << 47
"""Bytes from one of them on that belong to it."""


DEFAULTS = (0, 1, 2)
"""Numbers of the default streams, which are always there: the legacy one has two, and each thread has another."""


def handle(stream: Stream) -> int:
    """The driver's number of a numba stream; 0 where all is simulated."""
    if SIMULATED:
        return 0
    value = stream.handle
    return int(value.value or 0) if isinstance(value, c_void_p) else int(value)


def wait(stream: Stream) -> None:
    """Until the stream's work is done; numba's own way takes 2 us longer."""
    if not SIMULATED:
        checked(driver.cuStreamSynchronize(handle(stream)))


def stream() -> Stream:
    """A new stream that does not wait for the legacy default stream, which a capture must not depend on."""
    if SIMULATED:
        return cuda.stream()  # type: ignore[no-any-return]
    cuda.current_context()
    number = int(checked(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))
    return cuda.external_stream(number)  # type: ignore[no-any-return]


def capturing(number: int) -> bool:
    """Whether the caller records what is launched on the stream of this number; the legacy default stream cannot be."""
    return number > 1 and int(checked(driver.cuStreamIsCapturing(number))) != 0


@cache
def repoints() -> bool:
    """Return whether the driver reports the sizes of a kernel's parameters; otherwise a `Graph` keeps its arrays."""
    if SIMULATED:
        return False
    return int(checked(driver.cuDriverGetVersion())) >= 12040


def stand_in(which: int, size: int, dtype: DTypeLike, aligned: bool) -> DeviceArray:
    """A flat array to record a `Graph` with, in the place of input (0) or output (1): at a multiple of 16 or not."""
    item = np.dtype(dtype).itemsize
    address = c_void_p(STAND_INS[which] + (0 if aligned else item))
    memory = cuda.cudadrv.driver.MemoryPointer(cuda.current_context(), address, size * item)
    return cuda.cudadrv.devicearray.DeviceNDArray((size,), (item,), dtype, gpu_data=memory)  # type: ignore[no-any-return]


class Graph:
    """The launches of ``work(stream)``, recorded to be launched again on any stream, by one thread at a time.

    Where ``work`` takes `stand_in` arrays, every launch names the addresses to be used instead: they are written to the
    kernel nodes that hold them (`cuGraphExecKernelNodeSetParams`), 1 µs each; earlier launches
    are not affected. Raises DriverError where the driver refuses, as it does a copy between such arrays.
    """

    def __init__(self, work: Callable[[Stream], None], addresses: tuple[int, ...] = ()) -> None:
        """Record ``work``; ``addresses`` are the addresses of its stand-ins."""
        on = stream()
        # any other mode is ended by memory that the garbage collector frees meanwhile in this thread
        checked(driver.cuStreamBeginCapture(handle(on), driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        try:
            work(on)
        finally:
            self._graph = checked(driver.cuStreamEndCapture(handle(on)))  # kept: updates name its nodes
            weakref.finalize(self, driver.cuGraphDestroy, self._graph).atexit = False
            driver.cuStreamDestroy(handle(on))
        found = [_Node(node, addresses) for node in self._kernels()] if addresses else []
        self._nodes = [node for node in found if node.pointers]
        self._pointers = [pointer for node in self._nodes for pointer in node.pointers]
        self._updates = [(node.node, node.parameters) for node in self._nodes]
        self._addresses: tuple[int, ...] | None = addresses
        self._executable = checked(driver.cuGraphInstantiate(self._graph, 0))
        weakref.finalize(self, driver.cuGraphExecDestroy, self._executable).atexit = False

    def _kernels(self) -> list[Any]:
        """The nodes that launch kernels."""
        error, _, count = driver.cuGraphGetNodes(self._graph)
        checked((error,))
        error, nodes, _ = driver.cuGraphGetNodes(self._graph, count)
        checked((error,))
        kernel = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
        return [node for node in nodes if checked(driver.cuGraphNodeGetType(node)) == kernel]

    def launch(self, stream: Stream, addresses: tuple[int, ...] = ()) -> None:
        """Launch, with what begins at these ``addresses`` in the place of the stand-ins."""
        executable = self._executable
        if addresses != self._addresses:
            self._addresses = None  # until all nodes have them
            for value, which, offset in self._pointers:
                value.value = addresses[which] + offset
            update = driver.cuGraphExecKernelNodeSetParams
            for node, parameters in self._updates:
                checked(update(executable, node, parameters))
            self._addresses = addresses
        checked(driver.cuGraphLaunch(executable, handle(stream)))


class _Node:
    """A kernel node, and parameters for it in memory of ours.

    ``pointers`` are the parameters that point into a stand-in: the value, which one, and how far into it.
    """

    def __init__(self, node: Any, stand_ins: tuple[int, ...]) -> None:
        self.node, self.parameters = node, checked(driver.cuGraphKernelNodeGetParams(node))
        theirs = cast(int(self.parameters.kernelParams), POINTER(c_void_p))
        function, kernel = int(self.parameters.func or 0), int(self.parameters.kern or 0)
        if function:
            size_of: Any = partial(driver.cuFuncGetParamInfo, driver.CUfunction(function))
        else:
            size_of = partial(driver.cuKernelGetParamInfo, driver.CUkernel(kernel))
        self._values: list[Any] = []
        self.pointers: list[tuple[Any, int, int]] = []
        while True:
            error, _, size = size_of(len(self._values))
            if error == driver.CUresult.CUDA_ERROR_INVALID_VALUE:  # that was the last one
                break
            checked((error,))
            value = (c_uint64 if size == 8 else c_char * size)()
            memmove(addressof(value), theirs[len(self._values)], size)
            self._values.append(value)
            if size == 8:
                places = [(i, value.value - first) for i, first in enumerate(stand_ins)]
                self.pointers += [(value, i, offset) for i, offset in places if 0 <= offset < SPAN]
        self._own = (c_void_p * len(self._values))(*map(addressof, self._values))
        self.parameters.kernelParams = addressof(self._own)


class DriverError(RuntimeError):
    """An error of the CUDA driver: its code and its name."""

    def __init__(self, code: int, name: str) -> None:
        super().__init__(code, f"the CUDA driver reports {name}")


def checked(result: tuple[Any, ...]) -> Any:
    """Return the result of a function of the driver. Raises DriverError."""
    error = result[0]
    if error:
        raise DriverError(int(error), error.name)
    return result[1] if len(result) > 1 else None
