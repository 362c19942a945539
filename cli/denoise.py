"""`wavefilt denoise`: the command, one file in memory or streamed, and the messages about it."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from contextlib import closing, suppress
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from wavefilt import backends, report
from wavefilt.arrays import compute_dtype
from wavefilt.chunks import segments, whole
from wavefilt.containers import argument
from wavefilt.engine import window_noise
from wavefilt.io import encode, write
from wavefilt.io.base import named
from wavefilt.io.files import check_output, open_source, split
from wavefilt.memory import spelled, whole_bytes_factor
from wavefilt.options import Clock, to_argv
from wavefilt.recording import Recording, noise_of_source
from wavefilt.report import Facts
from wavefilt.transforms import find
from wavefilt.vocabulary import check

from . import as_flags, read_errors, run_errors, tell, usage_errors
from .files import plan, read
from .options import BATCH, COMPUTING, FLAGS, INPUT, IO, LAYOUT, METHOD, NOISE, PICTURES, Request, chosen, command
from .progress import bar

if TYPE_CHECKING:
    from wavefilt.advice import TrustReport
    from wavefilt.backends import Backend

SAMPLE = 1 << 18
"""Samples of a file that -v tests."""
NOT_STREAMED = ("two_dimensional", "plot", "report", "residual", "dry_run", "columns", "delimiter")
"""Options that need all samples at once, or do not apply to formats that are streamed."""
MEASURED = (
    *("noisy_traces", "sigma", "sigma_range", "thresholds", "thresholds_range"),
    *("residual_energy", "backend", "seconds", "passes"),
)
"""Fields of the report of a streamed file that are facts as well."""
SMALL = 4 << 20
"""Bytes of a file that fits in any memory."""
MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


@command(
    "denoise",
    click.Argument(["inputs"], nargs=-1, required=True, type=INPUT, metavar="IN..."),
    *chosen(IO, METHOD, NOISE, PICTURES, BATCH, COMPUTING, LAYOUT),
    example="wavefilt denoise seismic.dat -w db8 --rule bayes --plot seismic.png",
)
def denoise(inputs: tuple[str, ...], **parsed: Any) -> None:
    """Denoise files and write the results in the input format, with all headers.

    The format is detected from the content. Quoted patterns such as 'survey/**/*.dat' are expanded; without --out-dir
    they skip earlier results (*.denoised.*), unless they contain .denoised. IN can be - (standard input); the result is
    then written to standard output, unless -o names a file.
    """
    from . import batch

    with usage_errors():
        request = Request.of(parsed)
        backend(request)
    if request.max_memory:
        for name in _not_streamed(request):
            raise click.UsageError(f"{FLAGS[name]} does not go with --max-memory; leave one out")
        if "-" in (*inputs, request.output):
            raise click.UsageError("--max-memory needs files, not standard input or output")
    files = plan(inputs, request)
    batch.denoise(files, request)


def denoise_file(source: str, target: str, request: Request) -> Facts:
    """Denoise one file; return the facts of `wavefilt.report.describe`, with ``dry_run`` the intended ones.

    Raises Failure with its exit code, UsageError (2) for an invalid option.
    """
    if request.max_memory:
        return _streamed(source, target, request, request.max_memory)
    if limit := _needed_limit(source, target, request):
        note = f"larger than memory: streamed within {spelled(limit)}"
        return _streamed(source, target, request, limit, note)

    with run_errors(source):
        before = read(source, request.layout, request.format)
        with usage_errors():
            other = None if target == "-" else check_output(before, Path(target))
            if request.residual:
                check_output(before, Path(request.residual))
            if request.plot:
                request.drawing.check(before, True)
        if request.report and before.complex:
            raise ValueError("`report` needs real samples; these are complex")
        if request.dry_run:
            facts = _intended(before, request) | {"input": source, "output": target}
            if other or target == "-" or not named(before.format).folder:
                encode(before, other)  # raises if the format cannot hold the traces
            return facts
        start = time.perf_counter()
        options, sigma = before.options(request.given, request.preset)
        after = before.apply(options, backend(request), report=True, sigma=sigma)
        facts = report.describe(before, after, time.perf_counter() - start) | {"input": source, "output": target}
        trust = _trust(before, after, request)
        if trust:
            facts["trust"] = trust.facts() | {"summary": trust.summary()}
        if target == "-":
            _write_stdout(encode(after), after.format)
        else:
            write(after, Path(target), overwrite=request.overwrite)
        if request.residual:
            before.residual(after).write(request.residual, overwrite=request.overwrite)
        if trust and request.report:
            trust.write(request.report, overwrite=request.overwrite)
        if request.plot:
            from wavefilt.plotting import plot_denoising

            plot_denoising(before, after, request.plot, overwrite=request.overwrite, options=request.drawing)
        return facts


def backend(request: Request) -> str | Backend:
    """Return "auto" or the selected backend. Raises BackendUnavailable if it cannot run here."""
    check("backend", request.backend, ["auto", *backends.names()])
    if request.backend == "auto":
        return "auto"
    own = {"fastmath": request.fast_math, "devices": request.devices}
    given = {name: value for name, value in own.items() if value}
    return backends.get(request.backend, **given, **({"padding": False} if request.no_padding else {}))


def _trust(before: Recording, after: Recording, request: Request) -> TrustReport | None:
    """Return the tests of --report and -v; with -v alone, only a sample of a large file is tested."""
    if not (request.report or request.verbose) or before.complex:
        return None
    given = {"preset": request.preset, **request.given, "format": request.format, **vars(request.layout)}
    argv = to_argv(given, Clock(1.0, None, 0, before.source), before.declared_noise is not None)
    call = shlex.join(["wavefilt", "denoise", argument(before.source), *argv])
    return after.trust(before, call=call, **({} if request.report else {"samples": SAMPLE}))


def _write_stdout(data: bytes, format: str) -> None:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if sys.stdout.isatty() and format != "ascii":
        raise ValueError(f"a {format} file is not written to a terminal; use -o or redirect")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def _not_streamed(request: Request) -> list[str]:
    """Return the options given that exclude streaming."""
    given = {**vars(request), **vars(request.layout)}
    return [name for name in NOT_STREAMED if given[name]]


def _needed_limit(source: str, target: str, request: Request) -> int | None:
    """Return half of the free memory for a file that probably does not fit in it and can be streamed, else None."""
    file, _ = split(source)
    once = source == "-" or not (os.path.isfile(file) or os.path.isdir(file))  # a pipe can be read once
    small = os.path.isfile(source) and os.path.getsize(source) <= SMALL
    device = target == "-" or (os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)))
    if once or small or device or _not_streamed(request):
        return None
    try:
        with closing(open_source(source, request.layout, request.format)) as opened:
            size = prod(opened.shape) * compute_dtype(opened.dtype).itemsize
    except Exception:  # reading the file in memory gives a better message
        return None
    free = _available()
    return int(free / 2) if whole_bytes_factor(request.backend) * size > free else None


def _available() -> float:
    """Return the free memory of the system or its container, in bytes; infinity if unknown."""
    free = inf
    with suppress(OSError):
        numbers = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        free = 1024 * int(numbers["MemAvailable"].split()[0])
    with suppress(OSError, ValueError, KeyError):  # file pages in `memory.current` can be reclaimed, "anon" cannot
        numbers = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        free = min(free, int((CGROUP / "memory.max").read_text()) - int(numbers["anon"]))
    return max(free, 0)


def _streamed(source: str, target: str, request: Request, limit: int, *automatic: str) -> Facts:
    """Denoise a file within a memory limit; return the facts as for other files.

    ``automatic`` is a note on a limit that was not asked for. Raises Failure, with 2 for a format that is not streamed,
    3 for a file that cannot be read, else 1.
    """
    from wavefilt.files import stream

    with read_errors(source):
        opened = open_source(source, request.layout, request.format)
    with (
        closing(opened),
        run_errors(source, *automatic),
        bar(Path(source).name, quiet=request.quiet, unit="B", unit_scale=True, unit_divisor=1024) as drawn,
    ):

        def advance(done: int, total: int) -> None:
            drawn.total = total
            drawn.update(done - drawn.n)

        options, sigmas, noise = noise_of_source(opened, request.given, request.preset)
        result = stream(opened, Path(target), options, sigmas, limit, backend(request), request.overwrite, advance)
    return {
        "input": source,
        "output": target,
        "format": result.format,
        "traces": result.shape[0],
        "samples": result.shape[1],
        "interval_s": opened.interval,
        **report.resolved(result.options, result.level),
        **{name: vars(result)[name] for name in MEASURED},
        **report.declared(noise, result.options),
        "max_memory": limit,
        "notes": [
            *opened.notes,
            *automatic,
            *([] if result.level else [report.unchanged(result.options, result.shape[1])]),
        ],
        "versions": report.versions(),
    }


def _intended(before: Recording, request: Request) -> Facts:
    """Return the facts of a dry run. Raises ValueError as the run would, for options or samples that are refused."""
    options, sigma = before.options(request.given, request.preset)
    before.check(options)
    options = options.with_noise(next(iter(before.sigmas(sigma, options)), "level"))
    shape, rows = report.transformed(before, options), before.rows()
    options = options.fitting(*shape)
    level = options.level_for(*shape)
    segments(rows)  # raises for an infinite sample
    if level:  # some transforms refuse complex samples
        own = rows[:1] if options.ndim == 1 else rows[None]
        options.transform.analyse(own, options.analysis(level))
        if options.noise.window:  # which may be too short for the filter
            window_noise(np.zeros_like(own), [(whole(own)[0], level)], options, level, backends.get("pywavelets"))
    notes = [*before.notes, *([] if level else [report.unchanged(options, min(shape))])]
    return {**report.contents(before), **report.resolved(options, level), "notes": notes, "dry_run": True}


def show(facts: Facts, request: Request, line: bool) -> None:
    """Print JSON on standard output, and on standard error details and, with ``line``, a line about the result.

    Notes are details, except those about an unchanged file or one that is streamed automatically.
    """
    if request.as_json:
        click.echo(json.dumps(facts, allow_nan=False))
    line, dry = line and not request.quiet, "dry_run" in facts
    if line:
        tell(_line(facts))
    if request.verbose and not dry:
        tell(*_details(facts))
    if line:
        tell(*([f"  {facts['trust']['summary']}"] if "trust" in facts else []))
        tell(*(f"  note: {as_flags(text)}" for text in facts.get("statements", ())))
    automatic = "max_memory" in facts and not request.max_memory
    if request.verbose or (line and (automatic or any(note.startswith("unchanged") for note in facts["notes"]))):
        tell(*(f"  note: {note}" for note in facts["notes"]))


def _line(facts: Facts) -> str:
    start = f"{facts['input']} -> {facts['output']}  {facts['method']}"
    if "dry_run" in facts:
        count = f"{facts['traces']} trace{'s' * (facts['traces'] != 1)}"
        return f"{start}  {facts['format']}, {count} (dry run)"
    sigma = sorted(set(facts["sigma"]))
    spread = "..".join(f"{value:.3g}" for value in (sigma if len(sigma) < 3 else [sigma[0], sigma[-1]])) or "unknown"
    residual = f"residual {float(format(100 * facts['residual_energy'], '.2g')):g} % of the energy"
    return f"{start}  sigma {spread}  {residual}  {facts['seconds']:.2g} s ({facts['backend']})"


def _details(facts: Facts) -> list[str]:
    """Return lines with the number of traces, then noise and threshold of each band."""
    transform, step = find(facts["transform"], facts.get("ndim", 1)), facts["interval_s"]
    names = [band.name for band in transform.bands(facts["level"])]
    if transform.name == "wp":
        names = [f"node {name}" for name in names]
    elif transform.has_levels:
        names = [f"level {name[1:]}" + (f" {name[0]}" if transform.ndim > 1 else "") for name in names]
    elif isinstance(step, float) and step > 0:
        names = [f"{i / (2 * facts['level'] * step):.4g} Hz" for i in reversed(range(len(names)))]
    numbers = [spreads(facts[name], facts.get(f"{name}_range")) for name in ("sigma", "thresholds")]
    lines = [
        f"  {name}: sigma {sigma}, threshold {threshold}"
        for name, sigma, threshold in zip(names, *numbers, strict=False)
    ]
    ranges = "" if transform.ndim > 1 else "; median (10 % to 90 %) of these, level 1 is the finest:"
    if names and "noisy_traces" in facts and facts["traces"] > 1:  # of a streamed file
        lines.insert(0, f"  {facts['noisy_traces']} of {facts['traces']} traces have noise{ranges}")
    elif names and "live_traces" in facts and (facts["dead_traces"] or (facts["traces"] > 1 and ranges)):
        lines.insert(0, f"  {facts['live_traces']} of {facts['traces']} traces are live{ranges}")
    return ([f"  noise: {facts['noise']}"] if "noise" in facts else []) + lines


def spreads(medians: list[float], ranges: list[list[float]] | None) -> list[str]:
    """Return medians as text, with their ranges if there are any."""
    texts = [f"{median:.4g}" for median in medians]
    if ranges is None:
        return texts
    shown = [f" ({low:.4g} to {high:.4g})" if low < high else "" for low, high in ranges]
    return [text + spread for text, spread in zip(texts, shown, strict=True)]
