"""Results with a column for every implementation: the facts recorded of each, and the notes about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from wavefilt.benchmarks.common.implementation import Implementation
from wavefilt.benchmarks.common.tables import Row


def recorded(
    implementations: Iterable[Implementation], why: Mapping[str, str | None], compared: Callable[[Implementation], str]
) -> Row:
    """Return for JSON: heads, description, why it is missing, and the reference it was compared with."""
    return {
        one.name: {
            "heads": one.heads,
            "what": one.what,
            "missing": why[one.name],
            "tolerance": one.tolerance,
            "compared with": compared(one),
        }
        for one in implementations
    }


def labels(result: Row) -> dict[str, str]:
    """Return the heads of each column in one line, by name."""
    return {name: " ".join(column["heads"]).strip() for name, column in result["columns"].items()}


def place(result: Row) -> str:
    """Return where and when a result was measured."""
    where = result["environment"]
    return f"{where['processor']}, {where['cores']} cores; {where['gpu'] or 'no GPU'}; {result['date']}."


def grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that share a reason, by reason and in order."""
    return {why: [n for n, other in reasons.items() if other == why] for why in dict.fromkeys(reasons.values())}


def not_run(result: Row) -> list[str]:
    """Return a note for each reason why columns are missing."""
    label = labels(result)
    missing = grouped({name: column["missing"] for name, column in result["columns"].items() if column["missing"]})
    return [f"Not run: {', '.join(label[name] for name in names)}: {why}." for why, names in missing.items()]


def estimated(result: Row) -> str:
    """Return which device the estimates are for, or why there are none."""
    device, there = result["estimates"]["calibration"], result["environment"]["gpu"]
    if not device:
        return f"No estimates: {result['estimates']['missing']}."
    return f"Estimates for {device}{'' if there else '; there is no GPU here to measure'}."
