"""What the commands that measure share: a bar while they do, their table, their JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click


def progress(steps: Sequence[Any], describe: Callable[[Any], str]) -> Iterator[Any]:
    """The steps of a study, with a bar on standard error where that is a terminal."""
    from tqdm import tqdm

    with tqdm(steps, leave=False, disable=not sys.stderr.isatty()) as bar:
        for step in bar:
            bar.set_postfix_str(describe(step))
            yield step


def finish(result: dict[str, Any], table: Callable[[dict[str, Any]], str], json_path: str | None) -> None:
    """Print the table; save the numbers where asked."""
    click.echo(table(result))
    save(json_path, result)


def alone(run: Callable[[bool], Any], table: Callable[[Any], str]) -> None:
    """``[--quick] [--json FILE]`` of a study that is a module, and no command of `wavefilt bench`."""
    arguments = sys.argv[1:]
    json_path = arguments[arguments.index("--json") + 1] if "--json" in arguments else None
    finish(run("--quick" in arguments), table, json_path)


def save(json_path: str | None, result: Any) -> None:
    """Write a result as JSON if there is a path; a file that exists is replaced."""
    if json_path is not None:
        from wavefilt.io import write_atomically

        write_atomically(Path(json_path), (json.dumps(result, indent=1) + "\n").encode(), overwrite=True)
