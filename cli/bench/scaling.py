"""`wavefilt bench scaling`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from wavefilt.benchmarks.common.command import finish, progress, save
from wavefilt.cli.options import FILE, FOLDER, SETTINGS, whole

from .options import measuring, options

WAVELETS = click.Choice([f"db{n}" for n in range(2, 11)])
OWN = [
    click.option("-w", "--wavelet", "wavelets", multiple=True, type=WAVELETS, help="Not db4 and db8; repeatable."),
    click.option("--most", callback=whole, default="64Mi", help="Largest number of samples."),
    click.option("--csv", type=FILE, metavar="FILE", help="Save the results as a list here."),
    click.option("--plot", type=FOLDER, metavar="FOLDER", help="Draw two figures there."),
]


@click.command("scaling", context_settings=SETTINGS, epilog="Example: wavefilt bench scaling --plot figures")
@options(25, "Three small sizes, few repeats: 20 seconds.", *OWN)
def command(
    wavelets: tuple[str, ...],
    most: int,
    csv: str | None,
    plot: str | None,
    repeats: int,
    quick: bool,
    device: str | None,
    json_path: str | None,
) -> None:
    """One denoise at 64 Ki to 64 Mi samples: GSL, PyWavelets, ptwt, this library on CPU and GPU, SKE estimates.

    Outputs are compared before they are timed. What cannot run here is left out, and the reason given.
    """
    from wavefilt.benchmarks.scaling import plot as plots
    from wavefilt.benchmarks.scaling import report, study
    from wavefilt.io import write_atomically

    sizes = [n for n in (study.QUICK if quick else study.DOCUMENT) if n <= most]
    if not sizes:
        raise click.UsageError("--most leaves no size: the smallest is 64Ki")
    budget = study.QUICK_BUDGET if quick else study.BUDGET
    steps = partial(progress, describe=lambda step: f"{step[0]}, {step[1]} samples, {step[2].label}")
    files: dict[Path, bytes] = {}
    with measuring():
        if plot is not None:
            plots.check()
            Path(plot).mkdir(parents=True, exist_ok=True)
        keep = partial(save, json_path)
        result = study.run(sizes, wavelets or study.WAVELETS, repeats, budget, device, steps, keep)
        if csv is not None:
            files[Path(csv)] = report.to_csv(result).encode()
        if plot is not None:
            files |= plots.to_files(result, Path(plot))
    finish(result, report.report, json_path)
    for path, data in files.items():
        write_atomically(path, data, overwrite=True)
