"""`wavefilt denoise --max-memory`: files that do not fit in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from wavefilt.errors import FormatError

from .failure import Failure

NOT_STREAMED = ("two_dimensional", "plot", "removed", "sidecar", "noise_window", "dry_run", "columns", "delimiter")
"""Options that need all samples at once, or that files which are streamed have no use for."""


def size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Bytes of an amount of memory."""
    from wavefilt.sizes import in_bytes

    try:
        return None if value is None else in_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def check(files: list[tuple[str, str]], options: dict[str, Any]) -> None:
    """Raise UsageError for what cannot be streamed, before anything is read."""
    for name in NOT_STREAMED:
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --max-memory; leave one out")
    if any("-" in pair for pair in files):
        raise click.UsageError("--max-memory needs files, not standard input or output")


def denoise(source: str, target: str, method: Any, backend: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Denoise one file within the limit; what was done, as `wavefilt.report.describe` tells it.

    Raises Failure, with 2 for a format that is not streamed, 3 for a file that cannot be read, else 1.
    """
    from wavefilt.io.layout import Layout
    from wavefilt.io.sources import NotStreamed, open_source
    from wavefilt.streaming import stream

    try:
        layout = Layout(**{name: options[name] for name in ("dtype", "endian", "ns", "dt", "component", "axis")})
        opened = open_source(source, layout, options["format"])
    except NotStreamed as error:
        raise Failure(str(error), 2) from error
    except FormatError as error:
        raise Failure(str(error), 3) from error
    except OSError as error:
        raise Failure(f"{source}: {error.strerror or error}", 3) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        with _bar(source, options["quiet"]) as progress:
            report = stream(
                opened, Path(target), method, options["max_memory"], backend, options["overwrite"], progress
            )
    except MemoryError as error:
        raise Failure(f"{source}: not enough memory", 1) from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise Failure(f"{source}: {str(error).removeprefix(f'{source}: ')}", 1) from error
    finally:
        opened.close()
    from wavefilt.report import resolved, versions

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
        "max_memory": options["max_memory"],
        "notes": list(opened.notes),
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
