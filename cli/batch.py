"""The files of `wavefilt denoise`: small ones by several processes, others one after the other; and a summary."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from statistics import median
from typing import Any

import click

from wavefilt import get_num_threads, interrupts, set_num_threads
from wavefilt.report import Facts

from . import Failure, run_errors, tell, usage_errors
from .denoise import denoise_file, show
from .options import Request
from .progress import bar

Files = list[tuple[str, str]]
"""Input and output of each file."""
Result = tuple[str, str, Facts, Failure | None]
"""Input and output of a file, its facts, and why it failed."""
SMALL, WORTH = 4 << 20, 100
"""Bytes up to which a file is processed by one core, and the number of such files for which a process is started."""


def denoise(files: Files, request: Request) -> None:
    """Denoise all files, print messages and the summary, and write the log.

    Raises Failure if the only file fails; SystemExit with 4 if several do, or without ``keep_going`` with the exit code
    of the first.
    """
    many, start, outcomes, failures = len(files) > 1, time.perf_counter(), list[Facts](), dict[str, Failure]()
    lines = not many or request.dry_run or request.verbose
    try:
        with ExitStack() as stack:
            log: Any = None
            if request.log and not request.dry_run:
                with usage_errors():
                    log = stack.enter_context(open(request.log, "wb", buffering=0))
            drawn = stack.enter_context(bar(total=len(files), unit="file", quiet=request.quiet or not many))
            for source, target, facts, failure in stack.enter_context(closing(_results(files, request))):
                if failure is None:
                    outcomes.append(facts)
                else:
                    failures[source] = failure
                if log is not None:
                    text = None if failure is None else str(failure)
                    ended = {"input": source, "output": target, "status": "failed" if text else "done", "error": text}
                    with run_errors(f"--log {request.log}"):
                        log.write(f"{json.dumps(ended | facts, allow_nan=False)}\n".encode())
                drawn.set_postfix({"failed": len(failures)} if failures else {}, refresh=False)
                drawn.update()
                if failure is None and (lines or request.as_json):
                    with drawn.external_write_mode(sys.stderr):
                        show(facts, request, lines)
                if failure is not None and not request.keep_going:
                    break
    finally:  # of an interrupted run as well
        if many and not request.quiet and not request.dry_run:
            click.echo(table(outcomes, len(failures), len(files), time.perf_counter() - start), err=True)
        if many and failures:
            tell(f"wavefilt: error: {len(failures)} of {len(files)} files failed:")
            for source, failure in failures.items():
                tell(f"  {source}: {str(failure).removeprefix(f'{source}: ')}")
    if many and failures and request.keep_going:
        raise SystemExit(4)
    if failures:
        first = next(iter(failures.values()))
        raise SystemExit(first.exit_code) if many else first


def _results(files: Files, request: Request) -> Generator[Result, None, None]:
    """Yield the result of each file."""
    # a GPU has memory for one file at a time, and --max-memory is the limit of one file
    alone = request.backend == "cuda" or request.max_memory or request.dry_run
    small = [] if alone else [file for file in files if os.path.isfile(file[0]) and os.path.getsize(file[0]) <= SMALL]
    count = min(get_num_threads(), len(small) // WORTH)
    if count > 1:
        yield from _by_processes(small, request, count)
        files = sorted({*files}.difference(small), key=files.index)
    for file in files:
        yield _result(*file, request)


def _result(source: str, target: str, request: Request) -> Result:
    start = time.perf_counter()
    try:
        facts, failure = denoise_file(source, target, request), None
    except Failure as error:
        facts, failure = Facts(), error
    return source, target, facts | {"elapsed_s": time.perf_counter() - start}, failure


def _by_processes(files: Files, request: Request, count: int) -> Generator[Result, None, None]:
    """Yield the results of files as they are done; after a signal, only of files that have been started."""
    with (
        interrupts.caught(deferred=True) as arrived,
        ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin) as pool,
    ):
        with interrupts.blocked():
            futures = [pool.submit(_result, *file, request) for file in files]
        try:
            for future in as_completed(futures):
                if arrived:
                    for other in futures:
                        other.cancel()
                if not future.cancelled():
                    yield future.result()
        except BrokenProcessPool as error:
            hint = "it was killed, perhaps for lack of memory; -j 1 processes one file after another"
            raise Failure(f"a worker process ended: {hint}", 1) from error
        finally:
            for future in futures:
                future.cancel()


def _begin() -> None:
    """Prepare a process: it has one thread, ends with its parent, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts.STOPPING)
    set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def table(outcomes: list[Facts], failed: int, count: int, seconds: float) -> str:
    """Return minimum, median and maximum over the files, and sums; ``count`` is the number of all files."""
    columns: dict[str, list[float]] = {}
    for facts in outcomes:
        samples = sum(facts["samples"]) if isinstance(facts["samples"], list) else facts["samples"] * facts["traces"]
        row = {"traces": facts["traces"], "samples": samples, "seconds": facts["elapsed_s"]}
        if facts["sigma"]:
            row["sigma, finest level"] = facts["sigma"][0]
        row["residual energy, %"] = 100 * facts["residual_energy"]
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    lines = [f"{'of each file':<20}{'least':>14}{'median':>14}{'most':>14}{'all':>18}"] if columns else []
    for name, values in columns.items():
        form = ",.0f" if name in ("traces", "samples") else ".3g"
        line = "".join(f"{value:>14{form}}" for value in (min(values), median(values), max(values)))
        lines.append(f"{name:<20}{line}" + (f"{sum(values):>18{form}}" if form == ",.0f" else ""))
    verdicts = Counter(facts["trust"]["verdict"] for facts in outcomes if "trust" in facts)
    if verdicts:
        order = ("harmful", "undecided", "harmless", "untested")
        lines.append("trust: " + ", ".join(f"{verdicts[word]} {word}" for word in order if verdicts[word]))
    done, left = len(outcomes), count - len(outcomes) - failed
    unchanged = sum(facts["level"] == 0 for facts in outcomes)
    ends = f"{done} done{f' ({unchanged} unchanged)' if unchanged else ''}, {failed} failed"
    ends += f", {left} not begun" if left else ""
    return "\n".join([*lines, f"{count} files: {ends}, {seconds:.2g} s, {done / seconds:.3g} files/s"])
