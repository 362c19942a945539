"""`wavefilt bench laplace1d`."""

from __future__ import annotations

from functools import partial

import click

from wavefilt.benchmarks.common.command import finish, progress
from wavefilt.cli.failure import Failure
from wavefilt.cli.ske.calibrated import DEVICE, messages, whole


@click.command("laplace1d", epilog="Example: wavefilt bench laplace1d --device h200 --json laplace1d.json")
@click.option("--samples", callback=whole, default="1Mi", show_default=True, help="Of the row: 65536, 64Ki, 64Mi.")
@click.option("--repeats", type=click.IntRange(min=1), default=503, show_default=True, help="Most runs of each.")
@click.option("--quick", is_flag=True, help="A tenth of a second for each at most: 5 seconds.")
@click.option("--device", help=f"For the estimates: {DEVICE}")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
def command(samples: int, repeats: int, quick: bool, device: str | None, json_path: str | None) -> None:
    """The 1-D Laplace operator: host loops, and GPU kernels that differ in how they read, with SKE estimates.

    Outputs are compared before they are timed. What cannot run here is left out, and the reason given.
    """
    from wavefilt.benchmarks.common.implementation import Mismatch
    from wavefilt.benchmarks.laplace1d import report, study

    budget = study.QUICK_BUDGET if quick else study.BUDGET
    steps = partial(progress, describe=lambda one: one.label)
    try:
        with messages():
            result = study.run(samples, repeats, budget, device, steps)
    except Mismatch as error:
        raise Failure(str(error), 1) from error
    finish(result, report.report, json_path)
