"""`wavefilt bench`: the measurements of `benchmarks/`, each a command."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from wavefilt.benchmarks.common.command import finish, progress, save
from wavefilt.cli.failure import Failure
from wavefilt.cli.ske.calibrated import DEVICE, whole

from .blocks import command as blocks
from .laplace1d import command as laplace1d
from .laplace2d import command as laplace2d
from .quality import command as quality
from .report import command as report_page


@click.group("bench")
def command() -> None:
    """Measure this machine: each study prints a table and can save its JSON."""


command.add_command(blocks)
command.add_command(laplace1d)
command.add_command(laplace2d)
command.add_command(quality)
command.add_command(report_page)


@command.command("cpu")
@click.option("--quick", is_flag=True, help="Small sizes and few repeats.")
@click.option("--repeats", type=click.IntRange(min=1), default=7, show_default=True, help="Runs of each case.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
def cpu(quick: bool, repeats: int, json_path: str | None) -> None:
    """The numba backend against PyWavelets' own composition, side by side in one run."""
    from wavefilt.benchmarks.cpu import denoise as study

    finish(study.run(quick=quick, repeats=repeats), study.report, json_path)


@command.command("cuda")
@click.option("--quick", is_flag=True, help="Sizes divided by 16, few repeats, no other libraries.")
@click.option("--repeats", type=click.IntRange(min=1), default=25, show_default=True, help="Runs of each case.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
def cuda(quick: bool, repeats: int, json_path: str | None) -> None:
    """The GPU backend: whole denoises, kernel by kernel, and against other libraries, with the copy bandwidth."""
    from wavefilt.benchmarks.gpu import denoise as study
    from wavefilt.errors import BackendUnavailable

    try:
        result = study.run(min(repeats, 5), 16, False) if quick else study.run(repeats)
    except BackendUnavailable as error:
        raise Failure(str(error), 5) from error
    finish(result, study.report, json_path)


@command.command("scaling", epilog="Example: wavefilt bench scaling --json scaling.json --plot figures")
@click.option("--quick", is_flag=True, help="Three small sizes, few repeats: 20 seconds.")
@click.option("-w", "--wavelet", "wavelets", multiple=True, type=click.Choice([f"db{n}" for n in range(2, 11)]),
              help="Instead of db4 and db8; may be repeated.")  # fmt: skip
@click.option("--most", callback=whole, default="64Mi", show_default=True, help="Largest number of samples.")
@click.option("--repeats", type=click.IntRange(min=1), default=25, show_default=True, help="Most runs of each case.")
@click.option("--device", help=f"For the estimates: {DEVICE}")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save the results here.")
@click.option("--csv", "csv_path", type=click.Path(dir_okay=False), metavar="FILE", help="Save them as a list here.")
@click.option("--plot", "folder", type=click.Path(file_okay=False), metavar="FOLDER", help="Draw two figures there.")
def scaling(
    quick: bool, wavelets: tuple[str, ...], most: int, repeats: int, device: str | None, json_path: str | None,
    csv_path: str | None, folder: str | None,
) -> None:  # fmt: skip
    """One denoise at 64 Ki to 64 Mi samples: GSL, PyWavelets, ptwt, this library on CPU and GPU, SKE estimates.

    Outputs are compared before they are timed. What cannot run here is left out, and the reason given.
    """
    from wavefilt.benchmarks.common.implementation import Mismatch
    from wavefilt.benchmarks.scaling import report, study
    from wavefilt.io import write_atomically

    sizes = [n for n in (study.QUICK if quick else study.DOCUMENT) if n <= most]
    if not sizes:
        raise click.UsageError("--most leaves no size: the smallest is 64Ki")
    budget = study.QUICK_BUDGET if quick else study.BUDGET
    files: dict[Path, bytes] = {}
    try:
        if folder is not None:
            from wavefilt.benchmarks.scaling import plot

            plot.check()
            Path(folder).mkdir(parents=True, exist_ok=True)
        keep = partial(save, json_path)
        steps = partial(progress, describe=lambda step: f"{step[0]}, {step[1]} samples, {step[2].label}")
        result = study.run(sizes, wavelets or study.WAVELETS, repeats, budget, device, steps, keep)
        if csv_path is not None:
            files[Path(csv_path)] = report.to_csv(result).encode()
        if folder is not None:
            files |= plot.to_files(result, Path(folder))
    except Mismatch as error:
        raise Failure(str(error), 1) from error
    except (ValueError, ImportError, OSError) as error:
        raise click.UsageError(str(error)) from error
    finish(result, report.report, json_path)
    for path, data in files.items():
        write_atomically(path, data, overwrite=True)
