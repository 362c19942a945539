"""`wavefilt ske calibrate, estimate, tune, validate`: the calibrated model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wavefilt.benchmarks.common.command import FILE, Results, progress, with_results
from wavefilt.cli.failure import usage_errors
from wavefilt.cli.options import COUNT, DEVICE, SIZE, WAVELET, add

EXISTING = click.Path(exists=True, dir_okay=False)
PROBLEM = [
    click.option("--samples", type=SIZE, required=True, help="Samples of a trace: 65536, 64Ki, 64Mi."),
    click.option("-w", "--wavelet", type=WAVELET, default="db8", help="A discrete wavelet."),
    click.option("--rows", type=SIZE, default="1", help="Traces."),
    click.option("--level", type=COUNT, default=8, help="Levels."),
    DEVICE,
    with_results,
]
"""What is to be denoised, and on which device."""


@click.command("calibrate", epilog="Example: wavefilt ske calibrate -o mine.json")
@click.option("--constants", "alone", is_flag=True, help="Microbenchmarks only, no fit of the parameters.")
@with_results
def calibrate(alone: bool, results: Results) -> None:
    """Measure this GPU for the calibrated model; takes about a minute. The output is what --device takes."""
    if results.path is None and not results.as_json:
        raise click.UsageError("name a file for the calibration with -o, or print it with --json")
    with usage_errors():
        from wavefilt.benchmarks.ske import calibration, fit, validation

        device = calibration.constants()
        results.keep(json.loads(device.to_json()))  # at once, so that it is not lost if the rest fails
        if not alone:
            device = fit.fitted(validation.measure_fit(), device)
    results.finish(
        json.loads(device.to_json()), lambda: f"{device.name}: {device.measured['seconds']} s, {results.path}"
    )


@click.command("estimate", epilog="Example: wavefilt ske estimate --samples 64Mi")
@add(*PROBLEM)
@click.option("--block", type=click.IntRange(32, 1024), help="Threads of a block. [default: the backend's choice]")
@click.option("--tile", type=SIZE, help="Samples of a tile. [default: the backend's choice]")
def estimate(device: str | None, results: Results, **problem: Any) -> None:
    """Predict the time of every kernel launch of a denoise, and its largest part; needs no GPU."""
    with usage_errors():
        from wavefilt.benchmarks.ske import estimate as study

        calibration = _calibration(device)
        found = study.estimates(study.problem(**problem), calibration)
    results.finish(study.facts(found), lambda: study.table(found, calibration))


@click.command("tune", epilog="Example: wavefilt ske tune --samples 64Mi")
@add(*PROBLEM)
@click.option("--measure/--no-measure", default=None, help="Measure as well, a minute. [default: if this GPU is meant]")
def tune(device: str | None, measure: bool | None, results: Results, **problem: Any) -> None:
    """Rank threads of a block and samples of a tile by the predicted time of a denoise, and by the measured one."""
    with usage_errors():
        from wavefilt.benchmarks.ske import estimate as study

        calibration = _calibration(device)
        found = study.ranked(study.problem(**problem), calibration)
        if _here(calibration, measure):
            steps = progress(found, lambda one: f"{one.candidate.threads} threads, {one.candidate.tiles_of} samples")
            found = [replace(one, measured=study.measured(problem["wavelet"], one.candidate)) for one in steps]
    results.finish(study.ranking(found), lambda: study.tuning(found, calibration))


@click.command("validate")
@DEVICE
@click.option("--rows", "rows_path", type=EXISTING, metavar="FILE", help="Rows measured before, not now on this GPU.")
@click.option("--quick", is_flag=True, help="A few kernels only.")
@click.option("--every", is_flag=True, help="Print every row.")
@click.option("--calibration", "fitted", type=FILE, metavar="FILE", help="Save the calibration fitted to these rows.")
@with_results
def validate(
    device: str | None, rows_path: str | None, quick: bool, every: bool, fitted: Path | None, results: Results
) -> None:
    """Compare the model with measured times of kernels that it was not fitted to."""
    results.claim(fitted)
    with usage_errors():
        from wavefilt.benchmarks.ske import fit
        from wavefilt.benchmarks.ske import validation as study

        if rows_path is not None:
            result = json.loads(Path(rows_path).read_text())
        else:
            result = study.measure(study.this_device(), results.path, quick)
        calibration = _calibration(device)
        calibration.require(result["device"]["name"])
        calibration = fit.fitted(result["rows"], calibration)
        if fitted:
            fitted.write_text(calibration.to_json())
        results.finish(result, lambda: study.report(result, calibration, every).text())


COMMANDS = (calibrate, estimate, tune, validate)


def _calibration(device: str | None) -> Any:
    """The one asked for, or the shipped one of this GPU."""
    from wavefilt.ske import calibration

    if device is not None:
        return calibration.load(device)
    from wavefilt.benchmarks.ske.calibration import Device

    return calibration.of(Device.current().name)


def _here(calibration: Any, wanted: bool | None) -> bool:
    """Whether to measure on this machine's GPU; by default if it is the calibrated one.

    BackendUnavailable or WrongDevice if it is wanted and not here.
    """
    from wavefilt.errors import BackendUnavailable
    from wavefilt.ske.calibration import WrongDevice

    if wanted is False:
        return False
    try:
        from wavefilt.benchmarks.ske.calibration import Device

        calibration.require(Device.current().name)
    except (BackendUnavailable, WrongDevice):
        if wanted:
            raise
        return False
    return True
