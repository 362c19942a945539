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
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import inf
from multiprocessing import resource_tracker
from pathlib import Path
from statistics import median

import click

from wavefilt.interrupts import STOPPING, deferred

from . import Failure, progress, run_errors
from .denoise import Facts, denoise_file, show
from .options import Request

SMALL = 4 << 20
"""Bytes up to which a file is processed by one core; a larger one uses all cores."""
SECONDS, RATE = 0.008, 25e6
"""Time of a small file on one core: seconds, and bytes per second. It determines the number of processes."""
START = 1.0
"""Seconds of work that justify starting a process."""
GRACE = 3.0
"""Seconds that the other workers have to finish their small files after one was killed."""


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


@dataclass
class Summary:
    """The outcomes so far; ``count`` is the number of all files."""

    count: int
    done: int = 0
    unchanged: int = 0
    failures: dict[str, Outcome] = field(default_factory=dict)
    trust: list[tuple[str, Facts]] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def add(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self.failures[outcome.source] = outcome
            return
        self.done += 1
        self.unchanged += outcome.facts["level"] == 0
        if "trust" in outcome.facts:
            self.trust.append((outcome.source, outcome.facts["trust"]))
        for name, value in _row(outcome).items():
            self.columns.setdefault(name, []).append(value)

    def table(self) -> str:
        """Return minimum, median and maximum over the files, and sums."""
        seconds = time.perf_counter() - self.began
        lines = [f"{'of each file':<20}{'least':>14}{'median':>14}{'most':>14}{'all':>18}"] if self.columns else []
        for name, values in self.columns.items():
            form = ",.0f" if name in ("traces", "samples") else ".3g"
            line = "".join(f"{value:>14{form}}" for value in (min(values), median(values), max(values)))
            lines.append(f"{name:<20}{line}" + (f"{sum(values):>18{form}}" if form == ",.0f" else ""))
        if self.trust:
            from wavefilt.advice.trust import WORDS

            verdicts = Counter(facts["verdict"] for _, facts in self.trust)
            lines.append(
                "trust: " + ", ".join(f"{verdicts[key]} {word}" for key, word in WORDS.items() if verdicts[key])
            )
        left = self.count - self.done - len(self.failures)
        unchanged = f" ({self.unchanged} unchanged)" if self.unchanged else ""
        ends = f"{self.done} done{unchanged}, {len(self.failures)} failed" + (f", {left} not begun" if left else "")
        return "\n".join([*lines, f"{self.count} files: {ends}, {seconds:.2g} s, {self.done / seconds:.3g} files/s"])

    def failed(self, files: list[tuple[str, str]], code: int) -> Failure:
        """Return all failures, in the order of the files, with their reasons."""
        failures = [self.failures[source] for source, _ in files if source in self.failures]
        reasons = (f"  {o.source}: {str(o.error).removeprefix(f'{o.source}: ')}" for o in failures)
        return Failure(f"{len(failures)} of {self.count} files failed:", code, *reasons)


def _row(outcome: Outcome) -> dict[str, float]:
    """Return the numbers of a file in the table."""
    facts = outcome.facts
    samples = facts["samples"]
    samples = sum(samples) if isinstance(samples, list) else samples * facts["traces"]
    row = {"traces": facts["traces"], "samples": samples, "seconds": outcome.seconds}
    if facts.get("sigma"):
        row["sigma, finest level"] = facts["sigma"][0]
    if "residual_energy" in facts:
        row["residual energy, %"] = 100 * facts["residual_energy"]
    return row


def denoise(files: list[tuple[str, str]], request: Request) -> None:
    """Denoise all files, print messages and the summary, and write the log.

    Raises Failure: for one file its own, for several with exit code 4, or without ``keep_going`` with that of the
    first.
    """
    many, summary = len(files) > 1, Summary(len(files))
    lines = not many or request.dry_run or request.verbose
    shown = many and progress.shown(request.quiet)
    with _log(None if request.dry_run else request.log) as log:
        try:
            with progress.bar(total=len(files), unit="file") if shown else nullcontext() as bar:

                def add(outcome: Outcome) -> bool:
                    """Report an outcome; return whether to go on."""
                    summary.add(outcome)
                    log(outcome)
                    if bar is not None:
                        bar.set_postfix({"failed": len(summary.failures)} if summary.failures else {}, refresh=False)
                        bar.update()
                    if outcome.error is None and (lines or request.as_json):
                        with bar.external_write_mode(sys.stderr) if bar is not None else nullcontext():
                            show(outcome.facts, request, lines)
                    return not summary.failures or request.keep_going

                _each(files, partial(attempt, request=request), request, add)
            if request.report and many and not request.dry_run:
                _overview(request.report, summary, request.overwrite)
        except BaseException:  # interrupted, or the disk of the log is full: the failures are reported nevertheless
            if summary.failures:
                summary.failed(files, 1).show()
            raise
        finally:
            if many and not request.quiet and not request.dry_run:
                click.echo(summary.table(), err=True)
    for first in summary.failures.values():
        if not many:
            raise Failure(str(first.error), first.code)
        raise summary.failed(files, 4 if request.keep_going else first.code)


def attempt(source: str, target: str, request: Request) -> Outcome:
    """Denoise a file and return the outcome. Raises UsageError for options that are invalid for every file."""
    start = time.perf_counter()
    try:
        facts = denoise_file(source, target, request)
    except Failure as error:
        return Outcome(source, target, time.perf_counter() - start, error=str(error), code=error.code)
    return Outcome(source, target, time.perf_counter() - start, facts)


def _each(
    files: list[tuple[str, str]], work: Callable[..., Outcome], request: Request, add: Callable[[Outcome], bool]
) -> None:
    """Process all files, small ones in several processes first, until ``add`` returns False."""
    from wavefilt import get_num_threads

    # a GPU has memory for one file at a time, and --max-memory is the limit of one file
    alone = len(files) == 1 or request.backend == "cuda" or request.max_memory or request.dry_run
    sizes = {} if alone else {file: os.path.getsize(file[0]) if os.path.isfile(file[0]) else inf for file in files}
    small = {file: size for file, size in sizes.items() if size <= SMALL}
    count = min(get_num_threads(), int(sum(SECONDS + size / RATE for size in small.values()) / START))
    if count > 1:
        if not _shared(list(small), work, count, add):
            return
        files = [file for file in files if file not in small]
    for file in files:
        if not add(work(*file)):
            return


def _shared(
    files: list[tuple[str, str]], work: Callable[..., Outcome], count: int, add: Callable[[Outcome], bool]
) -> bool:
    """Process files in ``count`` processes until ``add`` returns False; return whether to go on.

    After an exception, files that have been started are finished and added. Raises Failure if a process dies.
    """
    waiting: set[Future[Outcome]] = set()
    with ExitStack() as stack:
        with _signals_held():
            pool = stack.enter_context(ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin))
            stack.callback(pool.shutdown, cancel_futures=True)
            waiting.update(pool.submit(work, *file) for file in files)
        try:
            for future in as_completed(waiting):
                waiting.discard(future)
                if not add(future.result()):
                    return False
        except BrokenProcessPool as error:
            for child in multiprocessing.active_children():  # blocked signals make the pool wait for them forever
                child.join(GRACE)
                child.kill()
            hint = "it was killed, perhaps for lack of memory; -j 1 processes one file after another"
            raise Failure(f"a worker process ended: {hint}", 1) from error
        finally:
            pool.shutdown(cancel_futures=True)
            for future in waiting:
                if not future.cancelled() and future.exception() is None:
                    add(future.result())
    return True


@contextmanager
def _signals_held() -> Iterator[None]:
    """Context manager: processes that are started here never get `STOPPING` signals; this one gets them afterwards."""
    if sys.platform == "win32":
        yield
        return
    with deferred():  # another thread of this process may receive them
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        resource_tracker.ensure_running()  # unblocks some of them
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Prepare a worker: it uses one thread, finishes its file after Ctrl-C, and ends with its parent."""
    from wavefilt import set_num_threads

    for number in STOPPING:  # on Windows, where signals can't be blocked
        signal.signal(number, signal.SIG_IGN)
    set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _overview(path: str, summary: Summary, overwrite: bool) -> None:
    """Write the trust report of several files."""
    from wavefilt.advice.page import overview
    from wavefilt.io import write_atomically

    with run_errors(path):
        write_atomically(Path(path), overview(summary.trust).encode(), overwrite=overwrite)


@contextmanager
def _log(path: str | None) -> Iterator[Callable[[Outcome], None]]:
    """Context manager: a function that writes the line of a file to a new log, or nothing without a path.

    Raises Failure, with 2 if the log cannot be opened, 1 if it cannot be written.
    """

    @contextmanager
    def errors(code: int) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Failure(f"--log {path}: {error.strerror}", code) from error

    if path is None:
        yield lambda _: None
        return
    with errors(2):
        file = open(path, "w", buffering=1, encoding="utf-8")  # noqa: SIM115  # closed below

    def add(outcome: Outcome) -> None:
        with errors(1):
            file.write(outcome.json() + "\n")

    try:
        yield add
    finally:
        with errors(1):
            file.close()
