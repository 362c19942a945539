"""What the commands that measure share: a progress bar, and where results go: tables, JSON, files."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from wavefilt.benchmarks.common.tables import Report, Row, Sheet
from wavefilt.errors import for_command

Step = TypeVar("Step")
Command = TypeVar("Command", bound=Callable[..., None])
FILE = click.Path(dir_okay=False, path_type=Path)


def progress(steps: Sequence[Step], describe: Callable[[Step], str]) -> Iterator[Step]:
    """The steps of a study, with a bar on standard error where that is a terminal."""
    from tqdm import tqdm

    with tqdm(steps, leave=False, disable=not sys.stderr.isatty()) as bar:
        for step in bar:
            bar.set_postfix_str(describe(step))
            yield step


@dataclass(frozen=True)
class Results:
    """Where the results of a command go: JSON or text to standard output, JSON to a file."""

    as_json: bool = False
    path: Path | None = None
    overwrite: bool = False

    def claim(self, *others: Path | str | None) -> None:
        """Raise UsageError unless this file and the others may be written; called before anything is measured."""
        from wavefilt.io import check_destination

        paths = [Path(path) for path in (self.path, *others) if path is not None]
        if len({os.path.realpath(path) for path in paths}) < len(paths):
            raise click.UsageError("two outputs would be the same file")
        for path in paths:
            try:
                check_destination(path, overwrite=self.overwrite)
            except OSError as error:
                raise click.UsageError(for_command(error)) from error

    def keep(self, result: object) -> None:
        """Write the file, if there is one, with the results so far."""
        save(self.path, result)

    def finish(self, result: object, text: Callable[[], str]) -> None:
        """Write the file, and print the results."""
        self.keep(result)
        click.echo(json.dumps(result, indent=1) if self.as_json else text())

    def report(self, result: Row, report: Callable[[Row], Report | Sheet]) -> None:
        """`finish` with tables and notes, as wide as the terminal."""
        self.finish(result, lambda: report(result).text(shutil.get_terminal_size().columns))


def with_results(command: Command) -> Command:
    """Give a command ``--json``, ``--output`` and ``--overwrite``; it takes them as ``results``."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
    @click.option("-o", "--output", type=FILE, metavar="FILE", help="Save the results as JSON.")
    @click.option("--overwrite", is_flag=True, help="Replace existing files.")
    @functools.wraps(command)
    def claimed(*arguments: Any, as_json: bool, output: Path | None, overwrite: bool, **options: Any) -> None:
        results = Results(as_json, output, overwrite)
        results.claim()
        command(*arguments, results=results, **options)

    return cast(Command, claimed)


def main(run: Callable[[bool], Row], report: Callable[[Row], Report | Sheet]) -> None:
    """``python -m MODULE [--quick] [-o FILE]``, for a study that is no command of `wavefilt bench`."""

    @click.command()
    @click.option("--quick", is_flag=True, help="Small sizes and few repeats, where the study has such.")
    @with_results
    def command(quick: bool, results: Results) -> None:
        results.report(run(quick), report)

    command()


def save(path: Path | str | None, result: object) -> None:
    """Write a result as JSON if there is a path; a file that exists is replaced."""
    if path is not None:
        from wavefilt.io import write_atomically

        write_atomically(Path(path), (json.dumps(result, indent=1) + "\n").encode(), overwrite=True)
