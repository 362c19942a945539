"""How every CPU kernel is compiled: without the GIL, cached on disk, the same result in any thread and tile."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numba
import numpy as np
from numba import types
from numba.core.base import BaseContext
from numba.core.caching import FunctionCache
from numba.core.codegen import CPUCodegen
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing import Context as Typing
from numba.core.typing import Signature
from numba.extending import intrinsic

from wavefilt import interrupts, limits, stages, vocabulary
from wavefilt.arrays import Array, DType
from wavefilt.thresholding import shrinkage
from wavefilt.wavelets import boundary

from . import vector
from .vector import Generated

Kernel: TypeAlias = Callable[..., Any]
"""A compiled function, whose types numba infers at the call."""

# no "reassoc": a sample must not depend on its place in a vector; no "nnan", "ninf": gaps and overflow are kept
_FLAGS = {"contract", "nsz"}


def _digest() -> str:
    """Of the sources that go into kernels which stand in other files: numba looks only at a kernel's own file."""
    text = hashlib.sha256()
    kernels = Path(__file__).parent / "dwt" / "kernels.py"  # which imports this
    for name in (__file__, kernels, vector.__file__, boundary.__file__, shrinkage.__file__, vocabulary.__file__):
        with suppress(OSError):  # an installation without sources does not change
            text.update(Path(name).read_bytes())
    return text.hexdigest()


_SOURCES = _digest()


class _Cache(FunctionCache):  # type: ignore[misc]  # numba has no types
    """numba's cache on disk, without which a call gets on as well: an error there is a kernel compiled again."""

    def _index_key(self, signature: Signature, codegen: CPUCodegen) -> tuple[object, ...]:
        return super()._index_key(signature, codegen), _SOURCES

    def load_overload(self, signature: Signature, target_context: BaseContext) -> CompileResult | None:
        found = None
        try:
            found = super().load_overload(signature, target_context)
        except Exception:  # damaged files give errors of any kind
            with suppress(OSError):
                self.flush()
        if found is None:
            stages.begin(stages.COMPILING)
        return found

    def save_overload(self, signature: Signature, data: CompileResult) -> None:
        stages.end()  # `load_overload` began it
        with suppress(Exception):  # the disk is full, or the index came to harm since it was read
            super().save_overload(signature, data)


_loading = threading.RLock()
"""Taken around numba's lock, which an exception in numba may leave taken for ever."""
_broken: list[MemoryError] = []


def _to_the_end(compiled: Kernel, *arguments: object, **named: object) -> object:
    """Compile or load a kernel for these arguments; no signal comes between.

    Raises MemoryError for want of memory, and from then on, because numba may be left in any state.
    """
    with interrupts.deferred(), _loading:
        if _broken:
            raise _broken[0]
        try:
            limits.need(limits.TIGHT)
            return compiled(*arguments, **named)
        except Exception as error:
            if limits.out_of_memory(error):
                _broken.append(MemoryError("not enough memory to compile kernels"))
                raise _broken[0] from error
            raise


# a fork while another thread compiles would leave the locks taken in the child for ever; the last one registered is
# called first before the fork, and last after it
if hasattr(os, "register_at_fork"):
    for lock in (global_compiler_lock, _loading):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def jit(function: Kernel, **options: object) -> Kernel:
    """Compile for the types of the first call; cached beside the source, or in the user's cache if read-only."""
    kernel = numba.njit(**{"nogil": True, "error_model": "numpy", "fastmath": _FLAGS} | options)(function)
    with suppress(RuntimeError):  # no directory to cache in can be written to
        kernel._cache = _Cache(function)
    if not numba.config.DISABLE_JIT:  # then it is the function itself
        kernel._compile_for_args = partial(_to_the_end, kernel._compile_for_args)
    return kernel  # type: ignore[no-any-return]


@cache
def sign_off(dtype: DType) -> Array:
    """All bits but the sign, in an integer of the size of ``dtype``: what makes a magnitude of the bits of a float."""
    bits = np.dtype(f"i{dtype.itemsize}")
    return np.array([np.iinfo(bits).max], bits)


@intrinsic
def _pointer(typing: Typing, address: types.Type, like: types.Array) -> Generated:
    """Integer address to a pointer to the element type of ``like``."""
    pointer = types.CPointer(like.dtype)

    def generate(
        context: BaseContext, builder: vector.Builder, signature: Signature, arguments: list[vector.Value]
    ) -> vector.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64, like), generate


@jit
def view(address: int, length: int, like: Array) -> Array:
    """``length`` elements of like's dtype at this address.

    Kernels take addresses: one compiled kernel then serves any number of levels and arrays that are read-only.
    """
    return numba.carray(_pointer(address, like), (length,))  # type: ignore[no-any-return]
