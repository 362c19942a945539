"""Kernels as machine code: loaded from a cache on disk by LLVM alone, or compiled first, by numba in other processes.

To import numba takes longer than everything else that a first call does, so a process whose kernels are in the cache
does not import it. numba compiles in one thread of a process at a time, so several processes compile at once.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import logging
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import llvmlite
import numpy as np
from llvmlite import binding

from wavefilt import threads, vocabulary
from wavefilt.arrays import DType
from wavefilt.backends import kernel_files
from wavefilt.errors import BackendUnavailable
from wavefilt.thresholding import rules, shrinkage
from wavefilt.wavelets import boundary

from . import memory

if (_found := find_spec("numba")) is None:
    raise ModuleNotFoundError("No module named 'numba'", name="numba")
_NUMBA = Path(str(_found.origin))
_HOST = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _HOST.get("avx512f") else 32 if _HOST.get("avx") else 16
WIDTH = 4
"""Vectors computed together: with two sums each they hide the latency of a multiply-add and fit the registers."""
GROUP_BYTES = WIDTH * VECTOR_BYTES
HALF = GROUP_BYTES // 2
"""Bytes of the smaller groups for the rest of a row after whole groups."""

logger = logging.getLogger(__name__)
PACKAGE = Path(__file__).parent
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)  # which releases the GIL
INTERVAL = 0.2
"""Seconds between two looks at the progress of compilation."""
OUT_OF_MEMORY = 12
"""Exit code of a process that had not enough memory."""

INTEGER, FLOAT, SCATTERED = -1, -2, -3
"""Kinds of arguments that are no contiguous arrays; the kind of those is their number of dimensions."""
_Kinds: TypeAlias = tuple[list[int], list[DType]]


class Kernel:
    """A function of a range, in a module of this package, with one version for each dtype of samples.

    ``parameters`` come before the workspace, begin and end: ``i`` is an integer, ``u`` one of 32 bits without a
    sign, ``d`` a float64, ``B`` an integer of the samples' size, ``i[]`` and ``d[,]`` are C-contiguous arrays of them,
    ``T[]`` one of samples. ``name(first:i second:d)`` is a named tuple for the kernel; callers give its members.
    """

    def __init__(self, module: str, name: str, parameters: str) -> None:
        self.module, self.name, self.parameters = module, name, parameters
        self.symbol = f"{module}.{name}"
        self.versions: dict[str, tuple[int, Callable[..., int]]] = {}
        """The loaded versions by the character of their dtype: address and function."""
        self._block = struct.Struct(f"{sum(1 + dimensions for _, dimensions in self.kinds(np.dtype('f4')))}q")
        self._wanted: dict[str, _Kinds] = {}

    def kinds(self, dtype: DType) -> list[tuple[DType, int]]:
        """Return dtype and dimensions of each parameter; a number has 0 dimensions."""
        letters = {"i": "i8", "u": "u4", "d": "f8", "B": f"i{dtype.itemsize}", "T": dtype.str}
        found = [kind for _, members in self.groups() for _, kind in members]
        return [(np.dtype(letters[one[0]]), one.count(",") + 1 if "[" in one else 0) for one in found]

    def groups(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the named tuples with names and kinds of their members; a single parameter has the name ""."""
        found = re.findall(r"(\w+)\((.*?)\)|(\S+)", self.parameters)
        return [
            (name, [one.rpartition(":")[::2] for one in (members or single).split()]) for name, members, single in found
        ]

    def of(self, dtype: DType, *arguments: object, workspace: int = 0, kept: object = None) -> Work:
        """Return the kernel with all arguments except the range, and with bytes of memory to work in.

        ``kept`` are the arrays behind addresses in the arguments, which must live as long as the work. Raises TypeError
        for arguments of other types than the kernel takes: it would read or write other memory.
        """
        if dtype.char not in self._wanted:
            load([self], dtype)
            wanted, numbers = self.kinds(dtype), {"i": INTEGER, "f": FLOAT}
            forms = [dimensions or numbers[kind.kind] for kind, dimensions in wanted]
            self._wanted[dtype.char] = forms, [kind for kind, dimensions in wanted if dimensions]
        words, found = _packed(arguments)
        if found != self._wanted[dtype.char]:
            raise TypeError(f"{self.symbol} takes {self.parameters} of {dtype}, not {found}")
        return Work(
            self.name, *self.versions[dtype.char], bytearray(self._block.pack(*words)), workspace, (arguments, kept)
        )


class Constant:
    """Arguments that are packed once and used many times."""

    def __init__(self, *values: object) -> None:
        self.words, self.kinds = _packed(values)
        self.values = values  # whose memory must live as long


def _packed(values: Sequence[object]) -> tuple[list[int], _Kinds]:
    """Return the words of the values, one for each number, for an array its address and shape; and their kinds.

    The commonest types are tested first, since this runs for every launch.
    """
    words: list[int] = []
    forms: list[int] = []
    dtypes: list[DType] = []
    for value in values:
        kind = type(value)
        if kind is int:
            words.append(value)  # type: ignore[arg-type]
            forms.append(INTEGER)
        elif kind is Constant:
            words += value.words  # type: ignore[attr-defined]
            forms += value.kinds[0]  # type: ignore[attr-defined]
            dtypes += value.kinds[1]  # type: ignore[attr-defined]
        elif isinstance(value, np.ndarray):
            words.append(memory.address(value))
            words += value.shape
            forms.append(value.ndim if value.flags.c_contiguous else SCATTERED)
            dtypes.append(value.dtype)
        elif isinstance(value, float):
            words += struct.unpack("q", struct.pack("d", value))
            forms.append(FLOAT)
        else:
            words.append(int(value))  # type: ignore[call-overload]
            forms.append(INTEGER)
    return words, (forms, dtypes)


class Work:
    """A kernel with its arguments: call it on ranges, in any threads at once."""

    def __init__(
        self, name: str, place: int, function: Callable[..., int], arguments: bytearray, workspace: int, kept: object
    ) -> None:
        self.name, self.place, self.workspace = name, place, workspace
        self.block = ctypes.addressof(ctypes.c_char.from_buffer(arguments))
        self._function, self._kept, self.arguments = function, kept, arguments

    def __call__(self, begin: int, end: int) -> int:
        # this frame keeps the owner: when Python ends, it clears what belongs to threads that still run
        address, _owner = memory.workspace(self.workspace)
        return self._function(self.block, address, begin, end)


class Address:
    """The places of one array's address in the arguments of several kernels, to put another array there."""

    def __init__(self, address: int, works: Sequence[Work]) -> None:
        words = [memoryview(work.arguments).cast("q") for work in works]
        self._places = [(own, i) for own in words for i, word in enumerate(own) if word == address]

    def set(self, address: int) -> None:
        for words, i in self._places:
            words[i] = address


Task: TypeAlias = tuple[Kernel, DType]
_failed: list[BackendUnavailable] = []
"""Why kernels cannot be compiled: they are not tried again."""


def load(kernels: Sequence[Kernel], dtype: DType) -> None:
    """Load kernels; the ones that are not in a cache are compiled first, several at once.

    Raises MemoryError if there is not enough to compile, and BackendUnavailable if numba cannot compile them.
    """
    for kernel in kernels:
        if dtype.char not in kernel.versions:
            break
    else:
        return
    if _failed:
        raise _failed[0]
    try:
        threads.load(partial(_load, kernels, dtype))
    except BackendUnavailable as error:
        _failed.append(error)
        raise


def _load(kernels: Sequence[Kernel], dtype: DType) -> None:
    missing = [kernel for kernel in dict.fromkeys(kernels) if dtype.char not in kernel.versions]
    for (kernel, _), code in compiled([(kernel, dtype) for kernel in missing]).items():
        # what is linked stays in memory until the process ends: a thread may run it when the interpreter ends
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine().create_target_machine(opt=0))
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address(kernel.symbol)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
        kernel.versions[dtype.char] = address, FUNCTION(address)


@cache
def _machine() -> binding.TargetMachine:
    with suppress(RuntimeError):  # deprecated in versions that need no call
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(binding.get_process_triple())


@cache
def _key() -> str:
    """Return a hash of all that machine code depends on: sources, versions and the processor."""
    sources = [*sorted(PACKAGE.rglob("*.py")), _NUMBA.with_name("_version.py")]  # metadata takes 30 ms to read
    sources += [Path(str(module.__file__)) for module in (boundary, rules, shrinkage, vocabulary)]
    text = hashlib.sha256(llvmlite.__version__.encode())
    for path in sources:
        with suppress(OSError):  # an installation without sources does not change
            text.update(path.read_bytes())
    flags = "".join(name for name, there in sorted(_HOST.items()) if there)
    own = {name: os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")}
    text.update(repr((binding.get_host_cpu_name(), flags, own)).encode())
    return text.hexdigest()[:20]


def _name(kernel: Kernel, dtype: DType) -> str:
    same = not {"T", "B"}.intersection(kernel.parameters)  # for every dtype
    return f"{kernel.symbol}-{'all' if same else dtype}-{_key()}.o"


def cached(task: Task) -> bool:
    """Return whether the kernel is in a cache on disk."""
    return kernel_files.read(_name(*task), kernel_files.folders(PACKAGE)) is not None


def compiled(tasks: Sequence[Task], advance: Callable[[int], None] = lambda done: None) -> dict[Task, bytes]:
    """Return the object files of kernels, from the cache or compiled and cached now. Raises errors as `load`."""
    read = {task: kernel_files.read(_name(*task), kernel_files.folders(PACKAGE)) for task in tasks}
    found = {task: code for task, code in read.items() if code is not None}
    if absent := [task for task in tasks if task not in found]:
        logger.info("compiling kernels")
        with kernel_files.writable(PACKAGE) as folder:
            found |= _compiled_now(absent, folder, advance)
    return found


_running: list[subprocess.Popen[bytes]] = []
_ending: list[bool] = []


@atexit.register
def _end() -> None:
    """End all processes: the interpreter ends."""
    _ending.append(True)
    for process in _running:
        process.kill()


def _compiled_now(tasks: Sequence[Task], folder: Path, advance: Callable[[int], None]) -> dict[Task, bytes]:
    """Return the object file of each kernel, which is also kept in a folder.

    Each process takes the next task from a pipe of their numbers, so give the longest tasks first. Kernels that they do
    not compile, as where none can be started, are compiled in this process. ``advance`` gets the number of finished
    kernels, several times a second. Raises MemoryError where there is not enough, and BackendUnavailable.
    """
    # in a frozen application or an embedded interpreter `sys.executable` is another program
    can_start = "python" in Path(sys.executable or "").name.lower() and not vars(sys).get("frozen")
    count = min(threads.available_cpus(), len(tasks)) if can_start else 0
    numbers, feed = os.pipe()
    os.write(feed, bytes(range(len(tasks))))
    os.close(feed)
    try:
        with os.fdopen(numbers):
            for _ in range(count):
                with suppress(OSError, RuntimeError):  # RuntimeError in subinterpreters
                    _running.append(_started(tasks, folder, numbers))
        while any(process.poll() is None for process in _running):
            advance(sum((folder / _name(*task)).exists() for task in tasks))
            for process in _running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(INTERVAL)
        if OUT_OF_MEMORY in [process.returncode for process in _running]:
            raise MemoryError("not enough memory to compile kernels")
    finally:
        for process in _running:
            if process.poll() is None:  # an interrupt ends them
                process.kill()
                process.wait()
        _running.clear()
    if _ending:
        raise BackendUnavailable("the interpreter ends")
    codes = {task: kernel_files.read(_name(*task), [folder]) for task in tasks}
    return {task: _machine_code(*task) if code is None else code for task, code in codes.items()}


_PROGRAM = """
import sys
sys.path[:] = {path!r}
from wavefilt.backends.numba_cpu import native
sys.exit(native.keep({tasks!r}, {folder!r}))
"""


def _started(tasks: Sequence[Task], folder: Path, numbers: int) -> subprocess.Popen[bytes]:
    """Start a process of its own group, which signals from a terminal do not reach; it reads ``numbers``, a pipe."""
    named = [(kernel.module, kernel.name, kernel.parameters, dtype.name) for kernel, dtype in tasks]
    windows, nowhere = sys.platform == "win32", subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(path=sys.path, tasks=named, folder=str(folder))],
        stdin=numbers,
        stdout=nowhere,
        stderr=nowhere,
        # `adapter` optimises; the machine code that numba makes for itself is not used
        env=os.environ | {"NUMBA_NUM_THREADS": "1", "NUMBA_OPT": "0"},
        start_new_session=not windows,
        creationflags=0x08000000 if windows else 0,  # no window of its own
    )


def keep(tasks: Sequence[tuple[str, str, str, str]], folder: str) -> int:
    """Compile kernels and keep them in a folder: in the started process. Return its exit code.

    ``tasks`` are the arguments of `Kernel` and a dtype. The numbers of the tasks to compile are read from standard
    input. Raises OSError, on a full disk for example.
    """
    try:
        while number := os.read(0, 1):
            *own, dtype = tasks[number[0]]
            kernel, kind = Kernel(*own), np.dtype(dtype)
            kernel_files.write(_name(kernel, kind), Path(folder), _machine_code(kernel, kind))
    except MemoryError:
        return OUT_OF_MEMORY
    return 0


def _machine_code(kernel: Kernel, dtype: DType) -> bytes:
    """Return an object file of a kernel. Raises BackendUnavailable if this version of numba does not make it."""
    try:
        from . import adapter

        adapter.probe()
        function = vars(import_module(f"{__package__}.{kernel.module}"))[kernel.name]
        named = [(name, [member for member, _ in members]) for name, members in kernel.groups()]
        return adapter.object_code(function, kernel.symbol, kernel.kinds(dtype), named)
    except MemoryError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BackendUnavailable(f"backend 'numba' cannot compile its kernels: {reason}") from error
