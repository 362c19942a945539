"""The calibrated SKE model beside measured times, by the protocol of docs/ske.md: `wavefilt ske validate`."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.tables import Report, Row, Sheet, Table
from wavefilt.ske import calibration
from wavefilt.ske.calibrated import Launch, estimate
from wavefilt.ske.calibration import Calibration

from . import baselines, cases
from .cases import Case
from .fit import launches, predicted, relative

SHORT = 10e-6
"""Kernels below these seconds are reported apart: they are mostly launch, which any model gets right."""
NOISY, FLAT = 0.05, 0.10
"""Rows whose quartiles lie further apart are marked; blocks whose times differ by less have no order to predict."""


FROZEN = (
    *("benchmarks/ske/cases.py", "benchmarks/ske/fit.py", "ske/calibrated.py", "ske/devices/h200.json"),
    *(f"backends/cuda/work_counts/{name}.py" for name in ("transforms", "panels", "undecimated", "statistics")),
)
"""Files of the package that make a prediction: cases, counts, model and constants."""


def frozen() -> str:
    """SHA-256 of the files of cases, counts, model and constants, one after the other."""
    package = Path(calibration.__file__).parents[1]
    return sha256(b"".join((package / name).read_bytes() for name in FROZEN)).hexdigest()


def measure(path: Path | None = None, few: bool = False, blind: bool = False, seconds: float = math.inf) -> Row:
    """Measure every case on the current GPU, writing the file after each so that none is lost.

    ``blind`` are the cases that judge the model, and those of its choices, for at most so many ``seconds``.
    """
    from .calibration import Device
    from .measure import rows

    device, began = Device.current(), time.monotonic()
    named = {"name": device.name, "multiprocessors": device.multiprocessors}
    result: Row = {"device": named, "environment": environment(), "frozen": frozen(), "rows": []}
    sets = (
        {"blind": cases.blind(), "choice": cases.choices()} if blind else {"": cases.quick() if few else cases.cases()}
    )
    for name, chosen in sets.items():
        for row in rows(chosen, repeats=30):
            result["rows"].append(row | {"set": name} if name else row)
            if path is not None:
                write(result, path)
            if time.monotonic() - began > seconds:
                return result
    return result


def write(result: Row, path: Path) -> None:
    """As JSON with a line for each row."""
    rows = ",\n".join(map(json.dumps, result["rows"]))
    head = json.dumps({name: value for name, value in result.items() if name != "rows"}, indent=1)
    path.write_text(f'{head[:-2]},\n "rows": [\n{rows}\n]}}\n')


CALIBRATED = "SKE calibrated"
MODELS: dict[str, Callable[[Sequence[Launch], Calibration], float]] = {
    CALIBRATED: predicted,
    "launch + bytes/bandwidth, measured": lambda made, d: sum(baselines.bandwidth(launch, d) for launch in made),
    "launch + bytes/bandwidth, fitted": lambda made, d: sum(
        d.fit["launch and bandwidth"]["launch"] + launch.bytes / d.fit["launch and bandwidth"]["bytes a second"]
        for launch in made
    ),
    "classic SKE, scaled": lambda made, d: d.fit["classic"]["table scale"] * sum(baselines.classic(x, d) for x in made),
    "classic SKE, scale, rw and rb fitted": lambda made, d: (
        d.fit["classic"]["scale"]
        * sum(baselines.classic(x, d, d.fit["classic"]["rw"], d.fit["classic"]["rb"]) for x in made)
    ),
}


@dataclass(frozen=True)
class Judged:
    """A launch, or the launches of a row that was measured as one: ``family`` is what errors are summed up by.

    ``predicted`` are seconds by each of `MODELS`; ``binds`` is what binds it by the calibrated model.
    """

    family: str
    row: Row
    seconds: float
    predicted: Mapping[str, float]
    binds: str


def stored(result: Row, device: Calibration) -> Sequence[str]:
    """The models whose predictions the result holds: made by the code that was frozen, with the shipped calibration.

    None for another calibration, by which launches are predicted today.
    """
    try:
        return result.get("models", ()) if device == calibration.of(device.name) else ()
    except calibration.WrongDevice:
        return ()


def judged(row: Row, device: Calibration, models: Sequence[str] = ()) -> Iterator[Judged]:
    """Of a row with a time for each launch the launches, else all together; with the `stored` predictions if any."""
    case = Case.of(row)
    if models:
        for seen in row["launches"]:
            frozen_ones = dict(zip(models, seen["predicted"], strict=True))
            yield Judged(seen["family"], row, seen.get("seconds", row["seconds"]), frozen_ones, seen["binds"])
        return

    def now(family: str, made: Sequence[Launch], seconds: float) -> Judged:
        binds = estimate(made[0], device).binds if len(made) == 1 else "several"
        return Judged(family, row, seconds, {name: model(made, device) for name, model in MODELS.items()}, binds)

    made = launches(row)
    times = [seen.get("seconds", 0.0) for seen in row["launches"]]
    if case.single or len(times) != len(made) or min(times, default=0.0) <= 0:
        yield now(case.what, made, row["seconds"])
        return
    for launch, seconds in zip(made, times, strict=True):
        name = launch.name.rpartition(" ")[0] if launch.name[-1].isdigit() else launch.name
        yield now(f"{case.kernel}: {name}", [launch], seconds)


class Validation:
    """Measured rows beside what every model predicts for them, launch by launch, in seconds."""

    def __init__(self, rows: list[Row], device: Calibration, models: Sequence[str] = ()) -> None:
        self.items = [one for row in rows for one in judged(row, device, models)]
        self.times = np.array([one.seconds for one in self.items])
        self.held_out = np.array([not one.row["fit"] for one in self.items], bool)
        self.long = self.times >= SHORT
        self.predictions = {name: np.array([one.predicted[name] for one in self.items]) for name in MODELS}

    def errors(self, model: str = CALIBRATED) -> Floats:
        return relative(self.predictions[model], self.times)


def _errors(title: str, of: str, named: Iterable[tuple[str, Floats]]) -> Sheet:
    """Relative errors of what is named, where there are any."""
    cells = []
    for name, errors in named:
        if len(errors):
            e = np.abs(errors)
            figures = f"{e.mean():.1%}", f"{np.median(e):.1%}", f"{e.max():.1%}", f"{errors.mean():+.1%}"
            cells.append([name, str(len(errors)), *figures])
    return _sheet(title, (of, "rows", "mean", "median", "max", "signed"), cells)


def _sheet(title: str, heads: Iterable[str], cells: list[list[str]]) -> Sheet:
    return Sheet(title, [[head] for head in heads], cells)


def _by_model(v: Validation) -> Iterator[tuple[str, Floats]]:
    """Of every model on the launches held out, and of the calibrated one on those it was fitted to."""
    parts = [(name, v.errors(name), v.held_out) for name in MODELS]
    for name, errors, mask in [*parts, (f"{CALIBRATED}, fit rows", v.errors(), ~v.held_out)]:
        yield f"{name}, at least 10 us", errors[mask & v.long]
        yield f"{name}, under 10 us", errors[mask & ~v.long]


def _by(v: Validation, words: Sequence[str]) -> Iterator[tuple[str, Floats]]:
    """Of launches of at least 10 μs, by what is said of each of them."""
    every = np.array(words)
    for word in sorted(set(words)):
        yield word, v.errors()[(every == word) & v.long]


def _size(one: Judged) -> str:
    mebi = one.row["samples"] * max(one.row.get("columns", 0), 1) * one.row["rows"] / 2**20
    return "at most 1 Mi samples" if mebi <= 1 else "to 8 Mi" if mebi <= 8 else "to 32 Mi" if mebi <= 32 else "more"


def choices(rows: Sequence[Row], predictions: Sequence[float] | Floats) -> Iterator[Choice]:
    """Of every kernel and size that was measured with several blocks and tiles."""
    from scipy.stats import spearmanr

    groups: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[f"{Case.of(row).what}, {row['rows']} x {row['samples']}"].append(i)
    for key, members in groups.items():
        if len(members) >= 3:
            times, models = np.array([[rows[i]["seconds"], predictions[i]] for i in members]).T
            flat = times.max() / times.min() - 1 < FLAT
            rho = None if flat else float(spearmanr(models, times).statistic)
            first = times[models.argsort()[:3]]
            yield Choice(key, len(members), float(first[0] / times.min()), float(first.min() / times.min()), rho)


class Choice(NamedTuple):
    """The time of the block and tile with the least estimate over the shortest, that of the best of the first three
    over it, and the rank correlation unless times are flat."""

    what: str
    shapes: int
    regret: float
    of_three: float
    rank: float | None


def _every(v: Validation) -> Sheet:
    cells, errors = [], [v.errors(name) for name in MODELS]
    for i, one in enumerate(v.items):
        row = one.row
        name = f"{one.family} {row['rows']} x {row['samples']}, {row['threads']}, {row['tile']}"
        cells.append([name + (" (fit)" if row["fit"] else ""), f"{1e6 * v.times[i]:.2f}", f"{row['spread']:.1%}"])
        cells[-1] += [f"{of[i]:+.0%}" for of in errors]
    return _sheet("Every launch", ("launch", "measured us", "spread", *MODELS), cells)


def report(result: Row, device: Calibration, every: bool = False) -> Report:
    """Errors of every model, launch by launch, and what blocks and tiles chosen by the model cost."""
    rows = [row for row in result["rows"] if "error" not in row]
    grids = [row for row in rows if row.get("set") == "choice"]
    models = stored(result, device)
    v = Validation([row for row in rows if row.get("set") != "choice"], device, models)
    of_choice = grids or [row for row in rows if not row["fit"]] or rows
    estimates = [sum(one.predicted[CALIBRATED] for one in judged(row, device, models)) for row in of_choice]
    found = [*choices(of_choice, estimates)]
    chosen = []
    for one in found:
        ratios = f"{one.regret:.3f}", f"{one.of_three:.3f}", "flat" if one.rank is None else f"{one.rank:.2f}"
        chosen.append([one.what, str(one.shapes), *ratios])
    judged_by = "blind" if "set" in rows[0] else "held out"
    sheets = [
        _errors(f"Relative errors on launches that are {judged_by}", judged_by, _by_model(v)),
        _errors(
            "Relative errors by kernel, at least 10 μs", f"{CALIBRATED} by kernel", _by(v, [o.family for o in v.items])
        ),
        _errors("Relative errors by size, at least 10 μs", "samples", _by(v, [_size(one) for one in v.items])),
        _errors("Relative errors by what binds, at least 10 μs", "bound by", _by(v, [one.binds for one in v.items])),
        _sheet(
            "Choice of block and tile: its time over the shortest",
            ("blocks and tiles of", "shapes", "the first", "best of three", "rank correlation"),
            chosen,
        ),
    ]
    noisy = sum(row["spread"] > NOISY for row in rows)
    notes = [
        f"{device.name}; {len(rows)} rows, {len(v.items)} launches judged, {noisy} with a spread above {NOISY:.0%}, "
        f"{len(result['rows']) - len(rows)} failed",
        "theta: " + ", ".join(f"{name} {value:.3g}" for name, value in device.theta.items()),
    ]
    if found:
        for name, values in {"Regret": [o.regret for o in found], "Of three": [o.of_three for o in found]}.items():
            notes.insert(1, f"{name}: median {np.median(values):.3f}, worst {max(values):.3f}")
    long = v.held_out & v.long
    if long.sum() >= 3:
        from scipy.stats import spearmanr

        rank = float(spearmanr(v.predictions[CALIBRATED][long], v.times[long]).statistic)
        notes.insert(1, f"Rank correlation of launches of at least 10 μs: {rank:.3f}")
    if "frozen" in result:
        same = "the same" if result["frozen"] == frozen() else "others"
        by = "those that the predictions are made with" if models else f"today {same}"
        notes.append(f"Cases, counts, model and constants when measured: SHA-256 {result['frozen']}; {by}")
    return Report([*sheets, *([_every(v)] if every else [])], notes)


MEASURED = Table(
    "Measured kernels",
    {
        "kernel": "{kernel}",
        "wavelet": "{wavelet}",
        "rows": "{rows}",
        "samples": "{samples:size}",
        "threads": "{threads}",
        "tile": "{tile}",
        "μs": "{seconds:us}",
        "spread": "{spread:.1%}",
    },
    lambda result: (row for row in result["rows"] if "error" not in row),
)


def shipped_report(result: Row, every: bool = True) -> Report:
    """With the shipped calibration of the GPU; without one, what was measured alone."""
    try:
        return report(result, calibration.of(result["device"]["name"]), every)
    except calibration.WrongDevice as error:
        return Report([MEASURED(result)], [f"No predictions: {error}."])
