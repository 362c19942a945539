"""The study of the 2-D Laplace filter for people: a row for every implementation, a line for every kernel, notes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from wavefilt.benchmarks.common.tables import Sheet, number
from wavefilt.benchmarks.laplace1d.report import MODELS
from wavefilt.benchmarks.laplace2d.cases import NUMPY, SCIPY


def sheet(result: dict[str, Any]) -> Sheet:
    """Times, what they are held against, and estimates if there are any."""
    (row,) = result["rows"]
    heads: list[Sequence[str]] = [("", "5x5 Laplace"), ("", "ms"), ("megapixels", "a second"), ("times", "plain")]
    heads += [("share of", "a copy")]
    figures = (("megapixels a second", number), ("ratios", number), ("shares", "{:.0%}".format))
    models = [model for model in MODELS if row["estimates"]]
    for model in models:
        heads += [("SKE", model), ("", "error")] if row["estimate errors"] else [("SKE", model)]
    cells = []
    for name, column in result["columns"].items():
        times = row["times"].get(name)
        spread = "" if times is None else f" ±{(times['high'] - times['low']) / 2 / times['median']:.0%}"
        line = [" ".join(column["heads"]), "-" if times is None else number(times["median"]) + spread]
        line += [_cell(row[figure].get(name), written) for figure, written in figures]
        for model in models:
            line.append(_cell(row["estimates"].get(name, {}).get(model), number))
            if row["estimate errors"]:
                line.append(_cell(row["estimate errors"].get(name, {}).get(model), "{:+.0%}".format))
        cells.append(line)
    title = f"5x5 Laplace filter, {row['width']}x{row['height']} RGB pixels, image {row['image']}; ± is half the "
    title += "distance of the quartiles"
    return Sheet(title, heads, cells)


def _cell(value: float | None, written: Any) -> str:
    return "-" if value is None else written(value)


def explanation(facts: dict[str, Any]) -> str:
    """What a kernel's time is made of, as counted from its accesses and its registers."""
    parts = [f"{facts['instructions']:.0f} instructions a pixel"]
    parts.append(", ".join(f"{value:.3g} bytes {place}" for place, value in facts["bytes"].items()))
    if "conflicts" in facts:
        reads, writes = (facts["conflicts"][access] for access in ("reads", "writes"))
        parts.append(f"turns of a read from the tile {reads['mean']:.3g}, of a write {writes['mean']:.3g}")
    parts.append(f"{facts['registers']} registers and {facts['shared']} bytes shared let an SM hold {facts['warps']} "
                 f"warps, {facts['occupancy']:.0%} ({facts['limit']})")  # fmt: skip
    return "; ".join([*parts, *([f"mostly {facts['mostly']}"] if "mostly" in facts else [])])


def notes(result: dict[str, Any]) -> list[str]:
    """What the table does not say: where, what each row is and what explains it, who is missing and why."""
    (row,) = result["rows"]
    columns, where = result["columns"], result["environment"]
    label = {name: " ".join(column["heads"]) for name, column in columns.items()}
    found = [f"{where['processor']}, {where['cores']} cores; {where['gpu'] or 'no GPU'}; {result['date']}."]
    found.append(f"{result['method']}. Results are compared exactly, with {SCIPY}; its own with {NUMPY}.")
    found.append(
        f"The kernels by count, for compute capability {result['capability']}: bytes for a pixel by memory; "
        "turns of shared memory, more than one being a bank conflict; what most time goes to by the SKE model."
    )
    for name, column in columns.items():
        line = f"{label[name]}: {column['what']}"
        line += f": {explanation(row['explained'][name])}" if name in row["explained"] else ""
        found.append(line + (f": {row['copy'][name]:.1f} GB/s." if name in row["copy"] else "."))
    for why in dict.fromkeys(column["missing"] for column in columns.values() if column["missing"]):
        found.append(f"Not run: {', '.join(label[n] for n, c in columns.items() if c['missing'] == why)}: {why}.")
    found += [f"Skipped: {label[name]}: {why}." for name, why in row["skipped"].items()]
    device, missing = result["estimates"]["calibration"], result["estimates"]["missing"]
    return [*found, f"Estimates for {device}." if device else f"No estimates: {missing}."]


def text(result: dict[str, Any], width: int = 80) -> str:
    """For the terminal."""
    lines = (textwrap.fill(note, width, subsequent_indent="  ", break_on_hyphens=False) for note in notes(result))
    return "\n".join([sheet(result).text(width), *lines])


def markdown(result: dict[str, Any]) -> str:
    """For the documentation."""
    return "\n".join([sheet(result).markdown(), *(f"* {note}" for note in notes(result))])
