"""`wavefilt bench laplace2d`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from wavefilt.benchmarks.common.command import finish, progress
from wavefilt.cli.options import FILE, SETTINGS

from .options import measuring, options


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


IMAGE = [
    click.option("--size", callback=size, metavar="WxH", help="Size of a generated image. [default: 4992x3744]"),
    click.option("--image", type=FILE, metavar="FILE", help="Filter this image instead, PNG or JPEG; needs Pillow."),
    click.option(
        "--output", type=FILE, metavar="FILE.png", help="Write the filtered image; an existing file is replaced."
    ),
]


@click.command("laplace2d", context_settings=SETTINGS, epilog="Example: wavefilt bench laplace2d --device h200")
@options(25, "A small image and few runs: 5 seconds.", *IMAGE)
def command(
    size: tuple[int, int] | None,
    image: str | None,
    output: str | None,
    repeats: int,
    quick: bool,
    device: str | None,
    json_path: str | None,
) -> None:
    """A 5x5 Laplace filter on an RGB image: CPU loops, and GPU kernels with different access patterns.

    Results must be exact before they are timed. Each kernel is explained by its bank conflicts, occupancy and bytes,
    and its time estimated by the SKE model. What cannot run here is left out, and the reason given.
    """
    from wavefilt.benchmarks.laplace2d import image as images
    from wavefilt.benchmarks.laplace2d import study
    from wavefilt.benchmarks.laplace2d.cases import SCIPY, Problem
    from wavefilt.io import write_atomically

    if size is not None and image is not None:
        raise click.UsageError("--size is for a generated image; the one given by --image has its own")
    with measuring():
        x = images.read(image) if image else images.made(*size or (study.QUICK_SIZE if quick else images.SIZE))
        problem = Problem(x, Path(image).name if image else images.MADE)
        filtered = images.png(problem.expected(SCIPY)) if output else b""  # before what takes long
        budget = study.QUICK_BUDGET if quick else study.BUDGET
        result = study.run(problem, repeats, budget, device, partial(progress, describe=lambda one: one.label))
    finish(result, study.report, json_path)
    if output:
        write_atomically(Path(output), filtered, overwrite=True)
