"""The scaling study for people and spreadsheets: tables, notes, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import groupby

from wavefilt.benchmarks.common.columns import estimated, grouped, labels, not_run, place
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, Table, size

LIMITS = (
    ("cuda_kernels", "estimates", "calibrated", "SKE|calibrated", "|error#calibrated"),
    ("cuda_kernels", "estimates", "classic", "SKE|classic", "|error#classic"),
    ("cuda_kernels", "floors", "memory", "lower bound:|12n bytes", "kernels|over it"),
    ("cuda_pinned", "floors", "transfer", "lower bound:|transfers", "pinned|over it"),
)
"""Which column is compared with which entry of which section of a row, with the heads of both."""
FIRST: dict[str, Column] = {"|samples": "{samples:size}"}
ABSENT = (("floors", "lower bounds"), ("estimates", "estimates"))
"""Sections of a result that may be missing, and what they are called."""


def report(result: Row) -> Report:
    return Report([*sheets(result)], notes(result))


def measured(result: Row, rows: Sequence[Row] | None = None) -> list[str]:
    """The columns in which there is a time."""
    rows = result["rows"] if rows is None else rows
    return [name for name in result["columns"] if any(name in row["times"] for row in rows)]


def sheets(result: Row) -> Iterator[Sheet]:
    """Everything measured, wavelet by wavelet."""
    heads = {name: "|".join(column["heads"]) for name, column in result["columns"].items()}
    for (wavelet, taps), group in groupby(result["rows"], key=lambda row: (row["wavelet"], row["taps"])):
        rows = list(group)
        names, about, of = measured(result, rows), f"{wavelet} ({taps} taps)", {"rows": rows}
        columns = FIRST | {heads[name]: f"?{{times[{name}]:spread}}" for name in names}
        yield Table(f"{about}: run time in ms, ± half the interquartile range", columns)(of)
        columns = dict(FIRST)
        for name, section, entry, *limit_heads in LIMITS:
            if any(entry in row.get(section, {}) for row in rows):
                columns[limit_heads[0]] = f"?{{{section}[{entry}]:n}}"
                columns[limit_heads[1]] = _over(name, section, entry)
        if len(columns) > 1:
            yield Table(f"{about}: estimates and lower bounds of the CUDA columns, ms", columns)(of)
        others = [name for name in names if name != "pywavelets"]
        if "pywavelets" in names and others:
            columns = FIRST | {heads[name]: f"?{{ratios[pywavelets][{name}]:n}}" for name in others}
            yield Table(f"{about}: speed-up over PyWavelets on 1 core", columns)(of)
        if any("document" in row for row in rows):
            yield _document(about, [row for row in rows if "document" in row], names)


def _over(name: str, section: str, entry: str) -> Column:
    """The error of an estimate, or how many times longer than a lower bound the measured time is."""
    if section == "estimates":
        return f"?{{estimate errors[{entry}]:+.0%}}"

    def longer(row: Row) -> str:
        floor, times = row.get(section, {}).get(entry), row["times"].get(name)
        return "-" if floor is None or times is None else f"{times['median'] / floor:.2f}"

    return longer


def _document(about: str, rows: list[Row], names: list[str]) -> Sheet:
    """Then and now: the sequential CPU, the GPU with its transfers, and their ratio."""
    cpu, label = ("gsl", "GSL") if "gsl" in names else ("pywavelets", "PyWavelets")
    columns = {**FIRST, "CPU|2010": "{document[cpu]}", "GPU|2010": "{document[gpu]}"}
    columns["ratio|2010"] = "{document[ratio]:.2f}"
    here = {name: head for name, head in ((cpu, label), ("cuda", "CUDA")) if name in names}
    columns |= {f"{head}|now": f"?{{times[{name}][median]:n}}" for name, head in here.items()}
    columns |= {"ratio|now": f"?{{ratios[{cpu}][cuda]:n}}"} if len(here) == 2 else {}
    title = f"{about}: the thesis of 2010 (GSL on a Core 2 Duo E2200, GeForce 9800 GT, with transfers), ms"
    return Table(title, columns)({"rows": rows})


def notes(result: Row) -> list[str]:
    """Where it was measured, compared with what, who is missing and why, and the crossovers."""
    columns, label = result["columns"], labels(result)
    found = [place(result), f"{result['method']}."]
    for reference, group in grouped({n: columns[n]["compared with"] for n in measured(result)}).items():
        worst = max(row["times"][n]["error"] for row in result["rows"] for n in group if n in row["times"])
        names = ", ".join(label[n] for n in group)
        found.append(f"Compared with {reference}: {names}; largest difference {worst:.0e} of the norm.")
    for told in result["crossovers"]:
        fast, slow = label[told["faster"]], label[told["slower"]]
        at = f"from {size(told['from'])} samples" if told["from"] else "at no size measured"
        found.append(f"{told['wavelet']}: {fast} is faster than {slow} {'at every size' if told['always'] else at}.")
    found += not_run(result)
    found += [f"No {words}: {result[what]['missing']}." for what, words in ABSENT if result[what]["missing"]]
    if result["estimates"]["calibration"]:
        found.append(estimated(result))
    for row in result["rows"]:
        at = f"{row['wavelet']}, {size(row['samples'])}"
        found += [f"Skipped: {label[name]}, {at}: {why}." for name, why in row["skipped"].items()]
    return [*found, f"{result['remark']}."] if "remark" in result else found


def to_csv(result: Row) -> str:
    """A line for every wavelet, size and column, with a note where there is no time."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(("wavelet", "taps", "samples", "column", "ms", "low", "high", "times_pywavelets", "note"))
    for row in result["rows"]:
        at = (row["wavelet"], row["taps"], row["samples"])
        for name, column in result["columns"].items():
            times = row["times"].get(name, {})
            note = row["skipped"].get(name) or column["missing"] or ""
            figures = [times.get(key, "") for key in ("median", "low", "high")]
            ratio = 1.0 if name == "pywavelets" and times else row["ratios"].get("pywavelets", {}).get(name, "")
            lines.writerow((*at, name, *figures, ratio, note))
        for section, entries in (("floors", ("transfer", "memory")), ("estimates", ("calibrated", "classic"))):
            for entry in entries:
                value = row.get(section, {}).get(entry, "")
                note = (result[section]["missing"] or "") if value == "" else ""
                lines.writerow((*at, f"{section[:-1]}_{entry}", value, "", "", "", note))
        for who in ("cpu", "gpu"):
            if "document" in row:
                lines.writerow((*at, f"document_{who}", row["document"][who], "", "", "", "2010"))
    return out.getvalue()
