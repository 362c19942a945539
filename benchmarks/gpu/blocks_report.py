"""The study of block sizes for people: times and estimates by block, what each model would choose, notes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from wavefilt.benchmarks.common.tables import Sheet, number, size


def sheets(result: dict[str, Any]) -> Iterator[Sheet]:
    """Microseconds by block, a sheet for each kernel; then the choices."""
    first = ("threads", "of a block")
    for name, column in result["columns"].items():
        heads: list[Sequence[str]] = [first]
        heads += [("measured", "us")] if any(name in row["times"] for row in result["rows"]) else []
        measured = len(heads) > 1
        models = [
            m for m in ("calibrated", "classic") if any(m in row["estimates"].get(name, {}) for row in result["rows"])
        ]
        for model in models:
            heads += [("SKE", model), *([("", "error")] if measured else [])]
        if len(heads) > 1:
            cells = [_line(row, name, measured, models) for row in result["rows"]]
            yield Sheet(f"{' '.join(column['heads'])}, {size(result['samples'])} samples: microseconds", heads, cells)
    if any(entry["calibrated"]["block"] or entry["fastest"] for entry in result["choices"].values()):
        heads = [("", "kernel"), ("fastest", "block"), ("SKE calibrated", "would choose"), ("", "regret"),
                 ("SKE classic", "would choose"), ("", "regret")]  # fmt: skip
        cells = [
            _choice(" ".join(result["columns"][name]["heads"]), entry) for name, entry in result["choices"].items()
        ]
        yield Sheet("Choice of the block; regret is its time over that of the fastest", heads, cells)


def _line(row: dict[str, Any], name: str, measured: bool, models: Sequence[str]) -> list[str]:
    times, cells = row["times"].get(name), [str(row["block"])]
    if measured:
        cells.append("-" if times is None else f"{1e3 * times['median']:.1f} ±{_spread(times):.1%}")
    for model in models:
        value = row["estimates"].get(name, {}).get(model)
        cells.append("-" if value is None else number(1e3 * value))
        if measured:
            cells.append("-" if value is None or times is None else f"{value / times['median'] - 1:+.0%}")
    return cells


def _spread(times: dict[str, float]) -> float:
    return (times["high"] - times["low"]) / 2 / times["median"]


def _choice(label: str, entry: dict[str, Any]) -> list[str]:
    cells = [label, _or_dash(entry["fastest"])]
    for model in ("calibrated", "classic"):
        regret = entry[model]["regret"]
        cells += [_or_dash(entry[model]["block"]), "-" if regret is None else f"{regret:.3f}"]
    return cells


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def notes(result: dict[str, Any]) -> list[str]:
    """Where, how, and what was left out and why."""
    where, columns = result["environment"], result["columns"]
    found = [f"{where['processor']}, {where['cores']} cores; {where['gpu'] or 'no GPU'}; {result['date']}.",
             f"{result['method']}."]  # fmt: skip
    missing = next(iter(columns.values()))["missing"]
    if missing:
        found.append(f"Not measured: {missing}.")
    else:
        worst = max((t["error"] for row in result["rows"] for t in row["times"].values()), default=0.0)
        found.append(f"Compared with backend numba before they were timed; largest difference {worst:.0e} of the norm.")
    if result["estimates"]["missing"]:
        found.append(f"No estimates: {result['estimates']['missing']}.")
    else:
        found.append(f"Estimates for {result['estimates']['calibration']}, from counts alone.")
    return found + [
        f"Skipped: {' '.join(columns[name]['heads'])}, {row['block']} threads: {why}."
        for row in result["rows"] for name, why in row["skipped"].items()
    ]  # fmt: skip


def text(result: dict[str, Any], width: int = 80) -> str:
    """For the terminal."""
    lines = (textwrap.fill(note, width, subsequent_indent="  ", break_on_hyphens=False) for note in notes(result))
    return "\n".join([*(sheet.text(width) for sheet in sheets(result)), *lines])


def markdown(result: dict[str, Any]) -> str:
    """For the documentation."""
    return "\n".join([*(sheet.markdown() for sheet in sheets(result)), *(f"* {note}" for note in notes(result))])
