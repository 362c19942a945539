"""Kernels compiled by numba, by several processes at once: it compiles in one thread of a process at a time."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from wavefilt import threads
from wavefilt.arrays import DType
from wavefilt.errors import BackendUnavailable

if TYPE_CHECKING:
    from .native import Kernel

    Task: TypeAlias = tuple[Kernel, DType]

INTERVAL = 0.2
"""Seconds between two looks at the progress."""
OUT_OF_MEMORY = 12
"""Exit code of a process that had not enough memory."""

_PROGRAM = """
import sys
sys.path[:] = {path!r}
from wavefilt.backends.numba_cpu import processes
sys.exit(processes.keep({tasks!r}, {folder!r}))
"""

_running: list[subprocess.Popen[bytes]] = []
_ending: list[bool] = []


def _end() -> None:
    """End all processes: the interpreter ends."""
    _ending.append(True)
    for process in _running:
        process.kill()


atexit.register(_end)


def compiled(
    tasks: Sequence[Task],
    folder: Path,
    read: Callable[[Task], bytes | None],
    advance: Callable[[int], None] = lambda done: None,
) -> dict[Task, bytes]:
    """Return the object file of each kernel, which is also kept in a folder.

    Tasks go to the processes in turn and back, so give the longest ones first. Kernels that these do not
    compile, as where none can be started, are compiled in this process. ``advance`` gets the number of finished
    kernels, several times a second. Raises MemoryError where there is not enough, and BackendUnavailable.
    """
    count = min(threads.available_cpus(), len(tasks)) if _can_start() else 0
    shares: list[list[Task]] = [[] for _ in range(count)]
    for i, task in enumerate(tasks if count else ()):
        shares[min(i % (2 * count), 2 * count - 1 - i % (2 * count))].append(task)
    try:
        for share in shares:
            with suppress(OSError, RuntimeError):  # RuntimeError in subinterpreters
                _running.append(_started([(kernel.symbol, dtype.name) for kernel, dtype in share], folder))
        while any(process.poll() is None for process in _running):
            advance(sum(read(task) is not None for task in tasks))
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
    codes = {task: read(task) for task in tasks}
    return {task: machine_code(*task) if code is None else code for task, code in codes.items()}


def _can_start() -> bool:
    """Whether `sys.executable` is Python: in a frozen application or an embedded interpreter it is another program."""
    return "python" in Path(sys.executable or "").name.lower() and not vars(sys).get("frozen")


def _started(tasks: Sequence[tuple[str, str]], folder: Path) -> subprocess.Popen[bytes]:
    """Start a process of its own group, which signals from a terminal do not reach."""
    program = _PROGRAM.format(path=sys.path, tasks=tasks, folder=str(folder))
    windows = sys.platform == "win32"
    nowhere = subprocess.DEVNULL
    # `adapter` optimises; the machine code that numba makes for itself is not used
    environment = os.environ | {"NUMBA_NUM_THREADS": "1", "NUMBA_OPT": "0"}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        env=environment,
        start_new_session=not windows,
        creationflags=0x08000000 if windows else 0,  # no window of its own
    )


def keep(tasks: Sequence[tuple[str, str]], folder: str) -> int:
    """Compile kernels, by symbol and dtype, and keep them in a folder: in the started process. Return its exit code."""
    import numpy as np

    from . import entries, native

    kernels = {kernel.symbol: kernel for kernel in entries.ALL}
    try:
        for symbol, name in tasks:
            task = kernels[symbol], np.dtype(name)
            native.write(*task, Path(folder), machine_code(*task))
    except MemoryError:
        return OUT_OF_MEMORY
    return 0


def machine_code(kernel: Kernel, dtype: DType) -> bytes:
    """Return an object file of a kernel. Raises BackendUnavailable if this version of numba does not make it."""
    from .target import kinds

    try:
        import numba
        from numba import types

        from . import adapter

        adapter.probe()
        scalars = [(numba.from_dtype(kind), dimensions) for kind, dimensions in kinds(kernel.parameters, dtype)]
        arguments = [types.Array(kind, dimensions, "C") if dimensions else kind for kind, dimensions in scalars]
        function = vars(import_module(f"{__package__}.{kernel.module}"))[kernel.name]
        return adapter.object_code(function, kernel.symbol, arguments)
    except MemoryError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BackendUnavailable(f"backend 'numba' cannot compile its kernels: {reason}") from error
