"""Copies of host memory to and from pinned buffers, by threads that need no Python.

In Python every call of the driver takes the interpreter's lock, for which eight threads wait longer than they copy, and
waking a Python thread takes as long as copying half a MiB. So the team of the CPU backend runs compiled functions.
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


class Functions(NamedTuple):
    """Addresses of the C library's function that copies memory, and of the driver's."""

    move: int
    send: int
    fetch: int
    record: int
    synchronize: int
    use: int


class Job(NamedTuple):
    """A transfer in pieces of some bytes: numbers and addresses only."""

    piece: int
    total: int
    host: int
    device: int
    stream: int
    context: int


Lane = tuple[int, int, int, int]
"""Two pinned buffers of a thread, and the events after which they may be used again."""


@cache
def driver() -> Functions:
    """Return the functions of this system."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    names = "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuCtxSetCurrent"
    return Functions(*(_address(function) for function in (ctypes.memmove, *(library[name] for name in names))))


@cache
def prepare() -> None:
    """Begin to load the compiled functions, or to compile them in other processes."""
    kernels = [entries.SEND, entries.FETCH, *entries.TEAM]
    threads.begin(partial(native.load, kernels, np.dtype(np.float64)))


def _address(function: Callable[..., object]) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]


def run(job: Job, up: bool, lanes: Sequence[Lane], touched: Sequence[Array] = ()) -> None:
    """Copy everything to or from the device, with a thread for each lane.

    More threads write to every page of memory that holds nothing yet. Raises DriverError.
    """
    taken, calls = np.zeros(1, np.int64), driver()
    copy = calls.send if up else calls.fetch
    head = taken.ctypes.data, *job, calls.move, copy, calls.record, calls.synchronize, calls.use, len(lanes)
    parts = [(part.ctypes.data, part.ctypes.data + part.nbytes) for part in touched]
    words = np.array([*head, *sum(lanes, ()), *sum(parts, ())], np.int64)
    kernel = entries.SEND if up else entries.FETCH
    work = kernel.of(np.dtype(np.float64), words, kept=(taken, touched))
    error = team.parallel(work, len(lanes) + len(parts))
    if error:
        raise DriverError(error, f"error {error} in a transfer")
