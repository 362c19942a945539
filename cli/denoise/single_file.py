"""One file of `wavefilt denoise`: read, denoised, written; what was done comes back as plain numbers."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from wavefilt import stages
from wavefilt.cli.failure import run_errors, usage_errors
from wavefilt.cli.reading import read
from wavefilt.recording import Recording
from wavefilt.vocabulary import check

from . import paths, streaming
from .batch_summary import Facts
from .options import Options

if TYPE_CHECKING:
    from wavefilt.advice import TrustReport
    from wavefilt.backends import Backend

SAMPLE = 1 << 18
"""Samples of a file that -v tests."""


def denoise(source: str, target: str, options: Options) -> Facts:
    """What was done, or with ``dry_run`` would be, in the terms of `wavefilt.report.describe`.

    Raises Failure with its exit code, UsageError (2) for an option that makes no sense.
    """
    limit = None if options.max_memory else streaming.needed_limit(source, target, options)
    if limit or options.max_memory:
        return streaming.denoise(source, target, options, backend(options), limit) | {"output": target}

    def more_memory() -> str:
        return "" if streaming.samples_bytes(source, options) is None else "; use --max-memory SIZE"

    from wavefilt.io.files import check_output

    with run_errors(source, more_memory=more_memory):
        with stages.stage(f"reading {source}"):
            before, digest = read(source, options.layout, options.format, options.sidecar)
        with usage_errors():
            if target != "-":
                check_output(before, Path(target))
            if options.plot:
                options.drawing.check(before, True)
        if options.report and before.complex:
            raise ValueError("--report needs real samples, and these are complex")
        start = time.perf_counter()
        if options.dry_run:
            return _intended(before, options) | {"input": source, "output": target}
        with stages.stage(f"denoising {source}"):
            after = before.apply(options.method, backend(options), report=True, sigma=options.noise)
        with stages.stage(f"writing {target}"):
            return _written(before, after, source, target, options, digest, start)


def _written(
    before: Recording, after: Recording, source: str, target: str, options: Options, digest: str | None, start: float
) -> Facts:
    """Write all outputs; what was done since ``start``."""
    from wavefilt import report
    from wavefilt.io import encode, write, write_atomically

    facts = report.describe(before, after, time.perf_counter() - start) | {"input": source, "output": target}
    trust = _trust(before, after, options)
    if trust:
        facts["trust"] = trust.facts() | {"summary": trust.summary()}
    if target == "-":
        _write_stdout(encode(after), after.format)
    else:
        write(after, Path(target), overwrite=options.overwrite)
    if options.removed:
        before.residual(after).write(options.removed, overwrite=options.overwrite)
    if trust and options.report and not options.many:
        trust.write(options.report, overwrite=options.overwrite)
    if options.sidecar:
        given = {name: value for name, value in options.given.items() if value is not None}
        everything = {**facts, "input_sha256": digest, "options": given, "estimates": report.estimates(after)}
        text = json.dumps(everything, indent=1, allow_nan=False) + "\n"
        write_atomically(paths.sidecar(Path(target)), text.encode(), overwrite=options.overwrite)
    if options.plot:
        from wavefilt.plotting import plot_denoising

        plot_denoising(before, after, options.plot, overwrite=options.overwrite, options=options.drawing)
    return facts


def _trust(before: Recording, after: Recording, options: Options) -> TrustReport | None:
    """What --report and -v tell; of -v alone a sample of large files."""
    if not (options.report or options.verbose) or before.complex:
        return None
    with stages.stage("testing what was removed"):
        return after.trust(before) if options.report else after.trust(before, samples=SAMPLE)


def backend(options: Options) -> str | Backend:
    """``"auto"``, or the backend asked for. Raises BackendUnavailable if it cannot run here."""
    from wavefilt import backends

    check("backend", options.backend, ["auto", *backends.names()])
    if options.backend == "auto":
        return "auto"
    own = {"fastmath": options.fast_math, "devices": options.devices}
    return backends.get(options.backend, **{name: value for name, value in own.items() if value})


def _intended(before: Recording, options: Options) -> Facts:
    """What would be done. Raises ValueError where the run would, for want of levels or of samples of noise."""
    from wavefilt import report

    before.check(options.method)
    method = options.method if options.noise is None else before.methods(options.method, options.noise)[0][0]
    shape = report.transformed(before, method)
    level = method.level_for(*shape)
    notes = [*before.notes, *([] if level else [report.unchanged(method, min(shape))])]
    facts = {**report.contents(before), **report.resolved(method, level), "notes": notes}
    return {**facts, "bytes": sum(trace.nbytes for trace in before.traces), "dry_run": True}


def _write_stdout(data: bytes, format: str) -> None:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if sys.stdout.isatty() and format != "ascii":
        raise ValueError(f"a {format} file is not written to a terminal; use -o or redirect")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
