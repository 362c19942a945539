"""`wavefilt bench`: the measurements of `benchmarks/`, each a command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from wavefilt.benchmarks.common.command import Results, with_results
from wavefilt.ske import devices

from . import usage_errors
from .options import COUNT, SIZE, Text
from .progress import steps

Measured = tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]
"""The result of a study, and the function that makes tables of it."""
DEVICE = click.option(
    "--device",
    type=Text(names=devices.names(), files=True),
    help="Device of the estimates: the name of a calibration (h200) or of a data sheet (a100, b200, l4, rtx4090), or "
    "FILE.json. [default: this GPU, or h200]",
)
WAVELETS = click.Choice([f"db{n}" for n in range(2, 11)])


@click.group("bench")
def bench() -> None:
    """Measure this machine: each study prints tables and can save its JSON."""


@bench.group("laplace")
def laplace() -> None:
    """Measure the Laplace operator of a row (1d) or an image (2d): CPU loops, and GPU kernels with SKE estimates."""


def study(
    group: click.Group, name: str, *own: Callable[[Any], Any], repeats: int, quick: str
) -> Callable[[Callable[..., Measured]], click.Command]:
    """Return a decorator for a study: its own options, ``--repeats``, ``--quick``, and the ones of `with_results`."""
    runs = click.option("--repeats", type=COUNT, default=repeats, help="Largest number of runs of each case.")
    options = [*own, runs, click.option("--quick", is_flag=True, help=quick), with_results]

    def made(measure: Callable[..., Measured]) -> click.Command:
        @functools.wraps(measure)
        def command(results: Results, **given: Any) -> None:
            with usage_errors():
                result, report = measure(results, **given)
            results.report(result, report)

        for option in reversed(options):
            command = option(command)
        return group.command(name)(command)

    return made


@study(bench, "blocks", DEVICE, repeats=30, quick="Five block sizes instead of ten.")
def blocks(results: Results, repeats: int, quick: bool, device: str | None) -> Measured:
    """Compare block sizes of 32 to 1024 threads for the wavelet kernels: times, and the choice of the SKE model.

    Without a GPU, print only the estimates, for the device that --device names.
    """
    from wavefilt.benchmarks import blocks

    sizes = blocks.BLOCKS[1::2] if quick else blocks.BLOCKS
    return blocks.run(blocks=sizes, repeats=repeats, device=device, progress=steps), blocks.report


@study(bench, "cpu", repeats=7, quick="Small arrays and few repeats.")
def cpu(results: Results, repeats: int, quick: bool) -> Measured:
    """Compare denoising on the CPU with the same steps written with PyWavelets, for new arrays and for one array."""
    from wavefilt.benchmarks import calls

    return calls.run("numba", quick, repeats), calls.report


LAYOUTS = click.option("--layouts", is_flag=True, help="Compare padding and fast math, each on and off, instead.")


@study(bench, "cuda", LAYOUTS, repeats=25, quick="Small arrays and few repeats, without other libraries.")
def cuda(results: Results, layouts: bool, repeats: int, quick: bool) -> Measured:
    """Compare denoising on the GPU, of device-resident and NumPy arrays, with PyWavelets and ptwt."""
    from wavefilt.benchmarks import calls
    from wavefilt.benchmarks import layouts as kernels

    if layouts:
        return kernels.run(quick, repeats), kernels.report
    return calls.run("cuda", quick, repeats), calls.report


SAMPLES = click.option("--samples", type=SIZE, default="1Mi", help="Samples: 65536, 64Ki, 64Mi.")


@study(laplace, "1d", SAMPLES, DEVICE, repeats=503, quick="At most a tenth of a second for each: 5 seconds.")
def laplace_1d(results: Results, samples: int, repeats: int, quick: bool, device: str | None) -> Measured:
    """Measure the 1-D Laplace operator: CPU loops, and GPU kernels with different access patterns."""
    from wavefilt.benchmarks.laplace import rows

    return rows.run(samples, repeats, rows.QUICK_BUDGET if quick else rows.BUDGET, device, steps), rows.report


IMAGE = click.option(
    "--size", type=int, nargs=2, metavar="WIDTH HEIGHT", help="Pixels of the image. [default: 4992 3744]"
)


@study(laplace, "2d", IMAGE, DEVICE, repeats=25, quick="A small image and few runs: 5 seconds.")
def laplace_2d(
    results: Results, size: tuple[int, int] | None, repeats: int, quick: bool, device: str | None
) -> Measured:
    """Measure a 5x5 Laplace filter on an RGB image: CPU loops, and GPU kernels with conflicts, occupancy and bytes."""
    from wavefilt.benchmarks.laplace import images

    problem = images.Problem(images.made(*size or (images.QUICK_SIZE if quick else images.SIZE)))
    budget = images.QUICK_BUDGET if quick else images.BUDGET
    return images.run(problem, repeats, budget, device, steps), images.report


SCALING = [
    click.option("-w", "--wavelet", "wavelets", multiple=True, type=WAVELETS, help="Repeatable. [default: db4, db8]"),
    click.option("--most", type=SIZE, default="64Mi", help="Largest number of samples."),
]


@study(bench, "scaling", *SCALING, DEVICE, repeats=25, quick="Three small sizes, few repeats: 20 seconds.")
def scaling(
    results: Results, wavelets: tuple[str, ...], most: int, repeats: int, quick: bool, device: str | None
) -> Measured:
    """Compare GSL, PyWavelets, ptwt and this library on CPU and GPU, at 64 Ki to 64 Mi samples, with SKE estimates.

    Outputs are compared before they are timed. Implementations that cannot run here are listed with the reason.
    """
    from wavefilt.benchmarks import scaling as study

    sizes = [n for n in (study.QUICK if quick else study.DOCUMENT) if n <= most]
    if not sizes:
        raise ValueError("`most` leaves no size: the smallest is 64Ki")
    budget = study.QUICK_BUDGET if quick else study.BUDGET
    return study.run(sizes, wavelets or study.WAVELETS, repeats, budget, device, steps, results.keep), study.report
