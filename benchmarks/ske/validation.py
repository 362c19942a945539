"""The calibrated SKE model beside measured times, by the protocol of docs/ske.md: `wavefilt ske validate`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.tables import Report, Row, Sheet, Table
from wavefilt.ske import calibration
from wavefilt.ske.calibrated import PARTS, Launch
from wavefilt.ske.calibration import Calibration

from . import baselines
from .cases import cases, quick
from .fit import launches, parameters, predicted, relative

SHORT = 10e-6
"""Kernels below these seconds are reported apart: they are mostly launch, which any model gets right."""
NOISY, FLAT = 0.05, 0.10
"""Rows whose quartiles lie further apart are marked; blocks whose times differ by less have no order to predict."""


def measure(path: Path | None = None, few: bool = False) -> Row:
    """Measure every case on the current GPU, writing the file after each so that none is lost."""
    from .calibration import Device
    from .measure import rows

    device = Device.current()
    named = {"name": device.name, "multiprocessors": device.multiprocessors}
    result: Row = {"device": named, "environment": environment(), "rows": []}
    for row in rows(quick() if few else cases(), repeats=30):
        result["rows"].append(row)
        if path is not None:
            path.write_text(json.dumps(result, indent=1) + "\n")
    return result


MODELS: dict[str, Callable[[Sequence[Launch], Calibration], float]] = {
    "SKE calibrated": predicted,
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


class Validation:
    """Measured rows beside what every model predicts for them, in seconds."""

    def __init__(self, rows: list[Row], device: Calibration) -> None:
        self.rows, self.device, self.made = rows, device, [launches(row) for row in rows]
        self.times = np.array([row["seconds"] for row in rows])
        self.held_out = np.array([not row["fit"] for row in rows])
        self.long = self.times >= SHORT
        self.predictions = {
            name: np.array([model(made, device) for made in self.made]) for name, model in MODELS.items()
        }

    def errors(self, model: str = "SKE calibrated") -> Floats:
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
    """Of every model on the kernels held out, and of the calibrated one on those it was fitted to."""
    parts = [(name, v.errors(name), v.held_out) for name in MODELS]
    for name, errors, mask in [*parts, ("SKE calibrated, fit rows", v.errors(), ~v.held_out)]:
        yield f"{name}, at least 10 us", errors[mask & v.long]
        yield f"{name}, under 10 us", errors[mask & ~v.long]


def _by_kernel(v: Validation) -> Iterator[tuple[str, Floats]]:
    kernels = np.array([f"{row['kernel']} {row['wavelet']}" for row in v.rows])
    for kernel in dict.fromkeys(kernels):
        mask = (kernels == kernel) & v.long
        yield f"{kernel} ({'held out' if v.held_out[mask].any() else 'fit'})", v.errors()[mask]


def _left_out(v: Validation) -> Iterator[tuple[str, Floats]]:
    """A fit on all kernels but one."""
    kernels = np.array([row["kernel"] for row in v.rows])
    for kernel in dict.fromkeys(kernels):
        rest = kernels != kernel
        mask = ~rest & v.long
        if rest.sum() >= len(PARTS) and mask.any():
            other = parameters([(v.made[i], float(v.times[i])) for i in np.flatnonzero(rest)], v.device)
            found = [predicted(v.made[i], other) for i in np.flatnonzero(mask)]
            yield kernel, relative(found, v.times[mask])


def choices(rows: Sequence[Row], predictions: Sequence[float] | Floats) -> Iterator[tuple[str, float, float | None]]:
    """For every kernel and size measured with several blocks: regret, and rank correlation unless times are flat."""
    from scipy.stats import spearmanr

    groups: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        what = f"{row['kernel']}, {row['wavelet']}, {row['rows']} x {row['samples']}"
        groups[f"{what}, {row['tile']}"].append(i)
    for key, members in groups.items():
        if len(members) >= 3:
            times, models = np.array([[rows[i]["seconds"], predictions[i]] for i in members]).T
            flat = times.max() / times.min() - 1 < FLAT
            rho = None if flat else float(spearmanr(models, times).statistic)
            yield key.rpartition(",")[0], float(times[models.argmin()] / times.min()), rho


def _every(v: Validation) -> Sheet:
    cells, errors = [], [v.errors(name) for name in MODELS]
    for i, row in enumerate(v.rows):
        name = f"{row['kernel']} {row['wavelet']} {row['rows']} x {row['samples']}, {row['threads']}, {row['tile']}"
        cells.append([name + (" (fit)" if row["fit"] else ""), f"{1e6 * v.times[i]:.2f}", f"{row['spread']:.1%}"])
        cells[-1] += [f"{of[i]:+.0%}" for of in errors]
    return _sheet("Every row", ("row", "measured us", "spread", *MODELS), cells)


def report(result: Row, device: Calibration, every: bool = False) -> Report:
    """Errors on the held-out kernels, of every model; regret of the blocks it would choose; one kernel left out."""
    v = Validation([row for row in result["rows"] if "error" not in row], device)
    held = [row for row, held_out in zip(v.rows, v.held_out, strict=True) if held_out]
    found = [*choices(held, v.predictions["SKE calibrated"][v.held_out])]
    chosen = [[name, f"{regret:.3f}", "flat" if rho is None else f"{rho:.2f}"] for name, regret, rho in found]
    blocks = "Choice of the block size: its time over the shortest time"
    sheets = [
        _errors("Relative errors on kernels that the models were not fitted to", "held out", _by_model(v)),
        _errors("Relative errors by kernel, at least 10 μs", "SKE calibrated by kernel", _by_kernel(v)),
        _sheet(blocks, ("blocks of", "regret", "rank correlation"), chosen),
        _errors("Relative errors on a kernel left out of the fit", "left out of a fit on all", _left_out(v)),
    ]
    noisy = sum(row["spread"] > NOISY for row in v.rows)
    notes = [
        f"{device.name}; {len(v.rows)} rows, {len(held)} held out, {noisy} with a spread above {NOISY:.0%}",
        "theta: " + ", ".join(f"{name} {value:.3g}" for name, value in device.theta.items()),
    ]
    if found:
        regrets = [regret for _, regret, _ in found]
        notes.insert(1, f"Regret: median {np.median(regrets):.3f}, worst {max(regrets):.3f}")
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
