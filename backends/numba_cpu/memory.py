"""Large arrays from memory used before: the first touch of fresh pages takes as long as half a transform."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

RETAINED = 192 << 20
"""Bytes kept for later at most: the coefficients and the result of 16 Mi float32 samples and some."""

SMALLEST = 1 << 16  # bytes from which an array is worth keeping
BLOCKS = 32  # so few that looking through them costs nothing
_free: deque[NDArray[np.uint8]] = deque()  # its single operations are atomic: no lock, which __del__ could not take


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
        _free.append(self._block)
        if self._block.nbytes > RETAINED // BLOCKS or len(_free) > BLOCKS:  # smaller ones cannot add up to the limit
            trim(RETAINED)


def trim(bytes_kept: int = 0) -> None:
    """Hand memory that no array uses back to the system, all but this much."""
    while _free and (len(_free) > BLOCKS or sum(block.nbytes for block in _free.copy()) > bytes_kept):
        try:
            _free.popleft()
        except IndexError:  # another thread took the last
            return


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """`np.empty`, from a block of this size that is free if there is one."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < SMALLEST:
        return np.empty(shape, dtype)
    return np.asarray(_Loan(_block(size), shape, dtype))


def _block(size: int) -> NDArray[np.uint8]:
    for _ in range(len(_free)):
        try:
            block = _free.popleft()
        except IndexError:
            break
        if block.nbytes == size:
            return block
        _free.append(block)
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
