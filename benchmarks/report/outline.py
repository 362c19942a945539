"""Plots of the studies whose result has the form of `scaling.run`: columns, and rows with times by column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from wavefilt.benchmarks.common.columns import labels
from wavefilt.benchmarks.common.tables import Report, Row, Table, Times, number, size

from .figures import LIMITS, Line, Look, Panel, Plot, Point, looks

ALONG: dict[str, Callable[[int], str]] = {"samples": size, "block": str}
"""What times are drawn over, the first that differs between rows, with how its values are written."""


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
    groups, ticks = _groups(result), {row[along]: ALONG[along](row[along]) for row in result["rows"]}
    times = [Panel(title, list(_times(result, rows, along)), ticks) for title, rows in groups.items()]
    plots = [Plot("Time", along, f"{result['unit']}, median and quartiles", times)]
    found = (each for row in result["rows"] for each in row.get("ratios", {}).items())
    base = next((base for base, others in found if isinstance(others, dict)), None)
    if base is not None:
        ratios = [Panel(title, list(_ratios(result, rows, along, base)), ticks) for title, rows in groups.items()]
        plots.append(Plot("Speed-up", along, f"times as fast as {labels(result)[base]}", ratios))
    return [plot for plot in plots if plot.legend]


def outline_report(result: Row) -> Report:
    """Medians of a study that has no table of its own."""
    row = result["rows"][0]
    columns = {name: "{samples:size}" if name == "samples" else f"{{{name}}}" for name in row if name in _plain(row)}
    for name, column in result["columns"].items():
        if any(name in row["times"] for row in result["rows"]):
            columns["|".join(column["heads"])] = f"?{{times[{name}][median]:n}}"
    return Report([Table(f"Medians, {result['unit']}", columns)(result)], [result["method"]])


def _plain(row: Row) -> list[str]:
    return [name for name, value in row.items() if isinstance(value, str | int)]


def _point(at: float, value: float | Times, what: str, unit: str) -> Point:
    """Of a number, or of median and quartiles."""
    if isinstance(value, int | float):
        return Point(at, value, f"{what}: {number(value)} {unit}")
    median, low, high = (value[key] for key in ("median", "low", "high"))
    return Point(at, median, f"{what}: {number(median)} {unit} ({number(low)} to {number(high)})", (low, high))


def _line(label: str, look: Look, along: str, found: Sequence[tuple[Row, float | Times]], unit: str) -> Iterator[Line]:
    """Values over what the rows differ in; nothing without values."""
    points = [_point(row[along], value, f"{label}\n{ALONG[along](row[along])} {along}", unit) for row, value in found]
    if points:
        yield Line(label, look, points)


def _times(result: Row, rows: Sequence[Row], along: str) -> Iterator[Line]:
    for (section, entry), (label, look) in LIMITS.items():
        found = [(row, row[section][entry]) for row in rows if entry in row.get(section, {})]
        yield from _line(label, look, along, found, result["unit"])
    for name, look in looks(result["columns"]).items():
        found = [(row, row["times"][name]) for row in rows if name in row["times"]]
        yield from _line(labels(result)[name], look, along, found, result["unit"])
        # an estimate of every column apart, where the study makes one
        models = [(row, row.get("estimates", {}).get(name, {})) for row in rows]
        own = [(row, found["calibrated"]) for row, found in models if "calibrated" in found]
        dotted = replace(look, marker="", dash="dotted")
        yield from _line(f"{labels(result)[name]}, SKE estimate", dotted, along, own, result["unit"])


def _ratios(result: Row, rows: Sequence[Row], along: str, base: str) -> Iterator[Line]:
    unit, others = "times as fast", looks(result["columns"])
    yield Line(labels(result)[base], Look(others.pop(base).colour, ""), [Point(row[along], 1) for row in rows])
    for name, look in others.items():
        found = [(row, row["ratios"][base][name]) for row in rows if name in row.get("ratios", {}).get(base, {})]
        yield from _line(labels(result)[name], look, along, found, unit)
    then = [(row, row["document"]["ratio"]) for row in rows if "ratio" in row.get("document", {})]
    yield from _line("2010: GPU over CPU", LIMITS["document", "cpu"][1], along, then, unit)


def _dots(result: Row, row: Row, title: str, year: str) -> Plot:
    """A row for every column: what was measured, and what its document and the SKE model say."""
    found: dict[str, Row] = {"measured": row["times"], year: {}}
    for name, then in row.get("document", {}).items():
        if isinstance(then, dict):
            found[year][name] = then["ms"]
    for name, models in row.get("estimates", {}).items():
        for model, value in models.items() if isinstance(models, dict) else ():
            found.setdefault(f"SKE estimate, {model}", {})[name] = value
    names = [name for name in result["columns"] if any(name in values for values in found.values())]
    hollow = [
        Look(*pair, True, "")
        for pair in (("black", "diamond"), ("purple", "triangle"), ("vermillion", "inverted_triangle"))
    ]
    styles, lines = [Look("blue", dash=""), Look("gray", "square", dash=""), *hollow], []
    for style, (label, values) in zip(styles, found.items(), strict=False):
        here = [(i, values[name], f"{labels(result)[name]}\n{label}") for i, name in enumerate(names) if name in values]
        if here:
            lines.append(Line(label, style, [_point(*point, result["unit"]) for point in here]))
    title = f"{title}, " if title else ""
    pixels = f"{row['width']} x {row['height']} pixels" if "width" in row else f"{size(row['samples'])} samples"
    what = f"{title}{pixels}, {result['unit']}"
    return Plot("Time", "", what, [Panel("", lines)], [labels(result)[name] for name in names])
