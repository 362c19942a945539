"""Plots of the studies whose result has the form of `scaling.run`: columns, and rows with times by column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wavefilt.benchmarks.common.columns import labels
from wavefilt.benchmarks.common.tables import Report, Row, Table, Times, number, size

from .figures import LIMITS, Line, Look, Panel, Plot, Point, looks

ALONG: dict[str, Callable[[int], str]] = {"samples": size, "block": str}
"""What times are drawn over, the first that differs between rows, with how its values are written."""
STYLES = (
    Look("blue", dash=""),
    Look("gray", "square", dash=""),
    *(Look(*pair, True, "") for pair in zip(("black", "purple"), ("diamond", "triangle"), strict=True)),
)
"""Of what was measured, published and estimated by each model."""
Series = tuple[str, Look, tuple[str, ...]]
"""A label, its look, and the keys of its values in a row."""


def outline(result: Row, year: str = "2010") -> list[Plot]:
    """Times over size, and how many times faster everyone is than the first base of the ratios.

    Where one size was measured, a dot for everyone's time beside its estimate and the document of that ``year``.
    """
    along = next((key for key in ALONG if len({row.get(key) for row in result["rows"]}) > 1), None)
    if along is not None:
        return lines(result, along)
    dots = [_dots(result, row, title, year) for title, rows in _groups(result).items() for row in rows]
    return [plot for plot in dots if plot.legend]


def _groups(result: Row) -> dict[str, list[Row]]:
    """Rows by their words and taps, which are the titles of panels."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in result["rows"]:
        words = [value for value in row.values() if isinstance(value, str)]
        groups[", ".join([*words, *([f"{row['taps']} taps"] if "taps" in row else [])])].append(row)
    return groups


def lines(result: Row, along: str) -> list[Plot]:
    """Times, and the speed-up over the first base of the ratios."""
    label, unit, known = labels(result), result["unit"], looks(result["columns"])
    times: list[Series] = [(name, look, keys) for keys, (name, look) in LIMITS.items()]
    for name, look in known.items():  # and an estimate of every column apart, where the study makes one
        estimate = replace(look, marker="", dash="dotted")
        times += [(label[name], look, ("times", name))]
        times += [(f"{label[name]}, SKE estimate", estimate, ("estimates", name, "calibrated"))]
    plots = [_over(result, "Time", f"{unit}, median and quartiles", along, times, unit)]
    found = (each for row in result["rows"] for each in row.get("ratios", {}).items())
    base = next((base for base, others in found if isinstance(others, dict)), None)
    if base is not None:
        ratios: list[Series] = [(label[base], Look(known.pop(base).colour, ""), ())]
        ratios += [(label[name], look, ("ratios", base, name)) for name, look in known.items()]
        ratios += [("2010: GPU over CPU", LIMITS["document", "cpu"][1], ("document", "ratio"))]
        plots.append(_over(result, "Speed-up", f"times as fast as {label[base]}", along, ratios, "times as fast"))
    return [plot for plot in plots if plot.legend]


def _over(result: Row, title: str, y: str, along: str, series: Sequence[Series], unit: str) -> Plot:
    """A panel for each group of rows, with the lines that have points; a series without keys is 1 in every row."""
    panels, written = [], ALONG[along]
    for group, rows in _groups(result).items():
        drawn = []
        for label, look, keys in series:
            found = [(row[along], _entry(row, *keys) if keys else 1) for row in rows]
            told = [(at, value, f"{label}\n{written(at)} {along}" if keys else "") for at, value in found]
            points = [_point(*point, unit) for point in told if point[1] is not None]
            drawn += [Line(label, look, points)] if points else []
        panels.append(Panel(group, drawn, {row[along]: written(row[along]) for row in result["rows"]}))
    return Plot(title, along, y, panels)


def _entry(row: Any, *keys: str) -> Any:
    """What lies there, None where nothing does."""
    for key in keys:
        row = row.get(key) if isinstance(row, dict) else None
    return row


def _point(at: float, value: float | Times, what: str, unit: str) -> Point:
    """Of a number, or of median and quartiles; it tells ``what`` it is, if anything."""
    if isinstance(value, int | float):
        return Point(at, value, what and f"{what}: {number(value)} {unit}")
    median, low, high = (value[key] for key in ("median", "low", "high"))
    return Point(at, median, f"{what}: {number(median)} {unit} ({number(low)} to {number(high)})", (low, high))


def _dots(result: Row, row: Row, title: str, year: str) -> Plot:
    """A row for every column: what was measured, and what its document and the SKE model say."""
    models = dict.fromkeys(m for of in row.get("estimates", {}).values() if isinstance(of, dict) for m in of)
    series = {"measured": ("times",), year: ("document", "ms")}
    series |= {f"SKE estimate, {model}": ("estimates", model) for model in models}
    values = {
        name: {what: _entry(row, section, name, *last) for what, (section, *last) in series.items()}
        for name in result["columns"]
    }
    names = [name for name, found in values.items() if any(value is not None for value in found.values())]
    drawn, label = [], labels(result)
    for what, look in zip(series, STYLES, strict=False):
        here = [(i, values[name][what], f"{label[name]}\n{what}") for i, name in enumerate(names)]
        points = [_point(*point, result["unit"]) for point in here if point[1] is not None]
        drawn += [Line(what, look, points)] if points else []
    pixels = f"{row['width']} x {row['height']} pixels" if "width" in row else f"{size(row['samples'])} samples"
    unit = ", ".join(filter(None, (title, pixels, result["unit"])))
    return Plot("Time", "", unit, [Panel("", drawn)], [label[name] for name in names])


def outline_report(result: Row) -> Report:
    """Medians of a study that has no table of its own."""
    plain = [name for name, value in result["rows"][0].items() if isinstance(value, str | int)]
    columns = {name: "{samples:size}" if name == "samples" else f"{{{name}}}" for name in plain}
    for name, column in result["columns"].items():
        if any(name in row["times"] for row in result["rows"]):
            columns["|".join(column["heads"])] = f"?{{times[{name}][median]:n}}"
    return Report([Table(f"Medians, {result['unit']}", columns)(result)], [result["method"]])
