"""`wavefilt bench blocks`."""

from __future__ import annotations

from functools import partial

import click

from wavefilt.benchmarks.common.command import finish, progress
from wavefilt.cli.options import SETTINGS, whole

from .options import measuring, options

SAMPLES = click.option("--samples", callback=whole, default="64Mi", help="Length of the trace: 65536, 64Ki, 64Mi.")


@click.command("blocks", context_settings=SETTINGS, epilog="Example: wavefilt bench blocks --device h200 --json b.json")
@options(30, "Five block sizes instead of ten.", SAMPLES)
def command(samples: int, repeats: int, quick: bool, device: str | None, json_path: str | None) -> None:
    """The wavelet kernels with blocks of 32 to 1024 threads: times, SKE estimates, and the cost of choosing by them.

    Without a GPU the estimates alone, for the device that --device names.
    """
    from wavefilt.benchmarks.gpu import blocks as study
    from wavefilt.benchmarks.gpu import blocks_report as report

    steps = partial(progress, describe=lambda step: f"{step[0].transform} {step[0].wavelet}, {step[1]} threads")
    with measuring():
        result = study.run(samples, study.BLOCKS[1::2] if quick else study.BLOCKS, repeats, device, progress=steps)
    finish(result, report.report, json_path)
