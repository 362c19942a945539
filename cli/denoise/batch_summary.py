"""The results of a batch of files: one table however many files there are, the failures, a log line for each file."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from wavefilt.cli.failure import Failure

Facts = dict[str, Any]
"""Plain numbers and texts about a file, as in its JSON."""


@dataclass(frozen=True)
class Outcome:
    """How a file ended: ``facts`` of what was done, or the error with its exit code."""

    source: str
    target: str
    seconds: float
    facts: Facts = field(default_factory=dict)
    error: str | None = None
    code: int = 0

    def json(self) -> str:
        """A line of the log: the object of ``--json``, and how the file ended."""
        status = "failed" if self.error else "done"
        ended = {"input": self.source, "output": self.target, "status": status, "elapsed_s": self.seconds}
        return json.dumps({**ended, "error": self.error, **self.facts}, allow_nan=False)


@dataclass
class Summary:
    """Files as they end; ``count`` is that of all."""

    count: int
    done: int = 0
    unchanged: int = 0
    failures: dict[str, Outcome] = field(default_factory=dict)
    trust: list[tuple[str, Facts]] = field(default_factory=list)
    _began: float = field(default_factory=time.perf_counter)
    _columns: dict[str, list[float]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self.failures[outcome.source] = outcome
            return
        facts = outcome.facts
        self.done += 1
        self.unchanged += facts["level"] == 0
        if "trust" in facts:
            self.trust.append((outcome.source, facts["trust"]))
        lengths = facts["samples"] if isinstance(facts["samples"], list) else [facts["samples"]] * facts["traces"]
        row = {"traces": facts["traces"], "samples": sum(lengths), "seconds": outcome.seconds}
        if facts.get("sigma"):
            row["sigma, finest level"] = facts["sigma"][0]
        if "energy_removed" in facts:
            row["removed energy, %"] = 100 * facts["energy_removed"]
        for name, value in row.items():
            self._columns.setdefault(name, []).append(value)

    def table(self) -> str:
        """Least, median and most of the files, and sums where there is one."""
        seconds = time.perf_counter() - self._began
        lines = []
        if self._columns:
            lines.append(f"{'of each file':<20}{'least':>14}{'median':>14}{'most':>14}{'all':>18}")
        for name, values in self._columns.items():
            whole = name in ("traces", "samples")
            spread = "".join(f"{_number(v, whole):>14}" for v in (min(values), median(values), max(values)))
            lines.append(f"{name:<20}{spread}" + (f"{_number(sum(values), whole):>18}" if whole else ""))
        if self.trust:
            from wavefilt.advice.trust import WORDS

            counts = Counter(facts["verdict"] for _, facts in self.trust)
            told = ", ".join(f"{counts[name]} {word}" for name, word in WORDS.items() if counts[name])
            lines.append(f"trust: {told}")
        left = self.count - self.done - len(self.failures)
        alike = f" ({self.unchanged} unchanged)" if self.unchanged else ""
        ends = f"{self.done} done{alike}, {len(self.failures)} failed" + (f", {left} not begun" if left else "")
        return "\n".join([*lines, f"{self.count} files: {ends}, {seconds:.2g} s, {self.done / seconds:.3g} files/s"])

    def failed(self, files: list[tuple[str, str]], code: int) -> Failure:
        """Every failure, in the order of the files, and why."""
        found = [outcome for source, _ in files if (outcome := self.failures.get(source))]
        reasons = (f"  {o.source}: {str(o.error).removeprefix(f'{o.source}: ')}" for o in found)
        return Failure(f"{len(found)} of {self.count} files failed:", code, *reasons)


def _number(value: float, whole: bool) -> str:
    return f"{value:,.0f}" if whole else f"{value:.3g}"


@contextmanager
def log(path: str | None) -> Iterator[Callable[[Outcome], None]]:
    """A function that writes the line of a file to a new log; without a path it writes nothing.

    Raises Failure, with 2 if the log cannot be opened, 1 if it cannot be written.
    """
    if path is None:
        yield lambda _: None
        return
    with _named(path, 2):
        file = open(path, "w", buffering=1, encoding="utf-8")  # noqa: SIM115  # closed below

    def add(outcome: Outcome) -> None:
        with _named(path, 1):
            file.write(outcome.json() + "\n")

    try:
        yield add
    finally:
        with _named(path, 1):
            file.close()


@contextmanager
def _named(path: str, code: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"--log {path}: {error.strerror}", code) from error
