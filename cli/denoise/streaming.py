"""`wavefilt denoise --max-memory`, and without it: files that do not fit in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavefilt.cli.failure import Failure
from wavefilt.errors import FormatError
from wavefilt.outofcore.sizes import in_bytes, spelled

from . import memory

if TYPE_CHECKING:
    from wavefilt.io.sources import Source

NOT_STREAMED = ("two_dimensional", "plot", "removed", "sidecar", "dry_run", "columns", "delimiter")
"""Options that need all samples at once, or that files which are streamed have no use for."""
SMALL = 4 << 20
"""Bytes of a file that fits in any memory, so that no time is lost on asking."""


def size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Bytes of an amount of memory."""
    try:
        return None if value is None else in_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def check_options(options: dict[str, Any]) -> None:
    """Raise UsageError for an option that needs all samples at once."""
    for name in NOT_STREAMED:
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --max-memory; leave one out")


def check_files(files: list[tuple[str, str]]) -> None:
    """Raise UsageError for pipes, before anything is read."""
    if any("-" in pair for pair in files):
        raise click.UsageError("--max-memory needs files, not standard input or output")


def within(source: str, target: str, options: dict[str, Any]) -> int | None:
    """The limit for a file that would probably not fit in memory and can be streamed: half of the memory there is."""
    small = os.path.isfile(source) and os.path.getsize(source) <= SMALL
    if small or any(options[name] for name in NOT_STREAMED) or not _replaceable(target):
        return None
    samples = samples_bytes(source, options)
    if samples is None:
        return None
    from wavefilt.outofcore.memory_budget import whole_bytes_factor

    there = memory.available()
    return int(there / 2) if whole_bytes_factor(options["backend"]) * samples > there else None


def samples_bytes(source: str, options: dict[str, Any]) -> int | None:
    """Bytes of all samples in the dtype of computation; None for what is not streamed."""
    from wavefilt.arrays import compute_dtype
    from wavefilt.io.dataset_paths import split

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


def _opened(source: str, options: dict[str, Any]) -> Source:
    from wavefilt.io.layout import Layout
    from wavefilt.io.sources import open_source

    layout = Layout(**{name: options[name] for name in ("dtype", "endian", "ns", "dt", "component", "axis")})
    return open_source(source, layout, options["format"])


def denoise(
    source: str, target: str, method: Any, backend: Any, options: dict[str, Any], limit: int | None = None
) -> dict[str, Any]:
    """Denoise one file within the limit asked for, or one found by `within`; what was done, as `describe` tells it.

    Raises Failure, with 2 for a format that is not streamed, 3 for a file that cannot be read, else 1.
    """
    from wavefilt.io.sources import NotStreamed
    from wavefilt.method import window_of
    from wavefilt.outofcore.streaming import stream
    from wavefilt.report import resolved, unchanged, versions

    unasked = [] if limit is None else [f"larger than memory: streamed within {spelled(limit)}"]
    limit = limit or options["max_memory"]
    try:
        opened = _opened(source, options)
    except NotStreamed as error:
        raise Failure(str(error), 2) from error
    except FormatError as error:
        raise Failure(str(error), 3) from error
    except OSError as error:
        raise Failure(f"{source}: {error.strerror or error}", 3) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        if options["noise_window"]:
            start, stop = options["noise_window"]
            method = replace(method, sigma=window_of(start, stop, opened.interval, source))
        with _bar(source, options["quiet"]) as progress:
            report = stream(opened, Path(target), method, limit, backend, options["overwrite"], progress)
    except MemoryError as error:
        raise Failure("; ".join([f"{source}: not enough memory", *unasked]), 1) from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise Failure("; ".join([f"{source}: {str(error).removeprefix(f'{source}: ')}", *unasked]), 1) from error
    finally:
        opened.close()
    return {
        "input": source,
        "format": report.format,
        "traces": report.shape[0],
        "samples": report.shape[1],
        "interval_s": opened.interval,
        **resolved(method, report.level),
        "sigma": report.sigma,
        "thresholds": report.thresholds,
        "energy_removed": report.energy_removed,
        "backend": report.backend,
        "seconds": report.seconds,
        "passes": report.passes,
        "max_memory": limit,
        "notes": [*opened.notes, *unasked, *([] if report.level else [unchanged(method)])],
        "versions": versions(),
    }


@contextmanager
def _bar(source: str, quiet: bool) -> Iterator[Any]:
    """Bytes that went through, their rate and the time left, on standard error where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=Path(source).name, unit="B", unit_scale=True, unit_divisor=1024, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
