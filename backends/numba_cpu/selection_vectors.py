"""Vector instructions of the selection: to list, count and rank magnitudes, which are compared as integers."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic

from .target import WIDTH
from .vector import Builder, Emitter, Intrinsic, Value

_I64 = ir.IntType(64)
AHEAD = 4096
"""Bytes that are fetched ahead where values are listed: 3.2 instead of 4.4 ns for 64 bytes from memory."""


def _list_inside(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
    bits, listed = signature.args[0], signature.args[5]
    emit = Emitter(context, builder, bits.dtype)
    mask_off, bottom, top = (emit.spread(value) for value in values[2:5])
    source, target = emit.pointer(bits, *values[:2]), emit.pointer(listed, *values[5:7])
    emit.prefetch(source, AHEAD)
    if values[7:]:
        begin = ir.Constant(_I64, 0)
        wanted = emit.some(0, begin, values[7])
        loaded = emit.load_some(source, begin, values[7], mask_off)
    else:
        wanted, loaded = None, emit.load(source, 0)
    magnitude = builder.and_(loaded, mask_off)
    below = builder.icmp_signed("<", magnitude, bottom)
    inside = builder.and_(builder.not_(below), builder.icmp_signed("<=", magnitude, top))
    if wanted:
        below, inside = builder.and_(below, wanted), builder.and_(inside, wanted)
    kind = ir.FunctionType(ir.VoidType(), [emit.vector, target.type, inside.type])
    builder.call(emit.named("masked.compressstore", kind), [magnitude, target, inside])
    ones = [builder.ctpop(builder.bitcast(lanes, ir.IntType(emit.lanes))) for lanes in (inside, below)]
    return context.make_tuple(builder, signature.return_type, [builder.zext(one, _I64) for one in ones])


@intrinsic
def list_inside(typing, bits, at, sign_off, low, high, listed, k):
    """Magnitudes of one vector within [low, high] to listed[k:]; how many they are, and how many lie below."""
    return types.UniTuple(types.int64, 2)(bits, at, sign_off, low, high, listed, k), _list_inside


@intrinsic
def list_inside_some(typing, bits, at, sign_off, low, high, listed, k, count):
    """The same of the ``count`` first ones; the others are not read."""
    return types.UniTuple(types.int64, 2)(bits, at, sign_off, low, high, listed, k, types.int64), _list_inside


@intrinsic
def count_below(typing, bits, at, sign_off, limit):
    """How many magnitudes of one vector lie below the limit."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        emit = Emitter(context, builder, bits.dtype)
        mask_off, bound = (emit.spread(value) for value in values[2:])
        magnitude = builder.and_(emit.load(emit.pointer(bits, values[0], values[1]), 0), mask_off)
        below = builder.icmp_signed("<", magnitude, bound)
        return builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(emit.lanes))), _I64)

    return types.int64(bits, types.int64, bits.dtype, bits.dtype), generate


def _ranked(width: int) -> Intrinsic:
    @intrinsic
    def intrinsic_ranked(typing, a, n, k, all_bits):
        def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
            emit = Emitter(context, builder, a.dtype)
            data, count, place, most = emit.pointer(a, values[0]), *values[1:]
            zero, ceiling, begin = ir.Constant(emit.vector, [0] * emit.lanes), emit.spread(most), ir.Constant(_I64, 0)
            own = []
            for i in range(width):
                there = emit.some(i * emit.lanes, begin, count)
                own.append(builder.select(there, emit.load(data, i * emit.lanes), ceiling))
            loop, done, entry = builder.append_basic_block("one"), builder.append_basic_block("done"), builder.block
            builder.branch(loop)
            builder.position_at_end(loop)
            i, smaller = builder.phi(_I64), [builder.phi(emit.vector) for _ in own]
            one = emit.repeat(data, i)
            minus_ones = [builder.sext(builder.icmp_signed("<", one, x), emit.vector) for x in own]
            sums = [builder.sub(count_so_far, found) for count_so_far, found in zip(smaller, minus_ones, strict=True)]
            following = builder.add(i, ir.Constant(_I64, 1))
            builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
            i.add_incoming(begin, entry)
            i.add_incoming(following, loop)
            for phi, total in zip(smaller, sums, strict=True):
                phi.add_incoming(zero, entry)
                phi.add_incoming(total, loop)
            builder.position_at_end(done)
            narrow = builder.trunc(place, emit.element) if emit.element.width < 64 else place
            kept = [builder.icmp_signed("<=", total, emit.spread(narrow)) for total in sums]
            low, high = zero, ceiling
            for x, mask in zip(own, kept, strict=True):
                low = _extreme(builder, ">", low, builder.select(mask, x, zero))
                high = _extreme(builder, "<", high, builder.select(mask, ceiling, x))
            found, above = emit.reduce("smax", low), emit.reduce("smin", high)
            up_to = ir.Constant(_I64, 0)
            for x in own:
                lanes = builder.bitcast(builder.icmp_signed("<=", x, emit.spread(found)), ir.IntType(emit.lanes))
                up_to = builder.add(up_to, builder.zext(builder.ctpop(lanes), _I64))
            again = builder.icmp_signed(">", up_to, builder.add(place, ir.Constant(_I64, 1)))
            return context.make_tuple(builder, signature.return_type, [found, builder.select(again, found, above)])

        return types.UniTuple(a.dtype, 2)(a, types.int64, types.int64, a.dtype), generate

    return intrinsic_ranked  # type: ignore[no-any-return]  # numba has no types


ranked, ranked_few = _ranked(WIDTH), _ranked(WIDTH // 2)
"""ranked(a, n, k, all_bits): the k-th smallest of the n first magnitudes of a, and the next: by counting for each how
many are smaller. n is not more than fit ``WIDTH`` vectors, or half of that; as many are read."""


def _extreme(builder: Builder, order: str, a: Value, b: Value) -> Value:
    return builder.select(builder.icmp_signed(order, a, b), a, b)
