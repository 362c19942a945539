"""`wavefilt ske`: the model of a kernel's time; only calibrate, validate and tune need a GPU, where they measure."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from wavefilt.benchmarks.common.command import FILE, Results, progress, with_results
from wavefilt.cli.failure import usage_errors
from wavefilt.cli.options import COUNT, DEVICE, SIZE, WAVELET, Text, add, as_json
from wavefilt.ske.occupancy import CAPABILITIES
from wavefilt.vocabulary import HIDINGS, Hiding

if TYPE_CHECKING:
    from wavefilt.ske import Calibration

CORRECTIONS: dict[str | None, Literal[1, 2] | None] = {None: None, "1": 1, "2": 2}
DEVICES = Text(names=CAPABILITIES)
HIDING = "Latency hiding by warps and blocks: on all of the time, or each on its own part."

KERNELS = ("forward", "inverse", "energy", "median", "denoise")
"""What `ske explain` knows: the keys of `work_counts.statistics.OF`, which takes long to load."""
EXISTING = click.Path(exists=True, dir_okay=False)
PROBLEM: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
    click.option("--samples", type=SIZE, required=True, help="Samples of a trace: 65536, 64Ki, 64Mi."),
    click.option("-w", "--wavelet", type=WAVELET, default="db8", help="A discrete wavelet."),
    click.option("--rows", type=SIZE, default="1", help="Traces."),
    DEVICE,
    with_results,
]
"""What is to be denoised, and on which device."""
LEVELS = click.option("--level", type=COUNT, default=8, help="Levels.")


@click.group("ske")
def command() -> None:
    """Estimate CUDA kernels before they run (the SKE model); but for calibrate and validate no GPU is needed."""


@command.command("occupancy", epilog="Example: wavefilt ske occupancy --device 9.0 --threads 256")
@click.option(
    "--device", type=DEVICES, required=True, help="A compute capability, 7.0 to 12.0, or G80, GTX280, GTX480, GTX670."
)
@click.option("--threads", type=int, required=True, help="Threads of a block.")
@click.option("--registers", type=int, default=0, help="Registers of a thread; 0 limits nothing.")
@click.option("--shared", type=int, default=0, help="Bytes of shared memory of a block.")
@as_json
def occupancy(device: str, threads: int, registers: int, shared: int, as_json: bool) -> None:
    """Count the active blocks of a multiprocessor.

    Prints them, their warps, the blocks each resource has room for, and the name of the limit that binds.
    """
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


@command.command("calibrate", epilog="Example: wavefilt ske calibrate -o mine.json")
@click.option("--constants", "alone", is_flag=True, help="Microbenchmarks only, no fit of the parameters.")
@with_results
def calibrate(alone: bool, results: Results) -> None:
    """Measure this GPU for the calibrated model; takes some minutes. The output is what --device takes."""
    if results.path is None and not results.as_json:
        raise click.UsageError("name a file for the calibration with -o, or print it with --json")
    with usage_errors():
        from wavefilt.benchmarks.ske import calibration, cases, fit, measure, regimes

        tiles = list(regimes.rows(names=("streams", "ladder")))
        device = fit.with_tiles(calibration.constants(), tiles)
        results.keep(json.loads(device.to_json()))  # at once, so that it is not lost if the rest fails
        if not alone:
            device = fit.fitted(measure.rows(cases.fit_cases(), repeats=15), device, tiles)
    results.finish(
        json.loads(device.to_json()), lambda: f"{device.name}: {device.measured['seconds']} s, {results.path}"
    )


@command.command("estimate", epilog="Example: wavefilt ske estimate --samples 64Mi")
@add(*PROBLEM)
@LEVELS
@click.option("--block", type=click.IntRange(32, 1024), help="Threads of a block. [default: the backend's choice]")
@click.option("--tile", type=SIZE, help="Samples of a tile. [default: the backend's choice]")
def estimate(device: str | None, results: Results, **problem: Any) -> None:
    """Predict the time of every kernel launch of a denoise, and its largest part; needs no GPU."""
    with usage_errors():
        from wavefilt.benchmarks.ske import estimate as study

        calibration = _calibration(device)
        found = study.estimates(study.problem(**problem), calibration)
    results.finish(study.facts(found, calibration), lambda: study.table(found, calibration))


@command.command("explain", epilog="Example: wavefilt ske explain denoise --samples 64Mi --plot denoise.png")
@click.argument("kernel", type=click.Choice(KERNELS))
@add(*PROBLEM)
@click.option("--block", type=click.IntRange(32, 1024), help="Threads of a block. [default: the backend's choice]")
@click.option("--tile", type=SIZE, help="Samples of a tile. [default: the backend's choice]")
@click.option(
    "--validation", "measured", type=EXISTING, metavar="FILE", help="Take the measured time from `ske validate`."
)
@click.option("--measure/--no-measure", default=None, help="Measure as well. [default: if this GPU is meant]")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw it (png, pdf, svg).")
def explain(
    kernel: str,
    device: str | None,
    measured: str | None,
    measure: bool | None,
    plot: Path | None,
    results: Results,
    **problem: Any,
) -> None:
    """Divide the predicted time of a kernel into its parts, beside the measured one.

    KERNEL is forward or inverse, the launch of the finest of 8 levels, or energy, median or denoise, all launches.
    """
    from wavefilt.io import write_atomically

    results.claim(plot)
    with usage_errors():
        from wavefilt.benchmarks.ske import estimate as study
        from wavefilt.benchmarks.ske import explanation

        calibration = _calibration(device)
        rows = None
        if measured is not None:
            known = json.loads(Path(measured).read_text())
            calibration.require(known["device"]["name"])
            rows = known["rows"]
        here = rows is None and _here(calibration, measure)
        of = study.problem(**problem)
        found = explanation.explained(kernel, problem["wavelet"], of, calibration, rows, here)
        picture = None if plot is None else explanation.to_file(found, str(plot))
    if picture is not None and plot is not None:
        write_atomically(plot, picture, overwrite=results.overwrite)
    results.finish(explanation.facts(found), lambda: explanation.text(found))


@command.command("tune", epilog="Example: wavefilt ske tune --samples 64Mi")
@add(*PROBLEM)
@LEVELS
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
    results.finish(study.ranking(found, calibration), lambda: study.tuning(found, calibration))


@command.command("validate")
@DEVICE
@click.option("--rows", "rows_path", type=EXISTING, metavar="FILE", help="Rows measured before, not now on this GPU.")
@click.option("--quick", is_flag=True, help="A few kernels only.")
@click.option("--blind", is_flag=True, help="The kernels that the model was not developed with, and its choices.")
@click.option("--every", is_flag=True, help="Print every row.")
@click.option("--calibration", "fitted", type=FILE, metavar="FILE", help="Save the calibration fitted to these rows.")
@with_results
def validate(
    device: str | None,
    rows_path: str | None,
    quick: bool,
    blind: bool,
    every: bool,
    fitted: Path | None,
    results: Results,
) -> None:
    """Compare the model with measured times of kernels that it was not fitted to."""
    results.claim(fitted)
    with usage_errors():
        from wavefilt.benchmarks.ske import fit
        from wavefilt.benchmarks.ske import validation as study

        if device is not None:
            _calibration(device).require_measured()  # before minutes of measurements
        if rows_path is not None:
            result = json.loads(Path(rows_path).read_text())
        else:
            result = study.measure(results.path, quick, blind)
        calibration = _calibration(device)
        calibration.require(result["device"]["name"])
        if fitted:
            calibration = fit.fitted(result["rows"], calibration)
            fitted.write_text(calibration.to_json())
        results.finish(result, lambda: study.report(result, calibration, every).text())


def _calibration(device: str | None) -> Calibration:
    """The one asked for, or the shipped one of this GPU; where there is none that of another, which is said."""
    from wavefilt.errors import BackendUnavailable
    from wavefilt.ske import calibration

    if device is not None:
        return calibration.load(device)
    try:
        from wavefilt.benchmarks.ske.calibration import Device

        here = Device.current().name
    except BackendUnavailable:
        found = calibration.default()
        click.echo(f"No GPU here: for {found.name}; --device takes others.", err=True)
        return found
    return calibration.of(here)


def _here(calibration: Calibration, wanted: bool | None) -> bool:
    """Whether to measure on this machine's GPU; by default if it is the calibrated one.

    BackendUnavailable or WrongDevice if it is wanted and not here.
    """
    from wavefilt.errors import BackendUnavailable
    from wavefilt.ske import WrongDevice

    if wanted is not False:
        try:
            from wavefilt.benchmarks.ske.calibration import Device

            calibration.require(Device.current().name)
            return True
        except (BackendUnavailable, WrongDevice):
            if wanted:
                raise
    return False
