"""All tests marked `inside`, in a process where numba simulates CUDA."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.simulation import outside


@outside
def test_in_the_simulator():
    files = [file for file in sorted(Path(__file__).parents[1].rglob("test_*.py")) if "\n@inside\n" in file.read_text()]
    assert len(files) > 5
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", "-m", "not gpu"]
    command += map(str, files)
    outcome = subprocess.run(
        command,
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", outcome.stdout)[1]) > 80
