"""`wavefilt denoise`: the command, one file, and the messages about it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavefilt.memory import spelled
from wavefilt.options import Clock, to_argv
from wavefilt.recording import Recording
from wavefilt.transforms import find
from wavefilt.vocabulary import check

from . import as_flags, run_errors, tell, usage_errors
from .files import plan, read
from .options import BATCH, COMPUTING, INPUT, IO, LAYOUT, METHOD, NOISE, PICTURES, Request, chosen, command

if TYPE_CHECKING:
    from wavefilt.advice import TrustReport
    from wavefilt.backends import Backend

Facts = dict[str, Any]
"""Numbers and texts about a file, as in its JSON."""
SAMPLE = 1 << 18
"""Samples of a file that -v tests."""


@command(
    "denoise",
    click.Argument(["inputs"], nargs=-1, required=True, type=INPUT, metavar="IN..."),
    *chosen(IO, METHOD, NOISE, PICTURES, BATCH, COMPUTING, LAYOUT),
    example="wavefilt denoise seismic.dat -w db8 --rule bayes --plot seismic.png",
)
def denoise(inputs: tuple[str, ...], **parsed: Any) -> None:
    """Denoise files and write the results in the input format, with all headers.

    The format is recognised by content. Quoted patterns are expanded: 'survey/**/*.dat'; without --out-dir they skip
    earlier results (*.denoised.*), unless they name them. IN can be -, standard input; the result is then written to
    standard output, unless -o names a file.
    """
    from . import batch, streaming

    with usage_errors():
        request = Request.of(parsed)
        backend(request)
    if request.max_memory:
        streaming.check(inputs, request)
    files = plan(inputs, request)
    batch.denoise(files, request)


def denoise_file(source: str, target: str, request: Request) -> Facts:
    """Denoise one file; return the facts of `wavefilt.report.describe`, with ``dry_run`` the intended ones.

    Raises Failure with its exit code, UsageError (2) for an invalid option.
    """
    from wavefilt.io.files import check_output

    from . import streaming

    limit = None if request.max_memory else streaming.needed_limit(source, target, request)
    if limit or request.max_memory:
        return streaming.denoise(source, target, request, backend(request), limit) | {"output": target}

    def more_memory() -> str:
        return "; use --max-memory SIZE" if streaming.needed_memory(source, request) is not None else ""

    with run_errors(source, more_memory=more_memory):
        before = read(source, request.layout, request.format)
        with usage_errors():
            if target != "-":
                check_output(before, Path(target))
            if request.plot:
                request.drawing.check(before, True)
        if request.report and before.complex:
            raise ValueError("`report` needs real samples; these are complex")
        start = time.perf_counter()
        if request.dry_run:
            return _intended(before, request) | {"input": source, "output": target}
        options, sigma = before.options(request.given, request.preset)
        after = before.apply(options, backend(request), report=True, sigma=sigma)
        seconds = time.perf_counter() - start
        trust = _trust(before, after, request)
        return _written(before, after, source, target, request, trust, seconds)


def backend(request: Request) -> str | Backend:
    """Return "auto" or the selected backend. Raises BackendUnavailable if it cannot run here."""
    from wavefilt import backends

    check("backend", request.backend, ["auto", *backends.names()])
    if request.backend == "auto":
        return "auto"
    own = {"fastmath": request.fast_math, "devices": request.devices}
    given = {name: value for name, value in own.items() if value}
    return backends.get(request.backend, **given, **({"padding": False} if request.no_padding else {}))


def _trust(before: Recording, after: Recording, request: Request) -> TrustReport | None:
    """Return the tests of --report and -v; with -v alone, those of a sample of a large file."""
    if not (request.report or request.verbose) or before.complex:
        return None
    given = {"preset": request.preset, **request.given, "format": request.format, **vars(request.layout)}
    argv = to_argv(given, Clock(1.0, None, 0, before.source), before.declared_noise is not None)
    call = shlex.join(["wavefilt", "denoise", before.source, *argv])
    return after.trust(before, call=call, **({} if request.report else {"samples": SAMPLE}))


def _written(
    before: Recording,
    after: Recording,
    source: str,
    target: str,
    request: Request,
    trust: TrustReport | None,
    seconds: float,
) -> Facts:
    """Write all outputs and return the facts."""
    from wavefilt import report
    from wavefilt.io import encode, write

    facts = report.describe(before, after, seconds) | {"input": source, "output": target}
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


def _write_stdout(data: bytes, format: str) -> None:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if sys.stdout.isatty() and format != "ascii":
        raise ValueError(f"a {format} file is not written to a terminal; use -o or redirect")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        error.filename = "standard output"
        raise


def _intended(before: Recording, request: Request) -> Facts:
    """Return the facts of a dry run. Raises ValueError as the run would, for too many levels or too little noise."""
    from wavefilt import report

    options, sigma = before.options(request.given, request.preset)
    before.check(options)
    method = before.methods(options, sigma)[0][0]
    shape = report.transformed(before, method)
    level = method.level_for(*shape)
    notes = [*before.notes, *([] if level else [report.unchanged(method, min(shape))])]
    facts = {**report.contents(before), **report.resolved(method, level), "notes": notes}
    return {**facts, "bytes": sum(trace.nbytes for trace in before.traces), "dry_run": True}


def show(facts: Facts, request: Request, line: bool) -> None:
    """Print JSON on standard output, and on standard error details and, with ``line``, a line about the result.

    Notes are details, except those about an unchanged file or one that is streamed automatically.
    """
    if request.as_json:
        click.echo(json.dumps(facts, allow_nan=False))
    line = line and not request.quiet
    if line:
        tell(_intention(facts) if "dry_run" in facts else _line(facts))
    if request.verbose and "dry_run" not in facts:
        tell(*_details(facts))
    if line and "trust" in facts:
        tell(f"  {facts['trust']['summary']}")
    if line:
        tell(*(f"  note: {as_flags(text)}" for text in facts.get("statements", ())))
    automatic = "max_memory" in facts and not request.max_memory
    if request.verbose or (line and (automatic or facts["level"] == 0)):
        tell(*(f"  note: {note}" for note in facts["notes"]))


def _line(facts: Facts) -> str:
    sigma = sorted(set(facts["sigma"]))
    spread = "..".join(f"{value:.3g}" for value in (sigma if len(sigma) < 3 else [sigma[0], sigma[-1]])) or "unknown"
    return (
        f"{facts['input']} -> {facts['output']}  {_method(facts)}  sigma {spread}  "
        f"residual {100 * facts['residual_energy']:.2g} % of the energy  {facts['seconds']:.2g} s ({facts['backend']})"
    )


def _intention(facts: Facts) -> str:
    size, lengths = facts["bytes"], facts["samples"]
    samples = f"{min(lengths)} to {max(lengths)}" if isinstance(lengths, list) else lengths
    return (
        f"{facts['input']} -> {facts['output']}  {facts['format']}, {facts['traces']} traces x {samples} samples, "
        f"{spelled(size)}  {_method(facts)}  about {spelled(4 * size)} of memory (dry run)"
    )


def _method(facts: Facts) -> str:
    rule = facts["rule"] if isinstance(facts["rule"], str) else "thresholds"
    transform = "" if facts["transform"] == "dwt" else f"{facts['transform'].upper()} "
    section = "2-D " if facts.get("ndim", 1) == 2 else ""
    level = f"L{facts['level']} " if find(facts["transform"], facts.get("ndim", 1)).has_levels else ""
    spins = f" {facts['spins']} spins" if facts["spins"] > 1 else ""
    return f"{facts['wavelet']} {section}{transform}{level}{rule} {facts['shrink']}{spins}"


def _details(facts: Facts) -> list[str]:
    """Return lines with the number of traces, then noise and threshold of each band."""
    transform, step = find(facts["transform"], facts.get("ndim", 1)), facts["interval_s"]
    if transform.has_levels:
        bands = [f" {band}" for band in transform.band_names] if transform.ndim > 1 else [""]
        names = [f"level {i}{band}" for i in range(1, facts["level"] + 1) for band in bands]
    else:
        names = [band.name for band in transform.bands(facts["level"])]
        if isinstance(step, float) and step > 0:
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
