"""Large arrays from memory used before: the first touch of fresh pages takes as long as half a transform."""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Hashable, Sequence
from contextlib import suppress
from ctypes import addressof, c_char
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wavefilt.arrays import Array, Counts, DType


def _retained() -> int:
    most = 1 << 40
    with suppress(OSError, ValueError, AttributeError):  # of the last, the system is Windows
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of a container
        with suppress(OSError, ValueError):  # "max"
            most = min(most, int((Path("/sys/fs/cgroup") / name).read_text()))
    return min(max(most // 32, 192 << 20), 1 << 30) if most < 1 << 40 else 192 << 20


RETAINED = _retained()
"""Bytes kept for later at most: a share of what there is, 192 MiB at least and 1 GiB at most.

The coefficients and the result of 16 Mi float32 samples are 128 MiB, of 64 Mi 512.
"""

HUGE = 2 << 20
"""Bytes of a huge page: results of 2 to 4 MiB are twice as fast to fill in those as in pages of 4 KiB."""
LINE = 64  # bytes of a cache line
PASSED = 1 << 24
"""Bytes of a result, or of the details of a level, from which they are stored past the caches."""

SMALLEST = 1 << 16  # bytes from which an array is worth keeping
BLOCKS = 32  # so few that looking through them costs nothing
SMALL = 1 << 20  # bytes up to which a block is not worth adding them all up
_LARGE_RETAINED = RETAINED - BLOCKS * SMALL  # so that small blocks cannot take the sum over the limit

IDLE = 8
"""Things kept for the next call at most."""


class Idle(Protocol):
    """What holds arrays, and can be used again."""

    size: int
    """Bytes."""


Thing = TypeVar("Thing", bound=Idle)
_idle: dict[Hashable, Idle] = {}

# by address, in the order in which they came free; single operations of a dict are atomic: __del__ could take no lock,
# and may run while another goes over it, which goes over a copy
_free: dict[int, NDArray[np.uint8]] = {}


class _Loan:
    """Owner of an array's memory, kept alive by the array and all its views; gives it back when they are gone."""

    def __init__(self, block: NDArray[np.uint8], begin: int, shape: tuple[int, ...], dtype: DType) -> None:
        self._block, self._begin = block, begin
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (begin, False)}

    def __del__(self) -> None:
        size = self._block.nbytes
        if size > _LARGE_RETAINED:
            return
        _free[self._begin] = self._block
        if size > SMALL or len(_free) > BLOCKS:
            trim(_LARGE_RETAINED)


class _Workspace(threading.local):
    """What kernels work in, for each thread as much as any of its calls has needed."""

    size, begin = 0, 0
    block: Array = np.empty(0, np.uint8)


_workspace = _Workspace()


def workspace(size: int) -> int:
    """The address of so many bytes, aligned to a cache line, that the calling thread may use until its next call."""
    if size > _workspace.size:
        _workspace.block = np.empty(size + LINE, np.uint8)
        _workspace.size, _workspace.begin = size, -(-address(_workspace.block) // LINE) * LINE
    return _workspace.begin


def trim(bytes_kept: int = 0) -> None:
    """Hand memory that no array uses back to the system, all but this much: first what was used longest ago."""
    if not bytes_kept:
        _idle.clear()
    blocks = list(_free.copy().items())
    excess = sum(block.nbytes for _, block in blocks) + _idle_bytes() - bytes_kept
    number = len(blocks)
    for begin, block in blocks:
        if excess <= 0 and number <= BLOCKS:
            return
        _free.pop(begin, None)  # another thread may have taken it
        excess -= block.nbytes
        number -= 1


def _idle_bytes() -> int:
    return sum(thing.size for thing in _idle.copy().values())


def lend(key: Hashable, kind: type[Thing]) -> Thing | None:
    """What was kept by this key, to one caller alone."""
    found = _idle.pop(key, None)
    return found if isinstance(found, kind) else None


def keep(key: Hashable, thing: Idle) -> None:
    """Keep something for the next call; what was used longest ago goes where all of it takes too much."""
    _idle[key] = thing
    while len(_idle) > IDLE or _idle_bytes() > RETAINED // 2:
        try:
            _idle.pop(next(iter(_idle.copy())), None)
        except StopIteration:  # another thread was faster
            return


atexit.register(trim)  # before what the arrays need is gone


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """`np.empty`, from a free block of this size if there is one; where memory is short all free ones are given up."""
    return placed(shape, dtype)[0]


def placed(shape: tuple[int, ...], dtype: DTypeLike, result: bool = False) -> tuple[Array, int]:
    """`empty`, and where the array begins; a ``result`` is likely to be kept, and so to be new memory at every call."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    try:
        if size >= SMALLEST:
            block, begin = _block(size, result)
            return np.asarray(_Loan(block, begin, shape, dtype)), begin
        array = np.empty(shape, dtype)
    except MemoryError:
        trim()
        array = np.empty(shape, dtype)
    return array, address(array)


def _block(size: int, result: bool) -> tuple[NDArray[np.uint8], int]:
    """A free block of this size, of several the last used, or a new one; and where it begins."""
    for begin, block in reversed(_free.copy().items()):
        if block.nbytes == size and _free.pop(begin, None) is not None:
            return block, begin
    if result and size >= HUGE:  # NumPy asks for huge pages, which take the place of whole ones alone
        whole = np.empty(size + HUGE, np.uint8)
        start = -address(whole) % HUGE
        block = whole[start : start + size]
    else:
        whole = np.empty(size + LINE, np.uint8)
        start = -address(whole) % LINE
        block = whole[start : start + size]
    return block, address(block)


def packed(array: Array) -> Array:
    """The array if its elements lie aligned and in C order, as kernels need them, else a copy in which they do."""
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.require(array, requirements=["C", "A"])


def packed_rows(array: Array) -> Array:
    """A 2-D array if the elements of each row lie aligned and side by side, else a copy in which all do."""
    if array.strides[1] == array.itemsize and array.flags.aligned:
        return array
    return packed(array)


def address(array: Array) -> int:
    """Where an array begins; in a third of the time that ``array.ctypes.data`` takes."""
    buffer: Any = array  # that an array is one is known to types from Python 3.12 on
    try:
        return addressof(c_char.from_buffer(buffer))
    except (TypeError, ValueError):  # it is read-only, empty or not contiguous
        begin: int = array.__array_interface__["data"][0]
        return begin


def addresses(arrays: Sequence[Array]) -> Counts:
    """Where each array begins."""
    return np.array([address(array) for array in arrays], dtype=np.int64)


def aligned(words: Sequence[int] | Counts) -> Counts:
    """Words of 8 bytes that begin at a cache line."""
    room = np.empty(len(words) + LINE // 8, np.int64)
    found = room[-address(room) % LINE // 8 :][: len(words)]
    found[:] = words
    return found


def several(rows: int, lengths: Sequence[int], dtype: DType) -> tuple[list[Array], Counts]:
    """Arrays (rows, length), and where each begins.

    Small ones share a block: to allocate and address each for itself takes as long as to transform 16 Ki samples.
    Of large ones a caller may keep one and let go of the others.
    """
    size = dtype.itemsize
    if rows * sum(lengths) * size > SMALL:
        found = [placed((rows, length), dtype) for length in lengths]
        return [array for array, _ in found], np.array([begin for _, begin in found], dtype=np.int64)
    ends = [rows * length for length in accumulate(lengths, initial=0)]
    block, begin = placed((ends[-1],), dtype)
    arrays = [block[a:b].reshape(rows, length) for (a, b), length in zip(pairwise(ends), lengths, strict=True)]
    return arrays, np.array([begin + size * a for a in ends[:-1]], dtype=np.int64)
