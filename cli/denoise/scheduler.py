"""`wavefilt denoise --scheduler`: zarr volumes by dask."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import click

from wavefilt.cli.failure import Failure
from wavefilt.io.dataset_paths import split

USED = {"inputs", "output", "scheduler", "wavelet", "level", "mode", "rule", "shrink", "sigma", "scope", "keep",
        "transform", "spins", "backend", "axis", "component", "overwrite", "quiet"}  # fmt: skip
"""Options that mean something for a volume."""


option = click.option(
    "--scheduler", metavar="ADDRESS|local[:N]", help="zarr volumes: a dask scheduler, or N processes here."
)


def denoise(inputs: tuple[str, ...], method: Any, options: dict[str, Any]) -> None:
    """Denoise one zarr array into another with the workers asked for."""
    context = click.get_current_context()
    for name in options:
        if name not in USED and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --scheduler; leave one out")
    if len(inputs) != 1:
        raise click.UsageError("--scheduler takes one zarr volume")
    source, dataset = split(inputs[0])
    if None not in (dataset, options["component"]):
        raise click.UsageError(f"{inputs[0]} and --component both name an array: give one")
    component = dataset or options["component"]
    target = Path(options["output"] or Path(source).with_suffix(".denoised.zarr"))
    if target.exists() and not options["overwrite"]:
        raise click.UsageError(f"{target} exists; use --overwrite to replace it")
    if target.resolve() == Path(source).resolve():
        raise click.UsageError(f"{target} is the input; choose another output")
    logging.disable(logging.ERROR)  # dask tells at length, and before, what is told here
    context.call_on_close(lambda: logging.disable(logging.NOTSET))
    start = time.perf_counter()
    shape = _run(source, component, target, method, options)
    if not options["quiet"]:
        size = " x ".join(map(str, shape))
        click.echo(f"{source} -> {target}  {size}  {time.perf_counter() - start:.2g} s", err=True)


def _run(source: str, component: str | None, target: Path, method: Any, options: dict[str, Any]) -> tuple[int, ...]:
    """Raises Failure with its exit code."""
    from wavefilt.errors import BackendUnavailable, FormatError

    try:
        import wavefilt.dask
        from wavefilt.dask import cluster, zarr_volumes
        from wavefilt.io.arrays.zarr import opened

        _, volume = opened(source, component)
        axis = -1 if options["axis"] is None else options["axis"]
        names = ("level", "mode", "rule", "shrink", "sigma", "scope", "keep", "transform", "spins")
        chosen = {name: getattr(method, name) for name in names}
        array = wavefilt.dask.denoise(
            zarr_volumes.lazily(volume, axis), method.wavelet, axis=axis, backend=options["backend"], **chosen
        )
        zarr_volumes.save(array, target, volume, options["overwrite"], cluster.connected(options["scheduler"]))
    except FormatError as error:
        raise Failure(str(error), 3) from error
    except BackendUnavailable as error:
        raise Failure(str(error), 5) from error
    except (ValueError, TypeError, ImportError, OSError, RuntimeError, MemoryError) as error:
        raise Failure(f"{source}: {str(error).removeprefix(f'{source}: ')}", 1) from error
    return tuple(volume.shape)
