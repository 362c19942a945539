"""How kernels are compiled and cached on disk: the first call of a later process then loads them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from wavefilt import stages
from wavefilt._version import __version__

from .interfaces import Kernel
from .target import SIMULATED, cuda


@cache
def _sources() -> str:
    """Digest of all sources here: kernels are closures over functions of several files."""
    text = hashlib.sha256(__version__.encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        with suppress(OSError):  # an installation without sources does not change
            text.update(path.read_bytes())
    return text.hexdigest()


def kernel(
    *constants: Hashable, registers: int | None = None, fastmath: bool = False
) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator of a kernel that is a closure over ``constants``, with at most so many registers a thread.

    The cache of numba would tell closures apart by pickling them, and finds those of this process alone.
    """
    if SIMULATED:
        return cuda.jit  # type: ignore[no-any-return]
    limit = {} if registers is None else {"max_registers": registers}

    def compiled(function: Callable[..., Any]) -> Kernel:
        dispatcher = cuda.jit(fastmath=fastmath, **limit)(function)
        with suppress(RuntimeError):  # no directory to cache in can be written to
            dispatcher._cache = _Cache(function, (constants, registers, fastmath))
        return dispatcher  # type: ignore[no-any-return]

    return compiled


if not SIMULATED:
    from numba.cuda.dispatcher import CUDACache

    class _Cache(CUDACache):  # type: ignore[misc]  # numba has no types
        """numba's cache on disk, without which a call gets on as well: an error there is a kernel compiled again."""

        def __init__(self, function: Callable[..., Any], constants: Hashable) -> None:
            self._constants = constants
            super().__init__(function)

        def _index_key(self, signature: Any, codegen: Any) -> Any:
            return signature, codegen.magic_tuple(), self._constants, _sources(), self._launch_config_key

        def load_overload(self, signature: Any, target_context: Any) -> Any:
            found = None
            try:
                found = super().load_overload(signature, target_context)
                if found is not None:
                    found.bind()  # under numba's lock: two threads that launch it for the first time break numba
                    return found
            except Exception:  # damaged files give errors of any kind
                with suppress(OSError):
                    self.flush()
            stages.begin(stages.COMPILING)
            return None

        def save_overload(self, signature: Any, data: Any) -> None:
            stages.end()  # `load_overload` began it
            with suppress(Exception):  # the disk is full, or the index came to harm since it was read
                super().save_overload(signature, data)
