"""Short calls of `denoise` with its defaults, and start-up, in another checkout and in this one, in turn.

``python -m wavefilt.benchmarks.cpu.calls OTHER_CHECKOUT``: the Python that runs for each call should not grow.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from wavefilt.benchmarks.cpu.startup import COMMANDS

CASES = {"600": (1, 600), "64 Ki": (1, 1 << 16), "24 x 1024": (24, 1024)}
BACKENDS = ("pywavelets", "numba")
CALLS = 10
"""Calls of one checkout before it is the other's turn."""
CHILD = """
import json, sys, time, numpy, wavefilt
for line in sys.stdin:
    shape, backend, calls = json.loads(line)
    x, times = numpy.random.default_rng(0).standard_normal(shape, dtype="f4"), []
    for _ in range(calls):
        start = time.perf_counter()
        wavefilt.denoise(x, backend=backend)
        times.append(time.perf_counter() - start)
    print(json.dumps(times), flush=True)
"""


def run(other: Path, rounds: int = 40) -> dict[str, dict[str, float]]:
    """For each case medians of both, in microseconds of a call or milliseconds of CPU time, and their ratio.

    ``low`` is the ratio of the tenth percentiles: what other work on the machine disturbs least.
    """
    roots = [other, Path(__file__).parents[2]]
    places = [{**os.environ, "PYTHONPATH": str(root)} for root in roots]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": "/"}
    children = [subprocess.Popen([sys.executable, "-c", CHILD], env=env, **pipes) for env in places]  # type: ignore[call-overload]
    times: dict[str, list[list[float]]] = {}
    for name, shape in CASES.items():
        for backend in BACKENDS:
            own = times[f"{name} {backend}, us"] = [[], []]
            for turn in range(rounds + 2):
                for found, child in list(zip(own, children, strict=True))[:: 1 - 2 * (turn % 2)]:
                    child.stdin.write(json.dumps([shape, backend, CALLS]) + "\n")
                    child.stdin.flush()
                    measured = json.loads(child.stdout.readline())
                    found += [1e6 * t for t in measured if turn > 1]
    for child in children:
        child.communicate()  # closes what it reads from: it ends
    for name, command in COMMANDS.items():
        own = times[f"{name}, ms"] = [[], []]
        for _ in range(rounds // 4 + 1):
            for found, env in zip(own, places, strict=True):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([sys.executable, *command], env=env, cwd="/", stdout=subprocess.DEVNULL, check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                found.append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    results = {}
    for name, (others, ours) in times.items():
        (low, median), (own_low, own_median) = np.percentile(others, [10, 50]), np.percentile(ours, [10, 50])
        row = {"other": median, "this": own_median, "ratio": own_median / median, "low": own_low / low}
        results[name] = {key: float(value) for key, value in row.items()}
    return results


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]).resolve()), indent=2))
