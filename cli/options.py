"""The options of all commands in one table, their help in groups, and the values made of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from wavefilt import backends, transforms
from wavefilt.io import FORMATS, Layout
from wavefilt.memory import in_bytes
from wavefilt.options import DEFAULTS, NOISE_FLAGS, PRESETS, NoiseForm, Options, checked, completed
from wavefilt.plotting import PlotOptions
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.vocabulary import BASES, DETRENDS, DISPLAYS, ESTIMATORS, PANELS, SCOPES, SIGMAS, TRACES_BY
from wavefilt.wavelets import filters
from wavefilt.wavelets.boundary import EXTENSIONS

Function = TypeVar("Function", bound=Callable[..., None])
IO, METHOD, NOISE, PICTURES = "Input and output", "Method", "Noise", "Pictures and report"
LAYOUT, COMPUTING, BATCH = "Layout of the input", "Computing", "Runs and messages"
GROUPS = (IO, METHOD, NOISE, PICTURES, BATCH, COMPUTING, LAYOUT)
"""Groups of options in the order of the help."""
MOST = 12
"""Largest number of options that `--help` shows in full; longer commands have `--help-all`."""
EVERYTHING = "wavefilt.help_all"


class Text(click.ParamType):  # type: ignore[type-arg]  # no type argument at run time before click 8.5
    """A text, converted by ``parse``, whose ValueError is wrong usage. Shells complete ``names``, or ``files``."""

    name = "text"

    def __init__(self, parse: Callable[[str], object] = str, *, names: Iterable[str] = (), files: bool = False) -> None:
        self.parse, self.names, self.files = parse, list(names), files

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names with this beginning; without any, the shell completes file names if files are meant."""
        found = [CompletionItem(name) for name in self.names if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")] * self.files


class Option(click.Option):
    """An option in a group of the help, with the names of its type if its help ends with a colon.

    The short help has only the ``brief`` options.
    """

    def __init__(self, *declarations: str, group: str = IO, brief: bool = False, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.group, self.brief = group, brief
        if isinstance(self.type, Text) and self.help and self.help.endswith(":"):
            self.help += f" {', '.join(self.type.names)}."


class Command(click.Command):
    """A command whose help has groups, and an option `--help-all` if there are more than `MOST` options."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.all_options = [param for param in self.params if isinstance(param, Option)]
        self.long = len(self.all_options) > MOST
        if self.long:
            everything = Option("--help-all", is_flag=True, is_eager=True, expose_value=False, hidden=True)
            everything.callback = self._show_all
            self.params.append(everything)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; `--noise-window none` is another spelling of `--sigma level`."""
        text = "\0".join(args).replace("--noise-window=none", "--noise-window\0none")
        second = re.search(r"--noise-window\0none\0(-?[\d.]+)(\0|$)", text)
        if second and not os.path.exists(second[1]):  # a file may have such a name
            raise click.UsageError("--noise-window takes two times, or only the word none", ctx)
        return super().parse_args(
            ctx, text.replace("--noise-window\0none", "--sigma\0level").split("\0") if args else []
        )

    def _show_all(self, ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[EVERYTHING] = True
            click.echo(ctx.get_help())
            ctx.exit()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        brief = self.long and EVERYTHING not in ctx.meta
        shown = [option for option in self.all_options if option.brief or not brief]
        for group in GROUPS:
            records = [option.get_help_record(ctx) for option in shown if option.group == group]
            if records:
                with formatter.section(group):
                    formatter.write_dl([record for record in records if record])
        if brief:
            formatter.write_paragraph()
            formatter.write_text(f"`{ctx.command_path} --help-all` lists all {len(self.all_options)} options.")


def command(
    name: str, *parameters: click.Parameter, example: str | None = None
) -> Callable[[Callable[..., None]], Command]:
    """Return a decorator that makes a command with these parameters of a function."""
    return click.command(name, cls=Command, params=list(parameters), epilog=example and f"Example: {example}")


def word_or_numbers(text: str) -> str | float | list[float]:
    """Parse a number or numbers separated by commas; a name or time is checked together with the other options."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def whole_or_auto(text: str) -> int | None:
    if text != "auto" and not text.isdecimal():
        raise ValueError(f"{text!r} is neither a whole number nor auto")
    return None if text == "auto" else int(text)


def file_name(text: str) -> str:
    if not text:
        raise ValueError("the name is empty")
    return text


def numbers(text: str) -> tuple[int, ...]:
    """Parse whole numbers and ranges: ``2,4-6``."""
    if not re.fullmatch(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*", text):
        raise ValueError(f"{text!r} is not a list like 2,4-6")
    ends = [[int(number) for number in part.split("-")] for part in text.split(",")]
    if any(end[0] > end[-1] for end in ends):
        raise ValueError(f"{text!r}: a range must increase, such as 4-6")
    return tuple(number for end in ends for number in range(end[0], end[-1] + 1))


def use_threads(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value is not None:
        from wavefilt import set_num_threads

        set_num_threads(value)
        ctx.call_on_close(lambda: set_num_threads(None))


def page(text: str) -> str:
    """Check that a report is written to an HTML file."""
    if not text.lower().endswith((".html", ".htm")):
        raise ValueError(f"a report is an HTML file, and {text!r} does not end with .html")
    return text


FILE, FOLDER = click.Path(dir_okay=False), click.Path(file_okay=False)
COUNT, SIZE = click.IntRange(min=1), Text(in_bytes)
INPUT = Text(file_name, files=True)
"""A file; wildcards and ::NAME of an array may be in the name."""
WAVELET = Text(names=filters.names())
STREAMED = ", ".join(format.name for format in FORMATS.values() if format.streamed)
TABLE = [
    Option("-o", "--output", brief=True, type=INPUT, metavar="OUT",
           help="Output file; - is standard output. [default: NAME.denoised.EXT]"),
    Option("--out-dir", brief=True, type=FOLDER, metavar="DIR",
           help="Output folder; subfolders of the inputs are kept."),
    Option("--overwrite", brief=True, is_flag=True, help="Replace existing output files."),

    Option("--preset", brief=True, group=METHOD, type=Text(names=PRESETS), metavar="NAME",
           help="Replace the recipe (js, sym8, modwt): gentle is bayes, db8, dwt; section is --two-dimensional "
           "--transform fk; strong is js, dtcwt, 8 levels."),
    Option("-w", "--wavelet", brief=True, group=METHOD, type=WAVELET, metavar="NAME",
           help="Wavelet (see `wavefilt wavelets`). [default: sym8; npy, npz, hdf5, zarr, wav: db8; dtcwt and fk have "
           "their own]"),
    Option("-l", "--level", brief=True, group=METHOD, type=Text(whole_or_auto, names=["auto"]), default="auto",
           metavar="N|auto", help="Number of levels; auto is at most 5 (rules js and bivariate: 6); the recipe uses "
           "more for sampling rates above 1024 Hz."),
    Option("--rule", brief=True, group=METHOD, type=Text(word_or_numbers, names=RULES), metavar="NAME|T[,T...]",
           help="Threshold rule, by default js (npy, npz, hdf5, zarr, wav: bayes): a threshold T, one T per level "
           "(coarsest first), or one of:"),
    Option("--transform", brief=True, group=METHOD, type=Text(names=transforms.words()), metavar="NAME",
           help="Transform, by default modwt (npy, npz, hdf5, zarr, wav: dwt), or fk for sections. One of:"),
    Option("--basis", group=METHOD, type=click.Choice(BASES), help="wp: choice of the basis. [default: risk]"),
    Option("--two-dimensional", group=METHOD, is_flag=True,
           help="Transform all traces of a file together, as a section."),
    Option("--statics", group=METHOD, is_flag=True,
           help="Remove shifts and amplitudes of the traces of a section before denoising, and restore them after it."),
    Option("--shrink", group=METHOD, type=Text(names=[*FUNCTIONS, *ESTIMATORS]), metavar="NAME",
           help="Threshold function, by default that of the rule. One of:"),
    Option("--scope", group=METHOD, type=click.Choice(SCOPES), default=DEFAULTS["scope"],
           help="Thresholds per trace or per record."),
    Option("--mode", group=METHOD, type=Text(names=EXTENSIONS), metavar="NAME", default=DEFAULTS["mode"],
           help="Boundary mode. One of:"),
    Option("--keep", group=METHOD, type=click.IntRange(min=0), metavar="N", default=DEFAULTS["keep"],
           help="Leave the N coarsest levels unchanged."),
    Option("--spins", group=METHOD, type=COUNT, metavar="K", default=DEFAULTS["spins"],
           help="dwt: average over K shifts (cycle spinning)."),
    Option("--detrend", group=METHOD, type=click.Choice(DETRENDS),
           help="Remove the mean or a line before denoising, and add it again. [default: mean with rule js]"),
    Option("--blend", group=METHOD, type=float, metavar="SHARE", default=DEFAULTS["blend"],
           help="Add this share of the residual to the result; less than 1."),

    Option("--noise-window", brief=True, group=NOISE, type=float, nargs=2, metavar="T0 T1|none",
           help="Estimate the noise between these times, in seconds from the trigger. By default before the trigger, "
           "origin or first arrival, if the headers give one; none turns this off."),
    Option("--sigma", brief=True, group=NOISE, type=Text(word_or_numbers, names=SIGMAS), metavar="level|global|S",
           help="Noise of each level, or of the finest level for all (global), or a standard deviation in the units of "
           "the file. [default: level, if there is no noise window]"),
    Option("--noise-before", group=NOISE, type=(Text(word_or_numbers), float), metavar="PICK SECONDS",
           help="Estimate the noise in the seconds before a pick, which is a time (UTC) or seconds from the trigger."),
    Option("--noise-running", group=NOISE, type=float, metavar="SECONDS",
           help="For noise that changes: estimate it in a moving window, much longer than the signals."),
    Option("--noise-intervals", group=NOISE, metavar="T[,T...]",
           type=Text(lambda text: [word_or_numbers(part) for part in text.split(",")]),
           help="For noise that changes: estimate it between these times."),

    Option("--plot", brief=True, group=PICTURES, type=FILE, metavar="FILE",
           help="Draw the input, the result and the residual (png, pdf, svg)."),
    Option("--report", brief=True, group=PICTURES, type=Text(page, files=True), metavar="FILE.html",
           help="Write a report that tests whether signal was lost."),
    Option("--residual", group=PICTURES, type=click.Path(), metavar="FILE",
           help="Write the residual (input minus output), in the format of the input."),
    Option("--panels", group=PICTURES, type=Text(names=PANELS), metavar="NAME,...",
           help="--plot: parts of the figure, separated by commas, out of:"),
    Option("--gain", group=PICTURES, type=Text(names=["agc:", "tpow:"]), metavar="agc:SECONDS|tpow:N",
           help="--plot: divide by the RMS in a moving window, or multiply by a power of time."),
    Option("--clip", group=PICTURES, type=float, metavar="PERCENTILE",
           help="--plot: draw this percentile of the magnitudes as full scale."),
    Option("--display", group=PICTURES, type=click.Choice(DISPLAYS),
           help="--plot: lines, filled lines or an image. [default: by the number of traces]"),
    Option("--traces-by", group=PICTURES, type=click.Choice(TRACES_BY),
           help="--plot: order of the traces. [default: id if the file has ids, else trace]"),

    Option("--dry-run", group=BATCH, is_flag=True, help="Print what would be done; write nothing."),
    Option("--keep-going/--fail-fast", group=BATCH, default=True,
           help="Continue after a file that fails (exit code 4), or stop."),
    Option("--log", group=BATCH, type=FILE, metavar="FILE", help="Write a line of JSON for each file."),
    Option("--json", "as_json", group=BATCH, is_flag=True, help="Print JSON on standard output."),
    Option("-v", "--verbose", group=BATCH, is_flag=True,
           help="Print notes, noise and thresholds by level, and a one-line summary of the report."),
    Option("-q", "--quiet", group=BATCH, is_flag=True, help="Print errors only."),

    Option("--backend", group=COMPUTING, type=Text(names=["auto", *backends.names()]), metavar="NAME",
           default="auto", help="One of:"),
    Option("-j", "threads", group=COMPUTING, type=COUNT, metavar="N", callback=use_threads, expose_value=False,
           help="Cores: N processes for small files, N threads for a large file. [default: all]"),
    Option("--max-memory", group=COMPUTING, type=SIZE, metavar="SIZE",
           help=f"Memory limit, such as 1GiB, for files of any size ({STREAMED}). "
           "[default: half of the free memory, for files that do not fit]"),
    Option("--fast-math", group=COMPUTING, is_flag=True,
           help="cuda: let the compiler reorder and approximate arithmetic."),
    Option("--no-padding", group=COMPUTING, is_flag=True,
           help="cuda: do not pad tiles in shared memory."),
    Option("--devices", group=COMPUTING, metavar="all|N,...",
           type=Text(lambda text: text if text == "all" else numbers(text), names=["all"]),
           help="cuda: GPUs of this host; the traces are divided between them."),

    Option("--format", group=LAYOUT, type=Text(names=FORMATS), metavar="NAME",
           help="Format, by default detected from the content; obspy is any format of ObsPy. One of:"),
    Option("--dtype", group=LAYOUT, type=Text(names=("f4", "f8", "i2", "i4")), metavar="TYPE",
           help="raw: f4, f8, i2 or i4."),
    Option("--endian", group=LAYOUT, type=Text(names=("little", "big")), metavar="ORDER", help="raw: little or big."),
    Option("--ns", group=LAYOUT, type=int, metavar="N", help="raw: samples per trace."),
    Option("--dt", group=LAYOUT, type=float, metavar="SECONDS",
           help="Sampling interval, for files without one."),
    Option("--columns", group=LAYOUT, type=Text(numbers), metavar="LIST",
           help="ascii: columns with traces, counted from 1, such as 2,4-6."),
    Option("--delimiter", group=LAYOUT, metavar="CHAR", help="ascii: comma, semicolon, tab or space."),
    Option("--component", group=LAYOUT, metavar="NAME",
           help="npz, hdf5, zarr: the array to read; FILE::NAME does the same."),
    Option("--axis", group=LAYOUT, type=int, metavar="N",
           help="npy, npz, hdf5, zarr: axis of the samples. [default: the last]"),
]  # fmt: skip
"""Every option that more than one command has, or that belongs to `wavefilt denoise`."""
COMPARISON = [
    Option("--rule", "rules", brief=True, group=METHOD, multiple=True, metavar="NAME|T",
           type=Text(word_or_numbers, names=RULES),
           help="Compare this rule or threshold; repeatable; by default all of:"),
    Option("--transform", "transforms", brief=True, group=METHOD, multiple=True, default=["dwt"], metavar="NAME",
           type=Text(names=transforms.words()), help="Use this transform; repeatable; one of:"),
    Option("-w", "--wavelet", brief=True, group=METHOD, type=WAVELET, metavar="NAME",
           help="Wavelet of all methods (see `wavefilt wavelets`). [default: db8; dtcwt and fk have their own]"),
    Option("-l", "--level", brief=True, group=METHOD, type=Text(whole_or_auto, names=["auto"]), default="auto",
           metavar="N|auto", help="Number of levels; auto is at most 5 (rules js and bivariate: 6)."),
]  # fmt: skip
"""Options of `wavefilt compare`."""
TIME_LIMIT = Option("--seconds", group=METHOD, brief=True, type=click.FloatRange(min=0, min_open=True), default=30.0,
                    metavar="SECONDS", help="Time after which the search ends.")  # fmt: skip
OPTIONS = {str(option.name): option for option in TABLE}
FLAGS = {name: option.opts[-1] for name, option in OPTIONS.items()} | {"axes": "--two-dimensional"}
"""The flag of each option by its name in Python."""
DRAWING = tuple(field.name for field in fields(PlotOptions))
FILE_LAYOUT = tuple(field.name for field in fields(Layout))
OPTION_NAMES = tuple(name for name in DEFAULTS if name in OPTIONS)
"""Options that `wavefilt.denoise` has as well."""
SIGMAS_OF = {flag.replace("-", "_"): form for form, flag in NOISE_FLAGS.items() if form != "window"}
"""Options for the noise in seconds, times and picks, and the first item of ``sigma`` for each."""


def chosen(*names: str) -> list[Option]:
    """Return the options of these groups or names, in the order of the table."""
    return [option for option in TABLE if option.group in names or option.name in names]


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Request(SimpleNamespace):
    """The checked options of a run of `wavefilt denoise`: options of the table by name, and values made from them.

    ``given`` are the options of `Recording.denoise` that were given; ``layout`` and ``drawing`` are objects.
    """

    @classmethod
    def of(cls, parsed: dict[str, Any]) -> Request:
        """Return the request for parsed options. Raises UsageError for invalid or contradicting options."""
        parsed = {**parsed, "two_dimensional": parsed["two_dimensional"] or parsed["preset"] == "section"}
        given = {name: parsed[name] for name in (*OPTION_NAMES, "two_dimensional")}
        noise = noise_of(parsed, checked(completed(given, parsed["preset"])))
        drawing = PlotOptions(**{name: parsed[name] for name in DRAWING})
        given = given if noise is None else {**given, "sigma": noise}
        request = cls(**parsed, given=given, layout=layout_of(parsed), drawing=drawing)
        drawn = [FLAGS[name] for name in DRAWING if parsed[name] is not None]
        if drawn and not request.plot:
            raise click.UsageError(f"{drawn[0]} is an option of --plot")
        for name in ("fast_math", "no_padding", "devices"):
            if parsed[name] and request.backend != "cuda":
                raise click.UsageError(f"{FLAGS[name]} is an option of --backend cuda")
        if request.quiet and request.verbose:
            raise click.UsageError("-q and -v contradict each other")
        return request


def layout_of(parsed: dict[str, Any]) -> Layout:
    return Layout(**{name: parsed[name] for name in FILE_LAYOUT})


def noise_of(parsed: dict[str, Any], options: Options) -> NoiseForm | None:
    """Return ``sigma`` from --sigma or one of `SIGMAS_OF`, None if neither is given.

    Raises UsageError for two of them or for options they exclude.
    """
    given = [name for name in SIGMAS_OF if parsed[name] is not None]
    if not given:
        return None if parsed["sigma"] is None else options.sigma
    name, value = given[0], parsed[given[0]]
    if options.ndim == 2 and name in ("noise_running", "noise_intervals"):
        raise click.UsageError(f"{FLAGS[name]} is for traces, not for --two-dimensional; leave one out")
    if parsed["sigma"] is not None or len(given) > 1:
        raise click.UsageError(f"{FLAGS[name]} and {FLAGS[[*given, 'sigma'][1]]} both define the noise: give one")
    if name in ("noise_running", "noise_intervals"):
        replace(options, sigma=("running", 4))  # raises for rules that need constant noise
    return (SIGMAS_OF[name], *value) if isinstance(value, tuple) else (SIGMAS_OF[name], value)
