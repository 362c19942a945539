"""Time of `wavefilt --help` beside a bare `import numpy, click`: ``python -m wavefilt.benchmarks.cpu.startup``."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from functools import partial

from wavefilt.benchmarks.common.measuring import seconds_in_turn

COMMANDS = {
    "import numpy, click": ["-c", "import numpy, click"],
    "import wavefilt": ["-c", "import wavefilt"],
    "wavefilt --help": ["-m", "wavefilt.cli", "--help"],
}


def run(repeats: int = 15) -> dict[str, dict[str, float]]:
    """Median seconds of each command, and ratios to the first; the first turn fills caches."""
    call = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
    times = seconds_in_turn({name: partial(call, [sys.executable, *of]) for name, of in COMMANDS.items()}, repeats + 1)
    medians = {name: statistics.median(t[1:]) for name, t in times.items()}
    first = next(iter(medians.values()))
    return {name: {"seconds": median, "ratio": median / first} for name, median in medians.items()}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
