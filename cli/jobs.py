"""The files of `wavefilt denoise`: what is read, what is written, checked before anything is computed."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

import click

from wavefilt.io.names import MARK, check_alone, split

from .failure import Failure


def expanded(inputs: tuple[str, ...]) -> list[str]:
    """Patterns of * and ? that no shell expanded; brackets are left alone, they are common in names."""
    names: list[str] = []
    for name in inputs:
        file, dataset = split(name)
        literal = name == "-" or os.path.lexists(file)
        found = [] if literal else sorted(glob.glob(file.replace("[", "[[]")))
        names += [path if dataset is None else f"{path}{MARK}{dataset}" for path in found] or [name]
    return names


def plan(inputs: list[str], options: dict[str, Any]) -> list[tuple[str, str]]:
    """Input and output of every file, checked before anything is computed. Raises UsageError (exit code 2)."""
    output, folder = options["output"], options["out_dir"]
    if output is not None and (folder is not None or len(inputs) > 1):
        raise click.UsageError("-o takes one input and no --out-dir; use --out-dir for several")
    if "" in (output, folder):
        raise click.UsageError("an output name is empty")
    if inputs.count("-") > 1:
        raise click.UsageError("standard input can be read once")
    for name in ("plot", "removed"):
        if len(inputs) > 1 and options[name]:
            raise click.UsageError(f"--{name} takes one input")
    if options["quiet"] and options["verbose"]:
        raise click.UsageError("-q and -v contradict each other")
    if options["plot"]:
        _check_plot(Path(options["plot"]))
    jobs = [(source, output or _default_output(source, folder)) for source in inputs]
    if any(target == "-" for _, target in jobs) and (options["as_json"] or options["sidecar"]):
        raise click.UsageError("--json and --sidecar need an output file, not standard output")
    try:
        if folder and not options["dry_run"]:
            Path(folder).mkdir(parents=True, exist_ok=True)
        _check_outputs(jobs, options)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    return jobs


def _check_outputs(jobs: list[tuple[str, str]], options: dict[str, Any]) -> None:
    """Raise UsageError or OSError unless all outputs are files of their own that may be written."""
    from wavefilt.io import check_destination
    from wavefilt.io.zarr import check_folder

    stores = {Path(target): Path(split(source)[0]) for source, target in jobs if os.path.isdir(split(source)[0])}
    if stores and options["removed"]:
        stores[Path(options["removed"])] = next(iter(stores.values()))
    outputs = [Path(options[name]) for name in ("plot", "removed") if options[name]]
    for source, target in jobs:
        source, dataset = split(source)
        if dataset is not None:
            check_alone(Path(target))
        # an input that is not there fails when it is read, as one of the batch
        if target != "-" and (source == "-" or os.path.lexists(source)):
            outputs += [Path(target), sidecar(Path(target))] if options["sidecar"] else [Path(target)]
    files = [path.resolve() for path in outputs if path in stores or path.is_file() or not path.exists()]
    if len(set(files)) < len(files):
        raise click.UsageError("two outputs would be the same file; name them with -o, one input at a time")
    inputs = [Path(split(source)[0]).resolve() for source, _ in jobs if source != "-"]
    for path in files:
        if path in inputs or any(path.exists() and i.exists() and path.samefile(i) for i in inputs):
            raise click.UsageError(f"{path} is the input; choose another output")
    for path in outputs:
        if path in stores:
            check_folder(stores[path], path, overwrite=options["overwrite"])
        elif path.parent.is_dir() or not options["out_dir"]:
            check_destination(path, overwrite=options["overwrite"])


def _check_plot(path: Path) -> None:
    """Before anything is computed: whether figures can be drawn, and written as such a file."""
    from wavefilt import plot

    try:
        plot.check_target(path)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except ImportError as error:
        raise Failure(str(error), 1) from error


def _default_output(source: str, folder: str | None) -> str:
    if source == "-":
        if folder is not None:
            raise click.UsageError("standard input has no name; use -o instead of --out-dir")
        return "-"
    path = Path(split(source)[0])
    return str((Path(folder) if folder else path.parent) / f"{path.stem}.denoised{path.suffix}")


def sidecar(target: Path) -> Path:
    return target.with_name(f"{target.name}.wavefilt.json")
