"""The template of kernels of both axes: a section is cut into tiles, and filters slide down its columns.

    tile   a thread has a column of samples         shared memory       a thread has a column of two bands
           ||||||||||||  in steps of some rows  ->  low-pass rows   ->  along the rows, to memory
           ||||||||||||  window in registers        high-pass rows
           vvvvvvvvvvvv  turn after turn

Windows are in registers, and the filters are unrolled with their taps as constants. A *state* has the results of the
last step, then the rows above that the next step still needs. Neighbouring threads have neighbouring columns, so every
access is to a run of a row, without bank conflicts: there is nothing to pad. In the simulator plain functions take the
place of code that numba cannot generate.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, DeviceFunction
from wavefilt.backends.cuda.runtime.target import SIMULATED, device

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.typing import Signature

Values: TypeAlias = "Sequence[Value]"

Outputs = Sequence[list[tuple[float, int]]]
"""For every output of a step its taps, and the places of the window that they apply to."""


class Plane(NamedTuple):
    """Rows of sections in an array: the first element, elements from section to section, and from row to row."""

    array: DeviceArray
    begin: int
    stride: int
    pitch: int


class Tiling(NamedTuple):
    """The first section of a launch, tiles side by side, and tiles that a block goes down."""

    first: int
    tiles: int
    turns: int


@device
def tile_of(index, tiles):
    """Return row and column of a tile; LLVM divides unsigned numbers in 32 bits."""
    row = np.uint32(index) // np.uint32(tiles)
    return np.int64(row), np.int64(index) - np.int64(row) * tiles


if SIMULATED:

    def column(count: int, width: int = 1) -> DeviceFunction:
        return lambda array, index, pitch: tuple(
            array[index + k * pitch + i] for k in range(count) for i in range(width)
        )

    def put(places: Sequence[int]) -> DeviceFunction:
        def write(array, index, values):
            for place, value in zip(places, values, strict=False):
                array[index + place] = value

        return write

    def slide(outputs: Outputs, kept: Sequence[int], new: int, computing: bool = True) -> DeviceFunction:
        def apply(state, rows):
            window, remaining = _windows(state[len(outputs) :], rows, kept, new)
            zero = type(rows[0])(0)
            sums = [sum((type(zero)(h) * window[i] for h, i in terms), zero) for terms in outputs]
            return (*(sums if computing else [zero] * len(outputs)), *remaining)

        return apply

else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.cuda.extending import intrinsic

    def column(count: int, width: int = 1) -> DeviceFunction:
        """Device function ``(array, index, pitch) -> elements``, ``pitch`` apart, each with its right neighbours.

        ``width`` elements side by side must begin at a multiple of their number.
        """

        @intrinsic
        def load(typing, array, index, pitch):
            def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
                data, place, step = arguments
                kind = ir.VectorType(context.get_data_type(array.dtype), width).as_pointer()
                pointer = builder.gep(context.make_array(array)(context, builder, data).data, [place])
                values = []
                for _ in range(count):
                    if width == 1:
                        values.append(builder.load(pointer))
                    else:
                        loaded = builder.load(builder.bitcast(pointer, kind), align=width * array.dtype.bitwidth // 8)
                        word = ir.IntType(32)
                        values += [builder.extract_element(loaded, ir.Constant(word, i)) for i in range(width)]
                    pointer = builder.gep(pointer, [step])
                return cgutils.pack_array(builder, values)

            return types.UniTuple(array.dtype, width * count)(array, types.int64, types.int64), generate

        return load  # type: ignore[no-any-return]

    def put(places: Sequence[int]) -> DeviceFunction:
        """Device function ``(array, index, values)``: the first values go to ``places`` from ``index`` on.

        numba would check every index for being negative, which costs as much as the filters.
        """

        @intrinsic
        def write(typing, array, index, values):
            def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
                data = context.make_array(array)(context, builder, arguments[0]).data
                pointer = builder.gep(data, [arguments[1]])
                for i, place in enumerate(places):
                    value = builder.extract_value(arguments[2], i)
                    builder.store(value, builder.gep(pointer, [ir.Constant(ir.IntType(64), place)]))
                return context.get_dummy_value()

            return types.void(array, types.int64, values), generate

        return write  # type: ignore[no-any-return]

    def slide(outputs: Outputs, kept: Sequence[int], new: int, computing: bool = True) -> DeviceFunction:
        """Device function ``(state, rows) -> state``: a step further, by ``new`` rows of each of some windows.

        ``kept`` has the rows of each window that the next step needs. Without ``computing`` nothing else is done.
        """

        @intrinsic
        def step(typing, state, rows):
            def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
                element = context.get_data_type(rows.dtype)
                before, after = (
                    [builder.extract_value(value, i) for i in range(len(kind))]
                    for value, kind in zip(arguments, (state, rows), strict=True)
                )
                window, remaining = _windows(before[len(outputs) :], after, kept, new)
                sums: list[Value] = [ir.Constant(element, 0.0)] * len(outputs)
                for terms in zip_longest(*outputs) if computing else ():  # some outputs have fewer
                    for i, term in enumerate(terms):
                        if term is not None:
                            sums[i] = builder.fma(window[term[1]], ir.Constant(element, term[0]), sums[i])
                return cgutils.pack_array(builder, [*sums, *remaining])

            return state(state, rows), generate

        return step  # type: ignore[no-any-return]


def _windows(before: Values, after: Values, kept: Sequence[int], new: int) -> tuple[list[Value], list[Value]]:
    """All windows one after the other, and what is ``kept`` of each."""
    found: list[Value] = []
    remaining: list[Value] = []
    begin = 0
    for w, count in enumerate(kept):
        window = [*before[begin : begin + count], *after[w * new : (w + 1) * new]]
        found += window
        remaining += window[new:]
        begin += count
    return found, remaining
