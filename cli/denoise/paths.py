"""The files of `wavefilt denoise`: what is read, what is written, checked before anything is computed."""

from __future__ import annotations

import glob
import os
import re
import shlex
from itertools import takewhile
from pathlib import Path

import click

from wavefilt.cli.failure import Failure, is_folder, usage_errors
from wavefilt.io.base import MARK, is_store, refuse_dataset
from wavefilt.io.files import split

from .options import Options

WILD = re.compile(r"[*?]")
RESULT = ".denoised"
"""What comes before the suffix in the name of a result."""


def expanded(inputs: tuple[str, ...], *, results: bool) -> dict[str, str]:
    """Every input once, patterns of *, ? and ** replaced by what they match, each with the folder that was named.

    That is the part of a pattern before the first wildcard, else the folder that the input is in. Patterns match files,
    and folders where they are Zarr stores; brackets are left alone, they are common in names. Without ``results`` they
    leave out those of earlier runs, unless they name them so. Raises Failure for a pattern that matches nothing.
    """
    if inputs.count("-") > 1:
        raise click.UsageError("standard input can be read once")
    found: dict[str, str] = {}
    for name in inputs:
        file, dataset = split(name)
        if name == "-" or os.path.lexists(file) or not WILD.search(file):
            found.setdefault(name, os.path.dirname(file))
            continue
        matches = _matches(file)
        if not matches:
            raise Failure(f"{name}: no file matches this pattern", 3)
        if not (results or _is_result(file)):
            matches = [path for path in matches if not _is_result(path)]
        if not matches:
            raise Failure(f"{name}: this pattern matches earlier results alone; name them, or use --out-dir", 3)
        for path in matches:
            found.setdefault(path if dataset is None else f"{path}{MARK}{dataset}", _before_wildcards(file))
    return found


def _matches(pattern: str) -> list[str]:
    """Files, and folders that are stores of a format, but nothing in them."""
    paths = sorted(glob.glob(pattern.replace("[", "[[]"), recursive=True))
    stores = {path for path in paths if is_store(path)}
    return [
        path
        for path in paths
        if (path in stores or os.path.isfile(path))
        and not (stores and stores.intersection(map(str, Path(path).parents)))
    ]


def _is_result(path: str) -> bool:
    """By its name: a result, or what lies beside one."""
    return f"{RESULT}." in f"{os.path.basename(path)}."


def _before_wildcards(pattern: str) -> str:
    return str(Path(*takewhile(lambda part: not WILD.search(part), Path(pattern).parts)))


def plan(names: tuple[str, ...], options: Options) -> list[tuple[str, str]]:
    """Input and output of every file, patterns expanded, checked before anything is computed.

    Raises UsageError (exit code 2), or Failure for a pattern that matches nothing.
    """
    output, folder = options.output, options.out_dir
    inputs = expanded(names, results=output is not None or folder is not None)
    if output is not None and (folder is not None or len(inputs) > 1):
        raise click.UsageError("-o takes one input and no --out-dir; use --out-dir for several")
    if "" in (output, folder):
        raise click.UsageError("an output name is empty")
    for name, given in (("plot", options.plot), ("removed", options.removed)):
        if len(inputs) > 1 and given:
            raise click.UsageError(f"--{name} takes one input")
    if options.plot:
        _check_plot(Path(options.plot))
    if options.report and len(inputs) == 1:
        _check_plot(Path("figure.png"))
    with usage_errors():
        top = os.path.commonpath([os.path.abspath(place) for place in inputs.values()]) if folder else None
        jobs = [(source, output or _default_output(source, folder, top)) for source in inputs]
        if any(target == "-" for _, target in jobs) and (options.as_json or options.sidecar):
            raise click.UsageError("--json and --sidecar need an output file, not standard output")
        _check_outputs(jobs, options)
        if folder and not options.dry_run:
            for parent in {Path(target).parent for _, target in jobs}:
                parent.mkdir(parents=True, exist_ok=True)
    return jobs


def _check_outputs(jobs: list[tuple[str, str]], options: Options) -> None:
    """Raise UsageError or OSError unless all outputs are files of their own that may be written."""
    from wavefilt.io import check_destination
    from wavefilt.io.zarr import check_folder

    stores = {Path(target): Path(split(source)[0]) for source, target in jobs if is_store(split(source)[0])}
    if stores and options.removed:
        stores[Path(options.removed)] = next(iter(stores.values()))
    outputs = [Path(name) for name in (options.plot, options.report, options.removed, options.log) if name]
    for source, target in jobs:
        source, dataset = split(source)
        if dataset is not None:
            refuse_dataset(Path(target))
        # an input that is not there, or a folder of files, fails when it is read, as one of the batch
        if target != "-" and (source == "-" or os.path.lexists(source)) and not is_folder(source):
            outputs += [Path(target), sidecar(Path(target))] if options.sidecar else [Path(target)]
    files: dict[Path, Path] = {}
    for path in outputs:
        if path in stores or path.is_file() or not path.exists():
            if _real(path) in files:
                raise click.UsageError(f"two outputs would be the same file, {path}; name them with -o, one at a time")
            files[_real(path)] = path
    inputs = [_real(split(source)[0]) for source, _ in jobs if source != "-"]
    taken = {*inputs, *(_identity(path) for path in inputs if os.path.exists(path))}
    for path in files:
        if path in taken or (os.path.exists(path) and _identity(path) in taken):
            raise click.UsageError(f"{path} is the input; choose another output")
    for path in outputs:
        if options.out_dir and not path.parent.is_dir():
            continue  # it will be made
        if path in stores:
            check_folder(stores[path], path, overwrite=options.overwrite)
        elif path.is_dir() and options.output and path == Path(options.output):
            raise click.UsageError(f"{path} is a folder; name a file, or use --out-dir {shlex.quote(str(path))}")
        else:
            check_destination(path, overwrite=options.overwrite)


def _real(path: str | Path) -> Path:
    """Without links; a loop of links stays as it is, where `Path.resolve` raises RuntimeError."""
    return Path(os.path.realpath(path))


def _identity(path: Path) -> tuple[int, int]:
    """The same for all names of a file."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _check_plot(path: Path) -> None:
    """Before anything is computed: whether figures can be drawn, and written as such a file."""
    from wavefilt.plotting import figure

    try:
        figure.check_target(path)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except ImportError as error:
        raise Failure(str(error), 1) from error


def _default_output(source: str, folder: str | None, top: str | None) -> str:
    """Beside the input, or in the folder as the input lies in ``top``."""
    if source == "-":
        if folder is not None:
            raise click.UsageError("standard input has no name; use -o instead of --out-dir")
        return "-"
    path = Path(split(source)[0])
    place = path.parent if folder is None else Path(folder, os.path.relpath(path.parent, top))
    return str(place / f"{path.stem}{RESULT}{path.suffix}")


def sidecar(target: Path) -> Path:
    return target.with_name(f"{target.name}.wavefilt.json")
