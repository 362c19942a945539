"""The results of tests/support/fuzz_readers.py as tables."""

from __future__ import annotations

from wavefilt.benchmarks.common.tables import Report, Row, Table, number

NAMES: dict[str, str] = {"detected": "any, detected", "seg2": "SEG-2", "ascii": "ASCII", "wav": "WAV"}
INPUTS = Table(
    "{inputs:,} inputs of up to {longest} bytes, {findings} of which violated the contract: atheris {atheris}, one "
    "process at a time on {environment[processor]}, {environment[cores]} cores, {date}",
    {
        "kind": lambda row: NAMES.get(str(row["kind"]), str(row["kind"])),
        "inputs": "{inputs:,}",
        "read": "{read:,}",
        "refused with|an error": "{errors:,}",
        "inputs|a second": lambda row: f"{row['inputs'] / row['seconds']:,.0f}",
        "edges|covered": lambda row: str(row.get("coverage")),
        "features": lambda row: str(row.get("features")),
        "slowest,|ms": "{slowest:ms}",
        "most|memory, KiB": "{memory:KiB}",
        "findings": lambda row: str(len(row["findings"])),
    },
    lambda result: ({"kind": kind, **found} for kind, found in result["kinds"].items()),
)
LONG = Table(
    "Files of 4 MiB, and peak memory in addition to the file's own bytes",
    {
        "long file": "{name}",
        "MiB": lambda row: number(row["bytes"] / (1 << 20)),
        "seconds": "{seconds:n}",
        "memory, times|the file": lambda row: number(row["memory"] / row["bytes"]),
        "outcome": lambda row: "read" if row["story"] == "read" else "refused",
    },
    lambda result: ({"name": name, **found} for name, found in result["long"].items()),
)


def report(result: Row) -> Report:
    return Report([INPUTS(result), LONG(result)], [f"Made by `{result['command']}`."])
