"""Large arrays from memory used before: the first touch of fresh pages takes as long as half a transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

RETAINED = 192 << 20
"""Bytes kept for later at most: the coefficients and the result of 16 Mi float32 samples and some."""

SMALLEST = 1 << 16  # bytes from which an array is worth keeping
BLOCKS = 32  # so few that looking through them costs nothing
SMALL = 1 << 20  # bytes up to which a block is not worth adding them all up
_LARGE_RETAINED = RETAINED - BLOCKS * SMALL  # so that small blocks cannot take the sum over the limit

# by identity, in the order in which they came free; single operations of a dict are atomic: __del__ could take no lock
_free: dict[int, NDArray[np.uint8]] = {}


class _Loan:
    """Owner of an array's memory, kept alive by the array and all its views; gives it back when they are gone."""

    def __init__(self, block: NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._block = block
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (address(block), False),
        }

    def __del__(self) -> None:
        size = self._block.nbytes
        if size > _LARGE_RETAINED:
            return
        _free[id(self._block)] = self._block
        if size > SMALL or len(_free) > BLOCKS:
            trim(_LARGE_RETAINED)


def trim(bytes_kept: int = 0) -> None:
    """Hand memory that no array uses back to the system, all but this much: first what was used longest ago."""
    blocks = list(_free.values())
    excess, number = sum(block.nbytes for block in blocks) - bytes_kept, len(blocks)
    for block in blocks:
        if excess <= 0 and number <= BLOCKS:
            return
        _free.pop(id(block), None)  # another thread may have taken it
        excess -= block.nbytes
        number -= 1


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """`np.empty`, from a free block of this size if there is one; where memory is short all free ones are given up."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    try:
        return np.empty(shape, dtype) if size < SMALLEST else np.asarray(_Loan(_block(size), shape, dtype))
    except MemoryError:
        trim()
        return np.empty(shape, dtype)


def _block(size: int) -> NDArray[np.uint8]:
    """A free block of this size, of several the last used, or a new one."""
    for block in reversed(list(_free.values())):
        if block.nbytes == size and _free.pop(id(block), None) is not None:
            return block
    return np.empty(size, np.uint8)


def packed(array: NDArray[Any]) -> NDArray[Any]:
    """The array if its elements lie aligned and in C order, as kernels need them, else a copy in which they do."""
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.require(array, requirements=["C", "A"])


def address(array: NDArray[Any]) -> int:
    """Where an array begins; a third of the time that ``array.ctypes.data`` takes."""
    begin: int = array.__array_interface__["data"][0]
    return begin


def addresses(arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Where each array begins."""
    return np.array([address(array) for array in arrays], dtype=np.int64)
