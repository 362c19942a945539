"""Tables of the study for the terminal and the documentation, and the published numbers in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from wavefilt.benchmarks.common.columns import place
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, filled, sheet
from wavefilt.benchmarks.quality import methods

_XING = """
BlockJS | 46.564 58.984 14.162 199.024 343.841 102.117 | 0.459 0.634 0.226 2.1 4.102 1.752
NeighBlock | 42.663 47.716 10.99 188.263 330.266 66.568 | 0.469 0.554 0.18 2.286 3.816 1.239
SURE | 53.889 63.02 38.183 289.754 412.888 246.703 | 1.027 0.986 1.225 9.941 10.64 11.323
EbayesThresh | 21.705 24.876 10.397 93.603 148.095 57.493 | 0.226 0.238 0.158 1.065 1.559 0.901
TI threshold | 30.116 27.454 10.932 150.681 239.384 67.993 | 0.416 0.374 0.187 2.235 3.36 1.167
smash | 22.355 22.112 9.106 96.621 153.624 53.162 | 0.244 0.234 0.151 1.109 1.755 0.924
"""
SIGNALS = [f"{name}, {ratio}" for ratio in (3, 1) for name in ("Blocks", "Bumps", "Doppler")]
"""Test functions with the ratio of the standard deviations of signal and noise."""
XING = {
    name: dict(zip(SIGNALS, zip(*(map(float, part.split()) for part in parts), strict=True), strict=True))
    for name, *parts in (line.split(" | ") for line in _XING.strip().splitlines())
}
"""10⁴ Σ(y - f)²/Σf² in the mean over 100 seeds and its standard error, by method and signal.

Xing, Carbonetto and Stephens, JMLR 22(93) 2021, from the raw results beside the paper (output/dscr.RData of
stephenslab/smash-paper). Symmlet 8, 1024 samples. "SURE" thresholds hard there, and keeps only what is above.
"""


def pivot(title: str, rows: Iterable[Row], column: str, cells: Mapping[str, str | Callable[[Row], str]]) -> Sheet:
    """Return a sheet with a line for each method, and the cells (formats) side by side for each value of a column.

    Rows of one method and column are merged: the mean of their values, the least of the worst gains.
    """
    found: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        found.setdefault(row["method"], {}).setdefault(str(row[column]), []).append(row)
    columns = list(dict.fromkeys(name for own in found.values() for name in own))

    def merged(own: list[Row]) -> Row:
        means = {k: np.mean([row[k] for row in own]) for k, v in own[0].items() if isinstance(v, int | float)}
        return {
            **own[0],
            **means,
            "worst_db": min(row["worst_db"] for row in own),
            "worse": sum(r["worse"] for r in own),
        }

    lines = [
        [
            method,
            *(filled(cell, merged(own[name])) if name in own else "-" for name in columns for cell in cells.values()),
        ]
        for method, own in found.items()
    ]
    return Sheet(title, [["method"], *([name, head] for name in columns for head in cells)], lines)


def _of(result: Row, *groups: str, some: Iterable[methods.Method] = ()) -> list[Row]:
    names = [method.name for method in some]
    found = [row for row in result["rows"] if row["group"] in groups and (not names or row["method"] in names)]
    return [{**row, "noise": "functions" if row["group"] == "functions" else row["noise"]} for row in found]


GAIN = {"gain (worst)": "{gain_db:+.1f} ({worst_db:+.1f})"}


def signals(result: Row) -> dict[str, Sheet]:
    """Return the tables of published results, of rules and of changed defaults."""

    def beside(row: Row) -> str:
        mean, error = XING[row["method"]][row["function"]]
        return f"{row['loss']:.1f} ({mean:.1f} ±{error:.1f})"

    title = "10⁴ Σ(y - f)²/Σf², mean over 400 seeds, by signal and sd(f)/σ (in brackets: published ± standard error)"
    found = {"published": pivot(title, _of(result, "published"), "function", {"": beside})}
    for part, some in (("rules", methods.RULES), ("defaults", [methods.library("bayes"), *methods.CHANGES])):
        title = "Gain in dB on Donoho and Johnstone's functions and on seismic records, by the noise"
        found[part] = pivot(title, _of(result, "functions", "records", some=some), "noise", GAIN)
    return found


def real_noise(result: Row) -> dict[str, Sheet]:
    """Return the tables of gains and of picks."""
    rows, title = _of(result, "earthquakes"), "Synthetic earthquakes in field noise: gain in dB"
    cells = GAIN | {"in the signal": "{within_db:+.1f}", "made worse": "{worse} of {count:.0f}"}
    found = {"gains": pivot(title, rows, "noise", cells)}
    names = {"aic": "AIC", "aic_no_floor": "AIC without a floor"}
    cells = {head: f"{{{name}_s:.2f}} s, {{{name}_s_far:.0%}}" for name, head in names.items()}
    title = "P picks: median error, and share of picks more than 0.2 s away"
    return found | {"picks": pivot(title, [row for row in rows if row["noise"] != "raw"], "noise", cells)}


def sections(result: Row) -> dict[str, Sheet]:
    """Return the gains by group of sections, and the time for a model."""
    title = "Sections: gain in dB, mean over models, noise and 0 and 10 dB"
    gains = pivot(title, result["rows"], "group", GAIN)
    costs = pivot("", _of(result, "models"), "group", {"time": "{seconds:.3f} s"})
    rows = [[*line, cost[1]] for line, cost in zip(gains.rows, costs.rows, strict=True)]
    title += "; time for a model of 256 x 1024 samples"
    return {"groups": Sheet(title, [*gains.heads, ["", "time"]], rows)}


def _declared(row: Row) -> str:
    return "declared" if row["declared"] else "not declared"


def trust(result: Row) -> dict[str, Sheet]:
    """Return the table of verdicts."""
    columns: dict[str, Column] = {
        "records": "{group}",
        "noise": _declared,
        "harmful": "{harmful}",
        "of these|missed": "{missed}",
    }
    columns |= {"harmless": "{harmless}", "of these|called harmful": "{alarms}", "in between": "{between}"}
    columns |= {"undecided": "{undecided} of {count}"}
    return {"": sheet("Verdicts of the trust report on results whose harm is known", columns, result["rows"])}


def ranking(result: Row) -> dict[str, Sheet]:
    """Return the table of ranks."""
    columns: dict[str, Column] = {"records": "{group}", "noise": _declared, "rank correlation": "{correlation:.2f}"}
    columns |= {"loss of|the choice": "{loss_db:.2f} dB", "loss of bayes": "{loss_bayes_db:.2f} dB"}
    columns |= {"loss of js, sym8,|modwt": "{loss_js_db:.2f} dB", "count": "{count}"}
    title = "Order of 21 methods by compare: loss against the best of them, mean"
    return {"": sheet(title, columns, result["rows"])}


SHEETS = {"signals": signals, "real-noise": real_noise, "sections": sections, "trust": trust, "ranking": ranking}


def report(result: Row) -> Report:
    """Return the tables of a result, with machine, date and the methods left out."""
    notes = [f"{place(result)} {result['seconds']:.0f} s."]
    notes += [f"Left out: {name}: {why}." for name, why in result["left_out"].items()]
    return Report([*SHEETS[result["part"]](result).values()], notes)


def _markdown(part: str) -> Callable[[Row], dict[str, str]]:
    return lambda result: {name: sheet.markdown() for name, sheet in SHEETS[part](result).items()}


TABLES = {f"quality_{part.replace('-', '_')}": _markdown(part) for part in SHEETS}
"""By the name of a result, its tables in Markdown, by their names."""
