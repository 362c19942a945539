"""`wavefilt bench`: the measurements of `benchmarks/`, each a command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from wavefilt.benchmarks.common.command import FILE, Results, progress, with_results
from wavefilt.errors import printable

from .failure import Failure, usage_errors
from .options import COUNT, DEVICE, SIZE, Command, Text, add

FOLDER = click.Path(file_okay=False, path_type=Path)
WAVELETS = click.Choice([f"db{n}" for n in range(2, 11)])


@click.group("bench")
def command() -> None:
    """Measure this machine: each study prints a table and can save its JSON."""


def options(repeats: int, quick: str, *own: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Those of the study itself, ``--repeats``, ``--quick``, ``--device``, and those of `with_results`."""
    runs = click.option("--repeats", type=COUNT, default=repeats, help="Runs of each case, at most.")
    return add(*own, runs, click.option("--quick", is_flag=True, help=quick), DEVICE, with_results)


def samples_of(what: str, default: str) -> Callable[[Command], Command]:
    return click.option("--samples", type=SIZE, default=default, help=f"Length of the {what}: 65536, 64Ki, 64Mi.")


def image_size(text: str) -> tuple[int, int]:
    """Width and height: 4992x3744."""
    from wavefilt.benchmarks.laplace2d.image import check

    sides = re.fullmatch(r"(\d+)x(\d+)", text, re.ASCII | re.IGNORECASE)
    if not sides:
        raise ValueError(f"{text!r} is no size such as 640x480")
    return check(int(sides[1]), int(sides[2]))


@contextmanager
def measuring() -> Iterator[None]:
    """Errors as messages with exit codes: 1 for outputs that disagree, 2 for wrong usage, 5 without a GPU."""
    from wavefilt.benchmarks.common.implementation import Mismatch

    with usage_errors():
        try:
            yield
        except Mismatch as error:
            raise Failure(str(error), 1) from error


@command.command("blocks", epilog="Example: wavefilt bench blocks --device h200 -o b.json")
@options(30, "Five block sizes instead of ten.", samples_of("trace", "64Mi"))
def blocks(samples: int, repeats: int, quick: bool, device: str | None, results: Results) -> None:
    """The wavelet kernels with blocks of 32 to 1024 threads: times, SKE estimates, and the cost of choosing by them.

    Without a GPU the estimates alone, for the device that --device names.
    """
    from wavefilt.benchmarks.gpu import blocks as study

    steps = partial(progress, describe=lambda step: f"{step[0].transform} {step[0].wavelet}, {step[1]} threads")
    with measuring():
        result = study.run(samples, study.BLOCKS[1::2] if quick else study.BLOCKS, repeats, device, progress=steps)
    results.report(result, study.report)


@command.command("cpu")
@click.option("--quick", is_flag=True, help="Small sizes and few repeats.")
@click.option("--repeats", type=COUNT, default=7, help="Runs of each case.")
@click.option("--threads", metavar="1,2,4", help="Measure these numbers of threads instead, beside a copy.")
@with_results
def cpu(quick: bool, repeats: int, threads: str | None, results: Results) -> None:
    """The numba backend against the same steps written with PyWavelets, side by side in one run.

    Also in a user's loop: different arrays whose results are kept, with caches cold.
    """
    from wavefilt.benchmarks.cpu import by_threads
    from wavefilt.benchmarks.cpu import denoise as study

    if threads is not None:
        with measuring():
            numbers = by_threads.counts(threads)
        result = by_threads.run(numbers, repeats, quick, lambda names: progress(names, str))
        results.report(result, by_threads.report)
        return
    results.report(study.run(quick=quick, repeats=repeats), study.report)


@command.command("cuda")
@click.option("--quick", is_flag=True, help="Sizes divided by 16, few repeats, no other libraries.")
@click.option("--repeats", type=COUNT, default=25, help="Runs of each case.")
@with_results
def cuda(quick: bool, repeats: int, results: Results) -> None:
    """The GPU backend: whole denoises, kernel by kernel, and against other libraries, with the copy bandwidth."""
    from wavefilt.benchmarks.gpu import denoise as study

    with measuring():
        result = study.run(min(repeats, 5), 16, False) if quick else study.run(repeats)
    results.report(result, study.report)


@command.command("laplace1d", epilog="Example: wavefilt bench laplace1d --device h200")
@options(503, "A tenth of a second for each at most: 5 seconds.", samples_of("row", "1Mi"))
def laplace1d(samples: int, repeats: int, quick: bool, device: str | None, results: Results) -> None:
    """The 1-D Laplace operator: host loops, and GPU kernels with different access patterns, with SKE estimates.

    Outputs are compared before they are timed. What cannot run here is left out, and the reason given.
    """
    from wavefilt.benchmarks.laplace1d import study

    budget = study.QUICK_BUDGET if quick else study.BUDGET
    with measuring():
        result = study.run(samples, repeats, budget, device, partial(progress, describe=lambda one: one.label))
    results.report(result, study.report)


@command.command("laplace2d", epilog="Example: wavefilt bench laplace2d --device h200")
@options(
    25,
    "A small image and few runs: 5 seconds.",
    click.option(
        "--size", type=Text(image_size), metavar="WxH", help="Size of a generated image. [default: 4992x3744]"
    ),
    click.option("--image", type=FILE, metavar="FILE", help="Filter this image instead, PNG or JPEG; needs Pillow."),
    click.option("--filtered", type=FILE, metavar="FILE.png", help="Write the filtered image."),
)
def laplace2d(
    size: tuple[int, int] | None,
    image: Path | None,
    filtered: Path | None,
    repeats: int,
    quick: bool,
    device: str | None,
    results: Results,
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
    results.claim(filtered)
    with measuring():
        x = images.read(str(image)) if image else images.made(*size or (study.QUICK_SIZE if quick else images.SIZE))
        problem = Problem(x, image.name if image else images.MADE)
        drawn = images.png(problem.expected(SCIPY)) if filtered else b""  # before what takes long
        budget = study.QUICK_BUDGET if quick else study.BUDGET
        result = study.run(problem, repeats, budget, device, partial(progress, describe=lambda one: one.label))
    results.report(result, study.report)
    if filtered:
        write_atomically(filtered, drawn, overwrite=results.overwrite)


@command.command("quality", epilog="Example: wavefilt bench quality sections -o sections.json")
@click.argument("what", type=click.Choice(["signals", "sections", "trust", "ranking"]), default="signals")
@click.option("--quick", is_flag=True, help="Few draws of noise, of sections a small part: half a minute.")
@with_results
def quality(what: str, quick: bool, results: Results) -> None:
    """The error of every rule on known signals, the gain of methods on gathers, or how often the trust report is right.

    Signals, the default, are beside published results and scikit-image; sections beside f-x deconvolution, rank
    reduction, a dip filter and others; ranking has the order that `wavefilt compare` finds beside the true one. Errors
    are of fixed draws of noise, so that they are reproducible. What is not installed is left out, and the reason given.
    """
    from wavefilt.benchmarks.quality import ranking, report, sections, sections_report, study
    from wavefilt.benchmarks.quality import trust as reliability

    if what == "trust":
        cases = partial(progress, describe=lambda step: f"{step[0]}: {step[1].signal}, {step[1].rule}")
        results.report(reliability.run(quick, cases), reliability.report)
        return
    if what == "sections":
        describe = partial(progress, describe=lambda step: step.label)
        results.report(sections.run(quick, describe, results.keep), sections_report.report)
        return
    if what == "ranking":
        describe = partial(progress, describe=lambda step: step.label)
        results.report(ranking.run(quick, describe, results.keep), ranking.report)
        return
    steps = partial(progress, describe=lambda step: f"{step.part}: {step.label}")
    results.report(study.run(quick, steps, results.keep), report.report)


@command.command("report", epilog="Example: wavefilt bench report scaling.json cpu.json -o report.html")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE.json]...")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE.html", help="The page.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def report(files: tuple[Path, ...], output: Path, overwrite: bool) -> None:
    """One HTML page of what studies measured: tables that sort, plots that tell their numbers.

    Without files, those of this library's own measurements. It opens with a summary of figures and targets.
    """
    from wavefilt.benchmarks.report import page, sections
    from wavefilt.io import write_atomically

    files = files or tuple(sorted(sections.RESULTS.glob("*.json")))
    if not files:
        raise click.UsageError(
            "no files, and no results of the library's own here; wavefilt bench cpu, cuda, scaling, laplace1d and "
            "laplace2d and wavefilt ske validate write some with -o FILE"
        )
    if os.path.realpath(output) in map(os.path.realpath, files):
        raise click.UsageError(f"{output} is one of the files to read")
    Results(path=output, overwrite=overwrite).claim()
    try:
        found = sections.sections(files)
        html = page.page(found)
    except sections.NotAStudy as error:
        raise Failure(str(error), 3) from error
    except ImportError as error:
        raise click.UsageError(f'the plots need {error.name}: pip install "wavefilt[bench]"') from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror or error}", 3) from error
    write_atomically(output, html.encode(), overwrite=overwrite)
    click.echo(printable(f"{output}: {', '.join(section.source for section in found)}"))


@command.command("scaling", epilog="Example: wavefilt bench scaling --plot figures")
@options(
    25,
    "Three small sizes, few repeats: 20 seconds.",
    click.option("-w", "--wavelet", "wavelets", multiple=True, type=WAVELETS, help="Not db4 and db8; repeatable."),
    click.option("--most", type=SIZE, default="64Mi", help="Largest number of samples."),
    click.option("--csv", type=FILE, metavar="FILE", help="Save the results as a list here."),
    click.option("--plot", type=FOLDER, metavar="FOLDER", help="Draw two figures there."),
)
def scaling(
    wavelets: tuple[str, ...],
    most: int,
    csv: Path | None,
    plot: Path | None,
    repeats: int,
    quick: bool,
    device: str | None,
    results: Results,
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
            plot.mkdir(parents=True, exist_ok=True)
        results.claim(csv, *(plot / name for name in plots.FILES if plot))
        result = study.run(sizes, wavelets or study.WAVELETS, repeats, budget, device, steps, results.keep)
        if csv is not None:
            files[csv] = report.to_csv(result).encode()
        if plot is not None:
            files |= plots.to_files(result, plot)
    results.report(result, report.report)
    for path, data in files.items():
        write_atomically(path, data, overwrite=results.overwrite)
