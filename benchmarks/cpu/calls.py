"""Calls of `denoise` with its defaults, and start-up, in another checkout and in this one, in turn.

``python -m wavefilt.benchmarks.cpu.calls OTHER_CHECKOUT``: the Python that runs for each call should not grow.
``... OTHER_CHECKOUT 1,16 64Ki 4096x4096 ...``: whole calls by so many threads instead, by clock and in CPU time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pywt

from wavefilt.benchmarks.cpu import phases
from wavefilt.benchmarks.cpu.by_threads import Mi, counts
from wavefilt.benchmarks.cpu.startup import COMMANDS

CASES = {"600": (1, 600), "64 Ki": (1, 1 << 16), "24 x 1024": (24, 1024)}
BACKENDS = ("pywavelets", "numba")
CALLS = 10
"""Calls of one checkout before it is the other's turn."""
CHILD = """
import json, sys, time, numpy, wavefilt
x = numpy.empty(0)
for line in sys.stdin:
    shape, backend, calls, threads, options = json.loads(line)
    wavefilt.set_num_threads(threads)
    if x.shape != tuple(shape):
        x = numpy.random.default_rng(0).standard_normal(shape, dtype="f4")
    times = []
    for _ in range(calls):
        start, used = time.perf_counter(), time.process_time()
        wavefilt.denoise(x, backend=backend, **options)
        times.append((time.perf_counter() - start, time.process_time() - used))
    print(json.dumps(times), flush=True)
"""

Times = dict[str, list[list[float]]]
"""Of each case, those of the other checkout and of this one."""


def run(other: Path, rounds: int = 40) -> dict[str, dict[str, float]]:
    """For each case medians of both, in microseconds of a call or milliseconds of CPU time, and their ratio.

    ``low`` is the ratio of the tenth percentiles: what other work on the machine disturbs least.
    """
    times: Times = {}
    with _children(other) as (places, ask):
        for name, shape in CASES.items():
            for backend in BACKENDS:
                found = ask(shape, backend, CALLS, None, {}, rounds)
                times[f"{name} {backend}, us"] = [[1e6 * wall for wall, _ in own] for own in found]
        for name, command in COMMANDS.items():
            own = times[f"{name}, ms"] = [[], []]
            for _ in range(rounds // 4 + 1):
                for found_here, env in zip(own, places, strict=True):
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    subprocess.run([sys.executable, *command], env=env, cwd="/", stdout=subprocess.DEVNULL, check=True)
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    found_here.append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return compared(times)


def by_threads(
    other: Path, numbers: Sequence[int], names: Sequence[str], seconds: float = 3.0
) -> dict[str, dict[str, float]]:
    """As `run` for calls of cases of `phases`, by clock and in CPU time, in milliseconds."""
    times: Times = {}
    with _children(other) as (_, ask):
        for name in names:
            shape = phases.CASES[name]
            options = {"level": min(8, pywt.dwt_max_level(shape[1], 16)), "rule": "universal"}
            for count in numbers:
                calls = max(8 * Mi // (shape[0] * shape[1]), 1)
                start = time.perf_counter()
                ask(shape, "numba", calls, count, options, 0)
                rounds = int(min(max(seconds / (time.perf_counter() - start) * 2, 4), 40))
                found = ask(shape, "numba", calls, count, options, rounds)
                for i, kind in enumerate(("ms", "CPU ms")):
                    times[f"{name}, {count} threads, {kind}"] = [[1e3 * one[i] for one in own] for own in found]
    return compared(times)


@contextmanager
def _children(other: Path) -> Iterator[tuple[list[dict[str, str]], Callable[..., list[list[tuple[float, float]]]]]]:
    """A process in each checkout, and a function that has both time calls in turn."""
    roots = [other, Path(__file__).resolve().parents[2]]
    others = os.environ.get("PYTHONPATH", "")
    places = [{**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(root), others)))} for root in roots]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": "/"}
    children = [subprocess.Popen([sys.executable, "-c", CHILD], env=env, **pipes) for env in places]  # type: ignore[call-overload]

    def ask(*task: object) -> list[list[tuple[float, float]]]:
        *line, rounds = task
        found: list[list[tuple[float, float]]] = [[], []]
        for turn in range(int(rounds) + 2):  # type: ignore[call-overload]
            for own, child in list(zip(found, children, strict=True))[:: 1 - 2 * (turn % 2)]:
                child.stdin.write(json.dumps(line) + "\n")
                child.stdin.flush()
                measured = json.loads(child.stdout.readline())
                own += [(wall, used) for wall, used in measured if turn > 1]
        return found

    yield places, ask
    for child in children:
        child.communicate()  # closes what it reads from: it ends


def compared(times: Times) -> dict[str, dict[str, float]]:
    """Medians, their ratio and that of the tenth percentiles."""
    results = {}
    for name, (others, ours) in times.items():
        (low, median), (own_low, own_median) = np.percentile(others, [10, 50]), np.percentile(ours, [10, 50])
        row = {"other": median, "this": own_median, "ratio": own_median / median, "low": own_low / low}
        results[name] = {key: float(value) for key, value in row.items()}
    return results


if __name__ == "__main__":
    checkout, *chosen = sys.argv[1:]
    root = Path(checkout).resolve()
    compared_calls = by_threads(root, counts(chosen[0]), chosen[1:] or list(phases.CASES)) if chosen else run(root)
    for name, row in compared_calls.items():
        print(f"{name:<34}", *(f"{key} {value:9.3f}" for key, value in row.items()))
