"""`wavefilt bench`: the measurements of `benchmarks/`, each a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.group("bench")
def command() -> None:
    """Measure this machine: each study prints a table and can save its JSON."""


@command.command("cpu")
@click.option("--quick", is_flag=True, help="Small sizes and few repeats.")
@click.option("--repeats", type=click.IntRange(min=1), default=7, show_default=True, help="Runs of each case.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
def cpu(quick: bool, repeats: int, json_path: str | None) -> None:
    """The numba backend against PyWavelets' own composition, side by side in one run."""
    from wavefilt.benchmarks import cpu as study

    _finish(study.run(quick=quick, repeats=repeats), study.table, json_path)


def _finish(result: dict[str, Any], table: Any, json_path: str | None) -> None:
    """Print the table; save the numbers where asked."""
    click.echo(table(result))
    if json_path is not None:
        from wavefilt.io import write_atomically

        write_atomically(Path(json_path), (json.dumps(result, indent=1) + "\n").encode(), overwrite=True)
