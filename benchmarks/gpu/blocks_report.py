"""The study of block sizes for people: times and estimates by block, what each model would choose, notes."""

from __future__ import annotations

from collections.abc import Iterator

from wavefilt.benchmarks.common.columns import labels, place
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, Table, number, size, spread

MODELS = ("calibrated", "classic")


def report(result: Row) -> Report:
    return Report([*sheets(result)], notes(result))


def sheets(result: Row) -> Iterator[Sheet]:
    """Microseconds by block, a sheet for each kernel; then the choices."""
    for name, label in labels(result).items():
        rows = [
            {"block": row["block"], "times": row["times"].get(name), "estimates": row["estimates"].get(name, {})}
            for row in result["rows"]
        ]
        measured = any(row["times"] for row in rows)
        models = [model for model in MODELS if any(model in row["estimates"] for row in rows)]
        columns: dict[str, Column] = {"threads|of a block": "{block}"}
        columns |= {"measured|us": _measured} if measured else {}
        for model in models:
            columns |= _estimates(model, measured)
        if len(columns) > 1:
            yield Table(f"{label}, {size(result['samples'])} samples: microseconds", columns)({"rows": rows})
    if any(entry["calibrated"]["block"] or entry["fastest"] for entry in result["choices"].values()):
        yield CHOICES({"rows": [{"label": labels(result)[name], **entry} for name, entry in result["choices"].items()]})


def _measured(row: Row) -> str:
    return f"{1e3 * row['times']['median']:.1f} ±{spread(row['times']):.1%}" if row["times"] else "-"


def _estimates(model: str, measured: bool) -> dict[str, Column]:
    """An estimate, and its error where times were measured."""

    def estimate(row: Row) -> str:
        value = row["estimates"].get(model)
        return number(1e3 * value) if value else "-"

    def error(row: Row) -> str:
        value, times = row["estimates"].get(model), row["times"]
        return f"{value / times['median'] - 1:+.0%}" if value and times else "-"

    found: dict[str, Column] = {f"SKE|{model}": estimate}
    return found | ({f"|error#{model}": error} if measured else {})


CHOICES = Table(
    "Choice of the block size; regret is its time over the shortest time",
    {
        "|kernel": "{label}",
        "fastest|block": "?{fastest}",
        "SKE calibrated|would choose": "?{calibrated[block]}",
        "|regret#calibrated": "?{calibrated[regret]:.3f}",
        "SKE classic|would choose": "?{classic[block]}",
        "|regret#classic": "?{classic[regret]:.3f}",
    },
)


def notes(result: Row) -> list[str]:
    """Where and how it was measured, and what was left out and why."""
    columns, label = result["columns"], labels(result)
    found = [place(result), f"{result['method']}."]
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
    for row in result["rows"]:
        found += [f"Skipped: {label[name]}, {row['block']} threads: {why}." for name, why in row["skipped"].items()]
    return found
