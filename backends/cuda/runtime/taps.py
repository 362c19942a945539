"""Taps of filters as constants of compiled code, filled in after numba has run.

What numba makes for two filters of one length differs in the taps alone, and it takes two thirds of the time of a
compilation. So it is given placeholders, which are exchanged for the taps in its LLVM IR.
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
    """A tap and its ``number`` among the taps of a kernel."""

    number: int

    def __new__(cls, value: float, number: int) -> Tap:
        tap = super().__new__(cls, value)
        tap.number = number
        return tap


def numbered(*filters: Sequence[float]) -> tuple[tuple[Tap, ...], ...]:
    """Return the filters of a kernel with the taps of all of them numbered in their order."""
    numbers = count(1)
    return tuple(tuple(Tap(value, next(numbers)) for value in taps) for taps in filters)


def constant(element: Type, tap: float) -> Value:
    """Return LLVM's constant for a tap: a placeholder for one that is numbered."""
    from llvmlite import ir

    return ir.Constant(element, (1 + tap.number / 4096) * 2.0**-100 if isinstance(tap, Tap) else tap)


def filled(codes: Sequence[str], taps: Sequence[float]) -> list[str]:
    """Return the modules of a kernel with these taps in the place of placeholders.

    Raises RuntimeError unless each of them was there.
    """
    from llvmlite import ir

    types, found = {"float": ir.FloatType(), "double": ir.DoubleType()}, set[int]()

    def tap(place: re.Match[str]) -> str:
        kind, number = place[1], int(place[2], 16)
        found.add(number)
        return f"{kind} {ir.Constant(types[kind], taps[number - 1]).get_reference()}"

    filled = [_PLACEHOLDER.sub(tap, code) for code in codes]
    if found != set(range(1, len(taps) + 1)):
        raise RuntimeError(f"numba-cuda wrote {len(found)} of {len(taps)} taps of a filter as tested versions do")
    return filled
