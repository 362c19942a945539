"""Kernels as machine code: loaded from a cache on disk by LLVM alone, or compiled first, by numba in other processes.

To import numba takes longer than everything else that a first call does, and so a process whose kernels are in the
cache does not.
"""

from __future__ import annotations

import ctypes
import logging
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from llvmlite import binding

from wavefilt import threads
from wavefilt.arrays import DType
from wavefilt.backends import kernel_files
from wavefilt.errors import BackendUnavailable

from . import memory, processes
from .target import key, kinds

logger = logging.getLogger(__name__)
PACKAGE = Path(__file__).parent
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)  # which releases the GIL


INTEGER, FLOAT, SCATTERED = -1, -2, -3
"""Kinds of arguments that are no contiguous arrays; the kind of those is their number of dimensions."""
_Kinds: TypeAlias = tuple[list[int], list[DType]]


class Kernel:
    """A function of a range, in a module of this package, with one version for each dtype of samples.

    ``parameters`` come before the workspace, begin and end: ``i`` is an integer, ``u`` one of 32 bits without a
    sign, ``d`` a float64, ``B`` an integer of the samples' size, ``i[]`` and ``d[,]`` are C-contiguous arrays of them,
    ``T[]`` one of samples.
    """

    def __init__(self, module: str, name: str, parameters: str) -> None:
        self.module, self.name, self.parameters = module, name, parameters
        self.symbol = f"{module}.{name}"
        self.versions: dict[str, tuple[int, Callable[..., int]]] = {}
        """The loaded versions by the character of their dtype: address and function."""
        self._block = struct.Struct(f"{sum(1 + dimensions for _, dimensions in kinds(parameters, np.dtype('f4')))}q")
        self._wanted: dict[str, _Kinds] = {}

    def of(self, dtype: DType, *arguments: object, workspace: int = 0, kept: object = None) -> Work:
        """Return the kernel with all arguments except the range, and with bytes of memory to work in.

        ``kept`` are the arrays behind addresses in the arguments, which must live as long as the work. Raises TypeError
        for arguments of other types than the kernel takes: it would read or write other memory.
        """
        if dtype.char not in self._wanted:
            load([self], dtype)
            wanted = kinds(self.parameters, dtype)
            numbers = {"i": INTEGER, "f": FLOAT}
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
        return self._function(self.block, memory.workspace(self.workspace), begin, end)


class Address:
    """The places of one array's address in the arguments of several kernels, to put another array there."""

    def __init__(self, address: int, works: Sequence[Work]) -> None:
        words = [memoryview(work.arguments).cast("q") for work in works]
        self._places = [(own, i) for own in words for i, word in enumerate(own) if word == address]

    def set(self, address: int) -> None:
        for words, i in self._places:
            words[i] = address


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


_failed: list[BackendUnavailable] = []
"""Why kernels cannot be compiled: they are not tried again."""


def _load(kernels: Sequence[Kernel], dtype: DType) -> None:
    missing = [kernel for kernel in kernels if dtype.char not in kernel.versions]
    codes = compiled([(kernel, dtype) for kernel in missing])
    for kernel, _ in codes:
        kernel.versions[dtype.char] = _linked(kernel, codes[kernel, dtype])


def cached(task: processes.Task) -> bool:
    """Return whether the kernel is in a cache on disk."""
    return _read(task, kernel_files.folders(PACKAGE)) is not None


def compiled(
    tasks: Sequence[processes.Task], advance: Callable[[int], None] = lambda done: None
) -> dict[processes.Task, bytes]:
    """Return the object files of kernels, from the cache or compiled and cached now. Raises errors as `load`."""
    codes = {task: _read(task, kernel_files.folders(PACKAGE)) for task in tasks}
    absent = [task for task, code in codes.items() if code is None]
    found = {task: code for task, code in codes.items() if code is not None}
    if absent:
        logger.info("compiling kernels")
        with kernel_files.writable(PACKAGE) as folder:
            found |= processes.compiled(absent, folder, lambda task: _read(task, [folder]), advance)
    return found


@cache
def _machine() -> binding.TargetMachine:
    with suppress(RuntimeError):  # deprecated in versions that need no call
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(binding.get_process_triple())


def _keep(engine: binding.ExecutionEngine) -> None:
    """Keep machine code until the process ends: a thread may run it when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))


def _linked(kernel: Kernel, code: bytes) -> tuple[int, Callable[..., int]]:
    """Return address and function of the kernel in an object file, which stays in memory until the process ends."""
    module = binding.parse_assembly("")
    engine = binding.create_mcjit_compiler(module, _machine().create_target_machine(opt=0))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(kernel.symbol)
    _keep(engine)
    return address, FUNCTION(address)


def _name(kernel: Kernel, dtype: DType) -> str:
    same = not {"T", "B"}.intersection(kernel.parameters)  # for every dtype
    return f"{kernel.symbol}-{'all' if same else dtype}-{key()}.o"


def _read(task: processes.Task, folders: Sequence[Path]) -> bytes | None:
    return kernel_files.read(_name(*task), folders)


def write(kernel: Kernel, dtype: DType, folder: Path, code: bytes) -> None:
    """Keep an object file in a folder. Raises OSError, on a full disk for example."""
    kernel_files.write(_name(kernel, dtype), folder, code)
