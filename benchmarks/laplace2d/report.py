"""The study of the 2-D Laplace filter for people: a row for every implementation, a line for every kernel, notes."""

from __future__ import annotations

from wavefilt.benchmarks.common.columns import estimated, labels, not_run, place
from wavefilt.benchmarks.common.tables import Column, Report, Row, Table
from wavefilt.benchmarks.laplace1d.report import estimate_columns, rows_by_column
from wavefilt.benchmarks.laplace2d.cases import NUMPY, SCIPY

TIMES: dict[str, Column] = {
    "|5x5 Laplace": "{label}",
    "|ms": "?{times:spread}",
    "megapixels|a second": "?{megapixels a second:n}",
    "times|plain": "?{ratios:n}",
    "share of|a copy": "?{shares:.0%}",
}


def report(result: Row) -> Report:
    """Times, ratios, and estimates if there are any."""
    (row,) = result["rows"]
    columns = TIMES | (estimate_columns(bool(row["estimate errors"])) if row["estimates"] else {})
    title = f"5x5 Laplace filter, {row['width']}x{row['height']} RGB pixels, image {row['image']}; ± is half the "
    title += "interquartile range"
    return Report([Table(title, columns, rows_by_column)(result)], notes(result))


def explanation(facts: Row) -> str:
    """What a kernel's time is made of, as counted from its accesses and its registers."""
    parts = [f"{facts['instructions']:.0f} instructions per pixel"]
    parts.append(", ".join(f"{value:.3g} bytes {place}" for place, value in facts["bytes"].items()))
    if "conflicts" in facts:
        reads, writes = (facts["conflicts"][access] for access in ("reads", "writes"))
        parts.append(f"bank conflict degree of tile reads {reads['mean']:.3g}, of writes {writes['mean']:.3g}")
    occupancy = f"{facts['warps']} warps, {facts['occupancy']:.0%} ({facts['limit']})"
    parts.append(
        f"{facts['registers']} registers and {facts['shared']} bytes of shared memory allow {occupancy} per SM"
    )
    return "; ".join([*parts, *([f"limited by {facts['mostly']}"] if "mostly" in facts else [])])


def notes(result: Row) -> list[str]:
    """Where and how it was measured, what each row is and what explains it, who is missing and why."""
    (row,), label = result["rows"], labels(result)
    found = [
        place(result),
        f"{result['method']}. Results are compared exactly, with {SCIPY}; its own with {NUMPY}.",
        f"The kernels by count, for compute capability {result['capability']}: bytes per pixel by memory; "
        "bank conflict degree (1 is none); the limiting resource according to the SKE model.",
    ]
    for name, column in result["columns"].items():
        line = f"{label[name]}: {column['what']}"
        line += f": {explanation(row['explained'][name])}" if name in row["explained"] else ""
        found.append(line + (f": {row['copy'][name]:.1f} GB/s." if name in row["copy"] else "."))
    found += not_run(result)
    found += [f"Skipped: {label[name]}: {why}." for name, why in row["skipped"].items()]
    return [*found, estimated(result)]
