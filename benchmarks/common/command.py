"""The writer of results for the commands that measure or estimate."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from wavefilt.benchmarks.common.tables import Report, Row, Sheet

Command = TypeVar("Command", bound=Callable[..., None])
FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Results:
    """Destination of the results of a command: JSON or text to standard output, JSON to a file."""

    as_json: bool = False
    path: Path | None = None
    overwrite: bool = False

    def claim(self) -> None:
        """Raise UsageError unless the file may be written; call it before measuring."""
        from wavefilt.io import check_destination

        if self.path is not None:
            try:
                check_destination(self.path, overwrite=self.overwrite)
            except OSError as error:
                raise click.UsageError(str(error)) from error

    def keep(self, result: object) -> None:
        """Write the results so far, if there is a file."""
        from wavefilt.io import write_atomically

        if self.path is not None:
            write_atomically(self.path, (json.dumps(result, indent=1) + "\n").encode(), overwrite=True)

    def finish(self, result: object, text: Callable[[], str]) -> None:
        """Write the file, and print the results even if that fails."""
        try:
            self.keep(result)
        finally:
            click.echo(json.dumps(result, indent=1) if self.as_json else text())

    def report(self, result: Row, report: Callable[[Row], Report | Sheet]) -> None:
        """Write the file, and print tables and notes as wide as the terminal."""
        self.finish(result, lambda: report(result).text(shutil.get_terminal_size().columns))


def with_output(command: Command) -> Command:
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


def with_results(command: Command) -> Command:
    """Give a command that measures the options of `with_output`, and ``--allow-dirty``."""

    @click.option("--allow-dirty", is_flag=True, help="Save results of a checkout with uncommitted changes.")
    @with_output
    @functools.wraps(command)
    def checked(*arguments: Any, results: Results, allow_dirty: bool, **options: Any) -> None:
        from wavefilt.benchmarks.common.environment import uncommitted

        changed = uncommitted(results.path) if results.path else []
        if changed and not allow_dirty:
            raise click.UsageError(
                f"{results.path}: the checkout has uncommitted changes ({', '.join(changed[:3])}); "
                "commit them, or give --allow-dirty for results that no page may show"
            )
        command(*arguments, results=results, **options)

    return cast(Command, checked)
