"""What a process does that is started to compile kernels: see `processes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import entries, native, processes
from .compiler import machine_code


def keep(symbols: Sequence[str], dtype: str, folder: str) -> int:
    """Compile kernels and keep them in a folder; the exit code."""
    kernels = {kernel.symbol: kernel for kernel in entries.ALL}
    try:
        for kernel in map(kernels.__getitem__, symbols):
            code = machine_code(kernel.module, kernel.name, kernel.parameters, np.dtype(dtype))
            native.write(kernel, np.dtype(dtype), Path(folder), code)
    except MemoryError:
        return processes.OUT_OF_MEMORY
    return 0
