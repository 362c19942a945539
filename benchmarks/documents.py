"""Tables and numbers in the documentation, made from the files in `benchmarks/results`.

``python -m wavefilt.benchmarks.documents`` writes them; with ``--check`` it exits with 1 if a document would change.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.cpu import denoise, panels
from wavefilt.benchmarks.gpu import fresh_arrays, host_loops
from wavefilt.benchmarks.quality import real_noise_report, sections_report
from wavefilt.benchmarks.quality import report as quality
from wavefilt.benchmarks.report.sections import kind_of
from wavefilt.benchmarks.ske import sheets, validation
from wavefilt.benchmarks.throughput import planning
from wavefilt.benchmarks.values import RESULTS, value

ROOT = Path(__file__).resolve().parents[1]
VALUE = re.compile(r"(<!-- value ([^<>]+?) -->)[^<>]*(<!-- end -->)")
"""A number in a sentence, see `benchmarks/values.py`."""


CHAPTERS: dict[str, Callable[[Row], dict[str, str]]] = {
    "quality": quality.markdown,
    "real_noise": real_noise_report.markdown,
    "sections_quality": sections_report.markdown,
    "fresh_arrays_h200": lambda result: {"table": fresh_arrays.TABLE(result).markdown()},
    "host_loops_h200": lambda result: {"table": host_loops.TABLE(result).markdown()},
}
"""Results whose tables are in several places."""
WITHOUT_TABLE = ("crossover", "cuda_crossover")
"""Results of which the documents only tell values."""


@cache
def tables() -> dict[str, str]:
    """What the documents have between the markers of each name."""
    results = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    found = {"table of benchmarks/throughput/planning.py": planning.planned(results).markdown()}
    found["table of benchmarks/ske/sheets.py"] = sheets.compared(results).markdown()

    def add(what: str, name: str, text: str) -> None:
        found[f"{what} of benchmarks/results/{name}.json"] = text

    for name, result in results.items():
        kind = kind_of(result)
        assert kind is not None, name
        if name in CHAPTERS:
            for chapter, text in CHAPTERS[name](result).items():
                add(chapter, name, text)
        elif name == "sections":
            add("times", name, panels.TIMES(result).markdown())
            add("gains", name, panels.gains_table(result).markdown())
        elif name.startswith("ske"):
            add("table", name, validation.shipped_report(result, every=False).markdown())
        elif name not in WITHOUT_TABLE:
            add("table", name, kind[1].told(result).markdown())
    add("first calls", "cpu", denoise.first_calls_told(results["cpu"]))
    return found


def updated(text: str) -> str:
    """The document with every marked table and value as the results give it. Raises ValueError for an unknown value."""
    for name, table in tables().items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(start)
        if found:
            text = f"{before}{start}{table}\n{end}{rest.partition(end)[2]}"
    return VALUE.sub(lambda found: f"{found[1]}{value(found[2])}{found[3]}", text)


def documents() -> list[Path]:
    """Those of a checkout. Raises SystemExit, which says so, in an installed package."""
    if not (ROOT / "README.md").exists():
        raise SystemExit(f"{ROOT} holds no documents: run this in a checkout of wavefilt")
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def stale() -> dict[Path, str]:
    """Documents that differ from what the results give, with the text that they should have."""
    texts = {path: updated(path.read_text()) for path in documents()}
    return {path: text for path, text in texts.items() if text != path.read_text()}


def main(arguments: list[str]) -> int:
    """Write the stale documents, or with ``--check`` name them."""
    found = stale()
    for path, text in found.items():
        print(path.relative_to(ROOT))
        if "--check" not in arguments:
            path.write_text(text)
    return int("--check" in arguments and bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
