"""Kernels compiled by other processes, several at once: numba compiles in one thread of a process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from wavefilt import threads
from wavefilt.arrays import DType

if TYPE_CHECKING:
    from .native import Kernel

    Task: TypeAlias = tuple[Kernel, DType]

INTERVAL = 0.2
"""Seconds between two looks at what is done."""
OUT_OF_MEMORY = 12
"""Exit code of a process that had not enough."""

_PROGRAM = """
import sys
sys.path[:] = {path!r}
from wavefilt.backends.numba_cpu import worker
sys.exit(worker.keep({tasks!r}, {folder!r}))
"""


def compiled(
    tasks: Sequence[Task],
    folder: Path,
    read: Callable[[Task], bytes | None],
    advance: Callable[[int], None] | None = None,
) -> dict[Task, bytes]:
    """The object file of each kernel, which is also kept in a folder.

    Tasks go to the processes in turn and back, so give those that take longest first. What these do not manage, as
    where none can be started, this process compiles. ``advance`` is told how many are done, several times a second.
    Raises MemoryError where there is not enough.
    """
    count = min(threads.available_cpus(), len(tasks)) if _can_start() else 0
    shares: list[list[Task]] = [[] for _ in range(count)]
    for i, task in enumerate(tasks if count else ()):
        shares[min(i % (2 * count), 2 * count - 1 - i % (2 * count))].append(task)
    running: list[subprocess.Popen[bytes]] = []
    try:
        for share in shares:
            with suppress(OSError, RuntimeError):  # RuntimeError in subinterpreters
                running.append(_started([(kernel.symbol, dtype.name) for kernel, dtype in share], folder))
        for process in running:
            while advance is not None and process.poll() is None:
                advance(sum(read(task) is not None for task in tasks))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(INTERVAL)
        if OUT_OF_MEMORY in [process.wait() for process in running]:
            raise MemoryError("not enough memory to compile kernels")
    finally:  # an interrupt ends them
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    found: dict[Task, bytes] = {}
    for kernel, dtype in tasks:
        code = read((kernel, dtype))
        if code is None:
            from .compiler import machine_code

            code = machine_code(kernel.module, kernel.name, kernel.parameters, dtype)
        found[kernel, dtype] = code
    return found


def _can_start() -> bool:
    """Whether `sys.executable` is Python: in a frozen application or an embedded interpreter it is another program."""
    return "python" in Path(sys.executable or "").name.lower() and not vars(sys).get("frozen")


def _started(tasks: Sequence[tuple[str, str]], folder: Path) -> subprocess.Popen[bytes]:
    """A process of its own group, which signals from a terminal do not reach."""
    program = _PROGRAM.format(path=sys.path, tasks=tasks, folder=str(folder))
    windows = sys.platform == "win32"
    nowhere = subprocess.DEVNULL
    environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        env=environment,
        start_new_session=not windows,
        creationflags=0x08000000 if windows else 0,  # no window of its own
    )
