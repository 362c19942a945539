"""The files of `wavefilt denoise`, one after the other, and a summary."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import click

from . import Failure, run_errors, tell, usage_errors
from .denoise import Facts, denoise_file, show
from .options import Request
from .progress import bar

Files = list[tuple[str, str]]
"""Input and output of each file."""


@dataclass(frozen=True)
class Outcome:
    """The result of a file: its facts, or the error with its exit code."""

    source: str
    target: str
    seconds: float
    facts: Facts = field(default_factory=dict)
    error: str | None = None
    code: int = 0

    def json(self) -> str:
        """Return the line of the log."""
        status = "failed" if self.error else "done"
        ended = {"input": self.source, "output": self.target, "status": status, "elapsed_s": self.seconds}
        return json.dumps({**ended, "error": self.error, **self.facts}, allow_nan=False)

    def row(self) -> dict[str, float]:
        """Return the numbers in the table."""
        facts, samples = self.facts, self.facts["samples"]
        samples = sum(samples) if isinstance(samples, list) else samples * facts["traces"]
        row = {"traces": facts["traces"], "samples": samples, "seconds": self.seconds}
        if facts.get("sigma"):
            row["sigma, finest level"] = facts["sigma"][0]
        if "residual_energy" in facts:
            row["residual energy, %"] = 100 * facts["residual_energy"]
        return row


def denoise(files: Files, request: Request) -> None:
    """Denoise all files, print messages and the summary, and write the log.

    Raises Failure if the only file fails; SystemExit with 4 if several do, or without ``keep_going`` with the exit code
    of the first.
    """
    many, start, outcomes, failures = len(files) > 1, time.perf_counter(), list[Outcome](), list[Outcome]()
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
                outcome = attempt(source, target, request)
                (outcomes if outcome.error is None else failures).append(outcome)
                if log is not None:
                    with run_errors(f"--log {request.log}"):
                        log.write(f"{outcome.json()}\n".encode())
                drawn.set_postfix({"failed": len(failures)} if failures else {}, refresh=False)
                drawn.update()
                if outcome.error is None and (lines or request.as_json):
                    with drawn.external_write_mode(sys.stderr):
                        show(outcome.facts, request, lines)
    finally:  # of an interrupted run as well
        if many and not request.quiet and not request.dry_run:
            click.echo(table(outcomes, len(failures), len(files), time.perf_counter() - start), err=True)
        if many and failures:
            tell(f"wavefilt: error: {len(failures)} of {len(files)} files failed:")
            for failed in failures:
                tell(f"  {failed.source}: {str(failed.error).removeprefix(f'{failed.source}: ')}")
    if many and failures:
        raise SystemExit(4 if request.keep_going else failures[0].code)
    if failures:
        raise Failure(str(failures[0].error), failures[0].code)


def table(outcomes: list[Outcome], failed: int, count: int, seconds: float) -> str:
    """Return minimum, median and maximum over the files, and sums; ``count`` is the number of all files."""
    columns: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in outcome.row().items():
            columns.setdefault(name, []).append(value)
    lines = [f"{'of each file':<20}{'least':>14}{'median':>14}{'most':>14}{'all':>18}"] if columns else []
    for name, values in columns.items():
        form = ",.0f" if name in ("traces", "samples") else ".3g"
        line = "".join(f"{value:>14{form}}" for value in (min(values), median(values), max(values)))
        lines.append(f"{name:<20}{line}" + (f"{sum(values):>18{form}}" if form == ",.0f" else ""))
    verdicts = Counter(outcome.facts["trust"]["verdict"] for outcome in outcomes if "trust" in outcome.facts)
    if verdicts:
        order = ("harmful", "undecided", "harmless", "untested")
        lines.append("trust: " + ", ".join(f"{verdicts[word]} {word}" for word in order if verdicts[word]))
    done, left = len(outcomes), count - len(outcomes) - failed
    unchanged = sum(outcome.facts["level"] == 0 for outcome in outcomes)
    ends = f"{done} done{f' ({unchanged} unchanged)' if unchanged else ''}, {failed} failed"
    ends += f", {left} not begun" if left else ""
    return "\n".join([*lines, f"{count} files: {ends}, {seconds:.2g} s, {done / seconds:.3g} files/s"])


def attempt(source: str, target: str, request: Request) -> Outcome:
    """Denoise a file and return the outcome. Raises UsageError for options that are invalid for every file."""
    start = time.perf_counter()
    try:
        facts = denoise_file(source, target, request)
    except Failure as error:
        return Outcome(source, target, time.perf_counter() - start, error=str(error), code=error.code)
    return Outcome(source, target, time.perf_counter() - start, facts)
