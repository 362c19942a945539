"""What numba does not generate by itself: wide memory accesses, and filters unrolled with their taps as constants.

In the simulator plain stand-ins take their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .interfaces import DeviceFunction
from .taps import constant
from .target import SIMULATED

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.typing import Signature
    from numba.types import Type

Values: TypeAlias = "Sequence[Value]"

Term = tuple[float, int, int]
"""A tap, the number of the window it applies to, and the place in that window."""

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

    def count_below(a, b, c, d, limit):
        return sum(value < limit for value in (a, b, c, d))

    def mark_between(marks, a, b, c, d, low, high, shift):
        return marks | sum((low <= value <= high) << i for i, value in enumerate((a, b, c, d))) << shift

    def quotient(a, b):
        return a / b

    def value_of(bits, array):
        return np.array(bits).astype(f"i{array.dtype.itemsize}").view(array.dtype)[()]

    def filters(outputs: Sequence[Sequence[Term]], width: int) -> DeviceFunction:
        def apply(array, first, second):
            begin = first, second
            return tuple(sum(array.dtype.type(h) * array[begin[w] + i] for h, w, i in terms) for terms in outputs)

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
    def count_below(typing, a, b, c, d, limit):
        """How many of four values are less than a limit: in 32 bits, which numba widens to twice the instructions."""

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            *values, bound = arguments
            found: Value = ir.Constant(ir.IntType(32), 0)
            for value in values:
                less = builder.fcmp_ordered("<", value, bound)
                found = builder.add(found, builder.zext(less, ir.IntType(32)))
            return found

        return types.int32(a, a, a, a, a), generate

    @intrinsic
    def mark_between(typing, marks, a, b, c, d, low, high, shift):
        """``marks`` with those bits from ``shift`` on set whose values lie between two others."""

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            known, *values, bottom, top, first = arguments
            narrow, found = ir.IntType(32), ir.Constant(ir.IntType(32), 0)
            for i, value in enumerate(values):
                above = builder.fcmp_ordered(">=", value, bottom)
                inside = builder.and_(above, builder.fcmp_ordered("<=", value, top))
                one, none = ir.Constant(narrow, 1 << i), ir.Constant(narrow, 0)
                found = builder.or_(found, builder.select(inside, one, none))
            return builder.or_(known, builder.shl(found, builder.trunc(first, narrow)))

        return types.uint32(types.uint32, a, a, a, a, a, a, types.int64), generate

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

    @intrinsic
    def value_of(typing, bits, array):
        """The number of the array's dtype that has these bits."""

        def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
            real, bits = context.get_data_type(array.dtype), arguments[0]
            same = ir.IntType(array.dtype.bitwidth)
            return builder.bitcast(bits if bits.type == same else builder.trunc(bits, same), real)

        return array.dtype(types.int64, array), generate

    def filters(outputs: Sequence[Sequence[Term]], width: int) -> DeviceFunction:
        """Device function ``(array, first, second) -> outputs``: sums of products of taps and two windows.

        The windows begin at ``array[first]`` and ``array[second]``, multiples of ``width`` elements, and are read
        once, ``width`` elements at a time. numba has no way to ask for an unrolled loop; this is one.
        """

        @intrinsic
        def apply(typing, array, first, second):
            def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Values) -> Value:
                element = context.get_data_type(array.dtype)
                chunks: dict[tuple[int, int], Value] = {}

                def sample(window: int, place: int) -> Value:
                    key = (window, place // width)
                    if key not in chunks:
                        index = builder.add(arguments[1 + window], ir.Constant(ir.IntType(64), key[1] * width))
                        pointer, alignment = _vector(context, builder, array, arguments[0], index, width)
                        chunks[key] = builder.load(pointer, align=alignment)
                    return builder.extract_element(chunks[key], _lane(place % width))

                sums: list[Value] = [ir.Constant(element, 0.0)] * len(outputs)
                for terms in zip_longest(*outputs):  # some outputs have fewer
                    for i, term in enumerate(terms):
                        if term is not None:
                            tap, window, place = term
                            sums[i] = builder.fma(sample(window, place), constant(element, tap), sums[i])
                return cgutils.pack_array(builder, sums)

            return types.UniTuple(array.dtype, len(outputs))(array, types.int64, types.int64), generate

        return apply  # type: ignore[no-any-return]
