"""One file of `wavefilt denoise`: read, denoised, written; what was done comes back as plain numbers."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from wavefilt.cli.failure import Failure
from wavefilt.cli.reading import read
from wavefilt.vocabulary import check

from . import paths, streaming

LAYOUT = ("format", "dtype", "endian", "ns", "dt", "columns", "delimiter", "component", "axis")


def denoise(source: str, target: str, method: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What was done, or with ``dry_run`` would be, as `wavefilt.report.describe` tells it.

    Raises Failure with its exit code, UsageError (2) for an option that makes no sense.
    """
    from wavefilt import report
    from wavefilt.io import encode, write, write_atomically

    limit = None if options["max_memory"] else streaming.within(source, target, options)
    if limit or options["max_memory"]:
        return streaming.denoise(source, target, method, backend(options), options, limit) | {"output": target}
    overwrite = options["overwrite"]
    try:
        before, digest = read(source, {name: options[name] for name in LAYOUT}, options["sidecar"])
        start = time.perf_counter()
        if options["noise_window"]:
            method = replace(method, sigma=before.window(*options["noise_window"]))
        if options["dry_run"]:
            return _intended(before, method) | {"input": source, "output": target}
        after = before.apply(method, backend(options), report=True)
        facts = report.describe(before, after, time.perf_counter() - start) | {"input": source, "output": target}
        if target == "-":
            _write_stdout(encode(after), after.format)
        else:
            write(after, Path(target), overwrite=overwrite)
        if options["removed"]:
            before.less(after).write(options["removed"], overwrite=overwrite)
        if options["sidecar"]:
            given = {name: value for name, value in options.items() if value is not None}
            details = report.estimates(after)
            everything = {**facts, "input_sha256": digest, "options": given, "estimates": details}
            text = json.dumps(everything, indent=1, allow_nan=False) + "\n"
            write_atomically(paths.sidecar(Path(target)), text.encode(), overwrite=overwrite)
        if options["plot"]:
            from wavefilt.plot import plot_denoising

            plot_denoising(before, after, Path(options["plot"]), overwrite=overwrite)
    except MemoryError as error:
        hint = "" if streaming.samples_bytes(source, options) is None else "; use --max-memory SIZE"
        raise Failure(f"{source}: not enough memory{hint}", 1) from error
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise Failure(f"{source}: {str(error).removeprefix(f'{source}: ')}", 1) from error
    return facts


def backend(options: dict[str, Any]) -> Any:
    """What `run` takes: "auto", or the backend asked for. Raises BackendUnavailable if it cannot run here."""
    from wavefilt import backends

    check("backend", options["backend"], ["auto", *backends.names()])
    if options["backend"] == "auto":
        return "auto"
    own = {"fastmath": options["fast_math"], "devices": options["devices"]}
    return backends.get(options["backend"], **{name: value for name, value in own.items() if value})


def _intended(before: Any, method: Any) -> dict[str, Any]:
    """What would be done. Raises ValueError where the run would, for want of levels or of samples of noise."""
    from wavefilt import report

    before.check(method)
    lengths = [len(trace) for trace in before.traces]
    shortest = len(lengths) if method.bands > 1 else math.inf
    level = method.level_for(min(max(lengths), shortest))
    if method.window is not None:
        method.window_in(min(lengths))
    notes = [*before.notes, *([] if level else [report.unchanged(method)])]
    facts = {**report.contents(before), **report.resolved(method, level), "notes": notes}
    return {**facts, "bytes": sum(trace.nbytes for trace in before.traces), "dry_run": True}


def _write_stdout(data: bytes, format: str) -> None:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if sys.stdout.isatty() and format != "ascii":
        raise ValueError(f"a {format} file is not written to a terminal; use -o or redirect")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
