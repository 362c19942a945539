"""What the commands of `wavefilt bench` have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from wavefilt.cli.failure import Failure, usage_errors
from wavefilt.cli.options import COUNT, DEVICE, Command, add, json_file


def options(repeats: int, quick: str, *more: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """``--repeats``, ``--quick``, ``--device``, those of the study itself, and ``--json``."""
    runs = click.option("--repeats", type=COUNT, default=repeats, help="Runs of each case, at most.")
    return add(*more, runs, click.option("--quick", is_flag=True, help=quick), DEVICE, json_file)


@contextmanager
def measuring() -> Iterator[None]:
    """Errors as messages with exit codes: 1 for outputs that disagree, 2 for wrong usage, 5 without a GPU."""
    from wavefilt.benchmarks.common.implementation import Mismatch

    with usage_errors():
        try:
            yield
        except Mismatch as error:
            raise Failure(str(error), 1) from error
