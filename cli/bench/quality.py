"""`wavefilt bench quality`."""

from __future__ import annotations

from functools import partial

import click

from wavefilt.benchmarks.common.command import finish, progress, save


@click.command("quality", epilog="Example: wavefilt bench quality --json quality.json")
@click.option("--quick", is_flag=True, help="Few draws of noise: half a minute.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
def command(quick: bool, json_path: str | None) -> None:
    """How near every rule comes to signals that are known, beside published results and scikit-image.

    Errors are of fixed draws of noise, so they come out the same again. What is not installed is left out, and the
    reason given.
    """
    from wavefilt.benchmarks.quality import report, study

    steps = partial(progress, describe=lambda step: f"{step.part}: {step.label}")
    result = study.run(quick, steps, partial(save, json_path))
    finish(result, report.report, json_path)
