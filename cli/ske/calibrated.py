"""`wavefilt ske calibrate, estimate, tune, validate`: the calibrated model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wavefilt.benchmarks.common.command import progress, save
from wavefilt.cli.failure import Failure

UNITS = {"": 1, "k": 1 << 10, "ki": 1 << 10, "m": 1 << 20, "mi": 1 << 20, "g": 1 << 30, "gi": 1 << 30}


def whole(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number with a unit: 65536, 64Ki, 64Mi."""
    if value is None:
        return None
    digits = value.strip().rstrip("kKmMgGiI")
    unit = value.strip()[len(digits) :].lower()
    if not digits.isdecimal() or unit not in UNITS or int(digits) < 1:
        raise click.BadParameter(f"{value!r} is no size such as 65536, 64Ki or 64Mi", ctx, param)
    return int(digits) * UNITS[unit]


FILE: Any = click.Path(dir_okay=False)
DEVICE = "A shipped calibration by name, or a FILE.json of wavefilt ske calibrate. [default: of this GPU]"


def problem_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--json", "json_path", type=FILE, metavar="FILE", help="Save the numbers here."),
        click.option("--device", help=DEVICE),
        click.option("--level", type=click.IntRange(min=1), default=8, show_default=True, help="Levels."),
        click.option("--rows", callback=whole, default="1", show_default=True, help="Traces."),
        click.option("-w", "--wavelet", default="db8", show_default=True, help="A discrete wavelet."),
        click.option("--samples", callback=whole, required=True, help="Of a trace: 65536, 64Ki, 64Mi."),
    ):
        command = option(command)
    return command


@click.command("calibrate", epilog="Example: wavefilt ske calibrate --json mine.json")
@click.option("--json", "json_path", type=FILE, metavar="FILE", required=True, help="Write the calibration here.")
@click.option("--constants", "alone", is_flag=True, help="Microbenchmarks only, no fit of the parameters.")
def calibrate(json_path: str, alone: bool) -> None:
    """Measure this GPU for the calibrated model; takes about a minute, a file that exists is replaced."""
    with messages():
        from wavefilt.benchmarks.ske import calibration, fit, validation

        device = calibration.constants()
        _write(json_path, device.to_json())  # at once, so that it is not lost if the rest fails
        if not alone:
            rows = validation.measure_fit()
            device = fit.fitted(rows, device)
            _write(json_path, device.to_json())
    click.echo(f"{device.name}: {device.measured['seconds']} s, {json_path}")


@click.command("estimate", epilog="Example: wavefilt ske estimate --samples 64Mi -w db8 --device h200")
@problem_options
@click.option("--block", type=click.IntRange(32, 1024), help="Threads of a block. [default: the backend's choice]")
@click.option("--tile", callback=whole, help="Samples of a tile. [default: the backend's choice]")
def estimate(
    samples: int,
    wavelet: str,
    rows: int,
    level: int,
    device: str | None,
    json_path: str | None,
    block: int | None,
    tile: int | None,
) -> None:
    """Predict the time of every launch of a denoise, its parts, and what most of it is spent on; needs no GPU."""
    with messages():
        from wavefilt.benchmarks.ske import estimate as study

        calibration = _calibration(device)
        found = study.estimates(study.problem(wavelet, samples, rows, level, block, tile), calibration)
        save(json_path, study.facts(found))
        click.echo(study.table(found, calibration))


@click.command("tune", epilog="Example: wavefilt ske tune --samples 64Mi -w db8 --device h200")
@problem_options
@click.option("--measure/--no-measure", default=None,
              help="Measure them on this GPU as well; takes a minute. [default: where it is the device]")  # fmt: skip
def tune(
    samples: int, wavelet: str, rows: int, level: int, device: str | None, json_path: str | None, measure: bool | None
) -> None:
    """Rank threads of a block and samples of a tile by the predicted time of a denoise, and by the measured one."""
    with messages():
        from wavefilt.benchmarks.ske import estimate as study

        calibration = _calibration(device)
        found = study.ranked(study.problem(wavelet, samples, rows, level), calibration)
        if _here(calibration, measure):
            steps = progress(found, lambda one: f"{one.candidate.threads} threads, {one.candidate.tiles_of} samples")
            found = [replace(one, measured=study.measured(wavelet, one.candidate)) for one in steps]
        save(json_path, study.ranking(found))
        click.echo(study.tuning(found, calibration))


@click.command("validate")
@click.option("--device", help=DEVICE)
@click.option("--rows", "rows_path", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="Rows measured before; else they are measured on this GPU.")  # fmt: skip
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Save the measured rows here.")
@click.option("--quick", is_flag=True, help="A few kernels only.")
@click.option("--every", is_flag=True, help="Print every row.")
def validate(device: str | None, rows_path: str | None, json_path: str | None, quick: bool, every: bool) -> None:
    """Compare the model with measured times of kernels that it was not fitted to."""
    with messages():
        from wavefilt.benchmarks.ske import fit
        from wavefilt.benchmarks.ske import validation as study

        if rows_path is not None:
            result = json.loads(Path(rows_path).read_text())
        else:
            result = study.measure(study.this_device(), Path(json_path) if json_path else None, quick)
        calibration = _calibration(device)
        calibration.require(result["device"]["name"])
        click.echo(study.report(result, fit.fitted(result["rows"], calibration), every).text())


COMMANDS = (calibrate, estimate, tune, validate)


@contextmanager
def messages() -> Iterator[None]:
    """Errors of the user as such, and exit code 5 where a GPU is missing."""
    from wavefilt.errors import BackendUnavailable

    try:
        yield
    except BackendUnavailable as error:
        raise Failure(str(error), 5) from error
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from error


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


def _write(path: str, text: str) -> None:
    from wavefilt.io import write_atomically

    write_atomically(Path(path), text.encode(), overwrite=True)
