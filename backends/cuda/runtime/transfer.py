"""Host arrays to the device and back: through pinned buffers, filled and emptied by several threads at once.

Pageable memory copied by the driver moves at 6-10 GB/s; threads that stage it in pinned memory reach 40 GB/s.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import prod
from types import ModuleType

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wavefilt import threads
from wavefilt.arrays import Array
from wavefilt.threads import available_cpus, parallel

from . import interop, staging
from .graph import checked, handle
from .interfaces import DeviceArray, Samples, Stream
from .memory import Buffers
from .target import SIMULATED, cuda

PIECE, SMALLEST, PIECES = 1 << 20, 1 << 18, 2
"""Bytes that are staged and sent at a time, at most and at least, and how many of them a thread has where that lets."""
SHARE = 1 << 20
"""Bytes for which another thread is worth waking."""
THREADS = min(8, available_cpus())
TOUCHING = min(8, available_cpus())
"""Threads that make the pages of a result while others stage."""
SEVERAL = 8 << 20
"""Bytes of spare results that are made together."""
PAGE, HUGE = staging.PAGE, 2 << 20
"""Bytes of a page of memory, and of a huge one: results that fill whole huge pages take a tenth of the faults."""


TOGETHER = 4 << 20
"""Bytes up to which all threads copy one piece after the other, which one thread sends: more are faster by lanes."""
SLOTS, SLOT = 4, 1 << 20
"""Buffers for that, and bytes of each."""


class _Slots:
    """Pinned buffers that all threads fill or empty together, and an event for each."""

    def __init__(self, threads: int) -> None:
        self._memory = cuda.pinned_array(SLOTS * SLOT, np.uint8)
        self._events = [cuda.event(timing=False) for _ in range(SLOTS)]
        first = int(self._memory.ctypes.data)
        self.places = [(first + i * SLOT, handle(event)) for i, event in enumerate(self._events)]
        self._copy = staging.Copying(threads)

    def send(self, host: int, device: int, size: int, stream: int) -> None:
        """Copy to the device; each piece after its slot was sent."""
        from cuda.bindings import driver

        for i, start in enumerate(range(0, size, SLOT)):
            (slot, event), count = self.places[i % SLOTS], min(SLOT, size - start)
            checked(driver.cuEventSynchronize(event))
            self._copy(slot, host + start, count)
            checked(driver.cuMemcpyHtoDAsync(device + start, slot, count, stream))
            checked(driver.cuEventRecord(event, stream))

    def fetch(self, host: int, device: int, size: int, stream: int) -> None:
        """Copy from the device, after what the stream holds, and wait for it."""
        from cuda.bindings import driver

        def begin(i: int) -> None:
            start, (slot, event) = i * SLOT, self.places[i % SLOTS]
            if start < size:
                checked(driver.cuEventSynchronize(event))
                checked(driver.cuMemcpyDtoHAsync(slot, device + start, min(SLOT, size - start), stream))
                checked(driver.cuEventRecord(event, stream))

        for i in range(SLOTS):
            begin(i)
        for i, start in enumerate(range(0, size, SLOT)):
            slot, event = self.places[i % SLOTS]
            checked(driver.cuEventSynchronize(event))
            self._copy(host + start, slot, min(SLOT, size - start))
            begin(i + SLOTS)


class _Lane:
    """Pinned buffers for one thread, so that it fills one while the other travels, and an event for each."""

    def __init__(self) -> None:
        self._buffers, self._events = cuda.pinned_array(2 * PIECE, np.uint8), [cuda.event(timing=False) for _ in "12"]
        first, events = int(self._buffers.ctypes.data), (handle(self._events[0]), handle(self._events[1]))
        self.words: staging.Lane = (first, first + PIECE, *events)


class Ring:
    """The pinned buffers of this process for threads to stage in; one transfer at a time."""

    LEAST = 1 << 19
    """Bytes below which staging is not worth what it takes to begin."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._lanes: dict[int, list[_Lane]] = {}  # by context
        self._slots: dict[int, _Slots] = {}

    def upload(self, host: Array, device: DeviceArray, stream: Stream, touch: Array | None = None) -> None:
        """Copy a contiguous host array into a flat device array, on ``stream``; the host array is free afterwards.

        Unless it is pinned: then it is once the stream has come that far. ``touch`` is an array to be written later:
        its pages are made meanwhile, which costs as much as the transfer.
        """
        if SIMULATED or host.nbytes < self.LEAST:
            device.copy_to_device(host.reshape(-1), stream=stream)
            return
        parts = [] if touch is None else np.array_split(_bytes(touch), min(TOUCHING, -(-touch.nbytes // HUGE)))
        if pinned(host):
            from cuda.bindings import driver

            arguments = interop.address(device), host.ctypes.data, host.nbytes, handle(stream)
            checked(driver.cuMemcpyHtoDAsync(*arguments))
            if parts:
                self._move(_bytes(host)[:0], device, stream, True, parts)
        else:
            self._move(_bytes(host), device, stream, True, parts)

    def brought(self, x: Samples, plan: Buffers, stream: Stream) -> DeviceArray:
        """The rows of ``x`` as a flat device array: where they are, or copied from the host into the plan's."""
        if interop.on_device(x):
            return interop.flat(x)
        host = np.ascontiguousarray(x)
        source = plan.buffer("x", host.size)
        self.upload(host, source, stream)
        return source

    def download(self, device: DeviceArray, host: Array, stream: Stream) -> None:
        """Copy a flat device array into a contiguous host array after what ``stream`` holds, and wait for it."""
        if SIMULATED or host.nbytes < self.LEAST:
            device.copy_to_host(host.reshape(-1), stream=stream)
            stream.synchronize()
        elif pinned(host):
            from cuda.bindings import driver

            arguments = host.ctypes.data, interop.address(device), host.nbytes, handle(stream)
            checked(driver.cuMemcpyDtoHAsync(*arguments))
            stream.synchronize()
        else:
            self._move(_bytes(host), device, stream, False, [])

    def _move(
        self, host: NDArray[np.uint8], device: DeviceArray, stream: Stream, up: bool, touched: Sequence[Array]
    ) -> None:
        """Threads, the calling one too, each with a lane, take piece after piece; others touch pages.

        Nothing waits for the GPU but the use of a slot that is not free, and the pieces of a download.
        """
        from cuda.bindings import driver

        context = int(checked(driver.cuCtxGetCurrent()))
        if 0 < host.size <= TOGETHER and not touched:
            with self._lock:
                slots = self._slots.get(context)
                if slots is None:
                    slots = self._slots[context] = _Slots(self._threads)
                move = slots.send if up else slots.fetch
                move(host.ctypes.data, interop.address(device), host.size, handle(stream))
            return
        count = max(min(self._threads, host.size // SHARE), min(host.size, 1))
        piece = max(min(PIECE, host.size // (PIECES * max(count, 1))) // PAGE * PAGE, SMALLEST)
        places = host.ctypes.data, interop.address(device), handle(stream), context
        with self._lock:
            lanes = self._lanes.setdefault(context, [])
            while len(lanes) < count:
                lanes.append(_Lane())
            own = [lane.words for lane in lanes[:count]]
            staging.run(staging.Job(piece, host.size, *places), up, own, touched)


class Results:
    """Host arrays for results, in memory that earlier ones have given back where there is any.

    Fresh memory costs as much in page faults as its transfer takes. Memory that comes again is pinned, so that the GPU
    writes it without a copy in between; that of results which are kept never is, as pinning takes longer than both.
    """

    LIMIT = 1 << 30
    """Bytes kept that no array uses."""
    SPARE = 64 << 20
    """Bytes of a result up to which, beside the work on one, memory for the next is made where results are kept."""

    def __init__(self) -> None:
        # by address, in the order they came free; single operations of a dict are atomic: __del__ could take no lock
        self._free: dict[int, _Block] = {}
        self._new: set[int] = set()  # sizes of results that were new memory
        self._coming: set[int] = set()  # sizes of which a spare block is being made

    def lend(self, shape: tuple[int, ...], dtype: DTypeLike) -> tuple[Array, bool]:
        """An uninitialised array, and whether its pages have yet to be made."""
        dtype = np.dtype(dtype)
        size, block = prod(shape) * dtype.itemsize, None
        for address, free in reversed(list(self._free.items())):
            if free.size == size and self._free.pop(address, None) is not None:
                block = free
                break
        fresh = block is None
        if block is None:
            block = _Block(size)
        if block.used:
            block.pin()
        elif size in self._new and self._lacks(size):
            self._coming.add(size)
            threads.begin(partial(self._make_spares, size))
        self._new.add(size)
        block.used = True
        interface = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (block.address, False)}
        return np.asarray(_InUse(self, block, interface)), fresh

    def _lacks(self, size: int) -> bool:
        """Whether spare blocks are to be made: before the last of those made together is gone."""
        if size > self.SPARE or size in self._coming:
            return False
        return sum(block.size == size for block in list(self._free.values())) < max(_together(size) // 2, 1)

    def give_back(self, block: _Block) -> None:
        self._free[block.address] = block
        blocks = list(self._free.items())
        excess = sum(free.size for _, free in blocks) - self.LIMIT
        for address, free in blocks:
            if excess <= 0:
                return
            self._free.pop(address, None)  # another thread may have taken it
            excess -= free.size

    def _make_spares(self, size: int) -> None:
        """Several if they are small: each time takes the interpreter's lock for a moment."""
        try:
            for _ in range(_together(size)):
                block = _Block(size)
                block.touch()
                self.give_back(block)
        finally:
            self._coming.discard(size)

    def clear(self) -> None:
        """Free the memory that nobody uses."""
        self._free.clear()
        self._new.clear()


def _together(size: int) -> int:
    """Spare blocks that are made at a time."""
    return max(min(SEVERAL // size, 8), 1)


class _InUse:
    """Owner of an array's memory: it gives it back when the last array on it is gone."""

    def __init__(self, results: Results, block: _Block, interface: dict[str, object]) -> None:
        self._results, self._block, self.__array_interface__ = results, block, interface

    def __del__(self) -> None:
        self._results.give_back(self._block)


class _Block:
    """Whole pages of host memory, pinned on demand."""

    def __init__(self, size: int) -> None:
        unit, extent = HUGE if size >= HUGE else PAGE, -(-size // PAGE) * PAGE
        self._memory = _new(extent + unit)
        place = int(self._memory.ctypes.data)
        self.size, self.address, self._extent = size, place + -place % unit, extent
        self.used = self._tried = False

    def touch(self) -> None:
        """Make its pages."""
        place = self.address - int(self._memory.ctypes.data)
        parts = np.array_split(self._memory[place : place + self._extent], min(TOUCHING, -(-self.size // HUGE)))

        def write(begin: int, end: int) -> None:
            for part in parts[begin:end]:  # of 500 pages or more NumPy lets other threads run meanwhile
                part[:: max(min(PAGE, len(part) // 512), 1)] = 0

        parallel(write, len(parts))

    def pin(self) -> None:
        """Where the system refuses, it stays pageable."""
        if SIMULATED or self._tried:
            return
        from cuda.bindings import driver

        self._tried = True
        cuda.current_context()
        context = checked(driver.cuCtxGetCurrent())
        (error,) = driver.cuMemHostRegister(self.address, self._extent, driver.CU_MEMHOSTREGISTER_PORTABLE)
        if int(error) == 0:
            facts = driver, context, self.address, self._memory, os.getpid()
            weakref.finalize(self, _unpin, *facts).atexit = False


unfreed: list[Array] = []
"""Memory that the driver has not let go of: were it used for something else, a GPU could still write there."""


def _unpin(driver: ModuleType, context: object, address: int, memory: Array, process: int) -> None:
    if os.getpid() != process:  # a forked child, whose memory is a copy that no GPU knows
        return
    driver.cuCtxPushCurrent(context)
    (error,) = driver.cuMemHostUnregister(address)
    driver.cuCtxPopCurrent()
    if int(error) != 0:
        unfreed.append(memory)


def _bytes(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _new(size: int) -> NDArray[np.uint8]:
    """Memory whose pages are not there yet, in huge pages where the system gives them."""
    if sys.platform != "linux":
        return np.empty(size, np.uint8)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError, AttributeError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def pinned(array: Array) -> bool:
    """Whether the device can reach this host memory by itself."""
    from cuda.bindings import driver

    error, kind = driver.cuPointerGetAttribute(
        driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array.ctypes.data
    )
    return int(error) == 0 and int(kind) == int(driver.CUmemorytype.CU_MEMORYTYPE_HOST)
