"""Plots of the studies that each have a form of their own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from wavefilt.benchmarks.common.tables import Row, number, size
from wavefilt.benchmarks.ske import validation
from wavefilt.ske import calibration

from .figures import Line, Look, Panel, Plot, Point, looks
from .summary import DEFAULT

MARK = Look("black", "dash", dash="")
"""What a bar is compared with."""


def cpu(result: Row) -> list[Plot]:
    """Times faster than PyWavelets, case by case, with what the project set itself."""
    cases, points = result["cases"], defaultdict(list)
    for i, c in enumerate(cases):
        times = " ms by ".join(number(1e3 * c[name]["median"]) for name in ("pywavelets", "numba"))
        words = f"{c['name']}\n{number(c['ratio'])} times as fast, target {c['target']:g}\n{times} ms"
        points[c["ratio"] >= c["target"]].append(Point(i, c["ratio"], words))
    names = {True: ("target reached", "blue"), False: ("target missed", "vermillion")}
    bars = [
        Line(label, Look(colour, "bar", dash=""), points[met]) for met, (label, colour) in names.items() if points[met]
    ]
    marks = Line("target", MARK, [Point(i, c["target"]) for i, c in enumerate(cases)])
    panel = Panel("", [*bars, marks])
    return [Plot("Speed-up", "", "times as fast as PyWavelets on one core", [panel], [c["name"] for c in cases])]


def threads(result: Row) -> list[Plot]:
    """Time of one trace over its samples, a line for each number of threads, and copies by the most."""
    rows = [row for row in result["rows"] if row["shape"][0] == 1 and not row["options"]]
    ticks, lines = {row["shape"][1]: row["name"] for row in rows}, []
    for label, look in looks(f"{count} thread{'s' if count > 1 else ''}" for count in _counts(rows)).items():
        own = [row for row in rows if row["threads"] == int(label.split()[0])]
        times = {row["shape"][1]: 1e3 * row["seconds"]["median"] for row in own}
        lines.append(
            Line(label, look, [Point(n, ms, f"{label}\n{ticks[n]}: {number(ms)} ms") for n, ms in times.items()])
        )
    most = max(result["copy"], key=lambda row: float(row["bytes_per_second"]))
    copies = {row["shape"][1]: 2e3 * row["bytes"] / most["bytes_per_second"] for row in rows}
    words = f"a copy by {most['threads']}"
    points = [Point(n, ms, f"{words}\n{ticks[n]}: {number(ms)} ms") for n, ms in copies.items()]
    panel = Panel("one trace", [*lines, Line(words, Look("gray", "", dash="dashed"), points)], ticks)
    return [Plot("Time by threads", "samples", "ms", [panel])]


def _counts(rows: list[Row]) -> list[int]:
    return sorted({row["threads"] for row in rows})


def cuda(result: Row) -> list[Plot]:
    """How near the bandwidth of a copy each kernel comes."""
    points, kernels = [], result["kernels"]
    for i, k in enumerate(kernels):
        rate = f"{number(k['median'])} ms for {k['bytes'] / 1e6:.0f} MB: {k['TB/s']:.2f} TB/s"
        points.append(Point(i, 100 * k["share"], f"{k['name']}\n{k['share']:.0%} of a copy's bandwidth\n{rate}"))
    copy = Line("copy in the same run", MARK, [Point(i, 100) for i in range(len(kernels))])
    panel = Panel("", [Line("kernel", Look("blue", "bar", dash=""), points), copy])
    return [Plot("Bandwidth of the kernels", "", "per cent of a copy's", [panel], [k["name"] for k in kernels])]


def cuda_crossover(result: Row) -> list[Plot]:
    """Times over size, a panel a wavelet."""
    panels = []
    for wavelet in dict.fromkeys(row["wavelet"] for row in result["calls"]):
        rows = [row for row in result["calls"] if row["wavelet"] == wavelet]
        lines = []
        for name, look in looks(["pywavelets", "numba", "cuda"]).items():
            times = {row["samples"]: 1e3 * row[name] for row in rows if name in row}
            points = [Point(n, ms, f"{name}\n{size(n)} samples: {number(ms)} ms") for n, ms in times.items()]
            lines.append(Line(name, look, points))
        panels.append(Panel(wavelet, lines, {row["samples"]: size(row["samples"]) for row in rows}))
    return [Plot("Time", "samples", "ms of a call, NumPy array in and out", panels)]


def crossover(result: Row) -> list[Plot]:
    """Times faster than PyWavelets over the samples of a row, a line a wavelet."""
    panels = []
    for rows in ("one row", "many rows"):
        entries = [entry for entry in result[rows] if entry["work"] == "denoise"]
        ticks = {n: size(n) for entry in entries for _, n in entry["shapes"]}
        lines = [Line("PyWavelets", Look("slate", ""), [Point(n, 1) for n in (min(ticks), max(ticks))])]
        for entry, look in zip(entries, looks(entry["wavelet"] for entry in entries).values(), strict=True):
            label = f"numba, {entry['wavelet']}"
            points = []
            for (m, n), theirs, ours in zip(entry["shapes"], entry["pywavelets"], entry["numba"], strict=True):
                words = f"{label}\n{m} x {size(n)} samples: {number(theirs / ours)} times as fast\n"
                words += f"{number(1e3 * theirs)} ms by {number(1e3 * ours)} ms"
                points.append(Point(n, theirs / ours, words))
            lines.append(Line(label, look, points))
        panels.append(Panel(rows, lines, ticks))
    return [Plot("Speed-up", "samples of a row", "times as fast as PyWavelets on one core", panels)]


def launch_shapes(result: Row) -> list[Plot]:
    """What the first of the ranking gains over the fixed shape, for a single trace."""
    lines = []
    rows = [row for row in result["rows"] if row["rows"] == 1]
    for wavelet, look in looks(row["wavelet"] for row in rows).items():
        points = []
        for row in rows:
            (threads, tile, seconds), fixed = row["ranked"][0], row["fixed"]
            if row["wavelet"] == wavelet:
                words = f"{size(row['samples'])} samples: {number(fixed / seconds)} times as fast\n"
                words += f"{threads} threads, tile {tile}: {number(1e6 * seconds)} μs by {number(1e6 * fixed)} μs"
                points.append(Point(row["samples"], fixed / seconds, f"{wavelet}\n{words}"))
        lines.append(Line(wavelet, look, points))
    ticks = {row["samples"]: size(row["samples"]) for row in rows}
    unit = "times as fast as {} threads, tile {}".format(*result["fixed"])
    return [Plot("First shape of the ranking", "samples", unit, [Panel("one trace", lines, ticks)])]


def quality(result: Row) -> list[Plot]:
    """Decibels by record, a colour a rule, hollow where the noise is estimated once; a star for the default."""
    rows = result["parts"]["records"]
    cases = [f"{row['signal']}, {row['noise']} noise, {row['snr_db']} dB" for row in rows]
    rules = looks(("universal", "minimax", "sure", "bayes", "fdr", "neighblock", "ebayes"))
    sigmas = {"level": False, "global": True}
    styles = {f"{r}, {s}": replace(look, hollow=h, dash="") for r, look in rules.items() for s, h in sigmas.items()}
    del styles[DEFAULT]
    lines = []
    for method, look in (styles | {DEFAULT: Look("black", "star", dash="")}).items():  # drawn last, over the others
        label = f"{method} (the default)" if method == DEFAULT else method
        gains = [row["gain_db"][method] for row in rows]
        points = [Point(i, gain, f"{label}\n{cases[i]}: {gain:+.1f} dB") for i, gain in enumerate(gains)]
        lines.append(Line(label, look, points))
    return [Plot("Gain in SNR", "", "dB by rule and noise estimated by level or globally", [Panel("", lines)], cases)]


def ske(result: Row) -> list[Plot]:
    """Predicted over measured microseconds, a panel a model; hollow are the kernels that the models were fitted to."""
    try:
        device = calibration.of(result["device"]["name"])
    except calibration.WrongDevice:
        return []
    rows = [row for row in result["rows"] if "error" not in row]
    v = validation.Validation(rows, device, validation.stored(result, device))
    predictions = {name: values.tolist() for name, values in v.predictions.items()}
    seconds = [*v.times.tolist(), *(value for values in predictions.values() for value in values)]
    ends = [1e6 * limit(seconds) for limit in (min, max)]
    kernels = looks(row["kernel"] for row in rows)
    panels = []
    for model, values in predictions.items():
        points: dict[tuple[str, bool], list[Point]] = defaultdict(list)
        for one, value in zip(v.items, values, strict=True):
            row, measured, predicted = one.row, _short(1e6 * one.seconds), _short(1e6 * value)
            named = "" if row["wavelet"] in one.family else f", {row['wavelet']}"
            words = (
                f"{one.family}{named}{', fitted' if row['fit'] else ''}\n{row['rows']} x "
                f"{size(row['samples'])} samples, {row['threads']} threads, tile {row['tile']}\n"
                f"predicted {number(predicted)}, measured {number(measured)} μs: {predicted / measured - 1:+.0%}"
            )
            points[row["kernel"], row["fit"]].append(Point(measured, predicted, words))
        lines = [Line("predicted = measured", Look("gray", "", dash="dashed"), [Point(end, end) for end in ends])]
        for (kernel, fit), found in points.items():
            look = replace(kernels[kernel], hollow=fit, dash="")
            lines.append(Line(f"{kernel}, fitted" if fit else kernel, look, found))
        panels.append(Panel(model, lines))
    return [Plot("Predicted and measured", "measured μs", "predicted μs", panels)]


def _short(value: float) -> float:
    """To the four digits that a plot shows, which keep the page small."""
    return float(f"{value:.4g}")
