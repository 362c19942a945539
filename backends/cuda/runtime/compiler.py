"""How kernels are compiled and cached on disk: the first call of a later process then loads them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wavefilt import stages
from wavefilt._version import __version__

from .interfaces import Kernel
from .taps import filled
from .target import SIMULATED, cuda

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.cuda.codegen import JITCUDACodegen
    from numba.cuda.dispatcher import CUDADispatcher
    from numba.types import Type

Types: TypeAlias = "tuple[Type, ...]"


@cache
def _sources() -> str:
    """Digest of all sources here: kernels are closures over functions of several files."""
    text = hashlib.sha256(__version__.encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        with suppress(OSError):  # an installation without sources does not change
            text.update(path.read_bytes())
    return text.hexdigest()


def kernel(
    *constants: Hashable,
    taps: Sequence[float] = (),
    registers: int | None = None,
    since: tuple[int, int] = (8, 0),
    fastmath: bool = False,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator of a kernel that is a closure over ``constants``, with at most so many registers a thread.

    GPUs below the compute capability ``since`` have no such limit: code for them would spill. ``taps`` are those that
    the kernel takes from `taps.numbered`: for others numba need not run again. The cache of numba would tell closures
    apart by pickling them, and finds those of this process alone.
    """
    if SIMULATED:
        return cuda.jit  # type: ignore[no-any-return]

    def compiled(function: Callable[..., Any]) -> Kernel:
        dispatcher = cuda.jit(fastmath=fastmath)(function)
        own = constants, registers, fastmath
        dispatcher.compile = _Compiler(dispatcher, tuple(map(float, taps)), (registers, since), own)
        return dispatcher  # type: ignore[no-any-return]

    return compiled


if not SIMULATED:
    from numba.cuda.core import sigutils
    from numba.cuda.core.compiler_lock import global_compiler_lock
    from numba.cuda.dispatcher import CUDACache, _Kernel

    from .front_end import quick

    class _Cache(CUDACache):  # type: ignore[misc]  # numba has no types
        """numba's cache on disk, without which a call gets on as well: an error there is a kernel compiled again."""

        def __init__(self, function: Callable[..., Any], constants: Hashable) -> None:
            self._constants = constants
            super().__init__(function)

        def _index_key(self, signature: Types, codegen: JITCUDACodegen) -> Hashable:
            return signature, codegen.magic_tuple(), self._constants, _sources(), self._launch_config_key

        def load_overload(self, signature: Types, target_context: BaseContext) -> _Kernel | None:
            with suppress(Exception):  # damaged files give errors of any kind
                return super().load_overload(signature, target_context)
            with suppress(OSError):
                self.flush()
            return None

        def save_overload(self, signature: Types, data: _Kernel) -> None:
            with suppress(Exception):  # the disk is full, or the index came to harm since it was read
                super().save_overload(signature, data)

    class _Compiler:
        """What numba's dispatcher of a kernel calls for types of arguments that are new to it."""

        def __init__(
            self,
            dispatcher: CUDADispatcher,
            taps: tuple[float, ...],
            registers: tuple[int | None, tuple[int, int]],
            constants: Hashable,
        ) -> None:
            self._dispatcher, self._taps, self._registers = dispatcher, taps, registers
            self._binaries = self._sources = None
            with suppress(RuntimeError):  # no directory to cache in can be written to
                self._binaries = _Cache(dispatcher.py_func, (constants, taps))
                self._sources = _Cache(dispatcher.py_func, constants) if taps else None

        def __call__(self, signature: Types) -> _Kernel:
            """The kernel for these types, ready to be launched on the current GPU."""
            types, _ = sigutils.normalize_signature(signature)
            with global_compiler_lock:  # until it is bound: two threads that launch it for the first time break numba
                kernel = self._dispatcher.overloads.get(types)
                if kernel is None:
                    kernel = self._loaded(types) or self._made(types)
                    self._dispatcher.add_overload(kernel, types)
            return kernel

        def _loaded(self, types: Types) -> _Kernel | None:
            found = self._binaries and self._binaries.load_overload(types, self._dispatcher.targetctx)
            with suppress(Exception):  # of a damaged file
                if found:
                    found.bind()
                    return found
            return None

        def _made(self, types: Types) -> _Kernel:
            with stages.stage(stages.COMPILING):
                kernel = self.code(types)
                kernel.bind()
            if self._binaries:
                self._binaries.save_overload(types, kernel)
            return kernel

        def limit(self, capability: tuple[int, int]) -> int | None:
            """Registers for a thread on GPUs of a compute capability."""
            registers, since = self._registers
            return registers if capability >= since else None

        def code(self, types: Types) -> _Kernel:
            """The kernel as LLVM IR, which no GPU is needed for once its compute capability is known."""
            kernel = self._sources and self._sources.load_overload(types, self._dispatcher.targetctx)
            if not kernel:
                limit = self.limit(cuda.get_current_device().compute_capability)
                options = self._dispatcher.targetoptions | ({"max_registers": limit} if limit else {})
                with quick():
                    kernel = _Kernel(self._dispatcher.py_func, types, **options)
                if self._sources:
                    self._sources.save_overload(types, kernel)
            library = kernel._codelibrary
            library._llvm_strs = [filled(code, self._taps) for code in library.llvm_strs]
            return kernel
