"""Taps as constants of compiled code, filled in after numba has run: once then for all filters of a length.

numba takes two thirds of the time of a compilation. What it makes for two filters of one length differs in the taps
alone, so it is given placeholders, which are exchanged for the taps in the LLVM IR that it makes. What comes out is
what it would have made of the taps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llvmlite.ir import Type, Value

# 2^-100 and more, as LLVM writes it: no tap is of that size, and float32 has these numbers too
_PLACEHOLDER = re.compile(r"\b(float|double) 0x39B([0-9A-F]{3})0{10}\b", re.IGNORECASE)


class Tap(float):
    """A tap and its ``number`` among those of a kernel."""

    number: int

    def __new__(cls, value: float, number: int) -> Tap:
        tap = super().__new__(cls, value)
        tap.number = number
        return tap


def numbered(*filters: Sequence[float]) -> tuple[tuple[Tap, ...], ...]:
    """The filters of a kernel with the taps of all of them numbered in their order."""
    numbers = count(1)
    return tuple(tuple(Tap(value, next(numbers)) for value in taps) for taps in filters)


def constant(element: Type, tap: float) -> Value:
    """LLVM's constant for a tap: a placeholder for one that is numbered."""
    from llvmlite import ir

    return ir.Constant(element, (1 + tap.number / 4096) * 2.0**-100 if isinstance(tap, Tap) else tap)


def filled(code: str, taps: Sequence[float]) -> str:
    """LLVM IR with these taps in the place of placeholders."""
    from llvmlite import ir

    types = {"float": ir.FloatType(), "double": ir.DoubleType()}

    def tap(found: re.Match[str]) -> str:
        kind, number = found.groups()
        return f"{kind} {ir.Constant(types[kind], taps[int(number, 16) - 1]).get_reference()}"

    return _PLACEHOLDER.sub(tap, code)
