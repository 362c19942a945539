"""Host arrays to the device and back: through pinned buffers, filled and emptied by several threads at once.

Pageable memory copied by the driver moves at 6-10 GB/s; threads that stage it in pinned memory reach 40 GB/s:

    host array   |piece 0|piece 1|piece 2|piece 3| ...     each thread takes the next piece
    lane 0       |slot 0|slot 1|                           a thread fills one slot while the other travels
    lane 1       |slot 0|slot 1|

The threads run machine code without Python (`numba_cpu.team_kernels`): in Python every call of the driver takes the
interpreter's lock, for which eight threads wait longer than they copy.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wavefilt import threads
from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import entries, native, team
from wavefilt.threads import available_cpus, parallel

from . import interop
from .graph import DriverError, checked, handle
from .interfaces import DeviceArray, Stream
from .target import SIMULATED, cuda, driver

PIECE, SMALLEST, PIECES = 1 << 20, 1 << 18, 2
"""Bytes that are staged and sent at a time, at most and at least, and pieces of a thread if there are enough."""
SHARE = 1 << 18
"""Bytes for which another thread is worth waking."""
THREADS = min(8, available_cpus())
"""Threads that stage, and threads that make the pages of a result meanwhile."""
SEVERAL = 8 << 20
"""Bytes of spare results that are made together."""
PAGE, HUGE = 4 << 10, 2 << 20
"""Bytes of a page of memory, and of a huge one: results that fill whole huge pages take a tenth of the faults."""
_KERNELS = entries.TRANSFER, *entries.TEAM


@cache
def _calls() -> tuple[int, ...]:
    """Return the addresses of the C library's function that copies memory, and of functions of the driver."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    names = "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuCtxSetCurrent"
    functions = ctypes.memmove, *(library[name] for name in names)
    return tuple(int(ctypes.cast(function, ctypes.c_void_p).value or 0) for function in functions)


class _Lane:
    """Pinned buffers for one thread, so that it fills one while the other travels, and an event for each."""

    def __init__(self) -> None:
        self._buffers, self._events = cuda.pinned_array(2 * PIECE, np.uint8), [cuda.event(timing=False) for _ in "12"]
        first = int(self._buffers.ctypes.data)
        self.words = first, first + PIECE, *map(handle, self._events)


class _Transfer:
    """A transfer by some lanes in a direction, while other threads make pages; made once and run many times.

    The words that its threads read are described in `numba_cpu.team_kernels`.
    """

    def __init__(self, lanes: Sequence[_Lane], up: bool, touching: int) -> None:
        move, send, fetch, *others = _calls()
        self._taken = np.zeros(1, np.int64)
        calls, parts = (move, send if up else fetch, *others), [word for lane in lanes for word in lane.words]
        words = [self._taken.ctypes.data, *[0] * 6, *calls, len(lanes), *parts, *[0] * 4 * touching]
        self._words = np.array(words, np.int64)
        self._touched = self._words[len(self._words) - 4 * touching :].reshape(touching, 4)
        native.load(_KERNELS, np.dtype(float))
        work = entries.TRANSFER.of(np.dtype(float), self._words, int(up), kept=(self._taken, lanes))
        self._program = team.Program([team.Job(work, len(lanes) + touching)])

    def run(self, sizes: tuple[int, int], places: tuple[int, int, int, int], touched: Sequence[Array]) -> None:
        """Copy between two ``places``; ``sizes`` are those of a piece and of all. Raises DriverError.

        The places are host, device, stream and context.
        """
        self._taken[0] = 0
        self._words[1:7] = *sizes, *places
        for words, part in zip(self._touched, touched, strict=True):
            words[:2] = part.ctypes.data, part.ctypes.data + part.nbytes
        error = self._program.run()
        if error:
            raise DriverError(error, f"error {error} in a transfer")


class Ring:
    """The pinned buffers of this process for threads to stage in; one transfer at a time."""

    LEAST = 1 << 19
    """Bytes below which staging is not worth what it takes to begin."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._lanes: dict[int, list[_Lane]] = {}  # by context
        self._transfers: dict[tuple[int, int, bool, int], _Transfer] = {}  # by context, lanes, direction, parts touched

    def prepare(self) -> None:
        """Begin to load or to compile the functions that copy, while kernels are compiled."""
        if not SIMULATED:
            threads.begin(partial(native.load, _KERNELS, np.dtype(float)))

    def upload(self, host: Array, device: DeviceArray, stream: Stream, touch: Array | None = None) -> None:
        """Copy a contiguous host array into a flat device array, on ``stream``; the host array is free afterwards.

        Unless it is pinned: then it is once the stream has come that far. ``touch`` is an array to be written later:
        its pages are made meanwhile, which costs as much as the transfer.
        """
        if SIMULATED or host.nbytes < self.LEAST:
            device.copy_to_device(host.reshape(-1), stream=stream)
            return
        parts = [] if touch is None else np.array_split(_bytes(touch), min(THREADS, -(-touch.nbytes // HUGE)))
        direct = pinned(host)
        if direct:
            arguments = interop.address(device), host.ctypes.data, host.nbytes, handle(stream)
            checked(driver.cuMemcpyHtoDAsync(*arguments))
        if parts or not direct:
            self._move(_bytes(host)[:0] if direct else _bytes(host), device, stream, True, parts)

    def download(self, device: DeviceArray, host: Array, stream: Stream) -> None:
        """Copy a flat device array into a contiguous host array after the work on ``stream``, and wait for it."""
        if SIMULATED or host.nbytes < self.LEAST:
            device.copy_to_host(host.reshape(-1), stream=stream)
            stream.synchronize()
        elif pinned(host):
            arguments = host.ctypes.data, interop.address(device), host.nbytes, handle(stream)
            checked(driver.cuMemcpyDtoHAsync(*arguments))
            stream.synchronize()
        else:
            self._move(_bytes(host), device, stream, False, [])

    def _move(
        self, host: NDArray[np.uint8], device: DeviceArray, stream: Stream, up: bool, touched: Sequence[Array]
    ) -> None:
        """Let threads, the calling one too, each with a lane, take piece after piece; others touch pages.

        Nothing waits for the GPU except for a slot that is not free, and for the pieces of a download.
        """
        context = int(checked(driver.cuCtxGetCurrent()))
        count = max(min(self._threads, host.size // SHARE), min(host.size, 1))
        piece = max(min(PIECE, host.size // (PIECES * max(count, 1))) // PAGE * PAGE, SMALLEST)
        key = context, count, up, len(touched)
        with self._lock:
            lanes = self._lanes.setdefault(context, [])
            while len(lanes) < count:
                lanes.append(_Lane())
            if key not in self._transfers:
                self._transfers[key] = _Transfer(lanes[:count], up, len(touched))
            places = host.ctypes.data, interop.address(device), handle(stream), context
            self._transfers[key].run((piece, host.size), places, touched)


class _Loan(weakref.ref[NDArray[Any]]):
    """The owner of an array's memory, while it lives, and the block of that memory."""

    __slots__ = ("block",)
    block: _Block


class Results:
    """Host arrays for results, in memory that earlier ones have given back where there is any.

    Fresh memory costs as much in page faults as its transfer takes. Memory that comes again is pinned, so that the GPU
    writes it without a copy in between; that of results which are kept never is, as pinning takes longer than both.

    Memory comes back when its array is gone, by a callback that is no Python code, so that no interrupt can end it:
    it notes the loan in a queue, which is emptied by the next call.
    """

    LIMIT = 1 << 30
    """Bytes that are lent, or kept while no array uses them; memory beyond that is freed with its array."""
    SPARE = 64 << 20
    """Bytes of a result up to which, beside the work on one, memory for the next is made where results are kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: deque[_Loan] = deque()
        self._loans: dict[int, _Loan] = {}  # by identity
        self._free: list[_Block] = []  # in the order in which they came free
        self._new: set[int] = set()  # sizes of results that were new memory
        self._coming: set[int] = set()  # sizes of which a spare block is being made

    def lend(self, shape: tuple[int, ...], dtype: DTypeLike) -> tuple[Array, bool]:
        """Return an uninitialised array, and whether its pages have yet to be made."""
        dtype = np.dtype(dtype)
        size, making, lent = prod(shape) * dtype.itemsize, False, False
        with self._lock:
            self._collect()
            block = next((free for free in reversed(self._free) if free.size == size), None)
            fresh = block is None
            if block is None:
                block = _Block(size)
            else:
                self._free.remove(block)
            if not block.used and size in self._new and self._lacks(size):
                self._coming.add(size)
                making = True
            self._new.add(size)
            array = block.array[:size].view(dtype).reshape(shape)
            if size + sum(loan.block.size for loan in self._loans.values()) <= self.LIMIT:
                facts = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (block.address, False)}
                owner = _Owner(facts, block)
                loan = _Loan(owner, self._ended.append)  # type: ignore[arg-type]
                loan.block = block
                self._loans[id(loan)] = loan
                array, lent = np.asarray(owner), True
        if lent and block.used:
            block.pin()
        block.used = True
        if making:
            threads.begin(partial(self._make_spares, size))
        return array, fresh

    def _collect(self) -> None:
        """Take back the memory of arrays that are gone, and drop the memory that came free first beyond the limit."""
        while self._ended:
            loan = self._ended.popleft()
            del self._loans[id(loan)]
            self._free.append(loan.block)
        excess = sum(block.size for block in self._free) - self.LIMIT
        while excess > 0:
            excess -= self._free.pop(0).size

    def _lacks(self, size: int) -> bool:
        """Return whether to make spare blocks: when half of the last ones are used."""
        if size > self.SPARE or size in self._coming:
            return False
        return sum(block.size == size for block in self._free) < max(_together(size) // 2, 1)

    def _make_spares(self, size: int) -> None:
        """Make several blocks if they are small: each time takes the interpreter's lock for a moment."""
        try:
            for _ in range(_together(size)):
                block = _Block(size)
                block.touch()
                with self._lock:
                    self._free.append(block)
        finally:
            with self._lock:
                self._coming.discard(size)

    def clear(self) -> None:
        """Free the memory that nobody uses."""
        with self._lock:
            self._collect()
            self._free.clear()
            self._new.clear()


def _together(size: int) -> int:
    """Spare blocks that are made at a time."""
    return max(min(SEVERAL // size, 8), 1)


class _Owner:
    """Owner of an array's memory, which it keeps alive even if the pool is gone."""

    __slots__ = ("__array_interface__", "__weakref__", "_block")

    def __init__(self, interface: dict[str, object], block: _Block) -> None:
        self.__array_interface__, self._block = interface, block


class _Block:
    """Whole pages of host memory, pinned on demand."""

    def __init__(self, size: int) -> None:
        unit, extent = HUGE if size >= HUGE else PAGE, -(-size // PAGE) * PAGE
        self._memory = _new(extent + unit)
        place = int(self._memory.ctypes.data)
        self.size, self.address, self._extent = size, place + -place % unit, extent
        self.array = self._memory[self.address - place :]
        self.used = self._tried = False

    def touch(self) -> None:
        """Make its pages."""
        parts = np.array_split(self.array[: self._extent], min(THREADS, -(-self.size // HUGE)))

        def write(begin: int, end: int) -> None:
            for part in parts[begin:end]:  # of 500 pages or more NumPy lets other threads run meanwhile
                part[:: max(min(PAGE, len(part) // 512), 1)] = 0

        parallel(write, len(parts))

    def pin(self) -> None:
        """Pin the memory until this is gone; if the system refuses, it stays pageable."""
        if SIMULATED or self._tried:
            return
        self._tried = True
        cuda.current_context()
        context = checked(driver.cuCtxGetCurrent())
        (error,) = driver.cuMemHostRegister(self.address, self._extent, driver.CU_MEMHOSTREGISTER_PORTABLE)
        if int(error) == 0:
            weakref.finalize(self, _unpin, context, self.address, self._memory, os.getpid()).atexit = False


unfreed: list[Array] = []
"""Memory that the driver has not let go of: were it used for something else, a GPU could still write there."""


def _unpin(context: object, address: int, memory: Array, process: int) -> None:
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
    """Return whether the device can access this host memory directly."""
    error, kind = driver.cuPointerGetAttribute(
        driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array.ctypes.data
    )
    return int(error) == 0 and int(kind) == int(driver.CUmemorytype.CU_MEMORYTYPE_HOST)
