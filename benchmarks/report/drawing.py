"""The plots of `wavefilt bench report`, drawn by Bokeh."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .figures import PALETTE, Line, Panel, Plot, Point
from .sections import DAMAGED, NotAStudy, Section

if TYPE_CHECKING:
    from bokeh.models import GlyphRenderer, Range1d
    from bokeh.plotting import figure as Figure

HEIGHT, ROW = 320, 42
"""Pixels of a panel with lines, and of a row with its label."""
PAD = 0.04
"""Of an axis, beyond the outermost values."""


def ends(values: Sequence[float], bars: bool = False) -> tuple[float, float]:
    """Of the axis that shows these values, logarithmic if they are all positive; bars begin at 0."""
    low, high = min(values), max(values)
    if bars:
        return 0, high * 1.12  # with a number after the longest
    if low > 0:
        factor = (high / low) ** PAD if high > low else 2
        return low / factor, high * factor
    pad = PAD * (high - low) or 1
    return low - pad, high + pad


@dataclass(frozen=True)
class Embedded:
    """HTML of a plot: its panels by their titles, and its legend."""

    plot: Plot
    panels: Sequence[tuple[str, str]]
    legend: str


def embedded(sections: Sequence[Section]) -> tuple[str, list[list[Embedded]]]:
    """The script of a page, which Bokeh's own must precede, and the plots of each section.

    Raises NotAStudy for a section that cannot be drawn, ImportError without Bokeh.
    """
    from bokeh.embed import components

    drawn, models = [], []
    for section in sections:
        try:
            drawn.append([(plot, list(figures(plot))) for plot in section.plots])
        except DAMAGED as error:
            raise NotAStudy(f"{section.source}: a damaged result of a study: {error!r}") from error
        models += [figure for _, parts in drawn[-1] for _, figure in parts]
    script, elements = components(models) if models else ("", [])
    left = iter(elements)
    html = [[(plot, [(title, next(left)) for title, _ in parts]) for plot, parts in plots] for plots in drawn]
    return script, [[Embedded(plot, parts[:-1], parts[-1][1]) for plot, parts in plots] for plots in html]


def figures(plot: Plot) -> Iterator[tuple[str, Figure]]:
    """Every panel under its title, then the legend, whose entries show and hide their lines in all panels."""
    from bokeh.models import Range1d

    lines = [line for panel in plot.panels for line in panel.lines]
    points = [point for line in lines for point in line.points]
    bars = any(line.look.marker == "bar" for line in lines)
    values = ends([value for p in points for value in (p.y, *(p.spread or ()))], bars)
    x, y = Range1d(*ends([p.x for p in points])), Range1d(*values)
    renderers: dict[str, list[GlyphRenderer[Any]]] = {line.label: [] for line in plot.legend}
    for panel, rows in _halves(plot) if plot.rows else ((panel, None) for panel in plot.panels):
        figure = _axes(plot, panel, x, y) if rows is None else _rows(plot, panel, rows, y)
        for line in panel.lines:
            renderers[line.label] += _draw(figure, line, rows is not None)
        yield panel.title, figure
    yield "", _legend(plot, renderers)


def _halves(plot: Plot) -> Iterator[tuple[Panel, range]]:
    """Rows in two columns."""
    count = len(plot.rows)
    half = math.ceil(count / 2) if count > 2 else count
    for rows in filter(None, (range(half), range(half, count))):
        parts = [(line, [p for p in line.points if p.x in rows]) for panel in plot.panels for line in panel.lines]
        yield Panel("", [Line(line.label, line.look, points) for line, points in parts]), rows


def _figure(height: int, **options: Any) -> Figure:
    """Logarithmic where a range is positive, with a toolbar under the mouse; no tool takes the page's scrolling."""
    from bokeh.models import BasicTicker, LogTicker, NumeralTickFormatter
    from bokeh.plotting import figure

    for name in "xy":
        options.setdefault(f"{name}_axis_type", "log" if options[f"{name}_range"].start > 0 else "linear")
    tools = {"tools": "box_zoom,reset,save", "active_drag": None, "toolbar_location": "above"}
    made = figure(height=height, sizing_mode="stretch_width", min_border_right=20, **tools, **options)
    made.toolbar.logo, made.toolbar.autohide, made.outline_line_color = None, True, None
    made.grid.grid_line_color = "#d9dee3"
    made.axis.axis_line_color = made.axis.major_label_text_color = "#5b6570"
    made.axis.major_tick_line_color = made.axis.minor_tick_line_color = None
    made.axis.axis_label_text_font_style = "normal"
    made.axis.formatter = NumeralTickFormatter(format="0[.][000000]")  # without exponents
    for axis, ends in ((made.xaxis, made.x_range), (made.yaxis, made.y_range)):
        mantissas = [1, 2, 5] if ends.end < 150 * ends.start else [1]
        log = LogTicker(mantissas=mantissas, num_minor_ticks=0)
        axis.ticker = log if ends.start > 0 else BasicTicker(desired_num_ticks=5)
    return made


def _axes(plot: Plot, panel: Panel, x: Range1d, y: Range1d) -> Figure:
    """A panel of lines."""
    from bokeh.models import NoOverlap

    made = _figure(HEIGHT, x_range=x, y_range=y, x_axis_label=plot.x, y_axis_label=plot.y)
    if panel.ticks:
        made.xaxis.ticker = sorted(panel.ticks)
        made.xaxis.major_label_overrides = dict(panel.ticks)
    made.xaxis.major_label_policy = NoOverlap(min_distance=12)
    return made


def _rows(plot: Plot, panel: Panel, rows: range, values: Range1d) -> Figure:
    """Labels above each other, each over its row, and a bar's value behind it."""
    from bokeh.models import Range1d

    y = Range1d(rows.stop, rows.start)
    made = _figure(ROW * len(rows) + 80, x_range=values, y_range=y, y_axis_type="linear", x_axis_label=plot.y)
    made.yaxis.visible = made.ygrid.visible = False
    made.text(values.start, [i + 0.34 for i in rows], [plot.rows[i] for i in rows], text_font_size="12px")
    points = [p for line in panel.lines for p in line.points]
    for p in (p for line in panel.lines if line.look.marker == "bar" for p in line.points):
        longest = max(other.y for other in points if other.x == p.x)
        made.text(longest, p.x + 0.8, [f"{p.y:.3g}"], x_offset=7, text_font_size="12px")
    return made


def _draw(figure: Figure, line: Line, across: bool = False) -> list[GlyphRenderer[Any]]:
    """Quartiles, the line itself and its points, which tell their texts; ``across`` with x and y exchanged."""
    from bokeh.models import ColumnDataSource, HoverTool

    look, points, colour = line.look, line.points, PALETTE[line.look.colour]
    data = {
        "place": [p.x + 0.65 if across else p.x for p in points],
        "value": [p.y for p in points],
        "text": [p.text for p in points],
    }
    if any(p.spread for p in points):
        spreads = [p.spread or (p.y, p.y) for p in points]
        data |= {"low": [low for low, _ in spreads], "high": [high for _, high in spreads]}
    source = ColumnDataSource(data)
    x, y = ("value", "place") if across else ("place", "value")
    drawn = []
    if "low" in data:
        range_ends = {"y0": "place", "y1": "place", "x0": "low", "x1": "high"}
        if not across:
            range_ends = {"x0": "place", "x1": "place", "y0": "low", "y1": "high"}
        drawn.append(figure.segment(**range_ends, source=source, color=colour, line_width=4.5, line_alpha=0.3))
    if look.dash:
        drawn.append(figure.line(x, y, source=source, color=colour, line_dash=look.dash, line_width=1.8))
    if look.marker == "bar":
        mark = figure.hbar("place", 0.32, "value", source=source, color=colour)
    else:
        face = "white" if look.hollow else colour
        style: dict[str, float] = {"size": {"dash": 18, "star": 14}.get(look.marker, 8)}
        style["angle"] = math.pi / 2 if look.marker == "dash" else 0
        shown = 1 if look.marker else 0  # a line without markers still has points that tell their texts
        mark = figure.scatter(
            x, y, source=source, marker=look.marker or "circle", line_color=colour, fill_color=face, line_width=1.4,
            alpha=shown, **style,
        )  # fmt: skip
    if any(p.text for p in points):
        words = '<div style="white-space: pre-line; max-width: min(18rem, 40vw)">@text</div>'
        figure.add_tools(HoverTool(renderers=[mark], tooltips=words, visible=False))
    for one in (*drawn, mark):  # nothing is selected, and an eighth of the page would be for that
        one.update(nonselection_glyph=None, muted_glyph=None)
    return [*drawn, mark]


LEGEND = (
    ":host { width: 100%; } .bk-grid { display: flex; flex-wrap: wrap; gap: 2px 14px; width: auto; height: auto; }"
    ".bk-inactive { opacity: .35; }"
)
"""Style of a legend: as many entries to a row as there is room for."""


def _legend(plot: Plot, renderers: dict[str, list[GlyphRenderer[Any]]]) -> Figure:
    """A figure without axes."""
    from bokeh.models import Legend, LegendItem, Range1d

    made = _figure(30, x_range=Range1d(0, 1), y_range=Range1d(0, 1))
    made.update(toolbar_location=None, sizing_mode="stretch_both", min_border=0)
    made.axis.visible = made.grid.visible = False
    items = []
    for line in plot.legend:
        sample = _draw(made, Line(line.label, line.look, [Point(math.nan, math.nan)]))
        items.append(LegendItem(label=line.label, renderers=[*sample, *renderers[line.label]]))
    style = {"border_line_color": None, "background_fill_alpha": 0, "label_text_font_size": "13px", "margin": 0}
    legend = Legend(items=items, click_policy="hide", location="top_left", **style, stylesheets=[LEGEND])
    made.add_layout(legend)
    return made
