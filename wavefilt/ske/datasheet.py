"""Data sheets: what is published of a GPU that was not measured, each figure with its source.

A sheet is JSON: ``format`` ("data sheet"), the driver's ``name`` of the GPU, its compute ``capability``, and for each
of `FIGURES` a ``value`` and its ``source``. `wavefilt.ske.calibration.published` makes a calibration of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wavefilt.vocabulary import check

from .occupancy import amount

FORMAT = "data sheet"
FOLDER = Path(__file__).parent / "sheets"
FIGURES = {
    "multiprocessors": "",
    "clock": "Hz, the highest",
    "cache": "bytes of L2",
    "memory": "bytes",
    "dram bandwidth": "bytes a second",
    "l2 bandwidth": "bytes a second, read; optional",
    "l1 latency": "cycles",
    "shared latency": "cycles",
    "l2 latency": "cycles",
    "dram latency": "cycles",
}
"""What a sheet tells, and the units."""
OPTIONAL = "l2 bandwidth"
LANES = {
    "7.0": (64, 32),
    "7.2": (64, 32),
    "7.5": (64, 2),
    "8.0": (64, 32),
    "8.6": (128, 2),
    "8.7": (128, 2),
    "8.9": (128, 2),
    "9.0": (128, 64),
    "10.0": (128, 64),
    "12.0": (128, 2),
}
"""Multiply-adds of float32 and of float64 in a cycle of an SM: the CUDA guides' table of arithmetic throughput."""


@dataclass(frozen=True)
class DataSheet:
    """``figures`` and ``sources`` are by the names of `FIGURES`."""

    name: str
    capability: str
    figures: Mapping[str, float]
    sources: Mapping[str, str]

    @staticmethod
    def from_json(text: str) -> DataSheet:
        """Raises ValueError, which says what is missing or wrong, for anything but a whole sheet."""
        facts = json.loads(text)
        if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
            raise ValueError(f"this is no data sheet: its format must be {FORMAT!r}")
        name, capability = facts.pop("name", None), facts.pop("capability", None)
        if not isinstance(name, str) or not name:
            raise ValueError("this data sheet lacks the name of its GPU")
        check("capability", capability, LANES)
        wanted, found = set(FIGURES) - {OPTIONAL}, set(facts)
        if not wanted <= found <= set(FIGURES):
            wrong = [f"lacks {figure}" for figure in FIGURES if figure in wanted - found]
            wrong += [f"has no use for {figure}" for figure in facts if figure not in FIGURES]
            raise ValueError(f"the data sheet of {name} {', '.join(wrong)}")
        figures, sources = {}, {}
        for figure, entry in facts.items():
            if not isinstance(entry, dict) or set(entry) != {"value", "source"} or not str(entry["source"]):
                raise ValueError(f"{figure} in the data sheet of {name} must have a value and a source")
            figures[figure] = amount(figure, entry["value"])
            if not figures[figure]:
                raise ValueError(f"{figure} in the data sheet of {name} must be above 0")
            sources[figure] = str(entry["source"])
        return DataSheet(name, str(capability), figures, sources)


def is_one(text: str) -> bool:
    """Whether this JSON says that it is a data sheet."""
    try:
        facts = json.loads(text)
    except ValueError:
        return False
    return isinstance(facts, dict) and facts.get("format") == FORMAT


def names() -> list[str]:
    """Of the shipped sheets."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))
