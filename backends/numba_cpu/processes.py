"""Kernels compiled by other processes, several at once: numba compiles in one thread of a process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wavefilt import threads
from wavefilt.arrays import DType

if TYPE_CHECKING:
    from .native import Kernel

OUT_OF_MEMORY = 12
"""Exit code of a process that had not enough."""

_PROGRAM = """
import sys
sys.path[:] = {path!r}
from wavefilt.backends.numba_cpu import worker
sys.exit(worker.keep({names!r}, {dtype!r}, {folder!r}))
"""


def compiled(
    kernels: Sequence[Kernel], dtype: DType, folder: Path, read: Callable[[Kernel], bytes | None]
) -> dict[Kernel, bytes]:
    """The object file of each kernel, which are also kept in a folder where it can be written to.

    Kernels go to the processes in turn and back, so give those that take longest first. What these do not manage, as
    where none can be started, this process compiles.
    """
    count = min(threads.available_cpus(), len(kernels)) if _can_start() else 0
    shares: list[list[Kernel]] = [[] for _ in range(count)]
    for i, kernel in enumerate(kernels if count else ()):
        shares[min(i % (2 * count), 2 * count - 1 - i % (2 * count))].append(kernel)
    running: list[subprocess.Popen[bytes]] = []
    try:
        for share in shares:
            with suppress(OSError):
                running.append(_started([kernel.symbol for kernel in share], dtype, folder))
        if OUT_OF_MEMORY in [process.wait() for process in running]:
            raise MemoryError("not enough memory to compile kernels")
    finally:  # an interrupt ends them
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    found: dict[Kernel, bytes] = {}
    for kernel in kernels:
        code = read(kernel)
        if code is None:
            from .compiler import machine_code

            code = machine_code(kernel.module, kernel.name, kernel.parameters, dtype)
        found[kernel] = code
    return found


def _can_start() -> bool:
    """Whether `sys.executable` is Python: in a frozen application or an embedded interpreter it is another program."""
    return "python" in Path(sys.executable or "").name.lower() and not vars(sys).get("frozen")


def _started(names: Sequence[str], dtype: DType, folder: Path) -> subprocess.Popen[bytes]:
    """A process of its own group, which signals from a terminal do not reach."""
    program = _PROGRAM.format(path=sys.path, names=names, dtype=dtype.name, folder=str(folder))
    own = {"creationflags": 0x08000000} if sys.platform == "win32" else {"start_new_session": True}
    nowhere = subprocess.DEVNULL
    environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=nowhere, stdout=nowhere, stderr=nowhere, env=environment, **own
    )
