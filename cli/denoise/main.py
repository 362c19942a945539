"""`wavefilt denoise`."""

from __future__ import annotations

from typing import Any

import click

from wavefilt.cli.failure import Failure
from wavefilt.cli.reading import layout_options
from wavefilt.vocabulary import ESTIMATORS, MODES, RULES, SCOPES, SHRINKS, TRANSFORMS

from . import batch, paths, scheduler, single_file, streaming


def word_or_numbers(ctx: click.Context, param: click.Parameter, value: str) -> str | float | list[float]:
    """A number, numbers separated by commas, or a word, which is checked with the rest of the method."""
    try:
        numbers = [float(part) for part in value.split(",")]
    except ValueError:
        return value
    return numbers[0] if len(numbers) == 1 else numbers


def whole_or_auto(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    if not value.isdecimal():
        raise click.BadParameter(f"{value!r} is neither a whole number nor auto", ctx, param)
    return int(value)


def gpus(ctx: click.Context, param: click.Parameter, value: str | None) -> str | tuple[int, ...] | None:
    if value in (None, "all"):
        return value
    if not all(part.isdecimal() for part in value.split(",")):
        raise click.BadParameter(f"{value!r} is neither all nor numbers of GPUs, as 0,1", ctx, param)
    return tuple(map(int, value.split(",")))


def use_threads(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value is not None:
        from wavefilt import set_num_threads

        set_num_threads(value)
        ctx.call_on_close(lambda: set_num_threads(None))


@click.command("denoise", epilog="Example: wavefilt denoise seismic.dat -w db8 --rule bayes --plot seismic.png")
@click.argument("inputs", nargs=-1, required=True, metavar="IN...")
@click.option("-o", "--output", metavar="OUT", help="Write here; - is standard output. [default: NAME.denoised.EXT]")
@click.option("--out-dir", type=click.Path(file_okay=False), metavar="DIR",
              help="Write NAME.denoised.EXT into this folder, in folders as the inputs are.")  # fmt: skip
@click.option("-w", "--wavelet", default="db8", show_default=True, help="A discrete wavelet; db8 has 16 taps.")
@click.option(
    "-l",
    "--level",
    metavar="N|auto",
    callback=whole_or_auto,
    default="auto",
    show_default=True,
    help="Levels; auto is at most 5.",
)
@click.option("--rule", metavar="NAME|T[,T...]", callback=word_or_numbers, default="bayes", show_default=True,
              help=f"{', '.join(RULES)}, a threshold, or one a level (coarsest first).")  # fmt: skip
@click.option(
    "--shrink", type=click.Choice((*SHRINKS, *ESTIMATORS)), help="Threshold function. [default: the rule's own]"
)
@click.option(
    "--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Leave the N coarsest levels as they are."
)
@click.option("--transform", type=click.Choice(TRANSFORMS), default="dwt", show_default=True,
              help="modwt does not depend on where samples begin, and takes longer.")  # fmt: skip
@click.option("--spins", type=click.IntRange(min=1), default=1, metavar="K",
              help="dwt: the mean over K shifts of the samples.")  # fmt: skip
@click.option("--noise-window", type=float, nargs=2, metavar="T0 T1",
              help="Estimate the noise between these seconds of each trace.")  # fmt: skip
@click.option("--sigma", metavar="level|global|S", callback=word_or_numbers, default="level", show_default=True,
              help="Noise estimate: of each level, of the finest level, or a number in the file's units.")  # fmt: skip
@click.option("--mode", type=click.Choice(MODES), default="symmetric", show_default=True, help="Boundary mode.")
@click.option("--scope", type=click.Choice(SCOPES), default="trace", show_default=True,
              help="Thresholds for each trace or for the whole record.")  # fmt: skip
@click.option("--two-dimensional", is_flag=True,
              help="The traces of a file are one section: transform it along both axes.")  # fmt: skip
@click.option("--backend", default="auto", show_default=True, help="Where to compute: see wavefilt backends.")
@click.option("-j", "threads", type=click.IntRange(min=1), metavar="N", callback=use_threads, expose_value=False,
              help="Cores to use: N processes for small files, N threads in a large one. [default: all]")  # fmt: skip
@scheduler.option
@click.option("--fast-math", is_flag=True, help="cuda: let the compiler reorder and approximate arithmetic.")
@click.option("--devices", metavar="all|N,...", callback=gpus, help="cuda: GPUs of this host that share the traces.")
@layout_options
@click.option("--max-memory", metavar="SIZE", callback=streaming.size,
              help="npy, raw, SEG-Y, SU, HDF5, Zarr: files of any size within so much memory, as 1GiB. "
                   "[default: for those that would not fit, half of what there is]")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace existing output files.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and write nothing.")
@click.option("--keep-going/--fail-fast", default=True, show_default=True,
              help="After a bad file go on and end with exit code 4, or stop.")  # fmt: skip
@click.option("--log", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write a line of JSON here as each file ends.")  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw before, after and removed noise (png, pdf, svg).")
@click.option("--removed", type=click.Path(), metavar="FILE", help="Write what was removed here.")
@click.option("--sidecar", is_flag=True, help="Write every resolved parameter to OUT.wavefilt.json.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Noise and thresholds by level, and remarks.")
@click.option("-q", "--quiet", is_flag=True, help="Errors only.")
def command(inputs: tuple[str, ...], **options: Any) -> None:
    """Denoise files and write the results in the format they came in, headers kept.

    The format is found by content. Patterns may be in quotes: 'survey/**/*.dat'; without --out-dir they leave out
    earlier results, *.denoised.*, which are taken if they are named so. - reads standard input and, without -o, writes
    standard output.
    """
    from wavefilt.denoising.panels import SectionMethod
    from wavefilt.errors import BackendUnavailable
    from wavefilt.method import Method

    names = ("wavelet", "level", "mode", "rule", "shrink", "sigma", "scope", "keep", "transform", "spins")
    try:
        kind = SectionMethod if options["two_dimensional"] else Method
        method = kind(**{name: options[name] for name in names})
        for name, given in (("--fast-math", options["fast_math"]), ("--devices", options["devices"])):
            if given and options["backend"] != "cuda":
                raise click.UsageError(f"{name} is an option of --backend cuda")
        if options["noise_window"] and options["two_dimensional"]:
            raise click.UsageError("--noise-window is for traces, not for --two-dimensional; leave one out")
        if options["noise_window"] and options["sigma"] != "level":
            raise click.UsageError("--noise-window and --sigma both tell the noise: give one")
        if options["scheduler"]:
            scheduler.denoise(inputs, method, options)
            return
        single_file.backend(options)
    except BackendUnavailable as error:
        raise Failure(str(error), 5) from error
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    beside = options["output"] is None and options["out_dir"] is None
    if options["max_memory"]:
        streaming.check_options(options)
    files = paths.plan(paths.expanded(inputs, results=not beside), options)
    if options["max_memory"]:
        streaming.check_files(files)
    batch.denoise(files, method, options)
