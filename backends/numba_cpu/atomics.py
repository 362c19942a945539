"""Words of memory that threads share, and calls of functions by their address, for kernels; addresses are integers."""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types

from .adapter import WORD, Function, instructions

_I32 = ir.IntType(32)
_PAUSE = {"x86_64": ("llvm.x86.sse2.pause", []), "aarch64": ("llvm.aarch64.hint", [ir.Constant(_I32, 1)])}
"""LLVM's name of the instruction for a waiting loop."""


def _place(emit, address):
    return emit.builder.inttoptr(address, WORD.as_pointer())


def _integer(*kinds):
    return types.int64(*(types.int64,) * len(kinds))


@instructions(_integer)
def plain(emit, address):
    """A word that no other thread changes meanwhile."""
    return emit.builder.load(_place(emit, address))


@instructions(_integer)
def shared(emit, address):
    """A word that other threads write to."""
    return emit.builder.load_atomic(_place(emit, address), "seq_cst", 8)


def _change(operation: str) -> Function:
    @instructions(_integer)
    def change(emit, address, value):
        return emit.builder.atomic_rmw(operation, _place(emit, address), value, "seq_cst")

    return change


exchange, add, either, both, highest = map(_change, ("xchg", "add", "or", "and", "max"))
"""f(address, value): change a shared word, and return what it was: replacement, sum, bitwise or and and, maximum."""


@instructions(lambda *kinds: types.boolean(*(types.int64,) * 3))
def swap(emit, address, old, new):
    """Replace a shared word if it is ``old``, and return whether it was."""
    return emit.builder.extract_value(emit.builder.cmpxchg(_place(emit, address), old, new, "seq_cst"), 1)


@instructions()
def pause(emit):
    """Wait for a moment, in a loop."""
    name, values = _PAUSE[platform.machine()]
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    function = emit.builder.module.globals.get(name) or ir.Function(emit.builder.module, kind, name)
    emit.builder.call(function, values)


@instructions(_integer)
def call(emit, function, block, workspace, begin, end):
    """Call a kernel by its address."""
    kind = ir.FunctionType(WORD, [WORD] * 4).as_pointer()
    return emit.builder.call(emit.builder.inttoptr(function, kind), [block, workspace, begin, end])


@instructions(_integer)
def system_call(emit, function, number, a, b, c):
    """Call the function ``syscall`` of the C library, by its address."""
    kind = ir.FunctionType(WORD, [WORD], var_arg=True).as_pointer()
    rest = [ir.Constant(WORD, 0)] * 3
    return emit.builder.call(emit.builder.inttoptr(function, kind), [number, a, b, c, *rest])


@instructions(_integer)
def foreign(emit, function, a, b, c, d):
    """Call a function of C by its address; its result is an integer of 32 bits."""
    kind = ir.FunctionType(_I32, [WORD] * 4).as_pointer()
    found = emit.builder.call(emit.builder.inttoptr(function, kind), [a, b, c, d])
    return emit.builder.zext(found, WORD)


@instructions()
def write_byte(emit, address):
    """Write a 0 to memory, whatever is there."""
    byte = ir.IntType(8)
    emit.builder.store(ir.Constant(byte, 0), emit.builder.inttoptr(address, byte.as_pointer()))
