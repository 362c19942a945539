"""Where the time of one `denoise` goes, kernel by kernel, by different numbers of threads.

``python -m wavefilt.benchmarks.cpu.phases [THREADS,...] [REPEATS] [CASE ...]``: for each case and number of threads
the milliseconds of a call (with the result dropped, and with all results kept), of each kernel from its first range
to its last, and of what lies between kernels. Beside it: waking the pool, first touch of new memory, and a copy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import click
import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import native, team
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.measuring import signal
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.cpu.by_threads import caches, counts, denoised

Ki, Mi = 1 << 10, 1 << 20
CASES: dict[str, tuple[int, int]] = {
    **{f"{n}Ki": (1, n * Ki) for n in (64, 256)},
    **{f"{n}Mi": (1, n * Mi) for n in (1, 4, 16, 64)},
    "4096x4096": (4096, 4096),
    "20000x512": (20_000, 512),
}
Event = tuple[str, int, int, float, float]
"""A kernel's name, the number of its launch, the thread, and when one of its ranges began and ended."""


@contextmanager
def traced(events: list[Event]) -> Iterator[None]:
    """Note every range that a kernel works on, and every launch that the team spreads as a whole."""
    call, run = native.Work.__call__, team._Team.run
    numbers: dict[native.Work, int] = {}

    def timed(self: native.Work, begin: int, end: int) -> int:
        start, number = time.perf_counter(), numbers.setdefault(self, len(numbers))
        found = call(self, begin, end)
        events.append((self.name, number, threading.get_ident(), start, time.perf_counter()))
        return found

    def spread(self: Any, program: team.Program, helpers: int) -> int:
        """Each job on its own: together they are done without a return to Python."""
        highest = 0
        for job in program.jobs:
            one, works = team.Program([job], program.limit), [work for work, _ in job.works]
            one.cut(helpers)
            number, start = numbers.setdefault(works[-1], len(numbers)), time.perf_counter()
            highest = max(highest, run(self, one, helpers))
            events.append((" + ".join(work.name for work in works), number, -helpers, start, time.perf_counter()))
        return highest

    with patch.object(native.Work, "__call__", timed), patch.object(team._Team, "run", spread):
        yield


def phases(events: Sequence[Event], start: float, end: float) -> list[Row]:
    """Of each launch in order: when its last thread began, how long it took, and the sum of its ranges."""
    found: list[Row] = []
    last = start
    for number in sorted({event[1] for event in events}):
        own = [event for event in events if event[1] == number]
        begun = min(event[3] for event in own)
        ended = max(event[4] for event in own)
        firsts: dict[int, float] = {}
        for _, _, thread, at, _ in sorted(own, key=lambda event: event[3]):
            firsts.setdefault(thread, at)
        found.append(
            {
                "kernel": own[0][0],
                "before": begun - last,
                "wall": ended - begun,
                "busy": sum(event[4] - event[3] for event in own),
                "threads": max(len(firsts), 1 - min(firsts)),
                "woken": max(firsts.values()) - begun,
            }
        )
        last = ended
    found.append({"kernel": "end", "before": end - last, "wall": 0.0, "busy": 0.0, "threads": 0, "woken": 0.0})
    return found


def run(numbers: Sequence[int], repeats: int, names: Sequence[str]) -> Row:
    rows = []
    for name in names:
        x = signal(*CASES[name])
        call = denoised(x, {})
        own = max(min(repeats * Mi // x.size, 200), repeats)
        for count in numbers:
            threads.set_num_threads(count)
            call()
            call()
            dropped, kept, held = [], [], []
            for _ in range(own):
                start = time.perf_counter()
                call()
                dropped.append(time.perf_counter() - start)
            for _ in range(min(own, max(2, 512 * Mi // x.nbytes))):
                start = time.perf_counter()
                held.append(call())
                kept.append(time.perf_counter() - start)
            held.clear()
            call()
            runs = []
            for _ in range(own):
                events: list[Event] = []
                with traced(events):
                    start = time.perf_counter()
                    call()
                    end = time.perf_counter()
                runs.append((end - start, phases(events, start, end)))
            total, middle = sorted(runs, key=lambda one: one[0])[len(runs) // 2]
            medians = []
            for i, phase in enumerate(middle):
                alike = [own[i] for _, own in runs if len(own) == len(middle)]
                keys = ("before", "wall", "busy", "threads", "woken")
                medians.append(
                    {"kernel": phase["kernel"], **{k: float(np.median([p[k] for p in alike])) for k in keys}}
                )
            times = {"dropped": np.median(dropped), "low": np.percentile(dropped, 10), "kept": np.median(kept)}
            rows.append({"case": name, "threads": count, **times, "traced": total, "phases": medians})
    return {"environment": environment(), "caches": caches(), "rows": rows, "machine": [machine(n) for n in numbers]}


def _best(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def machine(count: int) -> Row:
    """Seconds of waking the pool for nothing, and GB/s of first touch, of filling, reading and copying."""
    threads.set_num_threads(count)
    size = 256 * Mi
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)

    def over(work: Callable[[int, int], object], bytes_moved: int) -> float:
        return bytes_moved / _best(lambda: threads.parallel(work, size, 1 << 20), 7) / 1e9

    def touched() -> float:
        fresh: Array = np.empty(size, np.uint8)

        def fill(begin: int, end: int) -> None:
            fresh[begin:end] = 1

        start = time.perf_counter()
        threads.parallel(fill, size, 1 << 20)
        return time.perf_counter() - start

    def fill(begin: int, end: int) -> None:
        target[begin:end] = 1

    def copy(begin: int, end: int) -> None:
        np.copyto(target[begin:end], source[begin:end])

    words = source.view(np.int64)

    def read(begin: int, end: int) -> None:
        words[begin // 8 : end // 8].max()

    return {
        "threads": count,
        "wake": _best(lambda: threads.parallel(lambda begin, end: None, 1000), 300),
        "touch": size / np.median([touched() for _ in range(5)]) / 1e9,
        "fill": over(fill, size),
        "read": over(read, size),
        "copy": over(copy, 2 * size),
    }


def text(result: Row) -> str:
    lines = [f"{result['environment']['processor']}, caches {result['caches']}"]
    for row in result["machine"]:
        rates = ", ".join(f"{key} {row[key]:.1f}" for key in ("touch", "fill", "read", "copy"))
        lines.append(f"{row['threads']} threads: wake {1e6 * row['wake']:.0f} us; GB/s: {rates}")
    for row in result["rows"]:
        totals = ", ".join(f"{key} {1e3 * row[key]:.3f}" for key in ("dropped", "low", "kept", "traced"))
        lines.append(f"{row['case']}, {row['threads']} threads, ms: {totals}")
        for phase in row["phases"]:
            lines.append(
                f"    before {1e3 * phase['before']:8.3f}  {phase['kernel']:<16} wall {1e3 * phase['wall']:8.3f}  busy "
                f"{1e3 * phase['busy']:8.3f} of {phase['threads']:.0f} threads, the last woken at "
                f"{1e3 * phase['woken']:.3f}"
            )
    return "\n".join(lines)


def _counts(_context: click.Context, _parameter: click.Parameter, text: str | None) -> list[int]:
    try:
        return counts(text) if text else sorted({1, threads.available_cpus()})
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(help=__doc__)
@click.argument("numbers", metavar="[THREADS,...]", required=False, callback=_counts)
@click.argument("repeats", type=click.IntRange(1), default=7)
@click.argument("cases", metavar="[CASE]...", nargs=-1, type=click.Choice(list(CASES)))
def main(numbers: Sequence[int], repeats: int, cases: Sequence[str]) -> None:
    print(text(run(numbers, repeats, cases or list(CASES))))


if __name__ == "__main__":
    main()
