"""What the commands that measure share: a progress bar, their tables, their JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import click

from wavefilt.benchmarks.common.tables import Report, Row, Sheet

Step = TypeVar("Step")


def progress(steps: Sequence[Step], describe: Callable[[Step], str]) -> Iterator[Step]:
    """The steps of a study, with a bar on standard error where that is a terminal."""
    from tqdm import tqdm

    with tqdm(steps, leave=False, disable=not sys.stderr.isatty()) as bar:
        for step in bar:
            bar.set_postfix_str(describe(step))
            yield step


def finish(result: Row, report: Callable[[Row], Report | Sheet], json_path: str | None) -> None:
    """Print tables and notes, as wide as the terminal; save the numbers where asked."""
    click.echo(report(result).text(shutil.get_terminal_size().columns))
    save(json_path, result)


def main(run: Callable[[bool], Row], report: Callable[[Row], Report | Sheet]) -> None:
    """``python -m MODULE [--quick] [--json FILE]``, for a study that is no command of `wavefilt bench`."""

    @click.command()
    @click.option("--quick", is_flag=True, help="Small sizes and few repeats, where the study has such.")
    @click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
    def command(quick: bool, json_path: str | None) -> None:
        finish(run(quick), report, json_path)

    command()


def save(json_path: str | None, result: object) -> None:
    """Write a result as JSON if there is a path; a file that exists is replaced."""
    if json_path is not None:
        from wavefilt.io import write_atomically

        write_atomically(Path(json_path), (json.dumps(result, indent=1) + "\n").encode(), overwrite=True)
