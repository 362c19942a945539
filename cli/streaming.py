"""`wavefilt denoise --max-memory` and files that do not fit in memory; `--scheduler` for Zarr volumes by Dask."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing, redirect_stdout, suppress
from dataclasses import replace
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavefilt.io.files import NotStreamed, open_source, resolve, split
from wavefilt.memory import spelled

from . import Failure, message, read_errors, run_errors, tell
from .denoise import Facts
from .files import plan
from .options import FLAGS, OPTION_NAMES, Request
from .progress import bar, shown

if TYPE_CHECKING:
    from distributed import Future

    from wavefilt.backends import Backend
    from wavefilt.io.sources import Source

NOT_STREAMED = ("two_dimensional", "plot", "report", "residual", "dry_run", "columns", "delimiter")
"""Options that need all samples at once, or make no sense for formats that are streamed."""
MEASURED = (
    *("noisy_traces", "sigma", "sigma_range", "thresholds", "thresholds_range"),
    *("residual_energy", "backend", "seconds", "passes"),
)
"""Fields of a report that are facts as well."""
FOR_VOLUMES = {
    *OPTION_NAMES,
    "preset",
    "output",
    "scheduler",
    "backend",
    "axis",
    "component",
    "overwrite",
    "quiet",
    "inputs",
}
"""Options that go with --scheduler."""
SMALL = 4 << 20
"""Bytes of a file that fits in any memory."""
MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def check(inputs: tuple[str, ...], request: Request) -> None:
    """Raise UsageError for pipes, and for an option that needs all samples at once."""
    for name in _not_streamed(request):
        raise click.UsageError(f"{FLAGS[name]} does not go with --max-memory; leave one out")
    if "-" in (*inputs, request.output):
        raise click.UsageError("--max-memory needs files, not standard input or output")


def _not_streamed(request: Request) -> list[str]:
    """Return the options given that exclude streaming."""
    given = {**vars(request), **vars(request.layout)}
    return [name for name in NOT_STREAMED if given[name]]


def needed_limit(source: str, target: str, request: Request) -> int | None:
    """Return half of the free memory for a file that does probably not fit in it and can be streamed, else None."""
    small = os.path.isfile(source) and os.path.getsize(source) <= SMALL
    device = target == "-" or (os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)))
    if small or device or _not_streamed(request):
        return None
    free, needed = available(), needed_memory(source, request)
    return int(free / 2) if needed is not None and needed > free else None


def available() -> float:
    """Return the free memory of the system or its container, in bytes; infinity if unknown."""
    free = inf
    with suppress(OSError):
        numbers = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        free = 1024 * int(numbers["MemAvailable"].split()[0])
    with suppress(OSError, ValueError, KeyError):  # file pages in `memory.current` can be reclaimed, "anon" cannot
        numbers = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        free = min(free, int((CGROUP / "memory.max").read_text()) - int(numbers["anon"]))
    return max(free, 0)


def needed_memory(source: str, request: Request) -> float | None:
    """Return the bytes that denoising a file in memory takes; None for a file that is not streamed."""
    from wavefilt.arrays import compute_dtype
    from wavefilt.memory import whole_bytes_factor

    file, _ = split(source)
    if source == "-" or not (os.path.isfile(file) or os.path.isdir(file)):  # a pipe can be read once
        return None
    try:
        with closing(_opened(source, request)) as opened:
            size = prod(opened.shape) * compute_dtype(opened.dtype).itemsize
            return whole_bytes_factor(request.backend) * size
    except Exception:  # reading the file in memory gives a better message
        return None


def _opened(source: str, request: Request) -> Source:
    return open_source(source, replace(request.layout, columns=None, delimiter=None), request.format)


def denoise(source: str, target: str, request: Request, backend: str | Backend, limit: int | None = None) -> Facts:
    """Denoise one file within the limit asked for, or that of `needed_limit`; return the facts as for other files.

    Raises Failure, with 2 for a format that is not streamed, 3 for a file that cannot be read, else 1.
    """
    from wavefilt.files import stream
    from wavefilt.recording import streamed
    from wavefilt.report import resolved, unchanged, versions

    automatic = [] if limit is None else [f"larger than memory: streamed within {spelled(limit)}"]
    limit = limit or request.max_memory
    assert limit is not None
    with read_errors(source):
        try:
            opened = _opened(source, request)
        except NotStreamed as error:
            raise Failure(message(error), 2) from error
    name = Path(source).name
    with (
        closing(opened),
        run_errors(source, *automatic),
        bar(name, quiet=request.quiet, unit="B", unit_scale=True, unit_divisor=1024) as drawn,
    ):

        def advance(done: int, total: int) -> None:
            drawn.total = total
            drawn.update(done - drawn.n)

        options = streamed(opened, request.given, request.preset)
        report = stream(opened, Path(target), options, limit, backend, request.overwrite, advance)
    return {
        "input": source,
        "format": report.format,
        "traces": report.shape[0],
        "samples": report.shape[1],
        "interval_s": opened.interval,
        **resolved(options, report.level),
        **{name: vars(report)[name] for name in MEASURED},
        "max_memory": limit,
        "notes": [*opened.notes, *automatic, *([] if report.level else [unchanged(options, report.shape[1])])],
        "versions": versions(),
    }


def denoise_volume(inputs: tuple[str, ...], request: Request, scheduler: str) -> None:
    """Denoise one Zarr array into another with the workers of a Dask scheduler."""
    context = click.get_current_context()
    for name in context.params:
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in FOR_VOLUMES:
            raise click.UsageError(f"{FLAGS[name]} does not go with --scheduler; leave one out")
    jobs = plan(inputs, request)
    if len(jobs) != 1:
        raise click.UsageError("--scheduler takes one zarr volume")
    ((source, target),) = jobs
    import logging

    logging.disable(logging.ERROR)  # Dask logs at length the errors that are reported here
    context.call_on_close(lambda: logging.disable(logging.NOTSET))
    start = time.perf_counter()
    with run_errors(source):
        import wavefilt.dask
        from wavefilt.dask import cluster, zarr_volumes
        from wavefilt.io.chunked import opened
        from wavefilt.options import completed

        with read_errors(source):
            file, layout = resolve(source, request.layout)
            _, volume = opened(file, layout.component)
        axis = -1 if layout.axis is None else layout.axis
        chosen = completed(request.given, request.preset, seismic=False)
        options = {name: chosen[name] for name in OPTION_NAMES if name in chosen}
        array = wavefilt.dask.denoise(zarr_volumes.lazily(volume, axis), axis=axis, backend=request.backend, **options)
        workers, watch = cluster.connected(scheduler), _watch if shown(request.quiet) else None
        zarr_volumes.save(array, target, volume, request.overwrite, workers, watch)
    if not request.quiet:
        size = " x ".join(map(str, volume.shape))
        tell(f"{source} -> {target}  {size}  {time.perf_counter() - start:.2g} s")


def _watch(future: Future[None]) -> None:
    """Show the share of finished tasks until all are finished."""
    from distributed import progress

    with redirect_stdout(sys.stderr):
        progress(future, notebook=False)
        print("\r" + 79 * " ", end="\r", flush=True)
