"""The quality study for people: a table for every part, and what it was to reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wavefilt.benchmarks.common.tables import Report, Row, Sheet, number
from wavefilt.benchmarks.quality.targets import ERRORS, NEAR, WORSE, grouped, published, reached, verdicts

from . import published as literature

Heads = list[Sequence[str]]
FOUR: Heads = [("", name) for name in literature.FOUR]


def report(result: Row) -> Report:
    """In the order of the parts."""
    return Report([sheet for found in chapters(result).values() for sheet in found], notes(result))


def chapters(result: Row) -> dict[str, list[Sheet]]:
    """Tables by what they are about."""
    parts = result["parts"]
    ratios = [_published(ratio, rows, result["seeds"]) for ratio, rows in grouped(parts["published"], "ratio")]
    return {
        "published": [_reached(parts["published"]), *ratios],
        "baseline": [_baseline(parts["baseline"], result["draws"]), _fresh(parts["fresh"], result["fresh"])],
        "spins": [_spins(parts["spins"])],
        "records": list(_records(parts["records"], result["noises"])),
        "choices": [_choices(parts["choices"])],
    }


def _published(ratio: int, rows: Sequence[Row], seeds: int) -> Sheet:
    heads: Heads = [("", "method"), ("", "grid"), *(("", name) for name in literature.SIGNALS)]
    cells = []
    for like, group in grouped(rows, "like"):
        if like:
            theirs = literature.XING[like][ratio]
            values = [f"{number(mean)} ±{number(error)}" for mean, error in zip(*theirs, strict=True)]
            cells.append([f"{like}, published", "", *values])
        for row in group:
            shares = [f" {share:+.1%}" for share, _ in published(row).values()] if like else [""] * len(row["mean"])
            values = [number(value) + share for value, share in zip(row["mean"].values(), shares, strict=True)]
            cells.append([row["method"], row["grid"], *values])
    title = f"sd(f)/σ = {ratio}: 10⁴ Σ(y - f)²/Σf², mean over {seeds} seeds, and its difference from the published one"
    return Sheet(title, heads, cells)


def _reached(rows: Sequence[Row]) -> Sheet:
    heads: Heads = [
        ("", "method"),
        ("", "published"),
        ("", "grid"),
        ("", "sd(f)/σ"),
        ("", "signals"),
        ("", "largest difference"),
    ]
    cells = []
    for row in rows:
        if row["like"] not in ("", "smash"):
            near, signal, share = reached(row)
            of, farthest = f"{near} of {len(row['mean'])}", f"{share:+.1%} ({signal})"
            cells.append([row["method"], row["like"], row["grid"], str(row["ratio"]), of, farthest])
    title = f"Signals within {NEAR:.0%} or {ERRORS} standard errors of the published mean, or, of EbayesThresh, "
    return Sheet(f"{title}at most {WORSE:.0%} above it", heads, cells)


def _baseline(rows: Sequence[Row], draws: int) -> Sheet:
    cells = []
    for row in rows:
        theirs = [f" ({value:.3f})" for value in literature.BASELINE[row["like"]]] if row["like"] else [""] * 4
        name, levels, fewer = row["method"], str(row["levels"]), row["like"] in literature.FEWER
        cells.append([name, levels, str(draws), *_beside(row["rmse"], [""] * 4 if fewer else theirs)])
        if fewer:
            cells.append([name, levels, str(literature.DRAWS), *_beside(row["rmse of 30"], theirs)])
    title = "sd(f)/σ = 7, 2048 samples: root mean square error over σ (in brackets: the baseline)"
    return Sheet(title, [("", "method"), ("", "levels"), ("", "draws"), *FOUR], cells)


def _beside(rmse: Mapping[str, float], theirs: Sequence[str]) -> list[str]:
    return [f"{value:.3f}{cell}" for value, cell in zip(rmse.values(), theirs, strict=True)]


def _fresh(rows: Sequence[Row], draws: int) -> Sheet:
    cells = []
    for row in rows:
        cells.append([f"{row['against']}, 6 levels", *(f"{value:.4f}" for value in row["rmse of the other"].values())])
        cells.append([f"{row['method']}, {row['levels']} levels", *(f"{value:.4f}" for value in row["rmse"].values())])
        cells.append(["standard errors lower", *(f"{value:.1f}" for value in row["standard errors lower"].values())])
    return Sheet(f"Paired comparison on {draws} other realisations", [("", "method"), *FOUR], cells)


def _spins(rows: Sequence[Row]) -> Sheet:
    columns = [(how, name) for name in literature.FOUR for how in ("consecutive", "spread")]
    heads: Heads = [("", "shifts"), *((f"{how},", name) for how, name in columns)]
    cells = [[str(row["spins"]), *(f"{row[how][name]:.3f}" for how, name in columns)] for row in rows]
    title = f"Cycle spinning: mean over shifts, {rows[0]['method']}, 6 levels, {literature.DRAWS} draws"
    return Sheet(title, heads, cells)


def _records(rows: Sequence[Row], noises: int) -> Iterator[Sheet]:
    for title, chosen in (
        ("White noise", [row for row in rows if row["noise"] == "white"]),
        ("Pink noise, and the gather's own", [row for row in rows if row["noise"] != "white"]),
    ):
        heads: Heads = [("", "method"), *((row["signal"], f"{row['snr_db']} dB") for row in chosen)]
        cells = [[method, *(f"{row['gain_db'][method]:+.1f}" for row in chosen)] for method in rows[0]["gain_db"]]
        yield Sheet(f"{title}: gain in dB, mean over {noises} realisations, by record and its SNR", heads, cells)


def _choices(rows: Sequence[Row]) -> Sheet:
    columns = [(what, how) for what in ("records", "functions") for how in ("mean", "worst")]
    cells = [[row["method"], *(f"{row[what][how]:+.2f}" for what, how in columns)] for row in rows]
    heads: Heads = [("", "changed"), *((f"{what},", how) for what, how in columns)]
    title = (
        "The defaults with one option changed: gain in dB over all records, and over the four functions at sd(f)/σ = 7"
    )
    return Sheet(title, heads, cells)


def notes(result: Row) -> list[str]:
    """Where and when, what was reached, and who is missing and why."""
    where = result["environment"]
    found = [f"{where['processor']}, {where['cores']} cores; {result['date']}; {result['seconds']:.0f} s."]
    found += verdicts(result)
    missing = {" ".join(c["heads"]).strip(): c["missing"] for c in result["columns"].values() if c["missing"]}
    return found + [f"Not run: {name}: {why}." for name, why in missing.items()]


def markdown(result: Row) -> dict[str, str]:
    """For the documentation, chapter by chapter, the notes last."""
    found = {name: Report(sheets).markdown() for name, sheets in chapters(result).items()}
    return found | {"notes": Report([], notes(result)).markdown()}
