"""Tables of the study of real noise, and what it was to reach."""

from __future__ import annotations

from collections.abc import Iterator

from wavefilt.benchmarks.common.columns import place
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, Table, number
from wavefilt.benchmarks.quality.alternatives import BASE, BEST, FORMS_OF_JS, RECORD
from wavefilt.benchmarks.quality.field_records import LIMITS

TITLES = {"high-passed": "Records above 1 Hz", "raw": "Raw records"}
SHORT = {
    "distinct values": "distinct|values",
    "share of samples at an extreme": "at an|extreme",
    "equal samples in a row": "equal in|a row",
    "largest over smallest deviation of ten parts": "deviations of|ten parts",
    "excess kurtosis": "excess|kurtosis",
    "largest STA/LTA": "largest|STA/LTA",
    "spectral flatness": "spectral|flatness",
    "share of the strongest frequency": "strongest|frequency",
}
"""Heads of the criteria."""


def report(result: Row) -> Report:
    """In the order of the documentation."""
    return Report([sheet for sheets in chapters(result).values() for sheet in sheets], notes(result))


def chapters(result: Row) -> dict[str, list[Sheet]]:
    """Tables by what they are about."""
    return {
        "gains": [_gains(result, form) for form in TITLES],
        "targets": [_targets(result)],
        "picks": [_picks(result, floor) for floor in (True, False)],
        "recorded": [_recorded(result)],
        "tuned": [_tuned(result)],
        "windows": [_windows(result), _events(result)],
    }


def _gains(result: Row, form: str) -> Sheet:
    columns: dict[str, Column] = {"method": "{method}"}
    columns |= {f"gain at|{ratio}": f"{{by_ratio[{ratio}]:+.1f}}" for ratio in result["gains"][0]["by_ratio"]}
    columns |= {
        "over bayes,|mean": "{over:+.1f}",
        "10th|percentile": "{over_p10:+.1f}",
        "signal|window": "{over_within:+.1f}",
        "records|worse": "{worse}",
        "worst|gain": "{worst:+.1f}",
        "peak|amplitude": "{peak:.0%}",
    }
    records = result["gains"][0]["records"]
    title = f"{TITLES[form]}: gain in dB of {records} records, {result['synthetics']} synthetic earthquakes"
    return Table(title, columns, lambda found: (row for row in found["gains"] if row["form"] == form))(result)


def _recorded(result: Row) -> Sheet:
    columns: dict[str, Column] = {"method": "{method}"}
    for form, title in TITLES.items():
        columns |= {f"{title.lower()},|gain": f"{{{form}[mean]:+.1f}}"}
        columns |= {
            f"over bayes#{form}": f"{{{form}[over]:+.1f}}",
            f"signal|window#{form}": f"{{{form}[over_within]:+.1f}}",
        }
        columns |= {f"records|worse#{form}": f"{{{form}[worse]}}"}
    by_form = [{row["method"]: row for row in result["recorded"] if row["form"] == form} for form in TITLES]
    rows = [{"method": name, **dict(zip(TITLES, (one[name] for one in by_form), strict=True))} for name in by_form[0]]
    title = f"Recorded earthquakes: gain in dB, {len(result['events'])} channels in {result['places']} windows each"
    return Table(title, columns, "rows")({"rows": rows})


def _picks(result: Row, floor: bool) -> Sheet:
    columns: dict[str, Column] = {"picker": "{picker}", "picked in": "{method}"}
    for ratio in result["picks"][0]["median"]:
        columns[ratio] = f"{{median[{ratio}]:.2f}} s / {{outliers[{ratio}]:.0%}}"
    what = "with the floors" if floor else "without a floor"
    title = f"Picks of P {what}: median error, and picks more than 0.2 s away"
    return Table(title, columns, lambda found: (row for row in found["picks"] if row["floor"] == floor))(result)


def _tuned(result: Row) -> Sheet:
    def parameters(half: int) -> Column:
        return lambda row: ", ".join(f"{name} {value:g}" for name, value in row["parameters"][half].items())

    columns: dict[str, Column] = {"method": "{method}", "records": "{form}", "tried": "{choices}"}
    columns |= {"first half": parameters(0), "second half": parameters(1)}
    return Table("Parameters, chosen on the other half of the sources", columns, "tuned")(result)


def _channel(row: Row) -> str:
    """The id of a channel without the codes that it lacks."""
    return str(row["channel"]).strip(".")


def _windows(result: Row) -> Sheet:
    columns: dict[str, Column] = {
        "file": "{file}",
        "channel": _channel,
        "from": "{start}",
        "Hz,|recorded": "{recorded:g}",
        "Hz,|used": "{rate:g}",
        "half": lambda row: ("first", "second")[row["half"]],
        "dB below|1 Hz": "{low:.0f}",
    }
    for name, head in SHORT.items():
        share = name.startswith("share")
        columns[head] = f"{{measures[{name}]:{'.1%' if share else '.3g'}}}"
    columns["distinct|values"] = "{measures[distinct values]:.0f}"
    return Table("Windows of noise", columns, "windows")(result)


def _events(result: Row) -> Sheet:
    columns: dict[str, Column] = {
        "file": "{file}",
        "channel": _channel,
        "Hz": "{rate:g}",
        "dB over|the noise": "{ratio:.0f}",
    }
    return Table("Recorded earthquakes", columns, "events")(result)


def targets(result: Row) -> Iterator[tuple[str, float, dict[str, float]]]:
    """What was to be reached, the limit, and what each form of the rule has: at least, or of counts at most."""
    rows = {(row["form"], row["method"]): row for row in result["gains"]}
    picks = {(row["picker"], row["method"]): row for row in result["picks"] if row["floor"]}
    for form, over, beyond in (("high-passed", 3.5, 1.0), ("raw", 5.0, 3.0)):
        best = rows[form, BEST]["over"]
        mine = {name: rows[form, name] for name in FORMS_OF_JS}
        title = TITLES[form]
        yield f"{title}: dB over {BASE}", over, {name: row["over"] for name, row in mine.items()}
        if form == "high-passed":
            yield f"{title}: 10th percentile of it", 1.0, {name: row["over_p10"] for name, row in mine.items()}
            yield f"{title}: in the signal window", 1.2, {name: row["over_within"] for name, row in mine.items()}
        yield f"{title}: dB over {BEST}", beyond, {name: row["over"] - best for name, row in mine.items()}
        yield f"{title}: records made worse", 0.0, {name: float(row["worse"]) for name, row in mine.items()}
    for picker in dict.fromkeys(picker for picker, _ in picks):
        before = picks[picker, RECORD]
        for ratio in before["median"]:
            limit = 100 * before["outliers"][ratio]
            after = {name: picks[picker, name] for name in FORMS_OF_JS}
            shares = {name: 100 * row["outliers"][ratio] for name, row in after.items()}
            yield f"{picker} at {ratio}: per cent of outliers", limit, shares
            yield f"{picker} at {ratio}: median error in s", 0.08, {n: r["median"][ratio] for n, r in after.items()}


def reached(what: str, limit: float, value: float) -> bool:
    """Decibels are to be at least the limit, what is counted or is an error at most."""
    return value >= limit if "dB over" in what or "percentile" in what or "window" in what else value <= limit + 1e-9


def _targets(result: Row) -> Sheet:
    rows = []
    for what, limit, values in targets(result):
        cells = [f"{value:.3g} {'yes' if reached(what, limit, value) else 'no'}" for value in values.values()]
        rows.append([what, f"{limit:.3g}", *cells])
    return Sheet(
        "Targets, and whether they are reached", [["target"], ["limit"], *([name] for name in FORMS_OF_JS)], rows
    )


def notes(result: Row) -> list[str]:
    """Where and when, and what the screening left."""
    failed = ", ".join(f"{name} {count}" for name, count in result["screened"]["failed"].items() if count)
    kept, examined = len(result["windows"]), result["screened"]["examined"]
    channels = len({window["channel"] for window in result["windows"]})
    sources = len({window["source"] for window in result["windows"]})
    environment = {"environment": result["environment"], "date": result["date"]}
    limits = "; ".join(f"{name} {_range(*span)}" for name, span in LIMITS.items())
    return [
        f"{place(environment)} {number(result['seconds'])} s; ObsPy {result['obspy']}.",
        f"{kept} of {examined} windows, of {channels} channels and {sources} sources, pass. Failed (some more than one "
        f"criterion): {failed}.",
        f"Criteria: {limits}.",
    ]


def _range(low: float, high: float) -> str:
    return f"at least {low:g}" if high == float("inf") else f"{low:g} to {high:g}"


def markdown(result: Row) -> dict[str, str]:
    """For the documentation, chapter by chapter, the notes last."""
    found = {name: Report(sheets).markdown() for name, sheets in chapters(result).items()}
    return found | {"notes": Report([], notes(result)).markdown()}
