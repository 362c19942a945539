"""Large arrays in memory used before: the first touch of fresh pages takes as long as half a transform."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from ctypes import addressof, c_char
from pathlib import Path
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from wavefilt.arrays import Array, Counts, DType


def _retained() -> int:
    most = 1 << 40
    with suppress(OSError, ValueError, AttributeError):  # AttributeError on Windows
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of a container
        with suppress(OSError, ValueError):  # "max"
            most = min(most, int((Path("/sys/fs/cgroup") / name).read_text()))
    return min(max(most // 32, 192 << 20), 1 << 30) if most < 1 << 40 else 192 << 20


RETAINED = _retained()
"""Bytes of memory kept for later arrays at most: 1/32 of the machine's, at least 192 MiB and at most 1 GiB.

The coefficients and the result of 16 Mi float32 samples take 128 MiB, those of 64 Mi 512 MiB.
"""

HUGE = 2 << 20
"""Bytes of a huge page: results of 2 to 4 MiB are filled twice as fast in those as in pages of 4 KiB."""
LINE = 64  # bytes of a cache line
PASSED = 1 << 24
"""Bytes of a result, or of the details of a level, from which stores bypass the caches."""

SMALLEST = 1 << 19  # bytes from which an array is worth keeping: `malloc` keeps smaller ones itself
BLOCKS = 32  # that are searched for one of the right size

_lock = threading.Lock()
_blocks: dict[tuple[int, int], Array] = {}
"""The owners of the memory of recent arrays, by the arrays' size and address; the last used is at the end.

A block is free if nothing else refers to its owner: an array and all its views do. There is no destructor that would
have to give it back, in which an interrupt could be lost.
"""
_UNUSED = next(map(getrefcount, {0: np.empty(0)}.values()))
"""The reference count of an owner that only `_blocks` refers to."""


def _forget() -> None:
    """Begin with no blocks: another thread may have held the lock when the process was forked."""
    global _lock
    _lock = threading.Lock()
    _blocks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class _Workspace(threading.local):
    """Working memory of the kernels, for each thread as much as any of its calls has needed."""

    size, begin = 0, 0
    block: Array = np.empty(0, np.uint8)


_workspace = _Workspace()


def workspace(size: int) -> tuple[int, Array]:
    """Return the address of ``size`` bytes that the thread may use until its next call, and their owner.

    They are aligned to a cache line.
    """
    if size > _workspace.size:
        block = np.empty(size + LINE, np.uint8)
        begin = -(-address(block) // LINE) * LINE
        _workspace.block, _workspace.begin, _workspace.size = block, begin, size
    return _workspace.begin, _workspace.block


def release() -> None:
    """Hand all memory that no array uses back to the system."""
    with _lock:
        _blocks.clear()


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an array as `np.empty` does, in a free block of this size if there is one."""
    return placed(shape, dtype)[0]


def placed(shape: tuple[int, ...], dtype: DTypeLike, result: bool = False) -> tuple[Array, int]:
    """Return `empty`, and its address; a ``result`` is likely to be kept, and so to be new memory at every call."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    try:
        if SMALLEST <= size <= RETAINED:
            with _lock:
                begin, owner = _block(size, result)
            return np.ndarray(shape, dtype, owner, begin - address(owner)), begin
        array = np.empty(shape, dtype)
    except MemoryError:
        release()
        array = np.empty(shape, dtype)
    return array, address(array)


def _block(size: int, result: bool) -> tuple[int, Array]:
    """Return the free block of this size that was used last, or a new one: its address and its owner."""
    counts = zip(_blocks, map(getrefcount, _blocks.values()), strict=True)
    if free := [key for key, count in counts if count == _UNUSED and key[0] == size]:
        owner = _blocks[free[-1]] = _blocks.pop(free[-1])
        return free[-1][1], owner
    align = HUGE if result and size >= HUGE else LINE  # NumPy asks for huge pages, which replace whole ones alone
    owner = np.empty(size + align, np.uint8)
    begin = -(-address(owner) // align) * align
    _blocks[size, begin] = owner
    excess = sum(block.nbytes for block in _blocks.values()) - RETAINED
    while excess > 0 or len(_blocks) > BLOCKS:
        excess -= _blocks.pop(next(iter(_blocks))).nbytes
    return begin, owner


def packed(array: Array) -> Array:
    """Return the array if its elements are aligned and in C order, as kernels need them, else such a copy."""
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.require(array, requirements=["C", "A"])


def packed_rows(array: Array) -> Array:
    """Return a 2-D array if the elements of each row are aligned and consecutive, else a packed copy."""
    if array.strides[1] == array.itemsize and array.flags.aligned:
        return array
    return packed(array)


def address(array: Array) -> int:
    """Return the address of an array, in a third of the time that ``array.ctypes.data`` takes."""
    buffer: Any = array  # that an array is one is known to types from Python 3.12 on
    try:
        return addressof(c_char.from_buffer(buffer))
    except (TypeError, ValueError):  # it is read-only, empty or not contiguous
        begin: int = array.__array_interface__["data"][0]
        return begin


def addresses(arrays: Sequence[Array]) -> Counts:
    """Return the address of each array."""
    return np.array([address(array) for array in arrays], dtype=np.int64)


def aligned(words: Sequence[int] | Counts) -> Counts:
    """Return a copy of words of 8 bytes that begins at a cache line."""
    room = np.empty(len(words) + LINE // 8, np.int64)
    found = room[-address(room) % LINE // 8 :][: len(words)]
    found[:] = words
    return found


def several(rows: int, lengths: Sequence[int], dtype: DType) -> tuple[list[Array], Counts]:
    """Return arrays (rows, length), and their addresses: each has memory of its own, which a caller may keep alone."""
    found = [placed((rows, length), dtype) for length in lengths]
    return [array for array, _ in found], np.array([begin for _, begin in found], dtype=np.int64)
