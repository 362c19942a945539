"""`wavefilt bench`: the measurements of `benchmarks/`, each a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from wavefilt.benchmarks.common.command import Results, progress, with_results

from . import Failure, usage_errors
from .options import COUNT, DEVICE, SIZE, Function, Subcommands, Text, add

FOLDER = click.Path(file_okay=False, path_type=Path)
SAMPLES = partial(click.option, "--samples", type=SIZE, help="Samples: 65536, 64Ki, 64Mi.")
WAVELETS = click.Choice([f"db{n}" for n in range(2, 11)])


@click.group("bench", cls=Subcommands)
def bench() -> None:
    """Measure this machine: each study prints tables and can save its JSON."""


def options(repeats: int, quick: str, *own: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return the options of a study: its own, ``--repeats``, ``--quick``, and those of `with_results`."""
    runs = click.option("--repeats", type=COUNT, default=repeats, help="Largest number of runs of each case.")
    return add(*own, runs, click.option("--quick", is_flag=True, help=quick), with_results)


def image_size(text: str) -> tuple[int, int]:
    """Parse width and height: 4992x3744."""
    from wavefilt.benchmarks.laplace.images import check

    sides = re.fullmatch(r"(\d+)x(\d+)", text, re.ASCII | re.IGNORECASE)
    if not sides:
        raise ValueError(f"{text!r} is no size such as 640x480")
    return check(int(sides[1]), int(sides[2]))


@contextmanager
def measuring() -> Iterator[None]:
    """Turn errors into exit codes: 1 for outputs that disagree, 2 for wrong usage, 5 without a GPU."""
    from wavefilt.benchmarks.common.columns import Mismatch

    with usage_errors():
        try:
            yield
        except Mismatch as error:
            raise Failure(str(error), 1) from error


@bench.command("blocks", epilog="Example: wavefilt bench blocks --device h200 -o b.json")
@options(30, "Five block sizes instead of ten.", SAMPLES(default="64Mi"), DEVICE)
def blocks(samples: int, repeats: int, quick: bool, device: str | None, results: Results) -> None:
    """Compare block sizes of 32 to 1024 threads for the wavelet kernels: times, and the choice of the SKE model.

    Without a GPU, print only the estimates, for the device that --device names.
    """
    from wavefilt.benchmarks import blocks as study

    steps = partial(progress, describe=lambda step: f"{step[0].label}, {step[1]} threads")
    with measuring():
        result = study.run(samples, study.BLOCKS[1::2] if quick else study.BLOCKS, repeats, device, progress=steps)
    results.report(result, study.report)


@bench.command("cpu")
@options(7, "Small arrays and few repeats.")
def cpu(repeats: int, quick: bool, results: Results) -> None:
    """Compare denoising on the CPU with the same steps written with PyWavelets, for new arrays and for one array."""
    from wavefilt.benchmarks import calls as study

    with measuring():
        result = study.run("numba", quick, repeats)
    results.report(result, study.report)


@bench.command("cuda")
@options(
    25,
    "Small arrays and few repeats, without other libraries.",
    click.option("--layouts", is_flag=True, help="Compare the kernels with and without padding and fast math instead."),
)
def cuda(layouts: bool, repeats: int, quick: bool, results: Results) -> None:
    """Compare denoising on the GPU, of device-resident and NumPy arrays, with PyWavelets and ptwt."""
    if layouts:
        from wavefilt.benchmarks import layouts as kernels

        with measuring():
            result = kernels.run(quick, repeats)
        results.report(result, kernels.report)
        return
    from wavefilt.benchmarks import calls as study

    with measuring():
        result = study.run("cuda", quick, repeats)
    results.report(result, study.report)


@bench.group("laplace", cls=Subcommands)
def laplace() -> None:
    """Measure the Laplace operator of a row (1d) or an image (2d): CPU loops, and GPU kernels with SKE estimates."""


@laplace.command("1d", epilog="Example: wavefilt bench laplace 1d --device h200")
@options(503, "At most a tenth of a second for each: 5 seconds.", SAMPLES(default="1Mi"), DEVICE)
def laplace_1d(samples: int, repeats: int, quick: bool, device: str | None, results: Results) -> None:
    """Measure the 1-D Laplace operator: CPU loops, and GPU kernels with different access patterns."""
    from wavefilt.benchmarks.laplace import rows as study

    budget = study.QUICK_BUDGET if quick else study.BUDGET
    with measuring():
        result = study.run(samples, repeats, budget, device, partial(progress, describe=lambda one: one.label))
    results.report(result, study.report)


@laplace.command("2d", epilog="Example: wavefilt bench laplace 2d --device h200")
@options(
    25,
    "A small image and few runs: 5 seconds.",
    click.option("--size", type=Text(image_size), metavar="WxH", help="Size of the image. [default: 4992x3744]"),
    DEVICE,
)
def laplace_2d(size: tuple[int, int] | None, repeats: int, quick: bool, device: str | None, results: Results) -> None:
    """Measure a 5x5 Laplace filter on an RGB image: CPU loops, and GPU kernels with conflicts, occupancy and bytes."""
    from wavefilt.benchmarks.laplace import images as study

    budget = study.QUICK_BUDGET if quick else study.BUDGET
    with measuring():
        problem = study.Problem(study.made(*size or (study.QUICK_SIZE if quick else study.SIZE)))
        result = study.run(problem, repeats, budget, device, partial(progress, describe=lambda one: one.label))
    results.report(result, study.report)


@bench.command("scaling", epilog="Example: wavefilt bench scaling --plot figures")
@options(
    25,
    "Three small sizes, few repeats: 20 seconds.",
    click.option("-w", "--wavelet", "wavelets", multiple=True, type=WAVELETS, help="Repeatable. [default: db4, db8]"),
    click.option("--most", type=SIZE, default="64Mi", help="Largest number of samples."),
    click.option("--plot", type=FOLDER, metavar="FOLDER", help="Draw two figures in this folder."),
    DEVICE,
)
def scaling(
    wavelets: tuple[str, ...],
    most: int,
    plot: Path | None,
    repeats: int,
    quick: bool,
    device: str | None,
    results: Results,
) -> None:
    """Compare GSL, PyWavelets, ptwt and this library on CPU and GPU, at 64 Ki to 64 Mi samples, with SKE estimates.

    Outputs are compared before they are timed. Implementations that cannot run here are listed with the reason.
    """
    from wavefilt.benchmarks.scaling import plot as plots
    from wavefilt.benchmarks.scaling import study
    from wavefilt.io import write_atomically

    sizes = [n for n in (study.QUICK if quick else study.DOCUMENT) if n <= most]
    if not sizes:
        raise click.UsageError("--most leaves no size: the smallest is 64Ki")
    budget = study.QUICK_BUDGET if quick else study.BUDGET
    steps = partial(progress, describe=lambda step: f"{step[0]}, {step[1]} samples, {step[2].label}")
    with measuring():
        if plot is not None:
            plots.check()
            plot.mkdir(parents=True, exist_ok=True)
        results.claim(*(plot / name for name in plots.FILES if plot))
        result = study.run(sizes, wavelets or study.WAVELETS, repeats, budget, device, steps, results.keep)
        figures = plots.to_files(result, plot) if plot else {}
    results.report(result, study.report)
    for path, data in figures.items():
        write_atomically(path, data, overwrite=results.overwrite)
