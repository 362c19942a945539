"""Signals at random moments of the command: ``python tests/support/signalling.py [RUNS] [SECONDS] [--cold]``.

Each run is `wavefilt denoise` of a file with kernels that are loaded, or with ``--cold`` compiled, and gets SIGINT or
SIGTERM within so many seconds; every third gets a second signal. Counts what must not happen: runs that do not end,
tracebacks, other exit codes, and results that are not whole.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
HANG = 60.0
"""Seconds after a signal that no run takes to end."""
EARLY = "Python itself was interrupted, before wavefilt could say what a signal does"


def one(folder: Path, moment: float, number: int, second: bool, environment: Mapping[str, str] | None = None) -> str:
    """How a run ended that gets a signal after so many seconds: "ended by it", "done", or what went wrong."""
    out = folder / "out.npy"
    out.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "wavefilt",
        "denoise",
        str(folder / "in.npy"),
        "-o",
        str(out),
        "--backend",
        "numba",
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    )
    time.sleep(moment)
    process.send_signal(number)
    if second:
        time.sleep(0.02)
        process.send_signal(number)
    try:
        _, words = process.communicate(timeout=HANG)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"did not end: signal {number} after {moment:.3f} s"
    if "Traceback" in words or "Exception ignored" in words:
        frames = re.findall(rf'File "{re.escape(str(ROOT))}/wavefilt/(.*)", line \d+, in (.*)', words)
        if all(file in ("__init__.py", "__main__.py") and name == "<module>" for file, name in frames):
            return EARLY
        return f"traceback: signal {number} after {moment:.3f} s, {process.returncode}\n{words}"
    if process.returncode == 0:
        return "done" if len(np.load(out)) else "result is not whole"
    if process.returncode not in (128 + number, -number):  # the latter before Python has its own handlers
        return f"exit code {process.returncode}: signal {number} after {moment:.3f} s\n{words}"
    return "ended by it"


def several(runs: int, seconds: float, cold: bool = False, seed: int | None = None) -> Counter[str]:
    """How so many runs ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # children must not ignore it
    chance, found = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "in.npy", np.random.default_rng(1).standard_normal((24, 20_000), np.float32))
        for run in range(runs):
            number = signal.SIGINT if run % 2 else signal.SIGTERM
            environment = {"NUMBA_CACHE_DIR": str(folder / f"cache{run}")} if cold else None
            found[one(folder, chance.uniform(0, seconds), number, run % 3 == 2, environment)] += 1
    return found


if __name__ == "__main__":
    counts = several(int(sys.argv[1]), float(sys.argv[2]), "--cold" in sys.argv)
    for what, count in counts.most_common():
        print(count, what)
