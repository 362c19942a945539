"""`wavefilt ske`: the model of a kernel's time, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from wavefilt.vocabulary import HIDINGS

from .calibrated import COMMANDS


@click.group("ske")
def command() -> None:
    """Estimate CUDA kernels before they run (the SKE model); but for calibrate and validate no GPU is needed."""


for calibrated in COMMANDS:
    command.add_command(calibrated)


@command.command("occupancy", epilog="Example: wavefilt ske occupancy --device 9.0 --threads 256 --registers 40")
@click.option("--device", required=True, help="A compute capability, 7.0 to 10.0, or G80, GTX280, GTX480, GTX670.")
@click.option("--threads", type=int, required=True, help="Threads of a block.")
@click.option("--registers", type=int, default=0, show_default=True, help="Registers of a thread; 0 limits nothing.")
@click.option("--shared", type=int, default=0, show_default=True, help="Bytes of shared memory of a block.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def occupancy(device: str, threads: int, registers: int, shared: int, as_json: bool) -> None:
    """Count the active blocks of a multiprocessor.

    Prints them, their warps, the blocks each resource has room for, and the name of the limit that binds.
    """
    from dataclasses import asdict

    from wavefilt import ske

    try:
        found = ske.occupancy(device, threads, registers, shared)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    most = ske.CAPABILITIES[device].warps
    click.echo(f"{found.blocks} blocks, {found.warps} of {most} warps ({found.share:.0%}), limited by {found.limit}")
    for name, blocks in found.limits.items():
        click.echo(f"  {name:<18}{blocks:>6} blocks")


@command.command("reproduce")
@click.option("--hiding", type=click.Choice(HIDINGS), default="product", show_default=True,
              help="How warps and blocks hide time: on all of it, or each on its own part.")  # fmt: skip
@click.option("--correction", type=click.Choice(["1", "2"]), help="One of the paper's corrections. [default: none]")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the numbers here.")
@click.option("--plot", "plot_path", type=click.Path(dir_okay=False), metavar="FILE", help="Draw them (png, pdf, svg).")
def reproduce(hiding: Any, correction: str | None, json_path: str | None, plot_path: str | None) -> None:
    """Compute the paper's examples again.

    Three kernels on a GTX 670 over the shapes of their blocks, which of the paper's claims hold, and the threads that
    shared memory leaves to a fourth. Files that exist are replaced.
    """
    from wavefilt.io import check_destination, write_atomically
    from wavefilt.ske import figure, reproduction

    number: Any = None if correction is None else int(correction)
    result = reproduction.reproduce(hiding, number)
    files: dict[Path, bytes] = {}
    try:
        if json_path is not None:
            files[Path(json_path)] = (json.dumps(reproduction.facts(result), indent=1) + "\n").encode()
        if plot_path is not None:
            files[Path(plot_path)] = figure.to_file(result, plot_path)
        for path in files:  # before any is written
            check_destination(path, overwrite=True)
    except (ValueError, ImportError, OSError) as error:
        raise click.UsageError(str(error)) from error
    for path, data in files.items():
        write_atomically(path, data, overwrite=True)
    click.echo(reproduction.table(result))
