"""Time of `wavefilt --help` beside a bare `import numpy, click`: ``python -m wavefilt.benchmarks.cpu.startup``."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "import numpy, click": [sys.executable, "-c", "import numpy, click"],
    "import wavefilt": [sys.executable, "-c", "import wavefilt"],
    "wavefilt --help": [sys.executable, "-m", "wavefilt.cli", "--help"],
}
LIMIT = 2.5
"""`wavefilt --help` must stay below this multiple of the first command."""


def run(repeats: int = 15) -> dict[str, dict[str, float]]:
    """Median seconds of each command, run in turn so that noise falls on all alike, and ratios to the first."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats + 1):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(t[1:]) for name, t in times.items()}  # the first round fills caches
    first = next(iter(medians.values()))
    return {name: {"seconds": median, "ratio": median / first} for name, median in medians.items()}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
