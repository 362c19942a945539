"""Copies of host memory to and from pinned buffers, as machine code for threads without Python.

In Python every call of the driver takes the interpreter's lock, for which eight threads wait longer than they copy; and
to wake a Python thread takes as long as to copy half a MiB.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import entries, native, team

from .graph import DriverError

PAGE = 4 << 10
"""Bytes of a page of memory."""


class Functions(NamedTuple):
    """Addresses of the C library's function that copies memory, and of the driver's."""

    move: int
    send: int
    fetch: int
    record: int
    synchronize: int
    use: int


class Job(NamedTuple):
    """A transfer: all numbers and addresses."""

    piece: int
    """Bytes that are staged and sent at a time."""
    total: int
    host: int
    device: int
    stream: int
    context: int


Lane = tuple[int, int, int, int]
"""Two pinned buffers, and the events after which they may be used again: what one thread works with at a time."""


@cache
def driver() -> Functions:
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    names = "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuCtxSetCurrent"
    return Functions(*(_address(function) for function in (ctypes.memmove, *(library[name] for name in names))))


def prepare() -> None:
    """Begin to load the compiled functions, or to compile them, in a thread."""
    threads.begin(partial(native.load, (entries.TRANSFER, *entries.TEAM), np.dtype(float)))


def _address(function: Callable[..., object]) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]


def run(job: Job, up: bool, lanes: Sequence[Lane], touched: Sequence[Array] = ()) -> None:
    """Copy everything, to the device or from it, with a thread for each lane.

    More threads write a byte of every page of memory that holds nothing yet. Raises DriverError.
    """
    taken, calls = np.zeros(1, np.int64), driver()
    common = taken.ctypes.data, *job, calls.move, calls.send if up else calls.fetch, calls.record, calls.synchronize
    parts = [(part.ctypes.data, part.ctypes.data + part.nbytes, 0, 0) for part in touched]
    words = np.array([*common, calls.use, len(lanes), *sum([*lanes, *parts], ())], np.int64)
    native.load((entries.TRANSFER, *entries.TEAM), np.dtype(float))  # at once, if they have to be compiled
    work = entries.TRANSFER.of(np.dtype(float), words, int(up), kept=(taken, touched))
    error = team.parallel(work, len(lanes) + len(parts))
    if error:
        raise DriverError(error, f"error {error} in a transfer")
