"""`wavefilt bench`: the measurements of `benchmarks/`, each a command."""

from __future__ import annotations

import click

from wavefilt.benchmarks.common.command import finish
from wavefilt.cli.options import COUNT, SETTINGS, add, json_file

from . import blocks, laplace1d, laplace2d, quality, report, scaling
from .options import measuring


@click.group("bench")
def command() -> None:
    """Measure this machine: each study prints a table and can save its JSON."""


for study in (blocks, laplace1d, laplace2d, quality, report, scaling):
    command.add_command(study.command)


@command.command("cpu", context_settings=SETTINGS)
@click.option("--quick", is_flag=True, help="Small sizes and few repeats.")
@add(click.option("--repeats", type=COUNT, default=7, help="Runs of each case."), json_file)
def cpu(quick: bool, repeats: int, json_path: str | None) -> None:
    """The numba backend against the same steps written with PyWavelets, side by side in one run."""
    from wavefilt.benchmarks.cpu import denoise

    finish(denoise.run(quick=quick, repeats=repeats), denoise.report, json_path)


@command.command("cuda", context_settings=SETTINGS)
@click.option("--quick", is_flag=True, help="Sizes divided by 16, few repeats, no other libraries.")
@add(click.option("--repeats", type=COUNT, default=25, help="Runs of each case."), json_file)
def cuda(quick: bool, repeats: int, json_path: str | None) -> None:
    """The GPU backend: whole denoises, kernel by kernel, and against other libraries, with the copy bandwidth."""
    from wavefilt.benchmarks.gpu import denoise

    with measuring():
        result = denoise.run(min(repeats, 5), 16, False) if quick else denoise.run(repeats)
    finish(result, denoise.report, json_path)
