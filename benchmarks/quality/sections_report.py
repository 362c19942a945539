"""Tables of the study of sections, what it was to reach, and what loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from wavefilt.benchmarks.common.columns import place
from wavefilt.benchmarks.common.tables import Report, Row, Sheet, number
from wavefilt.benchmarks.quality.sections_alternatives import BASE, COMPARED, LIBRARY, MEAN

TITLES = {
    "models": "Models of 256 traces",
    "ragged": "The same ragged: statics of 4 ms, amplitudes scattered by 25 %",
    "24 traces": "24 neighbouring traces of the models, and the 23 live ones of `samples/seismic.dat`",
    "image": "An image",
    "field": "Gathers of the field, whose own noise counts as signal",
}
Values = dict[str, float]


def report(result: Row) -> Report:
    """In the order of the documentation."""
    return Report([sheet for sheets in chapters(result).values() for sheet in sheets], notes(result))


def chapters(result: Row) -> dict[str, list[Sheet]]:
    """Tables by what they are about."""
    groups = dict.fromkeys(row["group"] for row in result["cases"])
    found = {"means": [_means(result)], "targets": [_targets(result)]}
    found |= {group: [*_gains(result, group)] for group in groups}
    return found | {"tuned": [_tuned(result)]}


def _of(result: Row, *groups: str, noise: str | None = None) -> list[Row]:
    return [row for row in result["cases"] if row["group"] in groups and noise in (None, row["noise"])]


def _methods(result: Row) -> list[str]:
    return list(result["cases"][0]["gain_db"])


def over(rows: list[Row], method: str, base: str = BASE) -> list[float]:
    """dB that a method gains more than another, case by case."""
    return [row["gain_db"][method] - row["gain_db"][base] for row in rows]


def _means(result: Row) -> Sheet:
    """A row for every method: means over the models and the other groups, least differences, time."""
    rows = []
    for method in _methods(result):
        cells = [method]
        for group in TITLES:
            for noise in ("white", "pink", "recorded"):
                chosen = _of(result, group, noise=noise)
                if chosen:
                    cells.append(f"{np.mean([row['gain_db'][method] for row in chosen]):+.1f}")
        models = _of(result, "models")
        if models:
            cells += [f"{min(over(models, method, base)):+.1f}" for base in (BASE, MEAN)]
            cells.append(number(1e3 * result["times"][method]))
        rows.append(cells)
    heads: list[list[str]] = [["method"]]
    for group in TITLES:
        heads += [[group, noise] for noise in ("white", "pink", "recorded") if _of(result, group, noise=noise)]
    if _of(result, "models"):
        heads += [["models, least", f"over {base}"] for base in (BASE, MEAN)] + [["ms of", "CPU time"]]
    return Sheet("Gain in dB, means over the sections and ratios of a group", heads, rows)


def _gains(result: Row, group: str) -> Iterator[Sheet]:
    """A table for each kind of noise: methods in rows, sections and ratios in columns."""
    for noise in dict.fromkeys(row["noise"] for row in _of(result, group)):
        rows = _of(result, group, noise=noise)
        heads = [["method"], *([row["section"], f"{row['snr_db']} dB"] for row in rows)]
        cells = [[name, *(f"{row['gain_db'][name]:+.1f}" for row in rows)] for name in _methods(result)]
        yield Sheet(f"{TITLES[group]}, {noise} noise: gain in dB, by section and ratio", heads, cells)


def _tuned(result: Row) -> Sheet:
    """How often each combination was the best."""
    counts: dict[str, Counter[str]] = {}
    for row in result["tuned"]:
        words = ", ".join(f"{name} {value:g}" for name, value in row["parameters"].items())
        counts.setdefault(row["method"], Counter())[words] += 1
    cells = [
        [name, "; ".join(f"{words} ({count})" for words, count in found.most_common(4))]
        for name, found in counts.items()
    ]
    title = "Parameters of the alternatives that were the best on another draw, with the number of cases"
    return Sheet(title, [["method"], ["most frequent"]], cells)


def targets(result: Row) -> Iterator[tuple[str, float, Values]]:
    """What was to be reached, in dB over a method, the limit, and what each form of the new transforms has."""
    least: Callable[[list[float]], float] = min
    judged: tuple[tuple[str, float, str, str | None, str, Callable[[list[float]], float]], ...] = (
        ("every case of the models", 2.0, "models", None, BASE, least),
        ("every case of the models", 2.0, "models", None, MEAN, least),
        ("models, white noise, mean", 5.5, "models", "white", BASE, lambda x: float(np.mean(x))),
        ("models, pink noise, mean", 4.0, "models", "pink", BASE, lambda x: float(np.mean(x))),
        ("every ragged case", 1.5, "ragged", None, BASE, least),
    )
    for what, limit, group, noise, base, joined in judged:
        rows = _of(result, group, noise=noise)
        if rows:
            yield f"{what}: dB over {base}", limit, {name: joined(over(rows, name, base)) for name in COMPARED}


def _targets(result: Row) -> Sheet:
    rows: list[list[str]] = []
    for what, limit, values in targets(result):
        cells = [f"{value:+.1f} {'yes' if value >= limit else 'no'}" for value in values.values()]
        rows.append([what, f"{limit:g}", *cells])
    heads: list[list[str]] = [["target"], ["limit"], *([name] for name in COMPARED)]
    return Sheet("Targets, and whether they are reached", heads, rows)


def _case(row: Row) -> str:
    return f"{row['group']} {row['section']}, {row['noise']}, {row['snr_db']} dB"


def losses(result: Row) -> Iterator[str]:
    """Where the new transforms gain less than the base, than another method of the library or than an alternative."""
    rows = result["cases"]
    for name in COMPARED:
        for other in _methods(result):
            lost = sorted((-value, _case(row)) for row, value in zip(rows, over(rows, name, other), strict=True))
            lost = [(much, where) for much, where in lost if much > 0]
            if other != name and lost and (other not in LIBRARY or other in (BASE, MEAN)):
                much, where = lost[-1]
                cases = f"{len(lost)} of {len(rows)} cases"
                yield f"{name} gains less than {other} in {cases}, at most by {much:.1f} dB ({where})."


def notes(result: Row) -> list[str]:
    """Where and when, what is missing, and what loses."""
    environment = {"environment": result["environment"], "date": result["date"]}
    versions = ", ".join(f"{name} {result[name]}" for name in ("scikit-image", "dascore") if result.get(name))
    about = f"{number(result['seconds'])} s; {result['draws']} draws; {versions or 'no other packages'}."
    return [
        f"{place(environment)} {about}",
        *losses(result),
        *(f"Left out: {why}." for why in result["missing"].values()),
    ]


def markdown(result: Row) -> dict[str, str]:
    """For the documentation, chapter by chapter, the notes last."""
    found = {name: Report(sheets).markdown() for name, sheets in chapters(result).items()}
    return found | {"notes": Report([], notes(result)).markdown()}
