"""The inner loops, written as vector instructions: LLVM's own vectoriser reaches a third to a tenth of their speed.

They take an array and a position in it rather than a slice, and check nothing: whole vectors are read and written.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from llvmlite import ir
from numba import types

from .adapter import WORD, Elements, Emitter, Function, instructions, part
from .native import VECTOR_BYTES, WIDTH

Value: TypeAlias = ir.Value
_I32 = ir.IntType(32)
AHEAD = 4096
"""Bytes fetched ahead where values are listed: 3.2 instead of 4.4 ns for 64 bytes from memory."""


class Vectors:
    """Loads, stores and shuffles of vectors of one element type."""

    def __init__(self, emit: Emitter) -> None:
        self.builder, self.element, self.align = emit.builder, emit.element, emit.size
        self.lanes = VECTOR_BYTES // self.align
        self.vector = ir.VectorType(self.element, self.lanes)

    def at(self, pointer: Value, index: Value | int) -> Value:
        index = ir.Constant(WORD, index) if isinstance(index, int) else index
        return self.builder.bitcast(self.builder.gep(pointer, [index]), self.vector.as_pointer())

    def load(self, pointer: Value, index: Value | int = 0) -> Value:
        value = self.builder.load(self.at(pointer, index))
        value.align = self.align
        return value

    def store(self, value: Value, pointer: Value, index: Value | int, past: bool = False) -> None:
        """Store a vector; ``past`` the caches, to an aligned place: no line is read that is then overwritten."""
        stored = self.builder.store(value, self.at(pointer, index))
        stored.align = VECTOR_BYTES if past else self.align
        if past:
            stored.set_metadata("nontemporal", self.builder.module.add_metadata([ir.Constant(_I32, 1)]))

    def some(self, offset: int, begin: Value, end: Value) -> Value:
        """Return, for each lane of the vector at ``offset``, whether it lies in [begin, end)."""
        kind = ir.VectorType(_I32, self.lanes)
        places = ir.Constant(kind, [offset + i for i in range(self.lanes)])
        first, last = (self.spread(self.builder.trunc(one, _I32), kind) for one in (begin, end))
        inside = [self.builder.icmp_signed(*order) for order in ((">=", places, first), ("<", places, last))]
        return self.builder.and_(*inside)

    def call(self, name: str, result: ir.Type, *values: Value, vector: bool = True) -> Value:
        """Call LLVM's function of this name, for these vectors where it has a version for each."""
        letter = "i" if isinstance(self.element, ir.IntType) else "f"
        head, _, rest = name.partition("*")
        name = f"llvm.{head}.v{self.lanes}{letter}{8 * self.align}{rest}" if vector else f"llvm.{name}"
        kind = ir.FunctionType(result, [value.type for value in values])
        function = self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)
        return self.builder.call(function, values)

    def spread(self, element: Value, kind: ir.VectorType | None = None) -> Value:
        """Return a vector with the element in every lane."""
        empty = ir.Constant(kind or self.vector, ir.Undefined)
        single = self.builder.insert_element(empty, element, ir.Constant(_I32, 0))
        return self.shuffle(single, empty, [0] * self.lanes)

    def shuffle(self, a: Value, b: Value, lanes: list[int]) -> Value:
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, self.lanes), lanes))

    def alternating(self, a: Value, b: Value, half: int) -> Value:
        """Return half of the elements of two vectors, one of each in turn."""
        lanes = self.lanes
        return self.shuffle(a, b, [(half * lanes + i) // 2 + i % 2 * lanes for i in range(lanes)])

    def count(self, mask: Value) -> Value:
        """Return how many lanes of a mask are set."""
        return self.builder.zext(self.builder.ctpop(self.builder.bitcast(mask, ir.IntType(self.lanes))), WORD)


def _sums(
    own: Vectors, u: Value, v: Value, step: Value, filters: list[Value], count: Value, width: int
) -> list[list[Value]]:
    """Return for each filter ``width`` vectors of Σ_q taps[2q] u[p + q step] + taps[2q+1] v[p + q step], p from 0.

    They stay in registers while a loop goes over the taps, from the last to the first as in PyWavelets.
    """
    builder, one, contract = own.builder, ir.Constant(WORD, 1), ("contract",)
    last, entry = builder.sub(count, ir.Constant(WORD, 2)), builder.block
    loop, done = builder.append_basic_block("phase"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    tap = builder.phi(WORD)
    sums = [[builder.phi(own.vector) for _ in range(width)] for _ in filters]
    totals = [list(vectors) for vectors in sums]
    place = builder.mul(builder.lshr(tap, one), step)
    for data, index in ((v, builder.add(tap, one)), (u, tap)):
        pointer = builder.gep(data, [place])
        values = [own.spread(builder.load(builder.gep(taps, [index]))) for taps in filters]
        for k in range(width):
            loaded = own.load(pointer, k * own.lanes)
            for total, value in zip(totals, values, strict=True):
                total[k] = builder.fadd(builder.fmul(loaded, value, flags=contract), total[k], flags=contract)
    following = builder.sub(tap, ir.Constant(WORD, 2))
    builder.cbranch(builder.icmp_signed(">=", following, ir.Constant(WORD, 0)), loop, done)
    tap.add_incoming(last, entry)
    tap.add_incoming(following, loop)
    zero = ir.Constant(own.vector, [ir.Constant(own.element, 0.0)] * own.lanes)
    for vectors, ends in zip(sums, totals, strict=True):
        for value, total in zip(vectors, ends, strict=True):
            value.add_incoming(zero, entry)
            value.add_incoming(total, loop)
    builder.position_at_end(done)
    return totals


def _from(array: Elements, at: Value, emit: Emitter) -> Value:
    return emit.builder.gep(array.data, [at])


def _filter(joined: bool = False, past: bool = False, some: bool = False) -> Function:
    @instructions(more=2 if some else 0)
    def filtered(emit, u, u_at, v, v_at, step, s_taps, r_taps, s, s_at, r, r_at, *ends):
        own, filters = Vectors(emit), [s_taps.data, r_taps.data]
        width = WIDTH // 2 if ends else WIDTH
        totals = _sums(own, _from(u, u_at, emit), _from(v, v_at, emit), step, filters, s_taps.count, width)
        s_data, r_data = _from(s, s_at, emit), _from(r, r_at, emit)
        for k, (a, b) in enumerate(zip(*totals, strict=True)):
            if joined:
                stored = [(own.alternating(a, b, half), s_data, 2 * k + half) for half in range(2)]
            else:
                stored = [(a, s_data, k), (b, r_data, k)]
            for value, pointer, place in stored:
                if ends:
                    target, wanted = own.at(pointer, place * own.lanes), own.some(place * own.lanes, *ends)
                    align = ir.Constant(_I32, own.align)
                    own.call("masked.store*.p0", ir.VoidType(), value, target, align, wanted)
                else:
                    own.store(value, pointer, place * own.lanes, past and (joined or pointer is r_data))

    return filtered


analyse, analyse_some = _filter(), _filter(some=True)
"""analyse(u, i, v, j, m, s_taps, r_taps, s, k, r, l): a group of
s[k+p] = Σ_q s_taps[2q] u[i+p+qm] + s_taps[2q+1] v[j+p+qm] and r likewise: one step of a two-channel bank.
All phases are summed in registers, whatever the filter's length. The second function takes two arguments more and
computes half a group, of which it stores only the results from the one to the other."""

analyse_past = _filter(past=True)
"""The same, r stored past the caches: r[l] is aligned to vectors."""

synthesise, synthesise_some = _filter(joined=True), _filter(joined=True, some=True)
"""The same sums, s and r alternating in s."""

synthesise_past = _filter(joined=True, past=True)
"""The same, stored past the caches: s[k] is aligned to vectors."""


@instructions()
def combine(emit, u, u_at, v, v_at, step, taps, s, s_at):
    """Compute two groups of s[k+p] alone: combine(u, i, v, j, m, taps, s, k)."""
    own, target = Vectors(emit), _from(s, s_at, emit)
    sources = _from(u, u_at, emit), _from(v, v_at, emit)
    (totals,) = _sums(own, *sources, step, [taps.data], taps.count, 2 * WIDTH)
    for k, total in enumerate(totals):
        own.store(total, target, k * own.lanes)


@instructions(lambda address, length, like: types.Array(like.dtype, 1, "C")(types.int64, types.int64, like))
def view(emit, address, length, like):
    """Return ``length`` elements of like's dtype at this address.

    Kernels take addresses: one compiled kernel then serves any number of levels and arrays that are read-only.
    """
    return emit.array(types.Array(emit.kind, 1, "C"), address, [length])


@instructions(lambda array, at: array(array, types.int64))
def tail(emit, array, at):
    """Return ``array[at:]`` of one dimension, with ``at`` in it.

    A loop from 0 over this becomes vector instructions; indices ``at + i`` are each tested for being negative.
    """
    address = emit.builder.ptrtoint(_from(array, at, emit), WORD)
    return emit.array(types.Array(emit.kind, 1, "C"), address, [emit.builder.sub(array.count, at)])


@part
def clear(elements):
    """Set elements of a workspace to 0: whole groups are computed, and subnormal numbers left in memory are slow."""
    for i in range(len(elements)):
        elements[i] = 0


@part
def copy(source, count, target):
    """Copy ``count`` elements; an assignment of slices is ten times slower."""
    for i in range(count):
        target[i] = source[i]


@part
def split(x, count, even, odd):
    """Copy x[2p] to even[p] and x[2p + 1] to odd[p] for ``count`` of each."""
    for p in range(count):
        even[p], odd[p] = x[2 * p], x[2 * p + 1]


@part
def join(even, odd, count, x):
    """Undo `split`."""
    for p in range(count):
        x[2 * p], x[2 * p + 1] = even[p], odd[p]


def _two_integers(a, b):
    return types.int64(types.int64, types.int64)


@instructions(_two_integers)
def lesser(emit, a, b):
    """Return the smaller of two integers; `min` takes numba many times as long to compile."""
    return emit.builder.select(emit.builder.icmp_signed("<", a, b), a, b)


@instructions(_two_integers)
def greater(emit, a, b):
    """Return the larger of two integers, as `lesser`."""
    return emit.builder.select(emit.builder.icmp_signed(">", a, b), a, b)


@instructions(lambda like: like.dtype(like))
def largest(emit, like):
    """Return the largest finite number of like's dtype."""
    return ir.Constant(emit.element, float(np.finfo(str(emit.kind)).max))


def _two_counts(*kinds):
    return types.UniTuple(types.int64, 2)(*kinds)


def _list_inside(emit, bits, at, sign_off, low, high, listed, k, *count):
    own, builder, zero = Vectors(emit), emit.builder, ir.Constant(WORD, 0)
    mask_off, bottom, top = (own.spread(value) for value in (sign_off, low, high))
    source = _from(bits, at, emit)
    place = builder.bitcast(source, ir.IntType(8).as_pointer())
    how = [ir.Constant(_I32, one) for one in (0, 3, 1)]  # to read, into all caches, data
    ahead = builder.gep(place, [ir.Constant(WORD, AHEAD)])
    own.call("prefetch.p0", ir.VoidType(), ahead, *how, vector=False)
    wanted = own.some(0, zero, *count) if count else None
    if count:
        where = own.at(source, 0), ir.Constant(_I32, own.align), wanted, mask_off
        loaded = own.call("masked.load*.p0", own.vector, *where)
    else:
        loaded = own.load(source)
    magnitude = builder.and_(loaded, mask_off)
    below = builder.icmp_signed("<", magnitude, bottom)
    inside = builder.and_(builder.not_(below), builder.icmp_signed("<=", magnitude, top))
    if wanted is not None:
        below, inside = builder.and_(below, wanted), builder.and_(inside, wanted)
    own.call("masked.compressstore", ir.VoidType(), magnitude, _from(listed, k, emit), inside)
    return [own.count(inside), own.count(below)]


list_inside, list_inside_some = (instructions(_two_counts, more)(_list_inside) for more in range(2))
"""list_inside(bits, at, sign_off, low, high, listed, k): append the magnitudes of one vector within [low, high] to
``listed`` from k on; how many they are, and how many lie below. The second function takes a count more, of the elements
that are read."""


def _ranked(width: int) -> Function:
    @instructions(lambda a, n, k, most: types.UniTuple(a.dtype, 2)(a, types.int64, types.int64, a.dtype))
    def ranked_few(emit, a, n, k, most):
        own, builder = Vectors(emit), emit.builder
        zero, ceiling, begin = ir.Constant(own.vector, [0] * own.lanes), own.spread(most), ir.Constant(WORD, 0)
        vectors = []
        for i in range(width):
            there = own.some(i * own.lanes, begin, n)
            vectors.append(builder.select(there, own.load(a.data, i * own.lanes), ceiling))
        loop, done, entry = builder.append_basic_block("one"), builder.append_basic_block("done"), builder.block
        builder.branch(loop)
        builder.position_at_end(loop)
        i, smaller = builder.phi(WORD), [builder.phi(own.vector) for _ in vectors]
        one = own.spread(builder.load(builder.gep(a.data, [i])))
        minus_ones = [builder.sext(builder.icmp_signed("<", one, x), own.vector) for x in vectors]
        sums = [builder.sub(count_so_far, less) for count_so_far, less in zip(smaller, minus_ones, strict=True)]
        following = builder.add(i, ir.Constant(WORD, 1))
        builder.cbranch(builder.icmp_signed("<", following, n), loop, done)
        i.add_incoming(begin, entry)
        i.add_incoming(following, loop)
        for phi, total in zip(smaller, sums, strict=True):
            phi.add_incoming(zero, entry)
            phi.add_incoming(total, loop)
        builder.position_at_end(done)
        narrow = builder.trunc(k, own.element) if own.element.width < 64 else k
        low, high = zero, ceiling
        for x, total in zip(vectors, sums, strict=True):
            kept = builder.icmp_signed("<=", total, own.spread(narrow))
            below, above = builder.select(kept, x, zero), builder.select(kept, ceiling, x)
            low = builder.select(builder.icmp_signed(">", low, below), low, below)
            high = builder.select(builder.icmp_signed("<", high, above), high, above)
        found, above = (
            own.call("vector.reduce.smax", own.element, low),
            own.call("vector.reduce.smin", own.element, high),
        )
        up_to = ir.Constant(WORD, 0)
        for x in vectors:
            up_to = builder.add(up_to, own.count(builder.icmp_signed("<=", x, own.spread(found))))
        again = builder.icmp_signed(">", up_to, builder.add(k, ir.Constant(WORD, 1)))
        return [found, builder.select(again, found, above)]

    return ranked_few


ranked, ranked_few = _ranked(WIDTH), _ranked(WIDTH // 2)
"""ranked(a, n, k, all_bits): the k-th smallest of the n first magnitudes of a, and the next: by counting for each how
many are smaller. n is not more than fit ``WIDTH`` vectors, or half of that; as many are read."""
