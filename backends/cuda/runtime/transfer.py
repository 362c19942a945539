"""Host arrays to the device and back: through pinned buffers, filled and emptied by several threads at once.

Pageable memory copied by the driver moves at 6-10 GB/s; threads that stage it in pinned memory reach 40 GB/s.
"""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wavefilt.arrays import Array
from wavefilt.threads import available_cpus

from . import graph, interop
from .graph import checked, handle
from .interfaces import DeviceArray, Samples, Stream
from .memory import Buffers, used_up
from .target import SIMULATED, cuda

CHUNK = 4 << 20
THREADS = min(12, available_cpus())
PAGE = 4096


class _Lane:
    """One thread's stream and two pinned buffers, so that it copies into one while the other travels."""

    def __init__(self) -> None:
        self.stream = graph.stream()
        self.buffers = [cuda.pinned_array(CHUNK, np.uint8) for _ in range(2)]
        self.events = [cuda.event() for _ in range(2)]


class Ring:
    """The pinned buffers of this process and the threads that use them; one transfer at a time."""

    LEAST = CHUNK
    """Bytes below which the ring is not worth its threads."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._lanes: list[_Lane] = []

    def _start(self) -> ThreadPoolExecutor:
        if self._pool is None:
            here = cuda.get_current_device().id  # threads begin on the first GPU
            self._pool = ThreadPoolExecutor(self._threads + 4, "wavefilt-transfer", cuda.select_device, (here,))
            self._lanes = [_Lane() for _ in range(self._threads)]
        return self._pool

    def upload(self, host: Array, device: DeviceArray, stream: Stream, touch: Array | None = None) -> None:
        """Copy a contiguous host array into a flat device array, then let ``stream`` go on.

        ``touch`` is an array to be written later: its pages are made meanwhile, which costs as much as the transfer.
        """
        if SIMULATED or host.nbytes < CHUNK or pinned(host):
            device.copy_to_device(host.reshape(-1), stream=stream)
            return
        with self._lock:
            pool = self._start()
            touching = [] if touch is None else _touch(pool, touch)
            self._move(pool, _bytes(host), device, True)
            for future in touching:
                future.result()

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
        if SIMULATED or host.nbytes < CHUNK or pinned(host):
            device.copy_to_host(host.reshape(-1), stream=stream)
            stream.synchronize()
            return
        stream.synchronize()
        with self._lock:
            self._move(self._start(), _bytes(host), device, False)

    def _move(self, pool: ThreadPoolExecutor, host: NDArray[np.uint8], device: DeviceArray, up: bool) -> None:
        from cuda.bindings import driver

        address = interop.address(device)
        starts = iter(range(0, host.size, CHUNK))  # the threads take from it in turn: one at a time, in C

        def work(lane: _Lane) -> None:
            cuda.current_context()
            number, moving = handle(lane.stream), dict[int, slice]()

            def wait(turn: int) -> None:
                """Until what a buffer was last used for is done."""
                if turn in moving:
                    lane.events[turn].synchronize()
                    if not up:
                        piece = moving[turn]
                        host[piece] = lane.buffers[turn][: piece.stop - piece.start]

            for i, start in enumerate(starts):
                turn, piece = i % 2, slice(start, min(start + CHUNK, host.size))
                wait(turn)
                buffer, size = lane.buffers[turn], piece.stop - start
                pinned_address = buffer.ctypes.data
                if up:
                    buffer[:size] = host[piece]
                    checked(driver.cuMemcpyHtoDAsync(address + start, pinned_address, size, number))
                else:
                    checked(driver.cuMemcpyDtoHAsync(pinned_address, address + start, size, number))
                lane.events[turn].record(lane.stream)
                moving[turn] = piece
            for turn in sorted(moving, key=lambda turn: moving[turn].start):
                wait(turn)

        for future in [pool.submit(work, lane) for lane in self._lanes]:
            future.result()


class Results:
    """Host arrays for results: pinned ones, used again once nobody uses them, from the second of a size on.

    Fresh memory costs as much in page faults as its transfer takes, and pinned memory needs no copy of its own;
    but pinning is slow, so a single call does without.
    """

    LIMIT = 2 << 30
    """Bytes of pinned memory in all, in use or free."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[int, list[Array]] = {}
        self._seen: set[int] = set()
        self._total = 0

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """An uninitialised array."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self._lock:
            free = self._free.get(size)
            buffer = free.pop() if free else None
            fresh = buffer is None and size in self._seen and self._total + size <= self.LIMIT
            self._seen.add(size)
            self._total += size if fresh else 0
        if fresh:
            buffer = self._pinned(size)
        if buffer is None:
            return np.empty(shape, dtype)
        in_use = _InUse(buffer)
        weakref.finalize(in_use, self._give_back, buffer).atexit = False
        result: Array = np.asarray(in_use).view(dtype).reshape(shape)
        return result

    def _pinned(self, size: int) -> Array | None:
        """New memory; None where no more can be pinned."""
        try:
            return cuda.pinned_array(size, np.uint8)  # type: ignore[no-any-return]
        except Exception as error:
            with self._lock:
                self._total -= size
            if used_up(error):
                return None
            raise

    def _give_back(self, buffer: Array) -> None:
        with self._lock:
            self._free.setdefault(buffer.nbytes, []).append(buffer)

    def clear(self) -> None:
        """Free the arrays that nobody uses."""
        with self._lock:
            self._total -= sum(buffer.nbytes for free in self._free.values() for buffer in free)
            self._free.clear()
            self._seen.clear()


class _InUse:
    """A pinned buffer in use: it goes back when the last array on it is gone."""

    def __init__(self, buffer: Array) -> None:
        self.__array_interface__ = buffer.__array_interface__


def _bytes(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _touch(pool: ThreadPoolExecutor, array: Array) -> list[Future[None]]:
    """Write a byte of every page of an array that holds nothing yet."""
    pages = _bytes(array)[::PAGE]
    edges = [len(pages) * i // 32 for i in range(33)]

    def write(start: int, stop: int) -> None:
        pages[start:stop] = 0

    return [pool.submit(write, a, b) for a, b in pairwise(edges)]


def pinned(array: Array) -> bool:
    """Whether the device can reach this host memory by itself."""
    from cuda.bindings import driver

    error, kind = driver.cuPointerGetAttribute(
        driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array.ctypes.data
    )
    return int(error) == 0 and int(kind) == int(driver.CUmemorytype.CU_MEMORYTYPE_HOST)
