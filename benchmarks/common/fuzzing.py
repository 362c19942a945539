"""The figures of tests/support/fuzz_readers.py as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wavefilt.benchmarks.common.tables import Sheet, number

NAMES = {"detected": "any, detected", "seg2": "SEG-2", "ascii": "ASCII", "raw": "raw", "npy": "npy", "npz": "npz",
         "wav": "WAV"}  # fmt: skip


def tables(result: dict[str, Any]) -> list[Sheet]:
    """What was read for each kind of file, and long files."""
    return [_inputs(result), _long(result)]


def markdown(result: dict[str, Any]) -> str:
    return "\n".join(sheet.markdown() for sheet in tables(result))


def _inputs(result: dict[str, Any]) -> Sheet:
    where = result["environment"]
    title = (
        f"{result['inputs']:,} inputs of up to {result['longest']} bytes, {result['findings']} of which broke the "
        f"contract: atheris {result['atheris']}, one process at a time on {where['processor']}, {where['cores']} "
        f"cores, {result['date']}"
    )
    rows = [
        [
            NAMES[kind], f"{found['inputs']:,}", f"{found['read']:,}", f"{found['errors']:,}",
            f"{found['inputs'] / found['seconds']:,.0f}", str(found.get("coverage")), str(found.get("features")),
            number(1e3 * found["slowest"]), number(found["memory"] / 1024), str(len(found["findings"])),
        ]
        for kind, found in result["kinds"].items()
    ]  # fmt: skip
    heads: list[Sequence[str]] = [
        ("kind", ""), ("inputs", ""), ("read", ""), ("refused with", "an error"), ("inputs", "a second"),
        ("edges", "covered"), ("", "features"), ("slowest,", "ms"), ("most", "memory, KiB"), ("", "findings"),
    ]  # fmt: skip
    return Sheet(title, heads, rows)


def _long(result: dict[str, Any]) -> Sheet:
    rows = [
        [name, number(found["bytes"] / (1 << 20)), number(found["seconds"]), number(found["memory"] / found["bytes"]),
         "read" if found["story"] == "read" else "refused"]
        for name, found in result["long"].items()
    ]  # fmt: skip
    heads: list[Sequence[str]] = [
        ("long file", ""), ("", "MiB"), ("", "seconds"), ("memory, times", "the file"), ("", "outcome"),
    ]  # fmt: skip
    return Sheet("Files of 4 MiB, and memory at the peak beside the file's own bytes", heads, rows)
