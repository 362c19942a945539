"""The scaling study for people and spreadsheets: a table as wide as the terminal, Markdown, CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from wavefilt.benchmarks.common.tables import Sheet, number, size

LIMITS = (
    ("cuda_kernels", "estimates", "calibrated", ("SKE", "calibrated"), ("", "error")),
    ("cuda_kernels", "estimates", "classic", ("SKE", "classic"), ("", "error")),
    ("cuda_kernels", "floors", "memory", ("floor:", "12n bytes"), ("kernels", "over it")),
    ("cuda_pinned", "floors", "transfer", ("floor:", "transfers"), ("pinned", "over it")),
)
"""Which column is held against which entry of which section of a row, with heads of the entry and what comes of it."""


def _time(times: dict[str, Any] | None) -> str:
    if times is None:
        return "-"
    return f"{number(times['median'])} ±{(times['high'] - times['low']) / 2 / times['median']:.0%}"


def measured(result: dict[str, Any], rows: Sequence[dict[str, Any]] | None = None) -> list[str]:
    """The columns in which there is a time."""
    return [name for name in result["columns"]
            if any(name in row["times"] for row in (result["rows"] if rows is None else rows))]  # fmt: skip


def sheets(result: dict[str, Any]) -> Iterator[Sheet]:
    """Everything measured, wavelet by wavelet."""
    heads = {name: column["heads"] for name, column in result["columns"].items()}
    first = ("", "samples")
    for (wavelet, taps), group in groupby(result["rows"], key=lambda row: (row["wavelet"], row["taps"])):
        rows = list(group)
        names, about = measured(result, rows), f"{wavelet} ({taps} taps)"
        title = f"{about}: ms for a denoise, ± half the distance of the quartiles"
        cells = [[size(row["samples"]), *(_time(row["times"].get(name)) for name in names)] for row in rows]
        yield Sheet(title, [first, *(heads[n] for n in names)], cells)
        held = [limit for limit in LIMITS if any(limit[2] in row.get(limit[1], {}) for row in rows)]
        if held:
            title = f"{about}: estimates and floors of the CUDA columns, ms"
            cells = [[size(row["samples"]), *(cell for limit in held for cell in _held(row, limit))] for row in rows]
            yield Sheet(title, [first, *(head for limit in held for head in limit[3:])], cells)
        others = [name for name in names if name != "pywavelets"]
        if "pywavelets" in names and others:
            yield Sheet(f"{about}: times faster than PyWavelets on 1 core", [first, *(heads[n] for n in others)],
                        [[size(row["samples"]), *(_ratio(row, "pywavelets", name) for name in others)]
                         for row in rows])  # fmt: skip
        if any("document" in row for row in rows):
            yield _document(about, first, [row for row in rows if "document" in row], names)


def _held(row: dict[str, Any], limit: tuple[Any, ...]) -> list[str]:
    """An estimate and its error, or a floor and how many times longer the measured time is."""
    name, section, entry, *_ = limit
    value, times = row.get(section, {}).get(entry), row["times"].get(name)
    if value is None:
        return ["-", "-"]
    if section == "estimates":
        error = row.get("estimate errors", {}).get(entry)
        return [number(value), "-" if error is None else f"{error:+.0%}"]
    return [number(value), "-" if times is None else f"{times['median'] / value:.2f}"]


def _ratio(row: dict[str, Any], base: str, name: str) -> str:
    value = row["ratios"].get(base, {}).get(name)
    return "-" if value is None else number(value)


def _document(about: str, first: Any, rows: list[dict[str, Any]], names: list[str]) -> Sheet:
    """Then and now: the sequential CPU, the GPU with its transfers, and their ratio."""
    cpu = "gsl" if "gsl" in names else "pywavelets"
    here = [name for name in (cpu, "cuda") if name in names]
    both = len(here) == 2
    cells = []
    for row in rows:
        then = row["document"]
        cells.append([size(row["samples"]), str(then["cpu"]), str(then["gpu"]), f"{then['ratio']:.2f}"])
        cells[-1] += [number(row["times"][name]["median"]) if name in row["times"] else "-" for name in here]
        cells[-1] += [_ratio(row, cpu, "cuda")] if both else []
    label = {"gsl": ("GSL", "now"), "pywavelets": ("PyWavelets", "now"), "cuda": ("CUDA", "now")}
    heads = [first, ("CPU", "2010"), ("GPU", "2010"), ("ratio", "2010"), *(label[name] for name in here)]
    return Sheet(f"{about}: the document of 2010 (GSL on a Core 2 Duo E2200, GeForce 9800 GT, with transfers), ms",
                 [*heads, ("ratio", "now")] if both else heads, cells)  # fmt: skip


def notes(result: dict[str, Any]) -> list[str]:
    """What the tables do not say: where, compared with what, who is missing and why, and the crossovers."""
    columns, where = result["columns"], result["environment"]
    label = {name: " ".join(column["heads"]) for name, column in columns.items()}
    found = [f"{where['processor']}, {where['cores']} cores; {where['gpu'] or 'no GPU'}; {result['date']}."]
    found.append(f"{result['method']}.")
    for reference, group in _grouped({n: columns[n]["compared with"] for n in measured(result)}):
        worst = max(row["times"][n]["error"] for row in result["rows"] for n in group if n in row["times"])
        found.append(f"Compared with {reference}: {', '.join(label[n] for n in group)}; "
                     f"largest difference {worst:.0e} of the norm.")  # fmt: skip
    for told in result["crossovers"]:
        fast, slow = label[told["faster"]], label[told["slower"]]
        at = f"from {size(told['from'])} samples" if told["from"] else "at no size measured"
        found.append(f"{told['wavelet']}: {fast} is faster than {slow} {'at every size' if told['always'] else at}.")
    found += [f"Not run: {', '.join(label[n] for n in names)}: {why}." for why, names in
              _grouped({n: c["missing"] for n, c in columns.items() if c["missing"]})]  # fmt: skip
    found += [f"No {what}: {result[what]['missing']}." for what in ("floors", "estimates") if result[what]["missing"]]
    if result["estimates"]["calibration"]:
        found.append(f"Estimates for {result['estimates']['calibration']}.")
    found += [f"Skipped: {label[name]}, {row['wavelet']}, {size(row['samples'])}: {why}."
              for row in result["rows"] for name, why in row["skipped"].items()]  # fmt: skip
    return [*found, f"{result['remark']}."] if "remark" in result else found


def _grouped(reasons: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Names by what is said of them, in order."""
    return [(why, [n for n, other in reasons.items() if other == why]) for why in dict.fromkeys(reasons.values())]


def text(result: dict[str, Any], width: int = 80) -> str:
    """For the terminal."""
    lines = (textwrap.fill(note, width, subsequent_indent="  ", break_on_hyphens=False) for note in notes(result))
    return "\n".join([*(sheet.text(width) for sheet in sheets(result)), *lines])


def markdown(result: dict[str, Any]) -> str:
    """For the documentation."""
    return "\n".join([*(sheet.markdown() for sheet in sheets(result)), *(f"* {note}" for note in notes(result))])


def to_csv(result: dict[str, Any]) -> str:
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
                name = f"{section[:-1]}_{entry}"
                lines.writerow(
                    (*at, name, value, "", "", "", (result[section]["missing"] or "") if value == "" else "")
                )
        for who in ("cpu", "gpu"):
            if "document" in row:
                lines.writerow((*at, f"document_{who}", row["document"][who], "", "", "", "2010"))
    return out.getvalue()
