"""`wavefilt denoise --max-memory`, and without it: files that do not fit in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavefilt.cli.failure import Failure, read_errors, run_errors
from wavefilt.cli.progress import bar, shown
from wavefilt.errors import for_command
from wavefilt.memory import spelled

from . import memory
from .batch_summary import Facts
from .options import Options

if TYPE_CHECKING:
    from wavefilt.backends import Backend
    from wavefilt.io.sources import Source

NOT_STREAMED = ("two_dimensional", "plot", "report", "removed", "sidecar", "dry_run")
"""Options that need all samples at once, or of which a file that is streamed has no use."""
NOT_IN_LAYOUT = ("columns", "delimiter")
MEASURED = (
    *("noisy_traces", "sigma", "sigma_range", "thresholds", "thresholds_range"),
    *("energy_removed", "backend", "seconds", "passes"),
)
"""Fields of a report that are told as they are."""
SMALL = 4 << 20
"""Bytes of a file that fits in any memory, so that no time is lost on asking."""


def _not_streamed(options: Options) -> list[str]:
    """The options given that do not go with streaming."""
    given = {**vars(options), **vars(options.layout)}
    return [name for name in (*NOT_STREAMED, *NOT_IN_LAYOUT) if given[name]]


def check(inputs: tuple[str, ...], options: Options) -> None:
    """Raise UsageError for pipes, and for an option that needs all samples at once."""
    for name in _not_streamed(options):
        raise click.UsageError(f"--{name.replace('_', '-')} does not go with --max-memory; leave one out")
    if "-" in (*inputs, options.output):
        raise click.UsageError("--max-memory needs files, not standard input or output")


def needed_limit(source: str, target: str, options: Options) -> int | None:
    """The limit for a file that would probably not fit in memory and can be streamed: half of the free memory."""
    small = os.path.isfile(source) and os.path.getsize(source) <= SMALL
    if small or _not_streamed(options) or not _replaceable(target):
        return None
    samples = samples_bytes(source, options)
    if samples is None:
        return None
    from wavefilt.memory import whole_bytes_factor

    available = memory.available()
    needed = whole_bytes_factor(options.backend) * samples
    return int(available / 2) if needed > available else None


def samples_bytes(source: str, options: Options) -> int | None:
    """Bytes of all samples in the dtype of computation; None for a file that is not streamed."""
    from wavefilt.arrays import compute_dtype
    from wavefilt.io.files import split

    file, _ = split(source)
    if source == "-" or not (os.path.isfile(file) or os.path.isdir(file)):  # a pipe can be read once
        return None
    try:
        with closing(_opened(source, options)) as opened:
            traces, samples = opened.shape
            return traces * samples * compute_dtype(opened.dtype).itemsize
    except (ValueError, TypeError, OSError, MemoryError):  # reading it in memory says what is wrong
        return None


def _replaceable(target: str) -> bool:
    """Whether a result can appear here when it is whole: not in a pipe or device."""
    return target != "-" and (not os.path.exists(target) or os.path.isfile(target) or os.path.isdir(target))


def _opened(source: str, options: Options) -> Source:
    from wavefilt.io.files import open_source

    return open_source(source, replace(options.layout, columns=None, delimiter=None), options.format)


def denoise(source: str, target: str, options: Options, backend: str | Backend, limit: int | None = None) -> Facts:
    """Denoise one file within the limit asked for, or one from `needed_limit`; what was done, as `describe` tells it.

    Raises Failure, with 2 for a format that is not streamed, 3 for a file that cannot be read, else 1.
    """
    from wavefilt.files import stream
    from wavefilt.io.files import NotStreamed
    from wavefilt.options import Clock
    from wavefilt.report import resolved, unchanged, versions

    unasked = [] if limit is None else [f"larger than memory: streamed within {spelled(limit)}"]
    limit = limit or options.max_memory
    assert limit is not None
    method = options.method
    with read_errors(source):
        try:
            opened = _opened(source, options)
        except NotStreamed as error:
            raise Failure(for_command(error), 2) from error
    with closing(opened), run_errors(source, *unasked):
        if options.noise is not None:
            clock = Clock(opened.interval, None, opened.shape[1], source)
            method = replace(method, sigma=clock.in_samples(options.noise))
        with _bar(source, options.quiet) as progress:
            report = stream(opened, Path(target), method, limit, backend, options.overwrite, progress)
    return {
        "input": source,
        "format": report.format,
        "traces": report.shape[0],
        "samples": report.shape[1],
        "interval_s": opened.interval,
        **resolved(method, report.level),
        **{name: vars(report)[name] for name in MEASURED},
        "max_memory": limit,
        "notes": [*opened.notes, *unasked, *([] if report.level else [unchanged(method, report.shape[1])])],
        "versions": versions(),
    }


@contextmanager
def _bar(source: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Bytes processed, their rate and the time left, on standard error where that is a terminal."""
    if not shown(quiet):
        yield None
        return
    with bar(Path(source).name, unit="B", unit_scale=True, unit_divisor=1024) as drawn:

        def progress(done: int, total: int) -> None:
            drawn.total = total
            drawn.update(done - drawn.n)

        yield progress
