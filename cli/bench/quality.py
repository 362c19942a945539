"""`wavefilt bench quality`."""

from __future__ import annotations

from functools import partial

import click

from wavefilt.benchmarks.common.command import finish, progress, save
from wavefilt.cli.options import json_file


@click.command("quality", epilog="Example: wavefilt bench quality --json quality.json")
@click.option("--quick", is_flag=True, help="Few draws of noise: half a minute.")
@json_file
def command(quick: bool, json_path: str | None) -> None:
    """The error of every rule on known signals, beside published results and scikit-image.

    Errors are of fixed draws of noise, so that they are reproducible. What is not installed is left out, and the reason
    given.
    """
    from wavefilt.benchmarks.quality import report, study

    steps = partial(progress, describe=lambda step: f"{step.part}: {step.label}")
    result = study.run(quick, steps, partial(save, json_path))
    finish(result, report.report, json_path)
