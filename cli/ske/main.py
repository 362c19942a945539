"""`wavefilt ske`: the model of a kernel's time, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from wavefilt.benchmarks.common.command import FILE, Results, with_results
from wavefilt.cli.failure import usage_errors
from wavefilt.cli.options import Text, as_json
from wavefilt.ske.capability import CAPABILITIES
from wavefilt.vocabulary import HIDINGS, Hiding

from .calibrated import COMMANDS

CORRECTIONS: dict[str | None, Literal[1, 2] | None] = {None: None, "1": 1, "2": 2}
DEVICES = Text(names=CAPABILITIES)
HIDING = "Latency hiding by warps and blocks: on all of the time, or each on its own part."


@click.group("ske")
def command() -> None:
    """Estimate CUDA kernels before they run (the SKE model); but for calibrate and validate no GPU is needed."""


for calibrated in COMMANDS:
    command.add_command(calibrated)


@command.command("occupancy", epilog="Example: wavefilt ske occupancy --device 9.0 --threads 256")
@click.option(
    "--device", type=DEVICES, required=True, help="A compute capability, 7.0 to 10.0, or G80, GTX280, GTX480, GTX670."
)
@click.option("--threads", type=int, required=True, help="Threads of a block.")
@click.option("--registers", type=int, default=0, help="Registers of a thread; 0 limits nothing.")
@click.option("--shared", type=int, default=0, help="Bytes of shared memory of a block.")
@as_json
def occupancy(device: str, threads: int, registers: int, shared: int, as_json: bool) -> None:
    """Count the active blocks of a multiprocessor.

    Prints them, their warps, the blocks each resource has room for, and the name of the limit that binds.
    """
    from dataclasses import asdict

    from wavefilt import ske

    with usage_errors():
        found = ske.occupancy(device, threads, registers, shared)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    most = ske.CAPABILITIES[device].warps
    click.echo(f"{found.blocks} blocks, {found.warps} of {most} warps ({found.share:.0%}), limited by {found.limit}")
    for name, blocks in found.limits.items():
        click.echo(f"  {name:<18}{blocks:>6} blocks")


@command.command("reproduce")
@click.option("--hiding", type=click.Choice(HIDINGS), default="product", help=HIDING)
@click.option("--correction", type=click.Choice(["1", "2"]), help="One of the paper's corrections. [default: none]")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw them (png, pdf, svg).")
@with_results
def reproduce(hiding: Hiding, correction: str | None, plot: Path | None, results: Results) -> None:
    """Compute the paper's examples again.

    Three kernels on a GTX 670 over the shapes of their blocks, which of the paper's claims hold, and the threads that
    shared memory leaves to a fourth.
    """
    from wavefilt.io import write_atomically
    from wavefilt.ske import figure, reproduction

    result = reproduction.reproduce(hiding, CORRECTIONS[correction])
    results.claim(plot)
    if plot is not None:
        with usage_errors():
            picture = figure.to_file(result, str(plot))
        write_atomically(plot, picture, overwrite=results.overwrite)
    results.finish(reproduction.facts(result), lambda: reproduction.table(result))
