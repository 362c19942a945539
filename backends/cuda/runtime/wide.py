"""Code that numba does not generate: wide memory accesses, and filters unrolled with their taps as constants.

In the simulator plain functions take their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .interfaces import DeviceFunction
from .target import SIMULATED

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.typing import Signature
    from numba.types import Type

Values: TypeAlias = "Sequence[Value]"

Term = tuple[float, int, int]
"""A tap, the number of the window it applies to, and the place in that window."""
Outputs = Sequence[list[tuple[float, int]]]
"""For every output of a step down the columns its taps, and the places of the window that they apply to."""

if SIMULATED:

    def load4(array, index):
        return tuple(array[index + i] for i in range(4))

    def store(array, index, values):
        for i, value in enumerate(values):
            array[index + i] = value

    def bin_of(bits, low, shift):
        size = 8 * bits.dtype.itemsize
        magnitude = int(bits) & (2 ** (size - 1) - 1)
        return min(((magnitude - int(low)) % 2**size) >> int(shift), 2**31 - 1)

    def compare(values, low, high):
        below = sum(abs(value) < low for value in values)
        return below, sum(np.uint32(low <= abs(value) <= high) << np.uint32(i) for i, value in enumerate(values))

    def quotient(a, b):
        return a / b

    def filters(outputs: Sequence[Sequence[Term]], width: int) -> DeviceFunction:
        def apply(array, begins):
            return tuple(sum(array.dtype.type(h) * array[begins[w] + i] for h, w, i in terms) for terms in outputs)

        return apply

    def load_column(count: int, width: int = 1) -> DeviceFunction:
        return lambda array, index, pitch: tuple(
            array[index + k * pitch + i] for k in range(count) for i in range(width)
        )

    def put_at(places: Sequence[int]) -> DeviceFunction:
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

    def _vector(
        context: BaseContext, builder: IRBuilder, array_type: Type, array: Value, index: Value, width: int
    ) -> tuple[Value, int]:
        """Pointer to ``width`` consecutive elements as one LLVM vector, and how it is aligned."""
        data = context.make_array(array_type)(context, builder, array).data
        vector = ir.VectorType(context.get_data_type(array_type.dtype), width)
        alignment = min(width * array_type.dtype.bitwidth // 8, 16)
        return builder.bitcast(builder.gep(data, [index]), vector.as_pointer()), alignment

    def _lane(i: int) -> Value:
        return ir.Constant(ir.IntType(32), i)

    @intrinsic
    def load4(typing, array, index):
        """Elements ``index`` to ``index + 3`` by 16-byte loads; they must begin at a multiple of 16 bytes."""

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            data, start = arguments
            pointer, alignment = _vector(context, builder, array, data, start, 4)
            vector = builder.load(pointer, align=alignment)
            return cgutils.pack_array(builder, [builder.extract_element(vector, _lane(i)) for i in range(4)])

        return types.UniTuple(array.dtype, 4)(array, types.int64), generate

    @intrinsic
    def store(typing, array, index, values):
        """Two elements, or a multiple of four, from ``index`` on by wide stores, which must be aligned."""

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            width = min(len(values), 4)
            for start in range(0, len(values), width):
                index = builder.add(arguments[1], ir.Constant(ir.IntType(64), start))
                pointer, alignment = _vector(context, builder, array, arguments[0], index, width)
                vector = ir.Constant(pointer.type.pointee, ir.Undefined)
                for i in range(width):
                    vector = builder.insert_element(vector, builder.extract_value(arguments[2], start + i), _lane(i))
                builder.store(vector, pointer, align=alignment)
            return context.get_dummy_value()

        return types.void(array, types.int64, values), generate

    @intrinsic
    def bin_of(typing, bits, low, shift):
        """Bin of |value| from its bits, in their own width; a huge number for a value outside the window."""

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            kind = context.get_value_type(bits)

            def narrow(value: Value) -> Value:
                return value if value.type == kind else builder.trunc(value, kind)

            magnitude = builder.and_(arguments[0], ir.Constant(kind, 2 ** (kind.width - 1) - 1))
            above = builder.sub(magnitude, narrow(arguments[1]))  # wraps around below the window
            place = builder.lshr(above, narrow(arguments[2]))
            return place if kind.width == 64 else builder.zext(place, ir.IntType(64))

        return types.uint64(bits, types.int64, types.int64), generate

    @intrinsic
    def compare(typing, values, low, high):
        """How many |values| lie below ``low``, and those from there to ``high`` as bits; at most 16, NaN nowhere.

        Counts and bits are added up in the mantissa of 2^23 by predicated additions of float32: units for integers have
        half their throughput, and numba's integers take 64 bits.
        """
        real, single = ("f64", "d") if values.dtype.bitwidth == 64 else ("f32", "f")
        lines = [f".reg .pred p, q; .reg .{real} m;", *(f"mov.b32 ${i}, 0f4B000000;" for i in range(2))]
        for i in range(len(values)):
            lines += [f"abs.{real} m, ${i + 4}; setp.lt.{real} p, m, $2; setp.le.and.{real} q, m, $3, !p;"]
            lines += ["@p add.f32 $0, $0, 0f3F800000;", f"@q add.f32 $1, $1, 0f{(127 + i) << 23:08X};"]
        constraints = ",".join(["=&f", "=&f", *[single] * (2 + len(values))])

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            found, *limits = arguments
            operands = [*limits, *cgutils.unpack_tuple(builder, found)]
            both = ir.LiteralStructType([ir.FloatType()] * 2)
            form = ir.FunctionType(both, [value.type for value in operands])
            sums = builder.asm(form, "{ " + " ".join(lines) + " }", constraints, operands, side_effect=False)
            word, made = ir.IntType(32), []
            for i in range(2):
                bits = builder.bitcast(builder.extract_value(sums, i), word)
                made.append(builder.and_(bits, ir.Constant(word, 0xFFFF)))
            return context.make_tuple(builder, signature.return_type, made)

        return types.Tuple((types.int32, types.uint32))(values, values.dtype, values.dtype), generate

    @intrinsic
    def quotient(typing, a, b):
        """a / b, of float32 within 2 units in the last place: the rounded one takes ten instructions and a call."""

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            if a.bitwidth == 64:
                return builder.fdiv(*arguments)
            real = context.get_value_type(a)
            divide = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(real, [real, real]), "llvm.nvvm.div.approx.f"
            )
            return builder.call(divide, arguments)

        return a(a, a), generate

    def _sums(
        builder: IRBuilder, element: Type, outputs: Sequence[Sequence[Any]], sample: Callable[..., Value]
    ) -> Values:
        """Return the sums of products of taps and samples; some outputs have fewer than others."""
        sums: list[Value] = [ir.Constant(element, 0.0)] * len(outputs)
        for terms in zip_longest(*outputs):
            for i, term in enumerate(terms):
                if term is not None:
                    sums[i] = builder.fma(sample(*term[1:]), ir.Constant(element, term[0]), sums[i])
        return sums

    def filters(outputs: Sequence[Sequence[Term]], width: int) -> DeviceFunction:
        """Device function ``(array, begins) -> outputs``: sums of products of taps and some windows.

        The windows begin at these elements, multiples of ``width``, and are read once, ``width`` elements at a time.
        numba has no way to ask for an unrolled loop; this is one.
        """

        @intrinsic
        def apply(typing, array, begins):
            def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
                element = context.get_data_type(array.dtype)
                chunks: dict[tuple[int, int], Value] = {}

                def sample(window: int, place: int) -> Value:
                    key = (window, place // width)
                    if key not in chunks:
                        begin = builder.extract_value(arguments[1], window)
                        index = builder.add(begin, ir.Constant(ir.IntType(64), key[1] * width))
                        pointer, alignment = _vector(context, builder, array, arguments[0], index, width)
                        chunks[key] = builder.load(pointer, align=alignment)
                    return builder.extract_element(chunks[key], _lane(place % width))

                return cgutils.pack_array(builder, _sums(builder, element, outputs, sample))

            return types.UniTuple(array.dtype, len(outputs))(array, types.UniTuple(types.int64, len(begins))), generate

        return apply  # type: ignore[no-any-return]

    def load_column(count: int, width: int = 1) -> DeviceFunction:
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

    def put_at(places: Sequence[int]) -> DeviceFunction:
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
                own: Sequence[list[Any]] = outputs if computing else [[]] * len(outputs)
                return cgutils.pack_array(builder, [*_sums(builder, element, own, window.__getitem__), *remaining])

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
