"""Accuracy of the SKE models, from the results in `benchmarks/results`, as figures and as tables of the documentation.

* ``ske_fit_h200``: the launches that the parameters of the bundled calibration were fitted to.
* ``ske_blind_h200``: the first blind test. Its predictions are stored as made before the launches were measured.
* ``ske_kernels_h200``: the second one, of today's kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.benchmarks.common.tables import Row, Sheet
from wavefilt.ske import devices

from . import fit
from .baselines import CALIBRATED, MODELS

SHORT = 10e-6
"""Launches below this time are judged separately: they are dominated by launch overhead."""


@dataclass(frozen=True)
class Judged:
    """A measured launch: its ``family``, the row it belongs to, and the predictions in seconds by model."""

    family: str
    row: Row
    seconds: float
    predicted: Mapping[str, float]


class Choice(NamedTuple):
    """How good a model's choice of block and tile is for one kernel and size.

    ``regret`` is the time of the shape with the shortest estimate relative to the shortest time, ``of_three`` that of
    the best among the first three.
    """

    regret: float
    of_three: float


class Accuracy(NamedTuple):
    """Relative errors of launches of at least 10 us (``signed`` is the mean with signs), and the rank correlation."""

    launches: int
    mean: float
    median: float
    max: float
    signed: float
    rank: float


def judged(result: Row) -> list[Judged]:
    """Return every launch of a result, with the stored predictions or, without these, those of the bundled H200."""
    device, found = devices.default(), []
    for row in result["rows"]:
        family = f"{row['kernel']} {row['wavelet']}"
        if "predicted" in row:
            predictions = dict(zip(result["models"], row["predicted"], strict=True))
            found.append(Judged(family, row, row["seconds"], predictions))
        elif "models" in result:
            for one in row["launches"]:
                predictions = dict(zip(result["models"], one["predicted"], strict=True))
                found.append(Judged(one["family"], row, one.get("seconds", row["seconds"]), predictions))
        else:
            made = fit.launches(row)
            predictions = {name: sum(model(one, device) for one in made) for name, model in MODELS.items()}
            found.append(Judged(family, row, row["seconds"], predictions))
    return found


def accuracy(launches: Iterable[Judged], model: str = CALIBRATED) -> Accuracy | None:
    """Return the accuracy of a model for the launches of at least 10 us; None if there are none."""
    from scipy.stats import spearmanr

    every = np.array([(one.predicted[model], one.seconds) for one in launches if one.seconds >= SHORT])
    if not len(every):
        return None
    errors = fit.relative(*every.T)
    size = np.abs(errors)
    rank = float(spearmanr(*every.T).statistic) if len(every) > 2 else float("nan")
    return Accuracy(
        len(every), float(size.mean()), float(np.median(size)), float(size.max()), float(errors.mean()), rank
    )


def choices(launches: Sequence[Judged], model: str = CALIBRATED) -> list[Choice]:
    """Judge the choice of block and tile for every kernel and size that was measured with several of them."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in launches:
        groups[f"{one.family}, {one.row.get('rows', 1)} x {one.row['samples']}"].append(one)
    found = []
    for members in groups.values():
        if len(members) < 3:
            continue
        times, estimates = np.array([(one.seconds, one.predicted[model]) for one in members]).T
        first = times[estimates.argsort(kind="stable")[:3]] / times.min()
        found.append(Choice(float(first[0]), float(first.min())))
    return found


def split(result: Row) -> tuple[list[Judged], list[Judged]]:
    """Return the launches that errors are judged by, and those that choices of block and tile are judged by."""
    every = judged(result)
    shapes = [one for one in every if one.row.get("set") == "choice"]
    return [one for one in every if one.row.get("set") != "choice"], shapes or every


def _sheet(title: str, heads: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    return Sheet(title, [[head] for head in heads], rows).markdown()


HEADS = ("launches", "mean", "median", "max", "signed")


def _cells(found: Accuracy) -> list[str]:
    return [str(found.launches), *(f"{x:.1%}" for x in found[1:4]), f"{found.signed:+.1%}"]


def _models(result: Row) -> str:
    launches, shapes = split(result)
    rows = []
    for model in result.get("models", MODELS):
        found, chosen = accuracy(launches, model), choices(shapes, model)
        assert found is not None
        short = [one.predicted[model] / one.seconds - 1 for one in launches if one.seconds < SHORT]
        regrets: Floats = np.array([one.regret for one in chosen])
        rows.append([model, *_cells(found), f"{np.abs(short).mean():.1%}", f"{found.rank:.3f}"])
        rows[-1] += [f"{np.median(regrets):.3f}", f"{regrets.max():.3f}", f"{max(c.of_three for c in chosen):.3f}"]
    heads = ["model", *HEADS, "mean, under 10 μs", "rank correlation", "regret, median", "regret, worst"]
    return _sheet("Relative errors of launches of at least 10 μs", [*heads, "worst, best of three"], rows)


def _constants(result: Row) -> str:
    """Return the constants of the bundled calibration of the device that was measured."""
    device = devices.of(result["device"]["name"])
    rows = [["clock under load, empty kernel", f"{1e-9 * device.clock:.3f} GHz, {1e6 * device.launch:.2f} μs"]]
    rows.append(["latency of loads", ", ".join(f"{place} {cycles:.0f}" for place, cycles in device.latency.items())])
    for name in ("fma", "fma64", "wavefront"):
        operation = device.operations[name]
        rows.append([name, f"latency {operation.latency:.1f} cycles, {operation.rate:.2f} per cycle and SM"])
    for name, table in {"copies": device.bandwidth, "reads": device.reads, "writes": device.writes}.items():
        inside = max(value for at, value in table if at <= device.cache)
        rows.append([f"bandwidth of {name}", f"{1e-12 * inside:.1f} TB/s in L2, {1e-12 * table[-1][1]:.1f} beyond"])
    rows.append(["barrier, 32 to 1024 threads", ", ".join(f"{cycles:.0f}" for _, cycles in device.barrier)])
    rows.append(["θ", ", ".join(f"{name} {value:.2f}" for name, value in device.theta.items())])
    return _sheet(f"Calibration of the {device.name} (cycles unless stated)", ("constant", "value"), rows)


TABLES: dict[str, Callable[[Row], dict[str, str]]] = {
    "ske_fit_h200": lambda result: {"": _models(result), "constants": _constants(result)},
    "ske_blind_h200": lambda result: {"": _models(result)},
    "ske_kernels_h200": lambda result: {"": _models(result)},
}
"""Tables of the documentation, by the stem of the result and the part."""
