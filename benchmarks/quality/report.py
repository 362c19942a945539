"""The quality study for people: a table for every part, and what it was to reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wavefilt.benchmarks.common.columns import not_run
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, Table, number

from . import published as literature
from .published import FOUR, distances, grouped, reached


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
    cells = []
    for like, group in grouped(rows, "like"):
        if like:
            values = [
                f"{number(mean)} ±{number(error)}" for mean, error in zip(*literature.XING[like][ratio], strict=True)
            ]
            cells.append([f"{like}, published", "", *values])
        for row in group:
            shares = [f" {share:+.1%}" for share, _ in distances(row).values()] if like else [""] * len(row["mean"])
            values = [number(value) + share for value, share in zip(row["mean"].values(), shares, strict=True)]
            cells.append([row["method"], row["grid"], *values])
    title = f"sd(f)/σ = {ratio}: 10⁴ Σ(y - f)²/Σf², mean over {seeds} seeds, and its difference from the published one"
    return Sheet(title, [[head] for head in ("method", "grid", *literature.SIGNALS)], cells)


def _reached(rows: Sequence[Row]) -> Sheet:
    def farthest(row: Row) -> str:
        _, signal, share = reached(row)
        return f"{share:+.1%} ({signal})"

    columns: dict[str, Column] = {
        "method": "{method}",
        "published": "{like}",
        "grid": "{grid}",
        "sd(f)/σ": "{ratio}",
        "signals": lambda row: f"{reached(row)[0]} of {len(row['mean'])}",
        "largest difference": farthest,
    }
    title = f"Signals within {literature.NEAR:.0%} or {literature.ERRORS} standard errors of the published mean, or, "
    title += f"of EbayesThresh, at most {literature.WORSE:.0%} above it"
    return Table(title, columns)({"rows": [row for row in rows if row["like"] not in ("", "smash")]})


def _baseline(rows: Sequence[Row], draws: int) -> Sheet:
    cells = []
    for row in rows:
        like, first = row["like"], [row["method"], str(row["levels"])]
        ours, theirs = ([f"{value:.3f}" for value in row[rmse].values()] for rmse in ("rmse", "rmse of 30"))
        if like and like not in literature.FEWER:
            ours = [f"{cell} ({value:.3f})" for cell, value in zip(ours, literature.BASELINE[like], strict=True)]
        cells.append([*first, str(draws), *ours])
        if like in literature.FEWER:
            beside = [f"{cell} ({value:.3f})" for cell, value in zip(theirs, literature.BASELINE[like], strict=True)]
            cells.append([*first, str(literature.DRAWS), *beside])
    title = "sd(f)/σ = 7, 2048 samples: root mean square error over σ (in brackets: the baseline)"
    return Sheet(title, [[head] for head in ("method", "levels", "draws", *FOUR)], cells)


def _fresh(rows: Sequence[Row], draws: int) -> Sheet:
    cells = []
    for row in rows:
        cells.append([f"{row['against']}, 6 levels", *(f"{value:.4f}" for value in row["rmse of the other"].values())])
        cells.append([f"{row['method']}, {row['levels']} levels", *(f"{value:.4f}" for value in row["rmse"].values())])
        cells.append(["standard errors lower", *(f"{value:.1f}" for value in row["standard errors lower"].values())])
    return Sheet(f"Paired comparison on {draws} other realisations", [[head] for head in ("method", *FOUR)], cells)


def _spins(rows: Sequence[Row]) -> Sheet:
    columns: dict[str, Column] = {"shifts": "{spins}"}
    columns |= {f"{how},|{name}": f"{{{how}[{name}]:.3f}}" for name in FOUR for how in ("consecutive", "spread")}
    return Table(f"Cycle spinning: mean over shifts, {rows[0]['method']}, 6 levels, {literature.DRAWS} draws", columns)(
        {"rows": rows}
    )


def _records(rows: Sequence[Row], noises: int) -> Iterator[Sheet]:
    for title, white in (("White noise", True), ("Pink noise, and the gather's own", False)):
        chosen = [row for row in rows if (row["noise"] == "white") == white]
        heads = [["method"], *([row["signal"], f"{row['snr_db']} dB"] for row in chosen)]
        cells = [[method, *(f"{row['gain_db'][method]:+.1f}" for row in chosen)] for method in rows[0]["gain_db"]]
        yield Sheet(f"{title}: gain in dB, mean over {noises} realisations, by record and its SNR", heads, cells)


def _choices(rows: Sequence[Row]) -> Sheet:
    columns: dict[str, Column] = {"changed": "{method}"}
    columns |= {f"{of},|{how}": f"{{{of}[{how}]:+.2f}}" for of in ("records", "functions") for how in ("mean", "worst")}
    title = "The defaults with one option changed: gain in dB over all records, and over the four functions at "
    return Table(f"{title}sd(f)/σ = 7", columns)({"rows": rows})


def notes(result: Row) -> list[str]:
    """Where and when, what was reached, and who is missing and why."""
    where = result["environment"]
    found = [f"{where['processor']}, {where['cores']} cores; {result['date']}; {result['seconds']:.0f} s."]
    if "added" in result:
        found.append("Rows of {rows} were added on {date}, measured at commit {commit:.7}.".format(**result["added"]))
    return [*found, *literature.verdicts(result), *not_run(result)]


def markdown(result: Row) -> dict[str, str]:
    """For the documentation, chapter by chapter, the notes last."""
    found = {name: Report(sheets).markdown() for name, sheets in chapters(result).items()}
    return found | {"notes": Report([], notes(result)).markdown()}
