"""The study of the 1-D Laplace operator for people: a table with a row for every implementation, and notes."""

from __future__ import annotations

from collections.abc import Iterator

from wavefilt.benchmarks.common.columns import estimated, labels, not_run, place
from wavefilt.benchmarks.common.tables import Column, Report, Row, Table, size

MODELS = ("calibrated", "classic")
TIMES: dict[str, Column] = {
    "|1-D Laplace": "{label}",
    "mean|ms": "?{times[mean]:n}",
    "median|ms": "?{times:spread}",
    "|runs": "?{times[repeats]}",
    "times the|host loop": "?{ratios:n}",
    "share of|a copy": "?{shares:.1%}",
    "relative|error": lambda row: "-" if not row["times"] else f"{row['times']['error']:.0e}".replace("0e+00", "0"),
}
THEN: dict[str, Column] = {"2008|ms": "?{document[ms]:g}", "2008, x the|host loop": "?{document[ratio]:.1f}"}


def rows_by_column(result: Row) -> Iterator[Row]:
    """What the result's only row has of each implementation."""
    (row,) = result["rows"]
    for name, label in labels(result).items():
        yield {"label": label} | {key: value.get(name) for key, value in row.items() if isinstance(value, dict)}


def estimate_columns(errors: bool) -> dict[str, Column]:
    """Of every model, with or without its relative error."""
    found: dict[str, Column] = {}
    for model in MODELS:
        found[f"SKE|{model}"] = f"?{{estimates[{model}]:n}}"
        if errors:
            found[f"|error#{model}"] = f"?{{estimate errors[{model}]:+.0%}}"
    return found


def report(result: Row) -> Report:
    """Times, ratios, estimates, and the document of 2008 where its size was measured."""
    (row,) = result["rows"]
    columns = TIMES | (estimate_columns(True) if row.get("estimates") else {})
    columns |= THEN if row.get("document") else {}
    title = f"1-D Laplace operator, {size(row['samples'])} samples, float32"
    return Report([Table(title, columns, rows_by_column)(result)], notes(result))


def notes(result: Row) -> list[str]:
    """Where and how it was measured, what each row is, who is missing and why."""
    (row,), label = result["rows"], labels(result)
    found = [place(result), f"{result['method']}. ± is half the interquartile range."]
    found += [f"{label[name]}: {column['what']}." for name, column in result["columns"].items()]
    rates = {where: row[entry] for entry, where in (("host copy", "CPU"), ("copy", "GPU")) if entry in row}
    if rates:
        told = ", ".join(f"{rate:.1f} GB/s on the {where}" for where, rate in rates.items())
        found.append(f"A copy of the same {row['bytes']} bytes, read and written: {told}.")
    found += not_run(result)
    found += [f"Skipped: {label[name]}: {why}." for name, why in row["skipped"].items()]
    found.append(estimated(result))
    if "document" in row:
        found.append("2008: a compiled loop on one core of an E8400, and a GTX 260; its read-only path is textures.")
    return found
