"""Plots of the studies whose result has the form of `scaling.run`: columns, and rows with times by column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wavefilt.benchmarks.common.tables import number, size
from wavefilt.benchmarks.scaling.plot import LIMITS

from .figures import Dots, Lines, Panel, Plot
from .styles import LIMIT, looks
from .svg import Line, Look, Point

Row = dict[str, Any]
ALONG: dict[str, Callable[[int], str]] = {"samples": size, "block": str}
"""What times are drawn over, the first that differs between rows, with how its values are written."""


def outline(result: Row, year: str = "2010") -> list[Plot]:
    """Times over size, and how many times faster everyone is than the first base of the ratios.

    Where one size was measured, a dot for everyone's time beside its estimate and the document of that ``year``.
    """
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in result["rows"]:
        words = [value for value in row.values() if isinstance(value, str)]
        groups[", ".join([*words, *([f"{row['taps']} taps"] if "taps" in row else [])])].append(row)
    along = next((key for key in ALONG if len({row.get(key) for row in result["rows"]}) > 1), None)
    if along is None:
        dots = [_dots(result, row, title, year) for title, rows in groups.items() for row in rows]
        return [plot for plot in dots if plot.legend]
    ticks = {row[along]: ALONG[along](row[along]) for row in result["rows"]}
    times = [Panel(title, list(_times(result, rows, along)), ticks) for title, rows in groups.items()]
    plots: list[Plot] = [Lines("Time", along, f"{result['unit']}, median and quartiles", times)]
    found = (each for row in result["rows"] for each in row.get("ratios", {}).items())
    base = next((base for base, others in found if isinstance(others, dict)), None)
    if base is not None:
        ratios = [Panel(title, list(_ratios(result, rows, along, base)), ticks) for title, rows in groups.items()]
        plots.append(Lines("Speed-up", along, f"times as fast as {_label(result, base)}", ratios))
    return [plot for plot in plots if plot.legend]


def _label(result: Row, name: str) -> str:
    return " ".join(result["columns"][name]["heads"])


def _point(at: float, value: Any, what: str, unit: str) -> Point:
    """Of a number, or of median and quartiles."""
    if not isinstance(value, dict):
        return Point(at, value, f"{what}: {number(value)} {unit}")
    median, low, high = (value[key] for key in ("median", "low", "high"))
    return Point(at, median, f"{what}: {number(median)} {unit} ({number(low)} to {number(high)})", (low, high))


def _line(label: str, look: Look, along: str, found: Sequence[tuple[Row, Any]], unit: str) -> Iterator[Line]:
    """Values over what the rows differ in; nothing without values."""
    points = [_point(row[along], value, f"{label}\n{ALONG[along](row[along])} {along}", unit) for row, value in found]
    if points:
        yield Line(label, look, points)


def _times(result: Row, rows: Sequence[Row], along: str) -> Iterator[Line]:
    for (section, entry), look in LIMIT.items():
        found = [(row, row[section][entry]) for row in rows if entry in row.get(section, {})]
        yield from _line(LIMITS[section, entry]["label"], look, along, found, result["unit"])
    for name, look in looks(result["columns"]).items():
        found = [(row, row["times"][name]) for row in rows if name in row["times"]]
        yield from _line(_label(result, name), look, along, found, result["unit"])
        # an estimate of every column apart, where the study makes one
        models = [(row, row.get("estimates", {}).get(name, {})) for row in rows]
        own = [(row, found["calibrated"]) for row, found in models if "calibrated" in found]
        dotted = replace(look, marker="", dash=":")
        yield from _line(f"{_label(result, name)}, SKE estimate", dotted, along, own, result["unit"])


def _ratios(result: Row, rows: Sequence[Row], along: str, base: str) -> Iterator[Line]:
    unit, others = "times as fast", looks(result["columns"])
    yield Line(_label(result, base), Look(others.pop(base).colour, ""), [Point(row[along], 1) for row in rows])
    for name, look in others.items():
        found = [(row, row["ratios"][base][name]) for row in rows if name in row.get("ratios", {}).get(base, {})]
        yield from _line(_label(result, name), look, along, found, unit)
    then = [(row, row["document"]["ratio"]) for row in rows if "ratio" in row.get("document", {})]
    yield from _line("2010: GPU over CPU", LIMIT["document", "cpu"], along, then, unit)


def _dots(result: Row, row: Row, title: str, year: str) -> Plot:
    """A row for every column: what was measured, and what its document and the SKE model say."""
    found: dict[str, dict[str, Any]] = {"measured": row["times"], year: {}}
    for name, then in row.get("document", {}).items():
        if isinstance(then, dict):
            found[year][name] = then["ms"]
    for name, models in row.get("estimates", {}).items():
        for model, value in models.items() if isinstance(models, dict) else ():
            found.setdefault(f"SKE estimate, {model}", {})[name] = value
    names = [name for name in result["columns"] if any(name in values for values in found.values())]
    styles = (Look("blue", "o", dash=""), Look("gray", "s", dash=""), Look("black", "D", True, ""),
              Look("purple", "^", True, ""), Look("vermillion", "v", True, ""))  # fmt: skip
    lines = [
        Line(label, style, [_point(i, values[name], f"{_label(result, name)}\n{label}", result["unit"])
                            for i, name in enumerate(names) if name in values])
        for style, (label, values) in zip(styles, found.items(), strict=False) if values
    ]  # fmt: skip
    title = f"{title}, " if title else ""
    pixels = f"{row['width']} x {row['height']} pixels" if "width" in row else f"{size(row['samples'])} samples"
    return Dots("Time", f"{title}{pixels}, {result['unit']}", [_label(result, name) for name in names], lines)
