"""`wavefilt denoise --scheduler`: zarr volumes by dask."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavefilt import stages
from wavefilt.cli.failure import read_errors, run_errors, tell
from wavefilt.cli.progress import line, shown
from wavefilt.io.files import split

from .options import METHOD, Options

if TYPE_CHECKING:
    from distributed import Client, Future

USED = {*METHOD, "output", "scheduler", "backend", "axis", "component", "overwrite", "quiet"}
"""Options that mean something for a volume."""


def denoise(inputs: tuple[str, ...], options: Options, scheduler: str) -> None:
    """Denoise one Zarr array into another with the workers asked for."""
    context = click.get_current_context()
    for name in options.given:
        if name not in USED and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --scheduler; leave one out")
    if len(inputs) != 1:
        raise click.UsageError("--scheduler takes one zarr volume")
    source, dataset = split(inputs[0])
    named = options.layout.component
    if None not in (dataset, named):
        raise click.UsageError(f"{inputs[0]} and --component both name an array: give one")
    target = Path(options.output or Path(source).with_suffix(".denoised.zarr"))
    if target.exists() and not options.overwrite:
        raise click.UsageError(f"{target} exists; use --overwrite to replace it")
    if os.path.realpath(target) == os.path.realpath(source):
        raise click.UsageError(f"{target} is the input; choose another output")
    logging.disable(logging.ERROR)  # Dask logs at length what is reported here
    context.call_on_close(lambda: logging.disable(logging.NOTSET))
    start = time.perf_counter()
    with line(options.quiet):
        shape = _run(source, dataset or named, target, options, scheduler)
    if not options.quiet:
        size = " x ".join(map(str, shape))
        tell(f"{source} -> {target}  {size}  {time.perf_counter() - start:.2g} s")


def _run(source: str, component: str | None, target: Path, options: Options, scheduler: str) -> tuple[int, ...]:
    """The shape of the volume. Raises Failure with its exit code."""
    with run_errors(source):
        with stages.stage("loading Dask"):
            import wavefilt.dask
            from wavefilt.dask import cluster, zarr_volumes
            from wavefilt.io.zarr import opened

        with read_errors(source):
            _, volume = opened(source, component)
        axis = -1 if options.layout.axis is None else options.layout.axis
        chosen = {name: getattr(options.method, name) for name in METHOD}
        array = wavefilt.dask.denoise(zarr_volumes.lazily(volume, axis), axis=axis, backend=options.backend, **chosen)
        workers = _started(cluster.connected(scheduler))
        zarr_volumes.save(array, target, volume, options.overwrite, workers, _watch if shown(options.quiet) else None)
    return tuple(volume.shape)


@contextmanager
def _started(workers: AbstractContextManager[Client]) -> Iterator[Client]:
    with ExitStack() as stack:
        with stages.stage("starting workers"):
            client = stack.enter_context(workers)
        yield client


def _watch(future: Future[None]) -> None:
    """Show how many of the tasks are done, until they all are."""
    from distributed import progress

    with redirect_stdout(sys.stderr):
        progress(future, notebook=False)
        print("\r" + 79 * " ", end="\r", flush=True)
