"""`wavefilt denoise`."""

from __future__ import annotations

import glob
import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from wavefilt.vocabulary import MODES, SCOPES, SHRINKS

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
              help="bayes, universal, sure, minimax, a threshold, or one a level (coarsest first).")  # fmt: skip
@click.option("--shrink", type=click.Choice(SHRINKS), help="Threshold function. [default: the rule's own]")
@click.option("--sigma", metavar="level|global|S", callback=word_or_numbers, default="level", show_default=True,
              help="Noise estimate: of each level, of the finest level, or a number in the file's units.")  # fmt: skip
@click.option("--mode", type=click.Choice(MODES), default="symmetric", show_default=True, help="Boundary mode.")
@click.option("--scope", type=click.Choice(SCOPES), default="trace", show_default=True,
              help="Thresholds for each trace or for the whole record.")  # fmt: skip
@click.option("--backend", default="auto", show_default=True, help="Where to compute: see wavefilt backends.")
@layout_options
@click.option("--overwrite", is_flag=True, help="Replace existing output files.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and write nothing.")
@click.option("--fail-fast", is_flag=True, help="Stop a batch at the first bad file.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw before, after and removed noise (png, pdf, svg).")
@click.option("--sidecar", is_flag=True, help="Write every resolved parameter to OUT.wavefilt.json.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Noise and thresholds by level, and remarks.")
@click.option("-q", "--quiet", is_flag=True, help="Errors only.")
def command(inputs: tuple[str, ...], **options: Any) -> None:
    """Denoise files and write the results in the format they came in, headers kept.

    The format is found by content. - reads standard input and, without -o, writes standard output.
    """
    from wavefilt import backends
    from wavefilt.denoising import Method
    from wavefilt.errors import BackendUnavailable

    names = ("wavelet", "level", "mode", "rule", "shrink", "sigma", "scope")
    try:
        method = Method(**{name: options[name] for name in names})
        backends.choose(options["backend"], "float32")
    except BackendUnavailable as error:
        raise Failure(str(error), 5) from error
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    jobs = _plan(_expanded(inputs), options)
    failures = []
    for source, target in _progress(jobs, options["quiet"]):
        try:
            _one(source, target, method, options)
        except Failure as error:
            if len(jobs) == 1 or options["fail_fast"]:
                raise
            error.show()
            failures.append(source)
    if failures:
        raise Failure(f"{len(failures)} of {len(jobs)} files failed: {', '.join(failures)}", 4)


def _expanded(inputs: tuple[str, ...]) -> list[str]:
    """Patterns a shell did not expand, expanded; anything that exists by its own name is left alone."""
    names: list[str] = []
    for name in inputs:
        found = [] if name == "-" or Path(name).exists() else sorted(glob.glob(name))
        names += found or [name]
    return names


def _plan(inputs: list[str], options: dict[str, Any]) -> list[tuple[str, str]]:
    """Input and output of every file, checked before anything is computed. Raises UsageError (exit code 2)."""
    from wavefilt.io import check_destination

    output, folder = options["output"], options["out_dir"]
    if output is not None and (folder is not None or len(inputs) > 1):
        raise click.UsageError("-o takes one input and no --out-dir; use --out-dir for several")
    if len(inputs) > 1 and options["plot"]:
        raise click.UsageError("--plot takes one input")
    if options["quiet"] and options["verbose"]:
        raise click.UsageError("-q and -v contradict each other")
    jobs = [(source, output or _default_output(source, folder)) for source in inputs]
    targets = [Path(target) for _, target in jobs if target != "-"]
    if len({target.resolve() for target in targets}) < len(targets):
        raise click.UsageError("two inputs would be written to the same output; denoise them one by one with -o")
    if any(target == "-" for _, target in jobs) and (options["as_json"] or options["sidecar"]):
        raise click.UsageError("--json and --sidecar need an output file, not standard output")
    if folder and not options["dry_run"]:
        Path(folder).mkdir(parents=True, exist_ok=True)
    sidecars = [_sidecar(target) for target in targets] if options["sidecar"] else []
    plots = [Path(options["plot"])] if options["plot"] else []
    for path in plots:
        _check_plot(path)
    for source, target in jobs:
        if "-" not in (source, target) and Path(target).exists() and Path(target).samefile(source):
            raise click.UsageError(f"{target} is the input; choose another output")
    try:
        for path in [*targets, *sidecars, *plots]:
            if path.parent.is_dir() or not folder:
                check_destination(path, overwrite=options["overwrite"])
    except OSError as error:
        raise click.UsageError(str(error)) from error
    return jobs


def _check_plot(path: Path) -> None:
    """Before anything is computed: whether figures can be drawn, and written as such a file."""
    from wavefilt import plot

    try:
        plot.check_target(path)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except ImportError as error:
        raise Failure(str(error), 1) from error


def _default_output(source: str, folder: str | None) -> str:
    if source == "-":
        if folder is not None:
            raise click.UsageError("standard input has no name; use -o instead of --out-dir")
        return "-"
    path = Path(source)
    return str((Path(folder) if folder else path.parent) / f"{path.stem}.denoised{path.suffix}")


def _sidecar(target: Path) -> Path:
    return target.with_name(f"{target.name}.wavefilt.json")


def _progress(jobs: list[tuple[str, str]], quiet: bool) -> Any:
    """The jobs, with a bar on standard error where that is a terminal and there is more than one."""
    if quiet or len(jobs) == 1 or not sys.stderr.isatty():
        return jobs
    from tqdm import tqdm

    return tqdm(jobs, unit="file", leave=False)


def _one(source: str, target: str, method: Any, options: dict[str, Any]) -> None:
    """Read, denoise, write one file and say so. Raises Failure with its exit code."""
    from wavefilt import report
    from wavefilt.io import encode, write_atomically

    layout = {o: options[o] for o in ("format", "dtype", "endian", "ns", "dt", "columns", "delimiter", "component",
                                      "axis")}  # fmt: skip
    before = read(source, layout)
    if options["dry_run"]:
        _say(options, _intention(before, target, method))
        return
    overwrite = options["overwrite"]
    start = time.perf_counter()
    try:
        after = before.apply(method, options["backend"], report=bool(options["plot"]))
        seconds = time.perf_counter() - start
        data = encode(after)
        if target == "-":
            _write_stdout(data, after.format)
        else:
            write_atomically(Path(target), data, overwrite=overwrite)
        facts = {**report.describe(before, after, seconds), "output": target}
        if options["sidecar"]:
            digest = {} if source == "-" else {"input_sha256": report.sha256(Path(source))}
            text = json.dumps({**facts, **digest}, indent=2) + "\n"
            write_atomically(_sidecar(Path(target)), text.encode(), overwrite=overwrite)
        if options["plot"]:
            from wavefilt.plot import plot_denoising

            plot_denoising(before, after, Path(options["plot"]), overwrite=overwrite)
    except MemoryError as error:
        raise Failure(f"{source}: not enough memory", 1) from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise Failure(f"{source}: {str(error).removeprefix(f'{source}: ')}", 1) from error
    if options["as_json"]:
        click.echo(json.dumps(facts))
    _say(options, _line(facts))
    if options["verbose"]:
        _say(options, _details(facts))


def _write_stdout(data: bytes, format: str) -> None:
    if sys.stdout.isatty() and format != "ascii":
        raise ValueError(f"a {format} file is not written to a terminal; use -o or redirect")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _say(options: dict[str, Any], text: str) -> None:
    """A message for people: on standard error, so that standard output holds data only."""
    if not options["quiet"]:
        click.echo(text, err=True)


def _intention(before: Any, target: str, method: Any) -> str:
    longest = max(len(trace) for trace in before.traces)
    size = sum(trace.nbytes for trace in before.traces)
    return (
        f"{before.source} -> {target}  {before.format}, {len(before.traces)} traces x {longest} samples, "
        f"{size / 2**20:.1f} MiB  {method.bank.name} L{method.level_for(longest)} {_rule(method.rule)} "
        f"{method.shrink_function}  about {4 * size / 2**20:.0f} MiB of memory (dry run)"
    )


def _rule(rule: Any) -> str:
    return rule if isinstance(rule, str) else "thresholds"


def _line(facts: dict[str, Any]) -> str:
    sigma = facts["sigma"]
    spread = f"{min(sigma):.3g}..{max(sigma):.3g}" if len(set(sigma)) > 1 else f"{(sigma or [0])[0]:.3g}"
    return (
        f"{facts['input']} -> {facts['output']}  {facts['wavelet']} L{facts['level']} {_rule(facts['rule'])} "
        f"{facts['shrink']}  sigma {spread}  removed {100 * facts['energy_removed']:.2g} % energy  "
        f"{facts['seconds']:.2g} s ({facts['backend']})"
    )


def _details(facts: dict[str, Any]) -> str:
    rows = zip(facts["sigma"], facts["thresholds"], strict=True)
    lines = [f"  level {i}: sigma {s:.4g}, threshold {t:.4g}" for i, (s, t) in enumerate(rows, 1)]
    return "\n".join([*lines, *(f"  note: {note}" for note in facts["notes"])])
