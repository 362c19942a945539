"""How CPU kernels are compiled: the same result in any thread and tile.

`machine_code` makes an object file of a kernel. Functions by `jit` are what these call; called from Python, as
benchmarks do, they are compiled by numba for the types of the call and cached by it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numba
from llvmlite import ir
from llvmlite.binding import ModuleRef
from numba import types
from numba.core import targetconfig
from numba.core.base import BaseContext
from numba.core.caching import FunctionCache
from numba.core.codegen import CPUCodegen, JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompileResult, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.typing import Signature

from wavefilt import interrupts
from wavefilt.arrays import DType
from wavefilt.backends.front_end import quick

from .target import key, kinds
from .vector import unpacked

logger = logging.getLogger(__name__)
Kernel: TypeAlias = Callable[..., Any]
"""A compiled function, whose types numba infers at the call."""

# no "reassoc": a sample must not depend on its place in a vector; no "nnan", "ninf": gaps and overflow are kept
_FLAGS = {"contract", "nsz"}


class _Cache(FunctionCache):  # type: ignore[misc]  # numba has no types
    """numba's cache on disk, without which a call gets on as well: an error there is a kernel compiled again."""

    def _index_key(self, signature: Signature, codegen: CPUCodegen) -> tuple[object, ...]:
        return super()._index_key(signature, codegen), key()

    def load_overload(self, signature: Signature, target_context: BaseContext) -> CompileResult | None:
        found = None
        try:
            found = super().load_overload(signature, target_context)
        except Exception:  # damaged files give errors of any kind
            with suppress(OSError):
                self.flush()
        if found is None:
            logger.info("compiling kernels")
        return found

    def save_overload(self, signature: Signature, data: CompileResult) -> None:
        with suppress(Exception):  # the disk is full, or the index came to harm since it was read
            super().save_overload(signature, data)


_loading = threading.RLock()
"""Taken around numba's lock, which an exception in numba may leave taken for ever."""


def _to_the_end(compiled: Kernel, *arguments: object, **named: object) -> object:
    """Compile or load a kernel for these arguments; signals are delayed until then."""
    with interrupts.deferred(), _loading:
        return compiled(*arguments, **named)


# a fork while another thread compiles would leave the locks taken in the child for ever; the last one registered is
# called first before the fork, and last after it
if hasattr(os, "register_at_fork"):
    for lock in (global_compiler_lock, _loading):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


_OPTIONS = {"error_model": "numpy", "fastmath": _FLAGS}
_PART = _OPTIONS | {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def jit(function: Kernel, **options: object) -> Kernel:
    """Compile for the types of the first call; cached beside the source, or in the user's cache if read-only."""
    kernel = numba.njit(**_OPTIONS | {"nogil": True} | options)(function)
    with suppress(RuntimeError):  # no directory to cache in can be written to
        kernel._cache = _Cache(function)
    if not numba.config.DISABLE_JIT:  # then it is the function itself
        kernel._compile_for_args = partial(_to_the_end, kernel._compile_for_args)
    return kernel  # type: ignore[no-any-return]


def part(function: Kernel, **options: object) -> Kernel:
    """A function that only kernels call: nothing is made of it that Python could call, or that allocates memory."""
    return numba.njit(**_PART | options)(function)  # type: ignore[no-any-return]


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """A library for others to take in: LLVM optimises the last one alone, and makes machine code of that alone."""

    def _optimize_functions(self, module: ModuleRef) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_specific(self) -> None:
        pass

    def machine_code(self) -> bytes:
        self.finalize()
        super()._optimize_functions(self._final_module)
        super()._optimize_final_module()
        return bytes(self._codegen._tm.emit_object(self._final_module))


def machine_code(module: str, name: str, parameters: str, dtype: DType) -> bytes:
    """An object file of a function of this package as ``MODULE.NAME(block, workspace, begin, end)``.

    ``block`` points to its ``parameters`` (see `native.Kernel`); the rest and what it returns is int64.
    """
    return _to_the_end(_machine_code, module, name, parameters, dtype)  # type: ignore[return-value]


def _machine_code(module: str, name: str, parameters: str, dtype: DType) -> bytes:
    function = vars(import_module(f"{__package__}.{module}"))[name]
    scalars = [(numba.from_dtype(kind), dimensions) for kind, dimensions in kinds(parameters, dtype)]
    take = unpacked([types.Array(kind, dimensions, "C") if dimensions else kind for kind, dimensions in scalars])

    def run(block, workspace, begin, end):
        return function(*take(block, workspace, begin, end))

    flags, context = Flags(), cpu_target.target_context
    cpu_target.options.parse_as_flags(flags, _PART | {"nopython": True})
    flags.no_compile = True  # yet: the entry below is added
    codegen = context.codegen()
    with global_compiler_lock:
        before, codegen._library_class = codegen._library_class, _Library
        try:
            # what sets an environment would make machine code of every part, which nobody calls
            with quick(targetconfig, (JITCPUCodegen, "set_env", lambda codegen, name, environment: None)):
                done = compile_extra(cpu_target.typing_context, context, run, (types.int64,) * 4, None, flags, {})
            _add_entry(f"{module}.{name}", done, context)
            return done.library.machine_code()  # type: ignore[no-any-return]
        finally:
            codegen._library_class = before


def _add_entry(symbol: str, done: CompileResult, context: BaseContext) -> None:
    """A function that C calls: kernels raise nothing, so what numba says of errors is dropped."""
    module = context.create_module("entry")
    described, word = done.fndesc, ir.IntType(64)
    kind = context.call_conv.get_function_type(described.restype, described.argtypes)
    callee = ir.Function(module, kind, described.llvm_func_name)
    entry = ir.Function(module, ir.FunctionType(word, [word] * 4), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    _, value = context.call_conv.call_function(builder, callee, described.restype, described.argtypes, entry.args)
    if described.restype == types.none:
        value = ir.Constant(word, 0)
    elif described.restype.bitwidth < 64:
        value = builder.sext(value, word)
    builder.ret(value)
    done.library.add_ir_module(module)
