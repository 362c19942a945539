"""`wavefilt bench laplace1d`."""

from __future__ import annotations

from functools import partial

import click

from wavefilt.benchmarks.common.command import finish, progress
from wavefilt.cli.options import SETTINGS, whole

from .options import measuring, options

SAMPLES = click.option("--samples", callback=whole, default="1Mi", help="Length of the row: 65536, 64Ki, 64Mi.")


@click.command("laplace1d", context_settings=SETTINGS, epilog="Example: wavefilt bench laplace1d --device h200")
@options(503, "A tenth of a second for each at most: 5 seconds.", SAMPLES)
def command(samples: int, repeats: int, quick: bool, device: str | None, json_path: str | None) -> None:
    """The 1-D Laplace operator: host loops, and GPU kernels with different access patterns, with SKE estimates.

    Outputs are compared before they are timed. What cannot run here is left out, and the reason given.
    """
    from wavefilt.benchmarks.laplace1d import study

    budget = study.QUICK_BUDGET if quick else study.BUDGET
    with measuring():
        result = study.run(samples, repeats, budget, device, partial(progress, describe=lambda one: one.label))
    finish(result, study.report, json_path)
