"""`wavefilt bench blocks`."""

from __future__ import annotations

from functools import partial

import click

from wavefilt.benchmarks.common.command import finish, progress
from wavefilt.cli.failure import Failure
from wavefilt.cli.ske.calibrated import DEVICE, messages, whole


@click.command("blocks", epilog="Example: wavefilt bench blocks --device h200 --json blocks.json")
@click.option("--samples", callback=whole, default="64Mi", show_default=True, help="Of the trace: 65536, 64Ki, 64Mi.")
@click.option("--repeats", type=click.IntRange(min=1), default=30, show_default=True, help="Graphs of each block.")
@click.option("--quick", is_flag=True, help="Five block sizes instead of ten.")
@click.option("--device", help=f"For the estimates: {DEVICE}")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
def command(samples: int, repeats: int, quick: bool, device: str | None, json_path: str | None) -> None:
    """The wavelet kernels with blocks of 32 to 1024 threads: times, SKE estimates, and what choosing by them costs.

    Without a GPU the estimates alone, for the device that --device names.
    """
    from wavefilt.benchmarks.common.implementation import Mismatch
    from wavefilt.benchmarks.gpu import blocks as study
    from wavefilt.benchmarks.gpu import blocks_report as report

    steps = partial(progress, describe=lambda step: f"{step[0].transform} {step[0].wavelet}, {step[1]} threads")
    try:
        with messages():
            result = study.run(samples, study.BLOCKS[1::2] if quick else study.BLOCKS, repeats, device, progress=steps)
    except Mismatch as error:
        raise Failure(str(error), 1) from error
    finish(result, report.report, json_path)
