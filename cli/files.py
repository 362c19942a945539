"""The files of a command: reading them, patterns, and outputs that are checked before anything is computed."""

from __future__ import annotations

import glob
import io
import os
import re
import shlex
import sys
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path

import click

import wavefilt
from wavefilt.io import Layout, check_destination, is_store
from wavefilt.io.base import COMPRESSED_ENDINGS, MARK, refuse_dataset
from wavefilt.io.chunked import check_folder
from wavefilt.io.files import split
from wavefilt.recording import Recording

from . import Failure, read_errors, usage_errors
from .options import Request

WILD = re.compile(r"[*?]")
RESULT = ".denoised"
"""The end of the name of a result, before the extension."""


def read(path: str, layout: Layout, format: str | None) -> Recording:
    """Read a file, or standard input for ``-``.

    Raises Failure with exit code 3, or with 2 or UsageError for an invalid option; MemoryError.
    """
    with read_errors(path):
        if path != "-":
            return wavefilt.read(path, format=format, **asdict(layout))
        if sys.stdin is None:
            raise Failure("standard input is closed", 3)
        content = io.BytesIO(sys.stdin.buffer.read())
        content.name = path  # for messages
        return wavefilt.read(content, format=format, **asdict(layout))


def expanded(inputs: tuple[str, ...], *, results: bool) -> dict[str, str]:
    """Return every input once, with patterns of *, ? and ** expanded, and the folder that was named for each.

    That is the part of a pattern before its first wildcard, otherwise the folder of the input. Patterns match files,
    and folders that are Zarr stores; brackets are literal, since they are common in names. Without ``results`` the
    results of earlier runs are skipped, unless the pattern names them. Raises Failure for a pattern without a match.
    """
    if inputs.count("-") > 1:
        raise click.UsageError("standard input can be read once")
    found: dict[str, str] = {}
    for name in inputs:
        file, dataset = split(name)
        if name == "-" or os.path.lexists(file) or not WILD.search(file):
            found.setdefault(name, os.path.dirname(file))
            continue
        paths = sorted(glob.glob(file.replace("[", "[[]"), recursive=True))
        stores = {path for path in paths if is_store(path)}
        matches = [path for path in paths if path in stores or os.path.isfile(path)]
        matches = [path for path in matches if stores.isdisjoint(map(str, Path(path).parents))]
        if not (results or _is_result(file)):
            matches = [path for path in matches if not _is_result(path)]
        if not matches:
            skipped = " but earlier results; name them, or use --out-dir" if any(map(_is_result, paths)) else ""
            raise Failure(f"{name}: no file matches this pattern{skipped}", 3)
        top = str(Path(*takewhile(lambda part: not WILD.search(part), Path(file).parts)))
        for path in matches:
            found.setdefault(path if dataset is None else f"{path}{MARK}{dataset}", top)
    return found


def _is_result(path: str) -> bool:
    return f"{RESULT}." in f"{os.path.basename(path)}."


def plan(names: tuple[str, ...], request: Request) -> list[tuple[str, str]]:
    """Return input and output of every file, checked before anything is computed.

    Raises UsageError (exit code 2), or Failure for a pattern without a match.
    """
    output, folder = request.output, request.out_dir
    inputs = expanded(names, results=output is not None or folder is not None)
    if output is not None and (folder is not None or len(inputs) > 1):
        raise click.UsageError("-o takes one input and no --out-dir; use --out-dir for several")
    if folder == "":
        raise click.UsageError("the name of --out-dir is empty")
    if len(inputs) > 1 and (given := [name for name in ("plot", "report", "residual") if getattr(request, name)]):
        raise click.UsageError(f"--{given[0]} takes one input")
    if request.plot:
        check_figure(Path(request.plot))
    if request.report:
        check_figure(Path("figure.png"))
    with usage_errors():
        top = os.path.commonpath([os.path.abspath(place) for place in inputs.values()]) if folder else None
        jobs = [(source, output or _default_output(source, folder, top)) for source in inputs]
        if any(target == "-" for _, target in jobs) and request.as_json:
            raise click.UsageError("--json needs an output file, not standard output")
        _check_outputs(jobs, request)
        if folder and not request.dry_run:
            for parent in {Path(target).parent for _, target in jobs}:
                parent.mkdir(parents=True, exist_ok=True)
    return jobs


def check_figure(path: Path) -> None:
    """Raise UsageError or Failure unless figures can be drawn, and written to this file."""
    from wavefilt.plotting import figure

    with usage_errors():
        try:
            figure.file_type(path)
        except ImportError as error:
            raise Failure(str(error), 1) from error


def _default_output(source: str, folder: str | None, top: str | None) -> str:
    """Return a name next to the input, or in ``folder`` as the input is in ``top``."""
    if source == "-":
        if folder is not None:
            raise click.UsageError("standard input has no name; use -o instead of --out-dir")
        return "-"
    path = Path(split(source)[0])
    if path.suffix.lower() in COMPRESSED_ENDINGS:  # compressed files are read, not written
        path = path.with_suffix("")
    place = path.parent if folder is None else Path(folder, os.path.relpath(path.parent, top))
    return str(place / f"{path.stem}{RESULT}{path.suffix}")


def _check_outputs(jobs: list[tuple[str, str]], request: Request) -> None:
    """Raise UsageError or OSError unless all outputs are different files, no inputs, and may be written."""
    stores = {Path(target): Path(split(source)[0]) for source, target in jobs if is_store(split(source)[0])}
    if stores and request.residual:
        stores[Path(request.residual)] = next(iter(stores.values()))
    outputs = [Path(name) for name in (request.plot, request.report, request.residual, request.log) if name]
    for source, target in jobs:
        source, dataset = split(source)
        if dataset is not None:
            refuse_dataset(Path(target))
        if target != "-" and (source == "-" or os.path.lexists(source)):  # a missing input fails when it is read
            outputs.append(Path(target))
    inputs = {_identity(split(source)[0]): source for source, _ in jobs if source != "-"}
    seen, flags = set(), click.get_current_context().params
    for path in outputs:
        if path not in stores and path.exists() and not path.is_file():  # a device, such as /dev/null
            continue
        if same := inputs.get(_identity(path)):
            raise click.UsageError(f"{path} is the input {same}; choose another output")
        if _identity(path) in seen:
            hint = "choose another name for one of them" if len(jobs) == 1 else "name them with -o, one at a time"
            raise click.UsageError(f"two outputs would be the same file, {path}; {hint}")
        seen.add(_identity(path))
    for path in outputs:
        if request.out_dir and not path.parent.is_dir():
            continue  # it will be made
        if path in stores:
            check_folder(stores[path], path, overwrite=request.overwrite)
        elif path.is_dir() and request.output and path == Path(request.output) and "out_dir" in flags:
            raise click.UsageError(f"{path} is a folder; name a file, or use --out-dir {shlex.quote(str(path))}")
        else:
            check_destination(path, overwrite=request.overwrite)


def _identity(path: str | Path) -> object:
    """Return a value that all names of a file share, also if the file does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)  # a loop of links stays as it is, where `Path.resolve` raises RuntimeError
    return found.st_dev, found.st_ino
