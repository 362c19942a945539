"""Tables for the page of `wavefilt bench report`, of the studies that print theirs as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from wavefilt.benchmarks.common.tables import Sheet, number, size
from wavefilt.benchmarks.cpu import denoise as cpu_study
from wavefilt.benchmarks.gpu import crossover as gpu_crossover

TITLES = {
    "case": "Whole denoises, ms (quartiles in brackets)", "kernel": "Kernels of a denoise, one by one",
    "fast-math": "Fast-math, ms (quartiles in brackets)", "compared with": "Beside other libraries, ms",
    "held out": "Relative errors on kernels that the models were not fitted to",
    "SKE calibrated by kernel": "Relative errors by kernel, at least 10 μs",
    "blocks of": "Choice of the block: its time over that of the best",
    "left out of a fit on all": "Relative errors on a kernel left out of the fit", "row": "Every row",
}  # fmt: skip
"""Of tables in Markdown, by their first head."""


def from_markdown(text: str) -> tuple[list[Sheet], list[str]]:
    """The tables in a text, and the lines between them."""
    sheets, notes = [], []
    for start, group in groupby(text.splitlines(), key=lambda line: line[:1]):
        lines = list(group)
        if start == "|":
            heads, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
            sheets.append(Sheet(TITLES.get(heads[0], heads[0]), [(head,) for head in heads], rows))
        elif start:
            notes += lines
    return sheets, notes


def _heads(*words: str) -> list[Sequence[str]]:
    """Lines of each are parted by a comma."""
    return [word.split(",") for word in words]


def cpu(result: dict[str, Any]) -> tuple[list[Sheet], list[str]]:
    heads = _heads("case", "PyWavelets,ms", "numba,ms", "ratio", "target", "cores,busy", "GB/s", "of,copy")
    rows = [[c["name"], _quartiles(c["pywavelets"]), _quartiles(c["numba"]), number(c["ratio"]), f"{c['target']:g}",
             f"{c['cores']:.1f}", f"{c['gigabytes_per_second']:.1f}", f"{c['share_of_copy']:.0%}"]
            for c in result["cases"]]  # fmt: skip
    after = cpu_study.table(result).splitlines()[2 + len(rows) :]
    return [Sheet("The numba backend beside PyWavelets (quartiles in brackets)", heads, rows)], after


def _quartiles(seconds: dict[str, float]) -> str:
    median, low, high = (number(1e3 * seconds[key]) for key in ("median", "low", "high"))
    return f"{median} ({low}-{high})"


def crossover(result: dict[str, Any]) -> tuple[list[Sheet], list[str]]:
    heads = _heads("wavelet", "work", "rows", "samples,of a row", "PyWavelets,ms", "numba,ms", "ratio")
    sheets = [
        Sheet(f"{title}: ms of a call", heads, [
            [entry["wavelet"], entry["work"], str(m), size(n), number(1e3 * theirs), number(1e3 * ours),
             number(theirs / ours)]
            for entry in result[rows]
            for (m, n), theirs, ours in zip(entry["shapes"], entry["pywavelets"], entry["numba"], strict=True)
        ])
        for rows, title in (("one row", "One row"), ("many rows", "Many rows"))
    ]  # fmt: skip
    first = ", ".join(f"{samples} with {taps} taps" for taps, samples in result["first"].items())
    return sheets, [
        f"With its kernels in memory numba is never slower from {result['loaded']} samples of one row, "
        f"or {result['row']} of each of many.",
        f"Samples from which it is faster although it loads its kernels, {result['load']:.2f} s: {first}.",
    ]


def cuda_crossover(result: dict[str, Any]) -> tuple[list[Sheet], list[str]]:
    names = ("cuda", "numba", "pywavelets")
    rows = [[row["wavelet"], size(row["samples"]), *(number(1e3 * row[n]) if n in row else "-" for n in names)]
            for row in result["calls"]]  # fmt: skip
    heads = _heads("wavelet", "samples", *names)
    printed = gpu_crossover.table(result).splitlines()
    return [Sheet("NumPy array in and out, ms of a call", heads, rows)], [printed[1], printed[-1]]


def measured(rows: Sequence[dict[str, Any]]) -> Sheet:
    """Kernels of the SKE validation, for a GPU without a calibration."""
    heads = _heads("kernel", "wavelet", "rows", "samples", "threads", "tile", "μs", "spread")
    cells = [[row["kernel"], row["wavelet"], str(row["rows"]), size(row["samples"]), str(row["threads"]),
              str(row["tile"]), number(1e6 * row["seconds"]), f"{row['spread']:.1%}"] for row in rows]  # fmt: skip
    return Sheet("Measured kernels", heads, cells)


def launch_shapes(result: dict[str, Any]) -> Sheet:
    """The first of the ranking beside the fixed shape."""
    heads = _heads("wavelet", "rows", "samples", "fixed,μs", "threads", "tile", "first,μs", "first,over fixed")
    cells = []
    for row in result["rows"]:
        threads, tile, seconds = row["ranked"][0]
        cells.append([row["wavelet"], str(row["rows"]), size(row["samples"]), number(1e6 * row["fixed"]), str(threads),
                      str(tile), number(1e6 * seconds), f"{seconds / row['fixed']:.3f}"])  # fmt: skip
    return Sheet("The first of the ranking and the fixed shape", heads, cells)


def outline(result: dict[str, Any]) -> Sheet:
    """Medians of a study in the form of `scaling.run` that has no table of its own."""
    first = [name for name, value in result["rows"][0].items() if isinstance(value, str | int)]
    names = [name for name in result["columns"] if any(name in row["times"] for row in result["rows"])]
    heads = [*_heads(*first), *(result["columns"][name]["heads"] for name in names)]
    cells = [[*(size(row[name]) if name == "samples" else str(row[name]) for name in first),
              *(number(row["times"][name]["median"]) if name in row["times"] else "-" for name in names)]
             for row in result["rows"]]  # fmt: skip
    return Sheet(f"Medians, {result['unit']}", heads, cells)
