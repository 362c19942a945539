"""The adapter of numba-cuda: how kernels are compiled, linked for a GPU, and kept on disk.

No other module uses private interfaces of numba-cuda, except for names that are stable but not documented: device
arrays, `MemoryPointer` and `CudaAPIError` of `numba.cuda.cudadrv` (`target`, `graph`), and `cgutils`, `types` and
`intrinsic` (`wide`). Interfaces used here are checked when this is imported:

* `CUDADispatcher` (`compile`, `overloads`, `add_overload`, `targetoptions`, `typeof_pyval`), to compile and
  launch kernels that come from the cache on disk, and to note launches without making them
* `_Kernel` (`bind`, `_codelibrary`, `_reduce_states`, `_rebuild`), to keep kernels on disk: the cache of numba-cuda
  tells closures apart by pickling them, and processes that write to it at once mix up its files
* `CUDACodeLibrary` (`llvm_strs`, `_llvm_strs`, `_max_registers`, `_lto`, `get_ltoir`, `_cubin_cache`, `_ensure_cc`),
  to say that places of threads are not negative, to limit registers by capability, and to link with options for fast
  math, which numba-cuda does not pass on; `get_asm_str`, whose PTX is only searched for functions that no kernel here
  calls, and takes a second
* `global_compiler_lock`: two threads that launch a kernel for the first time break numba-cuda
* `Module._finalizer`: a kernel that ran on several GPUs is unloaded several times, which corrupts the heap

LLVM IR is edited in one place, and the replacements are counted: `_not_negative`.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import pickle
import re
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wavefilt._version import __version__
from wavefilt.backends import kernel_files
from wavefilt.errors import BackendUnavailable
from wavefilt.threads import available_cpus

from .interfaces import Build, Kernel
from .target import SIMULATED, cuda, driver

if TYPE_CHECKING:
    from numba.types import Type

logger = logging.getLogger(__name__)
Types: TypeAlias = "tuple[Type, ...]"
Launch: TypeAlias = "tuple[Any, Types]"
"""The dispatcher of a kernel, and the types of the arguments."""
Capability: TypeAlias = "tuple[int, int]"
PACKAGE = Path(__file__).parents[1]
FAST_MATH = {"afn", "arcp", "contract", "nsz", "reassoc"}
"""Flags of LLVM for fast math: all but those by which it may assume that there is no NaN and no infinity."""
FAST_LINK = ("-ftz=1", "-prec-div=0", "-prec-sqrt=0", "-fma=1")
"""The linker generates the machine code, and numba-cuda gives its options for fast math to the compiler alone."""


class _Noted(threading.local):
    launches: list[Launch] | None = None


_noted = _Noted()


@contextmanager
def noting() -> Iterator[list[Launch]]:
    """Collect the launches of this thread, each once, instead of making them."""
    before, _noted.launches = _noted.launches, []
    try:
        yield _noted.launches
    finally:
        _noted.launches = before


def kernel(
    build: Build,
    *constants: Hashable,
    registers: int | None = None,
    since: Capability = (8, 0),
    bounds: tuple[int, int] | None = None,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator of a kernel, a closure over ``build`` and other ``constants``, with at most ``registers`` a thread.

    GPUs below the compute capability ``since`` have no such limit: code for them would spill. ``bounds`` are CUDA's
    launch bounds, the threads of a block and the blocks that a multiprocessor should hold. Unlike a limit, they make
    the compiler use all registers that these blocks leave.
    """
    if SIMULATED:
        return cuda.jit  # type: ignore[no-any-return]

    own = build, constants, registers, bounds
    return partial(_Dispatcher, constants=own, registers=(registers, since), bounds=bounds, fast=build.fastmath)


if not SIMULATED:
    try:
        from cuda.bindings import nvjitlink
        from cuda.core import ObjectCode
        from numba.cuda.codegen import CUDACodeLibrary
        from numba.cuda.core.compiler_lock import global_compiler_lock
        from numba.cuda.cudadrv.driver import driver as numba_driver
        from numba.cuda.dispatcher import CUDADispatcher, _Kernel

        for owner, names in (
            (CUDADispatcher, "compile add_overload typeof_pyval"),
            (_Kernel, "bind _reduce_states _rebuild"),
            (CUDACodeLibrary, "llvm_strs get_ltoir get_cubin get_asm_str _ensure_cc get_cufunc"),
        ):
            for name in names.split():
                getattr(owner, name)
        for name in ("_llvm_strs", "_max_registers", "_lto", "_cubin_cache"):  # attributes of its objects
            if name not in CUDACodeLibrary.__init__.__code__.co_names:
                raise AttributeError(f"CUDACodeLibrary has no attribute {name!r}")
    except (ImportError, AttributeError) as error:
        raise BackendUnavailable(
            f"backend 'cuda': numba-cuda {version('numba-cuda')} differs from the tested versions ({error}); "
            "install a version from the requirements of wavefilt"
        ) from error

    def linked(
        library: CUDACodeLibrary, capability: tuple[Any, ...], registers: int | None, fast: bool, form: str = "cubin"
    ) -> bytes:
        """Return the machine code of a kernel."""
        options = ["-arch=sm_{}{}{}".format(*capability), "-lto", *(FAST_LINK if fast else ())]
        options += [f"-maxrregcount={registers}"] if registers else []
        options += ["-ptx"] if form == "ptx" else []
        code = library.get_ltoir(capability)
        linker = nvjitlink.create(len(options), options)
        try:
            nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
            nvjitlink.complete(linker)
            size, get = (getattr(nvjitlink, f"get_linked_{form}{suffix}") for suffix in ("_size", ""))
            found = bytearray(size(linker))
            get(linker, found)
        finally:
            nvjitlink.destroy(linker)
        return bytes(found)

    class _Dispatcher(CUDADispatcher):  # type: ignore[misc]  # numba has no types
        """The dispatcher of numba-cuda, with another compiler and cache.

        Its launches can be noted, and may have dynamic shared memory.
        """

        def __init__(
            self,
            function: Callable[..., Any],
            constants: Hashable,
            registers: tuple[int | None, Capability],
            bounds: tuple[int, int] | None,
            fast: bool,
        ) -> None:
            public = cuda.jit(fastmath=FAST_MATH if fast else False, launch_bounds=bounds)
            super().__init__(function, public(function).targetoptions)
            self._registers, self.fast = registers, fast
            self._room: dict[tuple[Types, int], int] = {}
            """Bytes of shared memory that blocks may have, by types and GPU."""
            line = function.__code__.co_firstlineno
            self._depends = f"{function.__module__}.{function.__qualname__}:{line} {constants!r} {_made_by()}"

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
            self.allow(tuple(map(self.typeof_pyval, arguments)), size)
            launch(*arguments)

        def allow(self, types: Types, size: int) -> None:
            """Let blocks have ``size`` bytes of shared memory, more than the 48 KiB that all may have.

            The limit is never lowered, since recorded launches may need it.
            """
            function = self.compile(types)._codelibrary.get_cufunc()
            place = types, function.device.id
            if size > self._room.get(place, 0):
                kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                numba_driver.cuKernelSetAttribute(kind, size, function.handle, function.device.id)
                self._room[place] = size

        def compile(self, signature: Any) -> _Kernel:
            """Return the kernel for types that are new to numba, ready to be launched on the current GPU."""
            types = tuple(getattr(signature, "args", signature))
            together([(self, types)])
            return self.overloads[types]

        def ready(self, types: Types) -> bool:
            """Return whether the kernel was compiled for these types, or was found on disk."""
            if types in self.overloads:
                return True
            found = self._from_disk(types)
            with suppress(Exception):  # the driver takes it no more
                if found:
                    found.bind()
                    self.add_overload(found, types)
                    return True
            return False

        def keep(self, types: Types, kernel: _Kernel, code: bytes | None) -> None:
            """Make the kernel with this machine code ready, and keep it on disk if possible."""
            library = kernel._codelibrary
            if code is not None:
                library._cubin_cache[library._ensure_cc(None)] = ObjectCode.from_cubin(code)
            kernel.bind()
            self.add_overload(kernel, types)
            with suppress(Exception), kernel_files.writable(PACKAGE) as folder:
                kernel_files.write(self._file(types), folder, cuda.serialize.dumps(kernel._reduce_states()))

        def _from_disk(self, types: Types) -> Any:
            """Return the kernel that was compiled on this machine before; None if there is none."""
            with suppress(Exception):  # numba-cuda has changed
                packed = kernel_files.read(self._file(types), kernel_files.folders(PACKAGE))
                return packed and _Kernel._rebuild(**pickle.loads(packed))
            return None

        def _file(self, types: Types) -> str:
            text = f"{self._depends} {types} {cuda.get_current_device().compute_capability}"
            return f"{self.py_func.__name__}-{hashlib.sha256(text.encode()).hexdigest()}.kernel"

        def limit(self, capability: Capability) -> int | None:
            """Return the most registers of a thread on GPUs of a compute capability."""
            registers, since = self._registers
            return registers if capability >= since else None

        def code(self, types: Types) -> _Kernel:
            """Return the kernel as LLVM IR; no GPU is needed once its compute capability is known."""
            own = CUDACodeLibrary.get_asm_str
            CUDACodeLibrary.get_asm_str = lambda library, cc=None: ""
            try:
                kernel = _Kernel(self.py_func, types, **self.targetoptions)
            finally:
                CUDACodeLibrary.get_asm_str = own
            library = kernel._codelibrary
            library._max_registers = self.limit(cuda.get_current_device().compute_capability)
            library._llvm_strs = _not_negative(library.llvm_strs)
            return kernel

    def _unload_once() -> None:
        """Let each kernel be unloaded once at exit."""
        own, seen = cuda.cudadrv.driver.driver, set[Any]()
        if not own.is_initialized or own.initialization_error:
            return
        for gpu in cuda.gpus:
            modules = gpu.primary_context.modules if gpu.primary_context else {}
            for handle in seen & modules.keys():
                modules[handle]._finalizer.detach()
            seen |= modules.keys()

    atexit.register(_unload_once)  # runs before what numba registered


def together(launches: Sequence[Launch]) -> None:
    """Make the kernels of some launches ready; numba compiles one at a time, and the linker works beside it."""
    if SIMULATED:
        return
    with global_compiler_lock:
        missing = [(kernel, types) for kernel, types in launches if not kernel.ready(types)]
        if not missing:
            return
        logger.info("compiling kernels")
        with ThreadPoolExecutor(min(available_cpus(), len(missing))) as threads:
            begun = []
            for kernel, types in missing:
                code = kernel.code(types)
                library, work = code._codelibrary, None  # without link-time optimization, only numba-cuda can link
                if library._lto:
                    capability = library._ensure_cc(None)
                    limit = kernel.limit(capability[:2])
                    work = threads.submit(linked, library, capability, limit, kernel.fast)
                begun.append((kernel, types, code, work))
            for kernel, types, code, work in begun:
                kernel.keep(types, code, None if work is None else work.result())


_RANGES = {"tid": (9001, "i32 0, i32 1024"), "ctaid": (9002, "i32 0, i32 2147483647")}
"""Metadata of LLVM: its number, above those of numba, the least value and the end of them."""
_PLACE = re.compile(r'call i32 @"llvm\.nvvm\.read\.ptx\.sreg\.(tid|ctaid)\.[xyz]"\(\)')


def _not_negative(codes: Sequence[str]) -> list[str]:
    """Return LLVM IR that says that places of threads and blocks are not negative, which numba does not.

    An index that may be negative counts from the end of an array, so that every access would compute two addresses and
    choose one: up to 30 % more instructions, and spills in seven kernels for sm_90. Raises RuntimeError if no place is
    read, as if numba-cuda wrote it in another way.
    """
    found, total = [], 0
    for code in codes:
        text, count = _PLACE.subn(lambda place: f"{place[0]}, !range !{_RANGES[place[1]][0]}", code)
        found.append(text + "".join(f"!{n} = !{{ {values} }}\n" for n, values in _RANGES.values()) if count else code)
        total += count
    if not total:
        raise RuntimeError("numba-cuda reads the place of a thread in another way than the tested versions")
    return found


@cache
def _made_by() -> tuple[str, ...]:
    """Return the versions and a digest of all sources here: kernels are closures over functions of several files."""
    text = hashlib.sha256(__version__.encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        with suppress(OSError):  # an installation without sources does not change
            text.update(path.read_bytes())
    return version("numba-cuda"), text.hexdigest(), str(sys.version_info[:2])
