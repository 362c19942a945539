"""The inner loops, written as vector instructions: LLVM's own vectoriser reaches a third to a tenth of their speed.

They take an array and a position in it rather than a slice, and check nothing: whole vectors are read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from .target import VECTOR_BYTES, WIDTH

Value: TypeAlias = ir.Value
Builder: TypeAlias = ir.IRBuilder
Type: TypeAlias = types.Type
Generated: TypeAlias = tuple[Signature, Callable[[BaseContext, Builder, Signature, list[Value]], Value]]
"""What an intrinsic is to numba: its signature, and the function that writes its instructions."""
Intrinsic: TypeAlias = Callable[..., Generated]

_I64, _I32 = ir.IntType(64), ir.IntType(32)


class Emitter:
    """Loads, stores and shuffles of vectors of one element type."""

    def __init__(self, context: BaseContext, builder: Builder, element: types.Type) -> None:
        self.context, self.builder = context, builder
        self.align = element.bitwidth // 8
        self.lanes = VECTOR_BYTES // self.align
        self.element = context.get_value_type(element)
        self.vector = ir.VectorType(self.element, self.lanes)

    def pointer(self, array_type: types.Array, array: Value, *position: Value) -> Value:
        data = self.context.make_array(array_type)(self.context, self.builder, array).data
        return self.builder.gep(data, position) if position else data

    def at(self, pointer: Value, index: Value | int) -> Value:
        index = ir.Constant(_I64, index) if isinstance(index, int) else index
        return self.builder.bitcast(self.builder.gep(pointer, [index]), self.vector.as_pointer())

    def load(self, pointer: Value, index: Value | int) -> Value:
        value = self.builder.load(self.at(pointer, index))
        value.align = self.align
        return value

    def store(self, value: Value, pointer: Value, index: Value | int, past: bool = False) -> None:
        """A vector; ``past`` the caches, to an aligned place: no line is read there that is then overwritten."""
        stored = self.builder.store(value, self.at(pointer, index))
        stored.align = VECTOR_BYTES if past else self.align
        if past:
            stored.set_metadata("nontemporal", self.builder.module.add_metadata([ir.Constant(_I32, 1)]))

    def prefetch(self, pointer: Value, ahead: int) -> None:
        """Have the cache line so many bytes further on fetched, if there is one."""
        place = self.builder.bitcast(pointer, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, _I32, _I32, _I32])
        fetch = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        how = [ir.Constant(_I32, one) for one in (0, 3, 1)]  # to read, into all caches, data
        self.builder.call(fetch, [self.builder.gep(place, [ir.Constant(_I64, ahead)]), *how])

    def some(self, offset: int, begin: Value, end: Value) -> Value:
        """For each lane of the vector at ``offset`` whether it lies in [begin, end)."""
        kind = ir.VectorType(_I32, self.lanes)
        places = ir.Constant(kind, [offset + i for i in range(self.lanes)])
        first, last = (self.spread(self.builder.trunc(one, _I32), kind) for one in (begin, end))
        inside = [self.builder.icmp_signed(*order) for order in ((">=", places, first), ("<", places, last))]
        return self.builder.and_(*inside)

    def store_some(self, value: Value, pointer: Value, offset: int, begin: Value, end: Value) -> None:
        """Those lanes alone: nothing else is touched."""
        target, wanted = self.at(pointer, offset), self.some(offset, begin, end)
        kind = ir.FunctionType(ir.VoidType(), [self.vector, target.type, _I32, wanted.type])
        self.builder.call(
            self.named("masked.store", kind, ".p0"), [value, target, ir.Constant(_I32, self.align), wanted]
        )

    def load_some(self, pointer: Value, begin: Value, end: Value, rest: Value) -> Value:
        """Those lanes, and of the others ``rest``."""
        source, wanted = self.at(pointer, 0), self.some(0, begin, end)
        kind = ir.FunctionType(self.vector, [source.type, _I32, wanted.type, self.vector])
        return self.builder.call(
            self.named("masked.load", kind, ".p0"), [source, ir.Constant(_I32, self.align), wanted, rest]
        )

    def named(self, name: str, kind: ir.FunctionType, rest: str = "") -> ir.Function:
        """LLVM's function of this name for these vectors."""
        letter = "i" if isinstance(self.element, ir.IntType) else "f"
        name = f"llvm.{name}.v{self.lanes}{letter}{8 * self.align}{rest}"
        return self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)

    def repeat(self, pointer: Value, index: Value | int) -> Value:
        """One element in every lane."""
        return self.spread(self.builder.load(self.builder.gep(pointer, [index])))

    def spread(self, element: Value, kind: ir.VectorType | None = None) -> Value:
        empty = ir.Constant(kind or self.vector, ir.Undefined)
        single = self.builder.insert_element(empty, element, ir.Constant(_I32, 0))
        return self.shuffle(single, empty, [0] * self.lanes)

    def shuffle(self, a: Value, b: Value, lanes: list[int]) -> Value:
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, self.lanes), lanes))

    def reduce(self, name: str, vector: Value) -> Value:
        """The largest or smallest of the lanes, by the name of LLVM's function."""
        kind = ir.FunctionType(self.element, [self.vector])
        return self.builder.call(self.named(f"vector.reduce.{name}", kind), [vector])

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        return self.builder.fadd(self.builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _sums(
    emit: Emitter, u: Value, v: Value, step: Value, filters: list[Value], count: Value, width: int
) -> list[list[Value]]:
    """For each filter ``width`` vectors of Σ_q taps[2q] u[p + q step] + taps[2q+1] v[p + q step], p from 0.

    They stay in registers while a loop goes over the taps, from the last to the first as in PyWavelets.
    """
    builder, one = emit.builder, ir.Constant(_I64, 1)
    last, entry = builder.sub(count, ir.Constant(_I64, 2)), builder.block
    loop, done = builder.append_basic_block("phase"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    tap = builder.phi(_I64)
    sums = [[builder.phi(emit.vector) for _ in range(width)] for _ in filters]
    totals = [list(vectors) for vectors in sums]
    place = builder.mul(builder.lshr(tap, one), step)
    for data, index in ((v, builder.add(tap, one)), (u, tap)):
        pointer = builder.gep(data, [place])
        values = [emit.repeat(taps, index) for taps in filters]
        for k in range(width):
            loaded = emit.load(pointer, k * emit.lanes)
            for total, value in zip(totals, values, strict=True):
                total[k] = emit.multiply_add(loaded, value, total[k])
    following = builder.sub(tap, ir.Constant(_I64, 2))
    builder.cbranch(builder.icmp_signed(">=", following, ir.Constant(_I64, 0)), loop, done)
    tap.add_incoming(last, entry)
    tap.add_incoming(following, loop)
    zero = ir.Constant(emit.vector, [ir.Constant(emit.element, 0.0)] * emit.lanes)
    for vectors, ends in zip(sums, totals, strict=True):
        for value, total in zip(vectors, ends, strict=True):
            value.add_incoming(zero, entry)
            value.add_incoming(total, loop)
    builder.position_at_end(done)
    return totals


def _filtered(
    context: BaseContext, builder: Builder, signature: Signature, values: list[Value], joined: bool, past: bool
) -> None:
    """Of `analyse` and `synthesise`, and with two arguments more of `analyse_some` and `synthesise_some`."""
    u, _, v, _, _, s_taps, r_taps, s, _, r = signature.args[:10]
    emit = Emitter(context, builder, u.dtype)
    u_data, v_data = emit.pointer(u, *values[:2]), emit.pointer(v, *values[2:4])
    s_data, r_data = emit.pointer(s, *values[7:9]), emit.pointer(r, *values[9:11])
    filters = [emit.pointer(s_taps, values[5]), emit.pointer(r_taps, values[6])]
    count = context.make_array(s_taps)(context, builder, values[5]).nitems
    totals = _sums(emit, u_data, v_data, values[4], filters, count, WIDTH // 2 if values[11:] else WIDTH)
    lanes = emit.lanes
    low = [i // 2 + i % 2 * lanes for i in range(lanes)]
    for k, (a, b) in enumerate(zip(*totals, strict=True)):
        if joined:
            high = [i + lanes // 2 for i in low]
            stored = [(emit.shuffle(a, b, low), s_data, 2 * k), (emit.shuffle(a, b, high), s_data, 2 * k + 1)]
        else:
            stored = [(a, s_data, k), (b, r_data, k)]
        for value, pointer, place in stored:
            if values[11:]:
                emit.store_some(value, pointer, place * lanes, *values[11:])
            else:
                emit.store(value, pointer, place * lanes, past and (joined or pointer is r_data))


def _filter(joined: bool, past: bool = False) -> Intrinsic:
    @intrinsic
    def intrinsic_filter(typing, u, u_at, v, v_at, step, s_taps, r_taps, s, s_at, r, r_at):
        signature = types.void(u, u_at, v, v_at, types.int64, s_taps, r_taps, s, s_at, r, r_at)

        def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
            _filtered(context, builder, signature, values, joined, past)
            return context.get_dummy_value()

        return signature, generate

    return intrinsic_filter  # type: ignore[no-any-return]  # numba has no types


def _filter_some(joined: bool) -> Intrinsic:
    @intrinsic
    def intrinsic_filter(typing, u, u_at, v, v_at, step, s_taps, r_taps, s, s_at, r, r_at, begin, end):
        i = types.int64
        signature = types.void(u, u_at, v, v_at, i, s_taps, r_taps, s, s_at, r, r_at, i, i)

        def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
            _filtered(context, builder, signature, values, joined, past=False)
            return context.get_dummy_value()

        return signature, generate

    return intrinsic_filter  # type: ignore[no-any-return]  # numba has no types


analyse = _filter(joined=False)
"""analyse(u, i, v, j, m, s_taps, r_taps, s, k, r, l): a group of
s[k+p] = Σ_q s_taps[2q] u[i+p+qm] + s_taps[2q+1] v[j+p+qm] and r likewise: one step of a two-channel bank.
All phases are summed in registers, whatever the filter's length."""

analyse_past = _filter(joined=False, past=True)
"""The same, r stored past the caches: r[l] is aligned to vectors."""

synthesise = _filter(joined=True)
"""The same sums, s and r alternating in s."""

synthesise_past = _filter(joined=True, past=True)
"""The same, stored past the caches: s[k] is aligned to vectors."""

analyse_some, synthesise_some = _filter_some(joined=False), _filter_some(joined=True)
"""The same of half a group, of which results from the last but one argument to the last alone are stored."""


@intrinsic
def combine(typing, u, u_at, v, v_at, step, taps, s, s_at):
    """combine(u, i, v, j, m, taps, s, k): two groups of s[k+p] alone."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        emit = Emitter(context, builder, u.dtype)
        u_data, v_data = emit.pointer(u, *values[:2]), emit.pointer(v, *values[2:4])
        target, count = emit.pointer(s, *values[6:]), context.make_array(taps)(context, builder, values[5]).nitems
        (totals,) = _sums(emit, u_data, v_data, values[4], [emit.pointer(taps, values[5])], count, 2 * WIDTH)
        for k, total in enumerate(totals):
            emit.store(total, target, k * emit.lanes)
        return context.get_dummy_value()

    return types.void(u, u_at, v, v_at, types.int64, taps, s, s_at), generate


@intrinsic
def split(typing, x, x_at, even, even_at, odd, odd_at):
    """One vector each of even[i+p] = x[k+2p] and odd[j+p] = x[k+2p+1]."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        emit = Emitter(context, builder, x.dtype)
        source = emit.pointer(x, values[0], values[1])
        a, b = emit.load(source, 0), emit.load(source, emit.lanes)
        for target, position, first in ((values[2], values[3], 0), (values[4], values[5], 1)):
            lanes = [2 * i + first for i in range(emit.lanes)]
            emit.store(emit.shuffle(a, b, lanes), emit.pointer(even, target, position), 0)
        return context.get_dummy_value()

    return types.void(x, x_at, even, even_at, odd, odd_at), generate


@intrinsic
def move(typing, x, x_at, y, y_at):
    """One vector y[j+p] = x[i+p]."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        emit = Emitter(context, builder, x.dtype)
        emit.store(emit.load(emit.pointer(x, *values[:2]), 0), emit.pointer(y, *values[2:]), 0)
        return context.get_dummy_value()

    return types.void(x, x_at, y, y_at), generate


@intrinsic
def join(typing, even, even_at, odd, odd_at, x, x_at):
    """The opposite of `split`: a vector each of ``even`` and ``odd``, alternating in two of ``x``."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        emit = Emitter(context, builder, x.dtype)
        a, b = (emit.load(emit.pointer(even, *values[:2]), 0), emit.load(emit.pointer(odd, *values[2:4]), 0))
        target, lanes = emit.pointer(x, *values[4:]), emit.lanes
        for half in range(2):
            order = [(half * lanes + i) // 2 + i % 2 * lanes for i in range(lanes)]
            emit.store(emit.shuffle(a, b, order), target, half * lanes)
        return context.get_dummy_value()

    return types.void(even, even_at, odd, odd_at, x, x_at), generate


def _array(context: BaseContext, builder: Builder, kind: types.Array, address: Value, shape: Sequence[Value]) -> Value:
    """The C-contiguous array of this kind and shape at an address."""
    element = context.get_data_type(kind.dtype)
    size = ir.Constant(_I64, context.get_abi_sizeof(element))
    strides = [size]
    for length in list(shape)[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    array, data = context.make_array(kind)(context, builder), builder.inttoptr(address, element.as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


@intrinsic
def view(typing, address, length, like):
    """``length`` elements of like's dtype at this address.

    Kernels take addresses: one compiled kernel then serves any number of levels and arrays that are read-only.
    """
    kind = types.Array(like.dtype, 1, "C")

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        return _array(context, builder, kind, values[0], values[1:2])

    return kind(types.int64, types.int64, like), generate


@intrinsic
def tail(typing, array, at):
    """``array[at:]`` of one dimension, ``at`` in it. A loop from 0 over this is made of vector instructions; indices
    ``at + i`` are looked at one by one, whether they are negative.
    """

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        whole = context.make_array(array)(context, builder, values[0])
        address = builder.ptrtoint(builder.gep(whole.data, [values[1]]), _I64)
        return _array(context, builder, array, address, [builder.sub(whole.nitems, values[1])])

    return array(array, types.int64), generate


@intrinsic
def lesser(typing, a, b):
    """The smaller of two integers; `min` takes numba many times as long to compile."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        return builder.select(builder.icmp_signed("<", *values), *values)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def greater(typing, a, b):
    """The larger of two integers, as `lesser`."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        return builder.select(builder.icmp_signed(">", *values), *values)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def largest(typing, like):
    """The largest finite number of like's dtype."""
    value = float(np.finfo(str(like.dtype)).max)

    def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
        return context.get_constant(like.dtype, value)

    return like.dtype(like), generate


def unpacked(kinds: Sequence[Type]) -> Intrinsic:
    """An intrinsic that makes a tuple of what `native.Work` packed, followed by its own arguments."""

    @intrinsic
    def take(typing, block, workspace, begin, end):
        whole = types.Tuple((*kinds, *(types.int64,) * 3))

        def generate(context: BaseContext, builder: Builder, signature: Signature, values: list[Value]) -> Value:
            pointer, taken, found = builder.inttoptr(values[0], _I64.as_pointer()), 0, []
            for kind in kinds:
                count = 1 + (kind.ndim if isinstance(kind, types.Array) else 0)
                words = [builder.load(builder.gep(pointer, [ir.Constant(_I64, taken + i)])) for i in range(count)]
                if isinstance(kind, types.Array):
                    found.append(_array(context, builder, kind, words[0], words[1:]))
                elif isinstance(kind, types.Float):
                    found.append(builder.bitcast(words[0], ir.DoubleType()))
                else:
                    narrow = ir.IntType(kind.bitwidth)
                    found.append(builder.trunc(words[0], narrow) if kind.bitwidth < 64 else words[0])
                taken += count
            return context.make_tuple(builder, whole, [*found, *values[1:]])

        return whole(block, workspace, begin, end), generate

    return take  # type: ignore[no-any-return]  # numba has no types
