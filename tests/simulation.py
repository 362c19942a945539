"""Tests in numba's CUDA simulator, which is chosen before numba is imported: in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
inside = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator's process")
outside = pytest.mark.skipif(SIMULATED, reason="this is the simulator's process")


def run_inside(file: str) -> int:
    """How many of the tests of a file pass in the simulator; none may fail."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", file]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-2000:]
    passed = re.search(r"(\d+) passed", outcome.stdout)
    return int(passed[1]) if passed else 0
