"""Tables in the documentation, made from the files in `benchmarks/results`, in a checkout.

A page has a table between ``<!-- table NAME -->`` and ``<!-- end -->``, where NAME is the stem of a result's file, or
``STEM: PART`` for results with several tables. ``python -m wavefilt.benchmarks.documents`` writes the tables; with
``--check`` it exits with 1 if a page would change, has an unknown name, or if a table has no page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from wavefilt.benchmarks import blocks, calls, layouts, scaling
from wavefilt.benchmarks.common.environment import CHANGED, RESULTS, ROOT
from wavefilt.benchmarks.common.tables import Report, Row
from wavefilt.benchmarks.laplace import images, rows
from wavefilt.benchmarks.quality.tables import TABLES as QUALITY

MARKED = re.compile(r"(<!-- table ([^<>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
Tables = Callable[[Row], Mapping[str, str]]
"""Makes Markdown of a result, by part; the name of an only part is ""."""


def _markdown(report: Callable[[Row], Report], result: Row) -> dict[str, str]:
    return {"": report(result).markdown()}


def _scaling_of_cpu(result: Row) -> Report:
    """Return the report without estimates, which would repeat the ones of the H200."""
    rows = [{name: row[name] for name in row if name != "estimates"} for row in result["rows"]]
    none = {"calibration": None, "missing": "those for the H200 are in the table above"}
    return scaling.report(result | {"rows": rows, "estimates": none})


REPORTS: dict[str, Callable[[Row], Report]] = {
    "scaling_cpu": _scaling_of_cpu,
    "scaling_h200": scaling.report,
    "laplace1d_h200": rows.report,
    "laplace2d_h200": images.report,
    "blocks_h200": blocks.report,
    "cpu": calls.report,
    "cuda_h200": calls.report,
    "cuda_layouts_h200": layouts.report,
}
TABLES: Mapping[str, Tables] = {**{name: partial(_markdown, report) for name, report in REPORTS.items()}, **QUALITY}
"""Functions that make tables, by the stem of a result's file."""


class Unusable(ValueError):
    """A result that a page must not show, or a page that names an unknown table."""


def tables(makers: Mapping[str, Tables], folder: Path | None = None) -> dict[str, str]:
    """Return the text of every table by its name. Raises Unusable for results of uncommitted changes."""
    found = {}
    for stem, make in makers.items():
        path = (folder or RESULTS) / f"{stem}.json"
        result = json.loads(path.read_text())
        if (result["environment"]["commit"] or "").endswith(CHANGED):
            raise Unusable(f"{path}: measured with uncommitted changes (--allow-dirty); measure it again")
        for part, text in make(result).items():
            found[f"{stem}: {part}" if part else stem] = f"{text.rstrip()}\n\n{provenance(result)}"
    return found


def provenance(result: Row) -> str:
    """Return a line with date, commit and machine of a result, and its remark if parts have other dates."""
    where = result["environment"]
    gpu = (where["gpu"] or "").partition(",")[0]
    machine = ", ".join(filter(None, (gpu, where["processor"], f"{where['cores']} cores")))
    remark = f" {result['remark']}." if "remark" in result else ""
    return f"*Measured {where['date']} at commit {(where['commit'] or 'unknown')[:7]}: {machine}.{remark}*"


def updated(text: str, known: Mapping[str, str]) -> str:
    """Return the page with its tables as the results give them. Raises Unusable for an unknown name."""

    def table(found: re.Match[str]) -> str:
        if found[2] not in known:
            raise Unusable(f"no table {found[2]!r}; there are {', '.join(known)}")
        return f"{found[1]}{known[found[2]]}\n{found[3]}"

    return MARKED.sub(table, text)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def checked(paths: list[Path], known: Mapping[str, str]) -> tuple[dict[Path, str], list[str]]:
    """Return the pages that differ from the results, with their new text, and the tables that no page has."""
    texts = {path: path.read_text() for path in paths}
    named = {name for text in texts.values() for _, name, _ in MARKED.findall(text)}
    stale = {path: new for path, text in texts.items() if (new := updated(text, known)) != text}
    return stale, sorted(known.keys() - named)


def main(arguments: list[str]) -> int:
    """Write the stale pages, or with ``--check`` name them, and tables without a page."""
    try:
        stale, homeless = checked(pages(), tables(TABLES))
    except Unusable as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if "--check" not in arguments:
            path.write_text(text)
    for name in homeless:
        print(f"no page shows {name}")
    return int("--check" in arguments and bool(stale or homeless))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
