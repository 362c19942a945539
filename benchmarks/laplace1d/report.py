"""The study of the 1-D Laplace operator for people: a table with a row for every implementation, and notes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from wavefilt.benchmarks.common.tables import Sheet, number, size

MODELS = ("calibrated", "classic")


def sheet(result: dict[str, Any]) -> Sheet:
    """Times, what they are held against, estimates, and the document of 2008 where its size was measured."""
    (row,) = result["rows"]
    heads: list[Sequence[str]] = [("", "1-D Laplace"), ("mean", "ms"), ("median", "ms"), ("", "runs")]
    heads += [("times the", "host loop"), ("share of", "a copy"), ("relative", "error")]
    estimates, document = row.get("estimates", {}), row.get("document", {})
    if estimates:
        heads += [head for model in MODELS for head in (("SKE", model), ("", "error"))]
    if document:
        heads += [("2008", "ms"), ("2008, x the", "host loop")]
    cells = []
    for name, column in result["columns"].items():
        times = row["times"].get(name)
        line = [" ".join(column["heads"])]
        line += _times(times) if times else ["-"] * 3
        line += [_cell(row["ratios"].get(name), number), _cell(row["shares"].get(name), "{:.1%}".format)]
        line += [_cell(times and times["error"], lambda error: f"{error:.0e}" if error else "0")]
        if estimates:
            line += [cell for model in MODELS for cell in _estimate(row, name, model)]
        if document:
            then = document.get(name, {})
            line += [_cell(then.get("ms"), "{:g}".format), _cell(then.get("ratio"), "{:.1f}".format)]
        cells.append(line)
    return Sheet(f"1-D Laplace operator, {size(row['samples'])} samples, float32", heads, cells)


def _times(times: dict[str, Any]) -> list[str]:
    spread = (times["high"] - times["low"]) / 2 / times["median"]
    return [number(times["mean"]), f"{number(times['median'])} ±{spread:.0%}", str(times["repeats"])]


def _estimate(row: dict[str, Any], name: str, model: str) -> list[str]:
    value = row["estimates"].get(name, {}).get(model)
    error = row.get("estimate errors", {}).get(name, {}).get(model)
    return [_cell(value, number), _cell(error, "{:+.0%}".format)]


def _cell(value: float | None, written: Any) -> str:
    return "-" if value is None else written(value)


def notes(result: dict[str, Any]) -> list[str]:
    """What the table does not say: where, what each row is, who is missing and why."""
    (row,) = result["rows"]
    columns, where = result["columns"], result["environment"]
    label = {name: " ".join(column["heads"]) for name, column in columns.items()}
    found = [f"{where['processor']}, {where['cores']} cores; {where['gpu'] or 'no GPU'}; {result['date']}."]
    found.append(f"{result['method']}. ± is half the distance of the quartiles.")
    found += [f"{label[name]}: {column['what']}." for name, column in columns.items()]
    copies = [f"{row[entry]:.1f} GB/s on the {where}" for entry, where in (("host copy", "CPU"), ("copy", "GPU"))
              if entry in row]  # fmt: skip
    if copies:
        found.append(f"A copy of the same {row['bytes']} bytes, read and written: {', '.join(copies)}.")
    for why in dict.fromkeys(column["missing"] for column in columns.values() if column["missing"]):
        found.append(f"Not run: {', '.join(label[n] for n, c in columns.items() if c['missing'] == why)}: {why}.")
    found += [f"Skipped: {label[name]}: {why}." for name, why in row["skipped"].items()]
    if result["estimates"]["calibration"]:
        found.append(f"Estimates for {result['estimates']['calibration']}.")
    else:
        found.append(f"No estimates: {result['estimates']['missing']}.")
    if "document" in row:
        found.append("2008: a compiled loop on one core of an E8400, and a GTX 260; its read-only path is textures.")
    return found


def text(result: dict[str, Any], width: int = 80) -> str:
    """For the terminal."""
    lines = (textwrap.fill(note, width, subsequent_indent="  ", break_on_hyphens=False) for note in notes(result))
    return "\n".join([sheet(result).text(width), *lines])


def markdown(result: dict[str, Any]) -> str:
    """For the documentation."""
    return "\n".join([sheet(result).markdown(), *(f"* {note}" for note in notes(result))])
