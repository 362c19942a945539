"""What both kernels of a level of both axes share: how a panel is cut up, and filters that slide down its columns.

Their windows are in registers, and they are unrolled with their taps as constants.
A *state* is what the last step computed, then what the next one still needs of the rows above. A thread has one column;
neighbouring threads have neighbouring columns, so every access is to a run of a row. In the simulator plain stand-ins
take the place of what numba cannot generate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import Filter
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceFunction
from wavefilt.backends.cuda.runtime.taps import Tap, constant, numbered
from wavefilt.backends.cuda.runtime.target import SIMULATED, device

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.typing import Signature

Values: TypeAlias = "Sequence[Value]"

STEP = 4
"""Coefficients of a step: of 2 STEP rows of samples, whose loads are under way together."""

Outputs = Sequence[list[tuple[float, int]]]
"""For every output of a step its taps, and the places of the window that they apply to."""


Bank = tuple[tuple[float, ...], tuple[float, ...]]
"""Low-pass and high-pass taps."""


@dataclass(frozen=True)
class PanelLevel:
    """A level with the filters ``down`` the columns and ``along`` the rows, and the tiles that its kernels cut it into.

    ``periodized`` says which axes are, ``several`` which extend by more than one sample, ``height`` how many rows of
    coefficients a tile has.
    """

    down: Bank
    along: Bank
    periodized: tuple[bool, bool]
    several: tuple[bool, bool]
    build: Build
    height: int

    @cached_property
    def axes(self) -> tuple[Filter, Filter]:
        return Filter(len(self.down[0]), self.periodized[0]), Filter(len(self.along[0]), self.periodized[1])

    @cached_property
    def numbered(self) -> tuple[tuple[Tap, ...], ...]:
        """The filters down, then those along, with their taps numbered."""
        return numbered(*self.down, *self.along)

    @property
    def structure(self) -> tuple[object, ...]:
        """What all filters of these lengths have in common."""
        return self.axes, self.several, self.height

    @property
    def taps(self) -> int:
        return max(f.taps for f in self.axes)

    @property
    def forward_width(self) -> int:
        """Coefficients across a tile whose samples are one a thread."""
        f = self.axes[1]
        return (self.build.threads - f.lead - f.lead % 2 - f.lag) // 2

    @property
    def inverse_width(self) -> int:
        """Pairs of samples across a tile whose coefficients are one for every second thread."""
        f = self.axes[1]
        return self.build.threads // 2 - f.low - f.high


@device
def tile_of(index, tiles):
    """Row and column of a tile, of which so many lie side by side; LLVM divides unsigned numbers in 32 bits."""
    row = np.uint32(index) // np.uint32(tiles)
    return np.int64(row), np.int64(index) - np.int64(row) * tiles


def analysis(lo: tuple[float, ...], hi: tuple[float, ...]) -> Outputs:
    """Approximation and detail in turn, of a window that begins at the first sample under the first coefficient."""
    taps = range(len(lo))
    return [[(h[::-1][k], 2 * i + k) for k in taps] for i in range(STEP) for h in (lo, hi)]


def synthesis(lo: tuple[float, ...], hi: tuple[float, ...], f: Filter) -> Outputs:
    """Samples, of a window of approximations that begins ``f.low`` before the first pair, then one of details."""
    width, reach = f.low + f.high + STEP, range(f.taps // 2)
    places = [(i + f.low + top, (f.lead + s) % 2) for i in range(STEP) for s, top in enumerate(f.tops)]
    return [
        [(h[2 * j + parity], w * width + place - j) for j in reach for w, h in enumerate((lo, hi))]
        for place, parity in places
    ]


if SIMULATED:

    def column(count: int) -> DeviceFunction:
        return lambda array, index, pitch: tuple(array[index + k * pitch] for k in range(count))

    def pairs(count: int) -> DeviceFunction:
        return lambda array, index, pitch: tuple(array[index + k * pitch + i] for k in range(count) for i in range(2))

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

    def column(count: int) -> DeviceFunction:
        """Device function ``(array, index, pitch) -> elements``, ``pitch`` apart."""

        @intrinsic
        def load(typing, array, index, pitch):
            def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
                data, place, step = arguments
                pointer = builder.gep(context.make_array(array)(context, builder, data).data, [place])
                values = []
                for _ in range(count):
                    values.append(builder.load(pointer))
                    pointer = builder.gep(pointer, [step])
                return cgutils.pack_array(builder, values)

            return types.UniTuple(array.dtype, count)(array, types.int64, types.int64), generate

        return load  # type: ignore[no-any-return]

    def pairs(count: int) -> DeviceFunction:
        """Device function ``(array, index, pitch) -> elements``: two side by side, ``pitch`` apart, at even places."""

        @intrinsic
        def load(typing, array, index, pitch):
            def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
                data, place, step = arguments
                kind = ir.VectorType(context.get_data_type(array.dtype), 2)
                pointer = builder.gep(context.make_array(array)(context, builder, data).data, [place])
                values = []
                for _ in range(count):
                    loaded = builder.load(
                        builder.bitcast(pointer, kind.as_pointer()), align=2 * array.dtype.bitwidth // 8
                    )
                    values += [builder.extract_element(loaded, ir.Constant(ir.IntType(32), i)) for i in range(2)]
                    pointer = builder.gep(pointer, [step])
                return cgutils.pack_array(builder, values)

            return types.UniTuple(array.dtype, 2 * count)(array, types.int64, types.int64), generate

        return load  # type: ignore[no-any-return]

    def put(places: Sequence[int]) -> DeviceFunction:
        """Device function ``(array, index, values)``: the first values go to ``index`` and so many places on.

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

        So many rows of each window are ``kept`` for the next step. Without ``computing`` that is all it does.
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
                            sums[i] = builder.fma(window[term[1]], constant(element, term[0]), sums[i])
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
