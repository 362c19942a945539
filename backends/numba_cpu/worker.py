"""What a process does that is started to compile kernels: see `processes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import entries, native, processes
from .compiler import machine_code


def keep(tasks: Sequence[tuple[str, str]], folder: str) -> int:
    """Compile kernels, by symbol and dtype, and keep them in a folder; the exit code."""
    kernels = {kernel.symbol: kernel for kernel in entries.ALL}
    try:
        for symbol, dtype in tasks:
            kernel = kernels[symbol]
            code = machine_code(kernel.module, kernel.name, kernel.parameters, np.dtype(dtype))
            native.write(kernel, np.dtype(dtype), Path(folder), code)
    except MemoryError:
        return processes.OUT_OF_MEMORY
    return 0
