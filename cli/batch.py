"""The files of `wavefilt denoise`: small ones shared between processes, large ones one by one, and a summary."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from statistics import median
from typing import Any

import click

from wavefilt import interrupts

from . import Failure, run_errors, tell, usage_errors
from .denoise import Facts, denoise_file, show
from .options import Request
from .progress import bar

Files = list[tuple[str, str]]
"""Input and output of each file."""
SMALL = 4 << 20
"""Bytes up to which a file is processed by one core; a larger one uses all cores."""
SECONDS, RATE = 0.008, 25e6
"""Time of a small file on one core: seconds, and bytes per second. It determines the number of processes."""
START = 1.0
"""Seconds of work that justify starting a process."""
AHEAD = 4
"""Small files per process that wait for it or are processed by it."""
GRACE = 3.0
"""Seconds that the other workers have to finish their files after one was killed."""


@dataclass(frozen=True)
class Outcome:
    """The result of a file: its facts, or the error with its exit code."""

    source: str
    target: str
    seconds: float
    facts: Facts = field(default_factory=dict)
    error: str | None = None
    code: int = 0

    def json(self) -> str:
        """Return the line of the log."""
        status = "failed" if self.error else "done"
        ended = {"input": self.source, "output": self.target, "status": status, "elapsed_s": self.seconds}
        return json.dumps({**ended, "error": self.error, **self.facts}, allow_nan=False)

    def row(self) -> dict[str, float]:
        """Return the numbers in the table."""
        facts, samples = self.facts, self.facts["samples"]
        samples = sum(samples) if isinstance(samples, list) else samples * facts["traces"]
        row = {"traces": facts["traces"], "samples": samples, "seconds": self.seconds}
        if facts.get("sigma"):
            row["sigma, finest level"] = facts["sigma"][0]
        if "residual_energy" in facts:
            row["residual energy, %"] = 100 * facts["residual_energy"]
        return row


def denoise(files: Files, request: Request) -> None:
    """Denoise all files, print messages and the summary, and write the log.

    Raises Failure if the only file fails; SystemExit with 4 if several do, or without ``keep_going`` with the exit code
    of the first.
    """
    many, start, outcomes, failures = len(files) > 1, time.perf_counter(), list[Outcome](), list[Outcome]()
    lines = not many or request.dry_run or request.verbose

    def ended() -> bool:
        return bool(failures) and not request.keep_going

    try:
        with ExitStack() as stack:
            log: Any = None
            if request.log and not request.dry_run:
                with usage_errors():
                    log = stack.enter_context(open(request.log, "wb", buffering=0))
            drawn = stack.enter_context(bar(total=len(files), unit="file", quiet=request.quiet or not many))
            for outcome in stack.enter_context(closing(_outcomes(files, request, ended))):
                (outcomes if outcome.error is None else failures).append(outcome)
                if log is not None:
                    with run_errors(f"--log {request.log}"):
                        log.write(f"{outcome.json()}\n".encode())
                drawn.set_postfix({"failed": len(failures)} if failures else {}, refresh=False)
                drawn.update()
                if outcome.error is None and (lines or request.as_json):
                    with drawn.external_write_mode(sys.stderr):
                        show(outcome.facts, request, lines)
    finally:  # of an interrupted run as well
        if many and not request.quiet and not request.dry_run:
            click.echo(table(outcomes, len(failures), len(files), time.perf_counter() - start), err=True)
        if many and failures:
            tell(f"wavefilt: error: {len(failures)} of {len(files)} files failed:")
            places = {source: place for place, (source, _) in enumerate(files)}
            for failed in sorted(failures, key=lambda failed: places[failed.source]):
                tell(f"  {failed.source}: {str(failed.error).removeprefix(f'{failed.source}: ')}")
    if many and failures:
        raise SystemExit(4 if request.keep_going else failures[0].code)
    if failures:
        raise Failure(str(failures[0].error), failures[0].code)


def table(outcomes: list[Outcome], failed: int, count: int, seconds: float) -> str:
    """Return minimum, median and maximum over the files, and sums; ``count`` is the number of all files."""
    columns: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in outcome.row().items():
            columns.setdefault(name, []).append(value)
    lines = [f"{'of each file':<20}{'least':>14}{'median':>14}{'most':>14}{'all':>18}"] if columns else []
    for name, values in columns.items():
        form = ",.0f" if name in ("traces", "samples") else ".3g"
        line = "".join(f"{value:>14{form}}" for value in (min(values), median(values), max(values)))
        lines.append(f"{name:<20}{line}" + (f"{sum(values):>18{form}}" if form == ",.0f" else ""))
    verdicts = Counter(outcome.facts["trust"]["verdict"] for outcome in outcomes if "trust" in outcome.facts)
    if verdicts:
        order = ("harmful", "undecided", "harmless", "untested")
        lines.append("trust: " + ", ".join(f"{verdicts[word]} {word}" for word in order if verdicts[word]))
    done, left = len(outcomes), count - len(outcomes) - failed
    unchanged = sum(outcome.facts["level"] == 0 for outcome in outcomes)
    ends = f"{done} done{f' ({unchanged} unchanged)' if unchanged else ''}, {failed} failed"
    ends += f", {left} not begun" if left else ""
    return "\n".join([*lines, f"{count} files: {ends}, {seconds:.2g} s, {done / seconds:.3g} files/s"])


def attempt(source: str, target: str, request: Request) -> Outcome:
    """Denoise a file and return the outcome. Raises UsageError for options that are invalid for every file."""
    start = time.perf_counter()
    try:
        facts = denoise_file(source, target, request)
    except Failure as error:
        return Outcome(source, target, time.perf_counter() - start, error=str(error), code=error.code)
    return Outcome(source, target, time.perf_counter() - start, facts)


def _outcomes(files: Files, request: Request, ended: Callable[[], bool]) -> Generator[Outcome, None, None]:
    """Process all files, small ones in several processes first, until ``ended`` returns True."""
    from wavefilt import get_num_threads

    # a GPU has memory for one file at a time, and --max-memory is the limit of one file
    alone = len(files) == 1 or request.backend == "cuda" or request.max_memory or request.dry_run
    sizes = {} if alone else {file: os.path.getsize(file[0]) if os.path.isfile(file[0]) else inf for file in files}
    small = {file: size for file, size in sizes.items() if size <= SMALL}
    count = min(get_num_threads(), int(sum(SECONDS + size / RATE for size in small.values()) / START))
    if count > 1:
        yield from _shared(list(small), request, count, ended)
        files = [file for file in files if file not in small]
    for file in files:
        if ended():
            return
        yield attempt(*file, request)


def _shared(files: Files, request: Request, count: int, ended: Callable[[], bool]) -> Generator[Outcome, None, None]:
    """Process files in ``count`` processes; after a signal, or when ``ended`` returns True, no more files are started.

    Raises Failure if a process dies.
    """
    left = iter(files)
    with (
        interrupts.caught(deferred=True) as arrived,
        ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin) as pool,
    ):
        running = set[Future[Outcome]]()
        try:
            while True:
                if arrived or ended():
                    running = {future for future in running if not future.cancel()}
                else:
                    with interrupts.blocked():
                        more = islice(left, AHEAD * count - len(running))
                        running |= {pool.submit(attempt, *file, request) for file in more}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool as error:
            for child in multiprocessing.active_children():  # blocked signals make the pool wait for them forever
                child.join(GRACE)
                child.kill()
            hint = "it was killed, perhaps for lack of memory; -j 1 processes one file after another"
            raise Failure(f"a worker process ended: {hint}", 1) from error


def _begin() -> None:
    """Prepare a worker: it uses one thread, finishes its file after Ctrl-C, and ends with its parent."""
    from wavefilt import set_num_threads

    for number in interrupts.STOPPING:  # on Windows, where signals can't be blocked
        signal.signal(number, signal.SIG_IGN)
    set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
