"""`wavefilt ske`: estimates of CUDA kernel times; only `calibrate` needs a GPU."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from wavefilt.benchmarks.common.command import FILE, Results, with_output, with_results
from wavefilt.cli import usage_errors
from wavefilt.cli.bench import DEVICE
from wavefilt.cli.options import COUNT, SIZE, WAVELET, Text
from wavefilt.ske.occupancy import CAPABILITIES


@click.group("ske")
def ske() -> None:
    """Estimate CUDA kernels before they run (the SKE model). No GPU is needed, except to calibrate."""


@ske.command("occupancy", epilog="Example: wavefilt ske occupancy --device 9.0 --threads 256")
@click.option(
    "--device",
    type=Text(names=CAPABILITIES),
    required=True,
    help="A compute capability, 7.0 to 12.0, or G80, GTX280, GTX480, GTX670.",
)
@click.option("--threads", type=int, required=True, help="Threads per block.")
@click.option("--registers", type=int, default=0, help="Registers per thread; 0 sets no limit.")
@click.option("--shared", type=int, default=0, help="Bytes of shared memory per block.")
@with_output
def occupancy(device: str, threads: int, registers: int, shared: int, results: Results) -> None:
    """Count the resident blocks of a multiprocessor.

    Prints blocks and warps, the blocks that each resource allows, and the resource that limits them.
    """
    from wavefilt import ske

    with usage_errors():
        found = ske.occupancy(device, threads, registers, shared)
    most = CAPABILITIES[device].warps
    lines = [f"{found.blocks} blocks, {found.warps} of {most} warps ({found.share:.0%}), limited by {found.limit}"]
    lines += [f"  {name:<18}{blocks:>6} blocks" for name, blocks in found.limits.items()]
    results.finish(asdict(found), lambda: "\n".join(lines))


@ske.command("calibrate", epilog="Example: wavefilt ske calibrate -o mine.json")
@click.option("--rows", type=FILE, help="Save the measured launches of the fit as JSON.")
@with_results
def calibrate(rows: Path | None, results: Results) -> None:
    """Measure this GPU for the calibrated model, in about three minutes; pass the file to --device."""
    if results.path is None and not results.as_json:
        raise click.UsageError("name a file for the calibration with -o, or print it with --json")
    with usage_errors():
        from wavefilt.benchmarks.common.environment import result
        from wavefilt.benchmarks.ske import calibration, fit, measure

        device = calibration.constants()
        results.keep(json.loads(device.to_json()))  # in case the fit fails
        found = list(measure.rows(fit.fit_cases(), repeats=15))
        device = fit.fitted(found, device)
        facts = {"name": device.name, "multiprocessors": device.multiprocessors}
        replace(results, path=rows).keep(result("ske_fit", device=facts, rows=found))
    fitted = f"fitted to {device.fit['rows']} of {len(found)} launches"
    results.finish(json.loads(device.to_json()), lambda: f"{device.name}: {fitted}, {results.path}")


@ske.command("estimate", epilog="Example: wavefilt ske estimate --samples 64Mi")
@click.option("--samples", type=SIZE, required=True, help="Samples per trace: 65536, 64Ki, 64Mi.")
@click.option("-w", "--wavelet", type=WAVELET, default="db8", help="A discrete wavelet.")
@click.option("--rows", type=SIZE, default="1", help="Traces.")
@click.option("--level", type=COUNT, default=8, help="Levels.")
@click.option("--block", type=click.IntRange(32, 1024), help="Threads per block. [default: the backend's choice]")
@click.option("--tile", type=SIZE, help="Samples per tile. [default: the backend's choice]")
@DEVICE
@with_output
def estimate(device: str | None, results: Results, **problem: Any) -> None:
    """Estimate the time of every kernel launch of a denoising run, its parts, and the occupancy."""
    from wavefilt.benchmarks.common import columns
    from wavefilt.benchmarks.ske import estimate as study

    with usage_errors():
        here = columns.gpu() if device is None else None
        calibration = columns.calibration(device, here)
        launches = study.estimates(study.problem(**problem), calibration)
    if device is None and here is None:
        click.echo(f"No GPU here: for {calibration.name}; --device takes others.", err=True)
    results.finish(study.facts(launches, calibration), lambda: study.table(launches, calibration))
