"""How kernels are compiled, several at once where it is known which will be launched.

They are kept on disk, where the first call of a later process finds them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from wavefilt.backends.front_end import quick
from wavefilt.threads import available_cpus

from .index_ranges import not_negative
from .interfaces import Kernel
from .taps import filled
from .target import SIMULATED, cuda

if TYPE_CHECKING:
    from numba.cuda.codegen import JITCUDACodegen
    from numba.types import Type

logger = logging.getLogger(__name__)
Types: TypeAlias = "tuple[Type, ...]"
Launch: TypeAlias = "tuple[Any, Types]"
"""numba's dispatcher of a kernel, and the types of the arguments."""


class _Noted(threading.local):
    launches: list[Launch] | None = None


_noted = _Noted()


@contextmanager
def noting() -> Iterator[list[Launch]]:
    """The launches of this thread, each once, which are not made until this ends."""
    before, _noted.launches = _noted.launches, []
    try:
        yield _noted.launches
    finally:
        _noted.launches = before


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
        dispatcher = _Dispatcher(function, cuda.jit(fastmath=fastmath)(function).targetoptions)
        own = constants, registers, fastmath
        dispatcher.compile = _Compiler(dispatcher, tuple(map(float, taps)), (registers, since), own)
        return dispatcher

    return compiled


if not SIMULATED:
    from cuda.bindings import driver as binding
    from numba.cuda.codegen import CUDACodeLibrary
    from numba.cuda.core import sigutils, targetconfig
    from numba.cuda.core.compiler_lock import global_compiler_lock
    from numba.cuda.cudadrv.driver import driver
    from numba.cuda.dispatcher import CUDADispatcher, _Kernel

    from .stored import Cache, Released

    class _Dispatcher(CUDADispatcher):  # type: ignore[misc]  # numba has no types
        """numba's, whose launches can be noted."""

        def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., None]:
            launches, launch = _noted.launches, super().__getitem__(configuration)
            if launches is None:
                return partial(self._with_room, launch, configuration[3]) if configuration[3:] else launch

            def note(*arguments: object) -> None:
                launch = self, tuple(map(self.typeof_pyval, arguments))
                if launch not in launches:
                    launches.append(launch)

            return note

        def _with_room(self, launch: Callable[..., None], size: int, *arguments: object) -> None:
            allow(self, tuple(map(self.typeof_pyval, arguments)), size)
            launch(*arguments)

    def allow(dispatcher: CUDADispatcher, types: Types, size: int) -> None:
        """Let the blocks of a kernel have so many bytes of shared memory, more than the 48 KiB that all may have.

        And no less than before, which launches that are recorded may need.
        """
        function = dispatcher.compile(types)._codelibrary.get_cufunc()
        place = types, function.device.id
        if size > dispatcher.compile.room.get(place, 0):
            kind = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.cuKernelSetAttribute(kind, size, function.handle, function.device.id)
            dispatcher.compile.room[place] = size

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
            self.room: dict[tuple[Types, int], int] = {}
            """Bytes of shared memory that blocks may have, by types and GPU."""
            self._released = Released(dispatcher.py_func, constants, len(taps))
            self._binaries = Cache(dispatcher.py_func, (constants, taps))
            self._sources = Cache(dispatcher.py_func, constants) if taps else None

        def __call__(self, signature: Types) -> _Kernel:
            """The kernel for these types, ready to be launched on the current GPU."""
            types, _ = sigutils.normalize_signature(signature)
            with global_compiler_lock:  # until it is bound: two threads that launch it for the first time break numba
                if not self.ready(types):
                    logger.info("compiling kernels")
                    self.keep(types, self.code(types))
            return self._dispatcher.overloads[types]

        def ready(self, types: Types) -> bool:
            """Whether it is there for these types, or was found on disk."""
            if types in self._dispatcher.overloads:
                return True
            found = self._binaries.load(types, self._codegen())
            with suppress(Exception):  # the driver takes it no more
                if found:
                    found.bind()
                    self._dispatcher.add_overload(found, types)
                    return True
            return False

        def keep(self, types: Types, kernel: _Kernel) -> None:
            """Make the kernel ready, and keep it on disk."""
            kernel.bind()
            self._dispatcher.add_overload(kernel, types)
            self._binaries.save(types, self._codegen(), kernel)

        @property
        def taps(self) -> int:
            """How many the kernel has; 0 for one that all filters share."""
            return len(self._taps)

        def _codegen(self) -> JITCUDACodegen:
            return self._dispatcher.targetctx.codegen()

        def limit(self, capability: tuple[int, int]) -> int | None:
            """Registers for a thread on GPUs of a compute capability."""
            registers, since = self._registers
            return registers if capability >= since else None

        def code(self, types: Types) -> _Kernel:
            """The kernel as LLVM IR, which no GPU is needed for once its compute capability is known."""
            limit = self.limit(cuda.get_current_device().compute_capability)
            kernel = self._sources and self._sources.load(types, self._codegen())
            kernel = kernel or self._released.load(types)
            if not kernel:
                kernel = self._by_numba(types)
                if self._sources:
                    self._sources.save(types, self._codegen(), kernel)
            library = kernel._codelibrary
            library._max_registers = limit
            library._llvm_strs = [not_negative(filled(code, self._taps)) for code in library.llvm_strs]
            return kernel

        def release(self, types: Types) -> tuple[str, dict[str, Any]]:
            """The kernel for `stored.Released`, and its name there, as it is before the taps are known."""
            return self._released.packed(types, self._by_numba(types))

        def _by_numba(self, types: Types) -> _Kernel:
            """The kernel as numba makes it, with placeholders instead of taps.

            And without PTX, which is searched for names of functions that no kernel here calls.
            """
            with quick(targetconfig, (CUDACodeLibrary, "get_asm_str", lambda library, cc=None: "")):
                return _Kernel(self._dispatcher.py_func, types, **self._dispatcher.targetoptions)


def together(launches: Sequence[Launch]) -> None:
    """Make the kernels of some launches ready: numba compiles one after the other, what comes after it runs beside."""
    if SIMULATED:
        return
    with global_compiler_lock:
        missing = [(kernel, types) for kernel, types in launches if not kernel.compile.ready(types)]
        if not missing:
            return
        logger.info("compiling kernels")
        with ThreadPoolExecutor(min(available_cpus(), len(missing))) as threads:
            begun = []
            for kernel, types in missing:
                code = kernel.compile.code(types)
                library = code._codelibrary
                begun.append((kernel, types, code, threads.submit(library.get_cubin, library._ensure_cc(None))))
            for kernel, types, code, future in begun:
                future.result()
                kernel.compile.keep(types, code)
