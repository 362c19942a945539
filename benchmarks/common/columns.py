"""Results with a column for every implementation: what is recorded of each, and what notes say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from wavefilt.benchmarks.common.implementation import Implementation
from wavefilt.benchmarks.common.tables import Row


def recorded(
    implementations: Iterable[Implementation], why: Mapping[str, str | None], compared: Callable[[Implementation], str]
) -> Row:
    """For JSON: heads, what is computed, why it is missing, and what it was compared with."""
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
    """Heads in one line, by name."""
    return {name: " ".join(column["heads"]).strip() for name, column in result["columns"].items()}


def place(result: Row) -> str:
    """Where and when it was measured."""
    where = result["environment"]
    return f"{where['processor']}, {where['cores']} cores; {where['gpu'] or 'no GPU'}; {result['date']}."


def grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Names by what is said of them, in order."""
    return {why: [n for n, other in reasons.items() if other == why] for why in dict.fromkeys(reasons.values())}


def not_run(result: Row) -> list[str]:
    """Who is missing, and why."""
    label = labels(result)
    missing = grouped({name: column["missing"] for name, column in result["columns"].items() if column["missing"]})
    return [f"Not run: {', '.join(label[name] for name in names)}: {why}." for why, names in missing.items()]


def estimated(result: Row) -> str:
    """What device the estimates are of, and whether it is here; or why there are none."""
    device, there = result["estimates"]["calibration"], result["environment"]["gpu"]
    if not device:
        return f"No estimates: {result['estimates']['missing']}."
    return f"Estimates for {device}{'' if there else '; there is no GPU here to measure'}."
