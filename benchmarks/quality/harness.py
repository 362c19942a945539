"""Records x methods -> rows of gains, picks, verdicts and ranks, and the means that results keep of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import spearmanr

import wavefilt
from wavefilt import trust
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.quality import methods, records
from wavefilt.benchmarks.quality.methods import Method, Parameters
from wavefilt.benchmarks.quality.records import Case, Record, Samples

WINDOW = 64
"""Samples of a window in which harm is looked for."""
DENOISINGS = 4
"""Methods that are judged on each record."""
FAR = 0.2
"""Seconds from the onset beyond which a pick is an outlier."""


def gain(clean: Samples, before: Samples, after: Samples) -> float:
    """Return the improvement of the signal-to-noise ratio in dB."""
    far, near = (float(np.sum((x - clean) ** 2)) for x in (before, after))
    return float(10 * np.log10(far / near))


def aic(x: Samples, floor: float) -> int:
    """Return the sample that divides ``x`` best into two parts of different variance (Maeda 1985)."""
    k = np.arange(2, len(x) - 2)
    sums, squares = np.cumsum(x), np.cumsum(x**2)
    before = squares[k - 1] / k - (sums[k - 1] / k) ** 2
    rest = len(x) - k
    after = (squares[-1] - squares[k - 1]) / rest - ((sums[-1] - sums[k - 1]) / rest) ** 2
    first, second = (np.log(np.maximum(variance, 0) + floor + 1e-300) for variance in (before, after))
    return int(k[np.argmin(k * first + (rest - 1) * second)])


def picks(record: Record, y: Samples) -> Row:
    """Return the errors in seconds of picks around P by AIC, with and without a floor.

    The floor, 0.05 times the variance of the noise, keeps the silence before the onset from misleading the picker.
    """
    rng = np.random.default_rng([4, record.draw])
    variance, length = float(record.x[0, slice(*record.quiet or ())].var()), round(4.5 * record.rate)
    start = record.onset - int(length * rng.uniform(1 / 3, 2 / 3))
    around = y[0, start : start + length]
    found = {"aic": start + aic(around, 0.05 * variance), "aic_no_floor": start + aic(around, 0.0)}
    return {f"{name}_s": abs(pick - record.onset) / record.rate for name, pick in found.items()}


def measures(record: Record, y: Samples) -> Row:
    """Return what is measured of a result, by the group of the record."""
    found: Row = {"gain_db": gain(record.clean, record.x, y)}
    if record.group == "published":
        loss = 1e4 * np.sum((y - record.clean) ** 2, axis=1) / np.sum(record.clean**2, axis=1)
        found |= {"loss": float(loss.mean()), "loss_error": float(loss.std(ddof=1) / np.sqrt(len(loss)))}
        found["function"] = f"{record.name}, {record.snr:g}"
    elif record.onset >= 0:
        place = np.s_[:, record.onset : record.end + 1]
        found |= {"within_db": gain(record.clean[place], record.x[place], y[place]), **picks(record, y)}
    return found


def tuned(method: Method, others: Sequence[Record]) -> Parameters:
    """Return the parameters with the largest mean gain on the other records."""

    def mean_gain(chosen: Parameters) -> float:
        return float(np.mean([gain(other.clean, other.x, method.run(other, **chosen)) for other in others]))

    return max(method.choices(), key=mean_gain) if method.grid else {}


def gains(case: Case) -> Iterator[Row]:
    """Yield a row for every method that can run here, and record."""
    for method in methods.BY_GROUP.get(case.records[0].group, methods.SECTIONS):
        if method.missing():
            continue
        chosen = tuned(method, case.tuning)
        for record in case.records:
            started = time.perf_counter()
            y = method.run(record, **chosen)
            row: Row = {**record.about, "method": method.name, **measures(record, y)}
            yield row if record.group in methods.BY_GROUP else row | {"seconds": time.perf_counter() - started}


def growth(record: Record, y: Samples) -> tuple[float, float]:
    """Return the growth of the error's energy over the noise's: in the whole record and in the worst window."""
    before, after = (record.x - record.clean) ** 2, (y - record.clean) ** 2
    change = np.add.reduceat(after - before, np.arange(0, before.shape[1], WINDOW), axis=1)
    noise = WINDOW * before.mean(axis=1, keepdims=True)
    return float(change.sum() / before.sum()), float((change / noise).max())


def harmful(total: float, window: float) -> bool | None:
    """Tell whether a result is harmful: the error grew, or by more than 6 dB in a window. None between 3 and 6 dB."""
    return True if total > 0 or window > 3 else None if window > 1 else False


def _of_rows(method: Method, record: Record, rows: Samples) -> Samples:
    return method.run(replace(record, x=rows))


def verdicts(case: Case) -> Iterator[Row]:
    """Yield a row for every method that was drawn for a record, with the noise declared and not."""
    (record,) = case.records
    rng = np.random.default_rng([len(record.group), record.draw])
    for method in rng.choice(np.array(methods.JUDGED, object), DENOISINGS, replace=False):
        y = method.run(record)
        harm = harmful(*growth(record, y))
        for sigma in ("level", record.declared) if record.declared else ("level",):
            verdict = trust.report(record.x, y, partial(_of_rows, method, record), sigma=sigma).verdict
            said = {"harmful": True, "undecided": None, "untested": None}.get(verdict, False)
            row = {**record.about, "method": method.name, "declared": sigma != "level", "verdict": verdict}
            yield {**row, "gain_db": gain(record.clean, record.x, y), **judged(harm, said)}


def judged(harm: bool | None, said: bool | None) -> Row:
    """Return the counts of a verdict, ``said``, where the truth is ``harm``."""
    decided = said is not None
    return {
        "harmful": int(harm is True),
        "missed": int(harm is True and decided and not said),
        "harmless": int(harm is False),
        "alarms": int(harm is False and decided and bool(said)),
        "between": int(harm is None),
        "undecided": int(not decided),
    }


def ranks(case: Case) -> Iterator[Row]:
    """Yield the rank correlation and the losses in dB of the choice of `compare`, with the noise declared and not."""
    (record,) = case.records
    if record.group == "noise alone":
        return
    ranked, deepest = [methods.options(name) for name in methods.RANKED], int(np.log2(record.x.shape[1] / 15))
    for sigma in (None, record.declared) if record.declared else (None,):
        given: Row = {} if sigma is None else {"sigma": sigma}
        trials = [{**one, "level": min(one["level"], deepest)} if "level" in one else one for one in ranked]
        errors = [
            np.mean((np.asarray(wavefilt.denoise(record.x, **one, **given)) - record.clean) ** 2) for one in trials
        ]
        best = min(errors)
        found = wavefilt.compare(record.x, methods=trials, **given)
        order = [[one | given for one in trials].index(trial.options) for trial in found.trials]
        loss = {name: float(10 * np.log10(error / best)) for name, error in zip(methods.RANKED, errors, strict=True)}
        yield {
            **record.about,
            "declared": sigma is not None,
            "correlation": float(spearmanr([errors[i] for i in order], range(len(order)))[0]),
            "loss_db": loss[methods.RANKED[order[0]]],
            "loss_bayes_db": loss["bayes"],
            "loss_js_db": loss["js, sym8, modwt"],
        }


def condensed(rows: Iterable[Row], by: Sequence[str]) -> list[Row]:
    """Return a row for each group of rows: how many, sums of counts, means, and the worst gain and losses.

    Of pick errors, the median and the share of outliers are kept.
    """
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name, "") for name in by), []).append(row)
    found = []
    for key, own in groups.items():
        one: Row = dict(zip(by, key, strict=True)) | {"count": len(own)}
        for name in own[0].keys() - {*by, "snr", "draw"}:
            values = [row[name] for row in own]
            if isinstance(values[0], str):
                continue
            if isinstance(values[0], int):
                one[name] = int(sum(values))
            elif name.endswith("_s"):
                one |= {name: float(np.median(values)), f"{name}_far": float(np.mean(np.array(values) > FAR))}
            else:
                one[name] = float(np.mean(values))
        if "gain_db" in one:
            one |= {"worst_db": min(row["gain_db"] for row in own), "worse": sum(row["gain_db"] < 0 for row in own)}
        found.append({name: round(value, 3) if isinstance(value, float) else value for name, value in one.items()})
    return found


PARTS: dict[str, tuple[Callable[[bool], Iterable[Case]], Callable[[Case], Iterator[Row]], tuple[str, ...]]] = {
    "signals": (records.cases_of_signals, gains, ("group", "function", "noise", "method")),
    "real-noise": (records.cases_of_real_noise, gains, ("group", "noise", "method")),
    "sections": (records.cases_of_sections, gains, ("group", "noise", "method")),
    "trust": (records.cases_of_kinds, verdicts, ("group", "declared")),
    "ranking": (records.cases_of_kinds, ranks, ("group", "declared")),
}
"""The cases of each part, the rows of a case, and the fields by which results keep them."""


def left_out(part: str) -> dict[str, str]:
    """Return the reason for each alternative of a part that cannot run here."""
    return {method.name: why for method in methods.SECTIONS if part == "sections" and (why := method.missing())}
