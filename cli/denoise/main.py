"""`wavefilt denoise`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from wavefilt import backends, transforms
from wavefilt.cli.failure import usage_errors
from wavefilt.cli.options import COUNT, FILE, FOLDER, INPUT, WAVELET, Named, Text, add
from wavefilt.cli.reading import LAYOUT
from wavefilt.io import FORMATS
from wavefilt.memory import in_bytes
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.vocabulary import BASES, DETRENDS, DISPLAYS, ESTIMATORS, PANELS, SCOPES, SIGMAS, TRACES_BY
from wavefilt.wavelets.boundary import EXTENSIONS

from . import batch, paths, scheduler, single_file, streaming
from .options import Options

STREAMED = ", ".join(format.name for format in FORMATS.values() if format.streamed)


def word_or_numbers(text: str) -> str | float | list[float]:
    """A number, numbers separated by commas, or a name, which is checked with the rest of the method."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def moments(text: str) -> str | list[float | str]:
    """Seconds and times separated by commas, or find."""
    return text if text == "find" else [number_or_text(part) for part in text.split(",")]


def whole_or_auto(text: str) -> int | None:
    if text != "auto" and not text.isdecimal():
        raise ValueError(f"{text!r} is neither a whole number nor auto")
    return None if text == "auto" else int(text)


def gpus(text: str) -> str | tuple[int, ...]:
    if text == "all":
        return text
    if not all(part.isdecimal() for part in text.split(",")):
        raise ValueError(f"{text!r} is neither all nor numbers of GPUs, as 0,1")
    return tuple(map(int, text.split(",")))


def use_threads(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value is not None:
        from wavefilt import set_num_threads

        set_num_threads(value)
        ctx.call_on_close(lambda: set_num_threads(None))


def shrinks() -> list[str]:
    return [*FUNCTIONS, *ESTIMATORS]


OUTPUT = [
    click.option(
        "-o",
        "--output",
        type=INPUT,
        metavar="OUT",
        help="Output file; - is standard output. [default: NAME.denoised.EXT]",
    ),
    click.option("--out-dir", type=FOLDER, metavar="DIR", help="Output folder; the folders of the inputs are kept."),
]
FILTERS = [
    click.option(
        "-w",
        "--wavelet",
        type=WAVELET,
        help="Discrete wavelet (see `wavefilt wavelets`). [default: db8, of 16 taps; dtcwt and fk have their own]",
    ),
    click.option(
        "-l",
        "--level",
        metavar="N|auto",
        type=Text(whole_or_auto, names=["auto"]),
        default="auto",
        help="auto: at most 5, with the rules js and bivariate 6.",
    ),
]
RULE = [
    click.option(
        "--rule",
        metavar="NAME|T[,T...]",
        type=Text(word_or_numbers, names=RULES),
        help="Threshold rule, by default bayes (dtcwt, fk: js): T, one T per level (coarsest first), or one of",
        cls=Named,
    ),
]
SHRINK = [
    click.option(
        "--shrink", cls=Named, type=Text(names=shrinks), help="Threshold function, by default that of the rule:"
    ),
    click.option(
        "--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Keep the N coarsest levels as is."
    ),
]
TRANSFORM = [
    click.option(
        "--transform",
        cls=Named,
        type=Text(names=transforms.words),
        default="dwt",
        help="Transform; modwt is shift-invariant, and slower:",
    ),
]
DETAILS = [
    click.option("--basis", type=click.Choice(BASES), help="wp: the best basis by this cost. [default: risk]"),
    click.option("--spins", type=COUNT, default=1, metavar="K", help="dwt: average over K circular shifts."),
    click.option(
        "--detrend",
        type=click.Choice(DETRENDS),
        help="Remove the mean or a line before, add it again after. [default: mean with rule js]",
    ),
    click.option(
        "--blend", type=float, default=0.0, metavar="SHARE", help="Put back this share of what is removed, below 1."
    ),
]
NOISE = [
    click.option("--noise-window", type=float, nargs=2, metavar="T0 T1", help="Estimate noise between these seconds."),
    click.option(
        "--noise-before",
        type=(Text(number_or_text), float),
        metavar="PICK SECONDS",
        help="Estimate noise in the seconds before a pick: seconds from the first sample, or a time (UTC).",
    ),
    click.option(
        "--noise-running",
        type=float,
        metavar="SECONDS",
        help="Noise that changes: estimate it in a moving window, long against signals.",
    ),
    click.option(
        "--noise-intervals",
        metavar="find|T[,T...]",
        type=Text(moments, names=["find"]),
        help="Noise that changes: estimate it between these change points, or find them.",
    ),
    click.option(
        "--sigma",
        metavar="level|global|S",
        type=Text(word_or_numbers, names=SIGMAS),
        default="level",
        help="Noise: of each level, of the finest level, or a standard deviation in the units of the file.",
    ),
]
EDGES = [
    click.option("--mode", cls=Named, type=Text(names=EXTENSIONS), default="symmetric", help="Boundary mode:"),
    click.option("--scope", type=click.Choice(SCOPES), default="trace", help="Thresholds per trace or per record."),
]
PANEL = [
    click.option("--two-dimensional", is_flag=True, help="Transform the traces of a file along both axes, as a panel."),
]
METHOD = [*FILTERS, *RULE, *SHRINK, *TRANSFORM, *DETAILS, *NOISE, *EDGES, *PANEL]
BACKEND = [
    click.option(
        "--backend", cls=Named, type=Text(names=lambda: ["auto", *backends.names()]), default="auto", help="Backend:"
    ),
]
COMPUTING = [
    *BACKEND,
    click.option(
        "-j",
        "threads",
        type=COUNT,
        metavar="N",
        callback=use_threads,
        expose_value=False,
        help="Cores: N processes for small files, N threads in a large one. [default: all]",
    ),
    click.option(
        "--scheduler",
        type=Text(names=["local"]),
        metavar="ADDRESS|local[:N]",
        help="Zarr: a Dask scheduler, or N processes here.",
    ),
    click.option("--fast-math", is_flag=True, help="cuda: let the compiler reorder and approximate arithmetic."),
    click.option(
        "--devices",
        metavar="all|N,...",
        type=Text(gpus, names=["all"]),
        help="cuda: GPUs of this host to share the traces.",
    ),
]
PLOT = [
    click.option("--plot", type=FILE, help="Draw input, output and residual (png, pdf, svg)."),
    click.option("--panels", type=Text(names=PANELS), metavar="NAME,...", help=f"--plot: of {', '.join(PANELS)}."),
    click.option(
        "--gain",
        type=Text(names=["agc:", "tpow:"]),
        metavar="agc:SECONDS|tpow:N",
        help="--plot: divide by the RMS in a moving window, or multiply by a power of time.",
    ),
    click.option("--clip", type=float, metavar="PERCENTILE", help="--plot: draw this magnitude as full scale."),
    click.option(
        "--display", type=click.Choice(DISPLAYS), help="--plot: lines, filled lines or an image. [default: by traces]"
    ),
    click.option("--traces-by", type=click.Choice(TRACES_BY), help="--plot: place traces by header. [default: id]"),
]
RUN = [
    click.option(
        "--max-memory",
        metavar="SIZE",
        type=Text(in_bytes),
        help=f"{STREAMED}: limit for a file of any size, as 1GiB. "
        "[default: half of the free memory for files that would not fit]",
    ),
    click.option("--overwrite", is_flag=True, help="Replace existing output files."),
    click.option("--dry-run", is_flag=True, help="Print what would be done and write nothing."),
    click.option(
        "--keep-going/--fail-fast", default=True, help="Go on after a file that fails (exit code 4), or stop."
    ),
    click.option("--log", type=FILE, metavar="FILE", help="Write one line of JSON for each file as it ends."),
    *PLOT,
    click.option(
        "--report",
        type=FILE,
        metavar="FILE.html",
        help="Write a report: is there signal in what was removed? Of several inputs a page with a line for each.",
    ),
    click.option("--removed", type=click.Path(), metavar="FILE", help="Write the residual, what was removed."),
    click.option("--sidecar", is_flag=True, help="Write every resolved parameter to OUT.wavefilt.json."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file on standard output."),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Print noise and thresholds by level, a test of what was removed, notes.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
]


@click.command(
    "denoise",
    epilog="Example: wavefilt denoise seismic.dat -w db8 --rule bayes --plot seismic.png",
)
@click.argument("inputs", nargs=-1, required=True, type=INPUT, metavar="IN...")
@add(*OUTPUT, *METHOD, *COMPUTING, *LAYOUT, *RUN)
def command(inputs: tuple[str, ...], **parsed: Any) -> None:
    """Denoise files and write the results in the input format, headers kept.

    The format is found by content. Quoted patterns are expanded: 'survey/**/*.dat'; without --out-dir they skip earlier
    results, *.denoised.*, unless they name them. - reads standard input and, without -o, writes standard output.
    """
    with usage_errors():
        options = Options.of(parsed)
        if options.scheduler:
            scheduler.denoise(inputs, options, options.scheduler)
            return
        single_file.backend(options)
    if options.max_memory:
        streaming.check(inputs, options)
    files = paths.plan(inputs, options)
    batch.denoise(files, replace(options, many=len(files) > 1))
