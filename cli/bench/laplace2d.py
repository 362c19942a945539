"""`wavefilt bench laplace2d`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from wavefilt.benchmarks.common.command import finish, progress
from wavefilt.cli.failure import Failure
from wavefilt.cli.ske.calibrated import DEVICE, messages

FILE = click.Path(dir_okay=False)


def size(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Width and height: 4992x3744."""
    from wavefilt.benchmarks.laplace2d.image import check

    if value is None:
        return None
    sides = value.lower().split("x")
    if len(sides) != 2 or not all(side.isascii() and side.isdecimal() for side in sides):
        raise click.BadParameter(f"{value!r} is no size such as 640x480", ctx, param)
    try:
        return check(int(sides[0]), int(sides[1]))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


@click.command("laplace2d", epilog="Example: wavefilt bench laplace2d --device h200 --json laplace2d.json")
@click.option("--size", callback=size, metavar="WxH", help="Of the image that is made. [default: 4992x3744]")
@click.option("--image", type=FILE, metavar="FILE", help="Filter this image instead, PNG or JPEG; needs Pillow.")
@click.option(
    "--output", type=FILE, metavar="FILE.png", help="Write the filtered image; a file that exists is replaced."
)
@click.option("--repeats", type=click.IntRange(min=1), default=25, show_default=True, help="Most runs of each.")
@click.option("--quick", is_flag=True, help="A small image and few runs: 5 seconds.")
@click.option("--device", help=f"For the estimates: {DEVICE}")
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Save the results here.")
def command(
    size: tuple[int, int] | None, image: str | None, output: str | None, repeats: int, quick: bool,
    device: str | None, json_path: str | None,
) -> None:  # fmt: skip
    """A 5x5 Laplace filter on an RGB image: CPU loops, and GPU kernels that differ in how they read.

    Results must be exact before they are timed. Each kernel is explained by its bank conflicts, occupancy and bytes,
    and its time estimated by the SKE model. What cannot run here is left out, and the reason given.
    """
    from wavefilt.benchmarks.common.implementation import Mismatch
    from wavefilt.benchmarks.laplace2d import image as images
    from wavefilt.benchmarks.laplace2d import report, study
    from wavefilt.benchmarks.laplace2d.cases import SCIPY, Problem
    from wavefilt.io import write_atomically

    if size is not None and image is not None:
        raise click.UsageError("--size is of an image that is made; the one given by --image has its own")
    try:
        with messages():
            x = images.read(image) if image else images.made(*size or (study.QUICK_SIZE if quick else images.SIZE))
            problem = Problem(x, Path(image).name if image else images.MADE)
            filtered = images.png(problem.expected(SCIPY)) if output else b""  # before what takes long
            budget = study.QUICK_BUDGET if quick else study.BUDGET
            result = study.run(problem, repeats, budget, device, partial(progress, describe=lambda one: one.label))
    except Mismatch as error:
        raise Failure(str(error), 1) from error
    except ImportError as error:
        raise click.UsageError(str(error)) from error
    finish(result, report.report, json_path)
    if output:
        write_atomically(Path(output), filtered, overwrite=True)
