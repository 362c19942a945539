"""How every CPU kernel is compiled: without the GIL, cached on disk, the same result in any thread and tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

# no "reassoc": a sample must not depend on its place in a vector; no "nnan", "ninf": gaps and overflow are kept
_FLAGS = {"contract", "nsz"}


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile for the types of the first call; cached beside the source, or in the user's cache if read-only."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": _FLAGS} | options
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no directory to cache in can be written to
        return numba.njit(**options)(function)


@intrinsic
def _pointer(typing: Any, address: Any, like: Any) -> Any:
    """Integer address to a pointer to the element type of ``like``."""
    pointer = types.CPointer(like.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64, like), generate


@jit
def view(address: int, length: int, like: Any) -> Any:
    """``length`` elements of like's dtype at this address.

    Kernels take addresses: one compiled kernel then serves any number of levels and arrays that are read-only.
    """
    return numba.carray(_pointer(address, like), (length,))
