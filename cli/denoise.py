"""`wavefilt denoise`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wavefilt.vocabulary import ESTIMATORS, MODES, RULES, SCOPES, SHRINKS, TRANSFORMS

from . import jobs, scheduler, streaming
from .failure import Failure
from .reading import layout_options, read


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


def use_threads(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value is not None:
        from wavefilt import set_num_threads

        set_num_threads(value)
        ctx.call_on_close(lambda: set_num_threads(None))


@click.command("denoise", epilog="Example: wavefilt denoise seismic.dat -w db8 --rule bayes --plot seismic.png")
@click.argument("inputs", nargs=-1, required=True, metavar="IN...")
@click.option("-o", "--output", metavar="OUT", help="Write here; - is standard output. [default: NAME.denoised.EXT]")
@click.option("--out-dir", type=click.Path(file_okay=False), help="Write NAME.denoised.EXT into this folder.")
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
@click.option("--backend", default="auto", show_default=True, help="Where to compute: see wavefilt backends.")
@click.option("-j", "threads", type=click.IntRange(min=1), metavar="N", callback=use_threads, expose_value=False,
              help="Threads of the CPU to use. [default: all]")  # fmt: skip
@scheduler.option
@click.option("--fast-math", is_flag=True, help="cuda: let the compiler reorder and approximate arithmetic.")
@layout_options
@click.option("--max-memory", metavar="SIZE", callback=streaming.size,
              help="npy, raw, SEG-Y, SU, HDF5, Zarr: files of any size within so much memory, as 1GiB.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace existing output files.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and write nothing.")
@click.option("--fail-fast", is_flag=True, help="Stop a batch at the first bad file.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw before, after and removed noise (png, pdf, svg).")
@click.option("--removed", type=click.Path(dir_okay=False), metavar="FILE", help="Write what was removed here.")
@click.option("--sidecar", is_flag=True, help="Write every resolved parameter to OUT.wavefilt.json.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Noise and thresholds by level, and remarks.")
@click.option("-q", "--quiet", is_flag=True, help="Errors only.")
def command(inputs: tuple[str, ...], **options: Any) -> None:
    """Denoise files and write the results in the format they came in, headers kept.

    The format is found by content. - reads standard input and, without -o, writes standard output.
    """
    from wavefilt.errors import BackendUnavailable
    from wavefilt.method import Method

    names = ("wavelet", "level", "mode", "rule", "shrink", "sigma", "scope", "keep", "transform", "spins")
    try:
        method = Method(**{name: options[name] for name in names})
        if options["fast_math"] and options["backend"] != "cuda":
            raise click.UsageError("--fast-math is an option of --backend cuda")
        if options["noise_window"] and options["sigma"] != "level":
            raise click.UsageError("--noise-window and --sigma both tell the noise: give one")
        if options["scheduler"]:
            scheduler.denoise(inputs, method, options)
            return
        _backend(options)
    except BackendUnavailable as error:
        raise Failure(str(error), 5) from error
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    files = jobs.plan(jobs.expanded(inputs), options)
    if options["max_memory"]:
        streaming.check(files, options)
    failures = []
    for source, target in _progress(files, options["quiet"]):
        try:
            _one(source, target, method, options)
        except Failure as error:
            if len(files) == 1 or options["fail_fast"]:
                raise
            error.show()
            failures.append(source)
    if failures:
        raise Failure(f"{len(failures)} of {len(files)} files failed: {', '.join(failures)}", 4)


def _backend(options: dict[str, Any]) -> Any:
    """What `run` takes: "auto", or the backend asked for. Raises BackendUnavailable if it cannot run here."""
    from wavefilt import backends

    if options["backend"] == "auto":
        return "auto"
    return backends.get(options["backend"], **({"fastmath": True} if options["fast_math"] else {}))


def _progress(files: list[tuple[str, str]], quiet: bool) -> Any:
    """The jobs, with a bar on standard error where that is a terminal and there is more than one."""
    if quiet or len(files) == 1 or not sys.stderr.isatty():
        return files
    from tqdm import tqdm

    return tqdm(files, unit="file", leave=False)


def _one(source: str, target: str, method: Any, options: dict[str, Any]) -> None:
    """Read, denoise, write one file and say so. Raises Failure with its exit code."""
    from wavefilt import report
    from wavefilt.io import encode, write, write_atomically

    if options["max_memory"]:
        _tell(streaming.denoise(source, target, method, _backend(options), options) | {"output": target}, options)
        return
    layout = {o: options[o] for o in ("format", "dtype", "endian", "ns", "dt", "columns", "delimiter", "component",
                                      "axis")}  # fmt: skip
    before, digest = read(source, layout, digest=options["sidecar"])
    overwrite = options["overwrite"]
    start = time.perf_counter()
    try:
        if options["noise_window"]:
            method = replace(method, sigma=before.window(*options["noise_window"]))
        if options["dry_run"]:
            _intend(before, target, method, options)
            return
        after = before.apply(method, _backend(options), report=True)
        seconds = time.perf_counter() - start
        if target == "-":
            _write_stdout(encode(after), after.format)
        else:
            write(after, Path(target), overwrite=overwrite)
        if options["removed"]:
            before.less(after).write(options["removed"], overwrite=overwrite)
        facts = {**report.describe(before, after, seconds), "output": target}
        if options["sidecar"]:
            given = {name: value for name, value in options.items() if value is not None}
            details = report.estimates(after)
            everything = {**facts, "input_sha256": digest, "options": given, "estimates": details}
            text = json.dumps(everything, indent=1, allow_nan=False) + "\n"
            write_atomically(jobs.sidecar(Path(target)), text.encode(), overwrite=overwrite)
        if options["plot"]:
            from wavefilt.plot import plot_denoising

            plot_denoising(before, after, Path(options["plot"]), overwrite=overwrite)
    except MemoryError as error:
        raise Failure(f"{source}: not enough memory", 1) from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise Failure(f"{source}: {str(error).removeprefix(f'{source}: ')}", 1) from error
    _tell(facts, options)


def _tell(facts: dict[str, Any], options: dict[str, Any]) -> None:
    """What was done, in the ways asked for."""
    if options["as_json"]:
        click.echo(json.dumps(facts, allow_nan=False))
    _say(options, _line(facts))
    if options["verbose"]:
        _say(options, _details(facts))


def _write_stdout(data: bytes, format: str) -> None:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if sys.stdout.isatty() and format != "ascii":
        raise ValueError(f"a {format} file is not written to a terminal; use -o or redirect")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _say(options: dict[str, Any], text: str) -> None:
    """A message for people: on standard error, so that standard output holds data only."""
    if not options["quiet"]:
        click.echo(text, err=True)


def _intend(before: Any, target: str, method: Any, options: dict[str, Any]) -> None:
    """Say what would be done. Raises ValueError where the run would, for want of levels."""
    from wavefilt import report

    facts = {**report.contents(before), "output": target, "wavelet": method.bank.name, "rule": _rule(method.rule)}
    facts |= {"level": method.level_for(max(len(trace) for trace in before.traces)), "shrink": method.shrink_word}
    size = sum(trace.nbytes for trace in before.traces) / 2**20
    if options["as_json"]:
        click.echo(json.dumps({**facts, "dry_run": True}, allow_nan=False))
    _say(
        options,
        f"{before.source} -> {target}  {before.format}, {facts['traces']} traces x {facts['samples']} samples, "
        f"{size:.1f} MiB  {facts['wavelet']} L{facts['level']} {facts['rule']} {facts['shrink']}  "
        f"about {4 * size:.0f} MiB of memory (dry run)",
    )


def _rule(rule: Any) -> str:
    return rule if isinstance(rule, str) else "thresholds"


def _line(facts: dict[str, Any]) -> str:
    sigma = sorted(set(facts["sigma"]))
    spread = "..".join(f"{value:.3g}" for value in (sigma if len(sigma) < 3 else [sigma[0], sigma[-1]])) or "unknown"
    return (
        f"{facts['input']} -> {facts['output']}  {facts['wavelet']} L{facts['level']} {_rule(facts['rule'])} "
        f"{facts['shrink']}  sigma {spread}  removed {100 * facts['energy_removed']:.2g} % energy  "
        f"{facts['seconds']:.2g} s ({facts['backend']})"
    )


def _details(facts: dict[str, Any]) -> str:
    rows = zip(facts["sigma"], facts["thresholds"], strict=False)
    lines = [f"  level {i}: sigma {s:.4g}, threshold {t:.4g}" for i, (s, t) in enumerate(rows, 1)]
    return "\n".join([*lines, *(f"  note: {note}" for note in facts["notes"])])
