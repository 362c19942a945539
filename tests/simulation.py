"""Tests in numba's CUDA simulator, which is chosen before numba is imported: in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
inside = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator's process")
outside = pytest.mark.skipif(SIMULATED, reason="this is the simulator's process")


def make_safe() -> None:
    """Mend two races of the simulator, whose threads really run at the same time, and have them take turns often.

    Threads of a block that ask for a shared array at once got one each; and a module's names were walked while Python
    added one (``__warningregistry__``, at a first warning).
    """
    from numba.cuda.simulator import kernel, kernelapi
    from numba.np.numpy_support import as_dtype

    lock, swapped = threading.Lock(), kernel.swapped_cuda_module

    def array(self: Any, shape: Any, dtype: Any) -> Any:
        """One for each line of a kernel that asks."""
        frame = sys._getframe(1)
        with lock:
            wanted = as_dtype(dtype) if hasattr(dtype, "bitwidth") else dtype
            return self._allocations.setdefault((frame.f_code, frame.f_lineno), np.empty(shape, wanted))

    def settled(function: Any, module: object) -> Any:
        vars(sys.modules[function.__module__]).setdefault("__warningregistry__", {})
        return swapped(function, module)

    kernelapi.FakeCUDAShared.array, kernel.swapped_cuda_module = array, settled
    sys.setswitchinterval(1e-4)


def run_inside(file: str) -> int:
    """How many of the tests of a file pass in the simulator; none may fail."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", file]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-2000:]
    passed = re.search(r"(\d+) passed", outcome.stdout)
    return int(passed[1]) if passed else 0
