"""The files of `wavefilt denoise`, one or many: small ones shared out over processes, large ones one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click

from wavefilt.cli import progress
from wavefilt.cli.failure import Failure, run_errors

from . import batch_summary, single_file
from .batch_summary import Outcome, Summary
from .messages import show
from .options import Options

SMALL = 4 << 20
"""Bytes of a file up to which one core works on it; a larger one gets them all."""
SECONDS, RATE = 0.008, 25e6
"""Time of a small file on one core: seconds, and bytes per second beyond that. It sets the number of processes."""
START = 1.0
"""Seconds of work that justify starting a process."""


def denoise(files: list[tuple[str, str]], options: Options) -> None:
    """Denoise them all, report what was done, and keep the log.

    Raises Failure: of one file its own, of several with exit code 4, or without ``keep_going`` that of the first.
    """
    many, found = len(files) > 1, Summary(len(files))
    lines = not many or options.dry_run or options.verbose
    with batch_summary.log(None if options.dry_run else options.log) as log:
        try:
            with _bar(len(files), options.quiet) as moved:

                def add(outcome: Outcome) -> bool:
                    """Whether to go on."""
                    found.add(outcome)
                    log(outcome)
                    messages = moved(found)
                    if outcome.error is None and (lines or options.as_json):
                        with messages:
                            show(outcome.facts, options, lines)
                    return not found.failures or options.keep_going

                _each(files, partial(attempt, options=options), options, add)
            if options.report and many and not options.dry_run:
                _overview(options.report, found, options.overwrite)
        except BaseException:  # interrupted, or the log's disk is full: the failures are reported all the same
            if found.failures:
                found.failed(files, 1).show()
            raise
        finally:
            if many and not options.quiet and not options.dry_run:
                click.echo(found.table(), err=True)
    for first in found.failures.values():
        if not many:
            raise Failure(str(first.error), first.code)
        raise found.failed(files, 4 if options.keep_going else first.code)


def attempt(source: str, target: str, options: Options) -> Outcome:
    """How a file ended. Raises UsageError for options that make no sense, whatever the file."""
    start = time.perf_counter()
    try:
        facts = single_file.denoise(source, target, options)
    except Failure as error:
        return Outcome(source, target, time.perf_counter() - start, error=str(error), code=error.code)
    return Outcome(source, target, time.perf_counter() - start, facts)


def _each(
    files: list[tuple[str, str]], work: Callable[..., Outcome], options: Options, add: Callable[[Outcome], bool]
) -> None:
    """Do the work of every file, the shared ones first, until ``add`` wants no more."""
    # a GPU has room for one file's work at a time, and --max-memory is the limit of one file
    alone = len(files) == 1 or options.backend == "cuda" or options.max_memory or options.dry_run
    small = {} if alone else {file: size for file in files if (size := _size(file[0])) <= SMALL}
    workers = _workers(list(small.values()))
    if workers > 1:
        from .workers import shared

        if not shared(list(small), work, workers, add):
            return
        files = [file for file in files if file not in small]
    for file in files:
        if not add(work(*file)):
            return


def _overview(path: str, found: Summary, overwrite: bool) -> None:
    """Write the trust report of several files. Raises Failure."""
    from wavefilt.advice.page import overview
    from wavefilt.io import write_atomically

    with run_errors(path):
        write_atomically(Path(path), overview(found.trust).encode(), overwrite=overwrite)


def _size(source: str) -> float:
    """Bytes of a file; what is none, or not there, is no work to share."""
    return os.path.getsize(source) if os.path.isfile(source) else inf


def _workers(sizes: list[float]) -> int:
    """Processes for files of so many bytes."""
    from wavefilt import get_num_threads

    return min(get_num_threads(), int(sum(SECONDS + size / RATE for size in sizes) / START))


@contextmanager
def _bar(count: int, quiet: bool) -> Iterator[Callable[[Summary], AbstractContextManager[Any]]]:
    """Called when a file has ended: moves the bar, and gives a context in which messages do not run into the bar.

    There is a bar for several files, and a line for one, if standard error is a terminal.
    """
    if count == 1:
        with progress.line(quiet) as without:
            yield lambda found: without()
        return
    if not progress.shown(quiet):
        yield nullcontext
        return
    with progress.bar(total=count, unit="file") as bar:

        def moved(found: Summary) -> AbstractContextManager[Any]:
            if found.failures:
                bar.set_postfix(failed=len(found.failures), refresh=False)
            bar.update()
            return progress.without(bar)

        yield moved
