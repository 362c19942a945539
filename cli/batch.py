"""The files of `wavefilt denoise`, one after the other, and a summary."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from contextlib import ExitStack
from statistics import median
from typing import Any

import click

from . import Failure, run_errors, tell, usage_errors
from .denoise import Facts, denoise_file, show
from .options import Request
from .progress import bar

Files = list[tuple[str, str]]
"""Input and output of each file."""


def denoise(files: Files, request: Request) -> None:
    """Denoise all files, print messages and the summary, and write the log.

    Raises Failure if the only file fails; SystemExit with 4 if several do, or without ``keep_going`` with the exit code
    of the first.
    """
    many, start, outcomes, failures = len(files) > 1, time.perf_counter(), list[Facts](), dict[str, Failure]()
    lines = not many or request.dry_run or request.verbose
    try:
        with ExitStack() as stack:
            log: Any = None
            if request.log and not request.dry_run:
                with usage_errors():
                    log = stack.enter_context(open(request.log, "wb", buffering=0))
            drawn = stack.enter_context(bar(total=len(files), unit="file", quiet=request.quiet or not many))
            for source, target in files:
                if failures and not request.keep_going:
                    break
                begun, facts = time.perf_counter(), Facts()
                try:
                    facts = denoise_file(source, target, request)
                except Failure as error:
                    failures[source] = error
                facts["elapsed_s"] = time.perf_counter() - begun
                if source not in failures:
                    outcomes.append(facts)
                if log is not None:
                    text = str(failures[source]) if source in failures else None
                    ended = {"input": source, "output": target, "status": "failed" if text else "done", "error": text}
                    with run_errors(f"--log {request.log}"):
                        log.write(f"{json.dumps(ended | facts, allow_nan=False)}\n".encode())
                drawn.set_postfix({"failed": len(failures)} if failures else {}, refresh=False)
                drawn.update()
                if source not in failures and (lines or request.as_json):
                    with drawn.external_write_mode(sys.stderr):
                        show(facts, request, lines)
    finally:  # of an interrupted run as well
        if many and not request.quiet and not request.dry_run:
            click.echo(table(outcomes, len(failures), len(files), time.perf_counter() - start), err=True)
        if many and failures:
            tell(f"wavefilt: error: {len(failures)} of {len(files)} files failed:")
            for source, failure in failures.items():
                tell(f"  {source}: {str(failure).removeprefix(f'{source}: ')}")
    if many and failures and request.keep_going:
        raise SystemExit(4)
    if failures:
        first = next(iter(failures.values()))
        raise SystemExit(first.exit_code) if many else first


def table(outcomes: list[Facts], failed: int, count: int, seconds: float) -> str:
    """Return minimum, median and maximum over the files, and sums; ``count`` is the number of all files."""
    columns: dict[str, list[float]] = {}
    for facts in outcomes:
        samples = sum(facts["samples"]) if isinstance(facts["samples"], list) else facts["samples"] * facts["traces"]
        row = {"traces": facts["traces"], "samples": samples, "seconds": facts["elapsed_s"]}
        if facts["sigma"]:
            row["sigma, finest level"] = facts["sigma"][0]
        row["residual energy, %"] = 100 * facts["residual_energy"]
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    lines = [f"{'of each file':<20}{'least':>14}{'median':>14}{'most':>14}{'all':>18}"] if columns else []
    for name, values in columns.items():
        form = ",.0f" if name in ("traces", "samples") else ".3g"
        line = "".join(f"{value:>14{form}}" for value in (min(values), median(values), max(values)))
        lines.append(f"{name:<20}{line}" + (f"{sum(values):>18{form}}" if form == ",.0f" else ""))
    verdicts = Counter(facts["trust"]["verdict"] for facts in outcomes if "trust" in facts)
    if verdicts:
        order = ("harmful", "undecided", "harmless", "untested")
        lines.append("trust: " + ", ".join(f"{verdicts[word]} {word}" for word in order if verdicts[word]))
    done, left = len(outcomes), count - len(outcomes) - failed
    unchanged = sum(facts["level"] == 0 for facts in outcomes)
    ends = f"{done} done{f' ({unchanged} unchanged)' if unchanged else ''}, {failed} failed"
    ends += f", {left} not begun" if left else ""
    return "\n".join([*lines, f"{count} files: {ends}, {seconds:.2g} s, {done / seconds:.3g} files/s"])
