"""Accuracy of the SKE models, from the results in `benchmarks/results`, as figures and as tables of the documentation.

* ``ske_fit_h200``: the launches that the parameters of the bundled calibration were fitted to.
* ``ske_blind_h200``: the first blind test. Its predictions are stored as made before the launches were measured.
* ``ske_kernels_h200``: the second one, of today's kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wavefilt.benchmarks.common.tables import Row, Sheet, Table
from wavefilt.ske import devices

from . import fit
from .baselines import MODELS

SHORT = 10e-6
"""Launches below this time are judged separately: they are dominated by launch overhead."""


class Judged(NamedTuple):
    """A measured launch: kernel and size, its part of a blind test, and measured and estimated seconds (by model)."""

    case: str
    part: str | None
    seconds: float
    estimates: Sequence[float]


def judged(result: Row) -> Iterator[Judged]:
    """Yield every launch of a result, with the stored estimates or, without these, those of the bundled H200."""
    device = devices.default()
    for row in result["rows"]:
        several = [row] if "predicted" in row else row["launches"]
        if "models" not in result:
            made = fit.launches(row)
            several = [{"predicted": [sum(model(one, device) for one in made) for model in MODELS.values()]}]
        for one in several:
            family = one.get("family", f"{row['kernel']} {row['wavelet']}")
            case = f"{family}, {row.get('rows', 1)} x {row['samples']}"
            yield Judged(case, row.get("set"), one.get("seconds", row["seconds"]), one["predicted"])


def accuracy(result: Row) -> list[Row]:
    """Return the relative errors of each model, its rank correlation, and the regret of its choices.

    Choices are those of block and tile for a kernel and size that was measured with several of them. Their regret is
    the time of the shape with the shortest estimate relative to the shortest time; ``three`` is that of the best among
    the first three.
    """
    from scipy.stats import spearmanr

    every = [*judged(result)]
    shapes = [one for one in every if one.part == "choice"] or every
    cases: dict[str, list[Judged]] = defaultdict(list)
    for one in shapes:
        cases[one.case].append(one)
    found = []
    for i, name in enumerate(result.get("models", MODELS)):
        pairs = [(one.seconds, one.estimates[i]) for one in every if one.part != "choice"]
        seconds, estimates = np.array(pairs).T
        errors, long = estimates / seconds - 1, seconds >= SHORT
        size, regrets = np.abs(errors), []
        for members in (members for members in cases.values() if len(members) > 2):
            times, guesses = np.array([(one.seconds, one.estimates[i]) for one in members]).T
            first = times[guesses.argsort(kind="stable")[:3]] / times.min()
            regrets.append((first[0], first.min()))
        first, three = np.array(regrets).T
        one_model = {"model": name, "launches": int(long.sum()), "mean": size[long].mean(), "short": size[~long].mean()}
        one_model |= {"median": np.median(size[long]), "max": size[long].max(), "signed": errors[long].mean()}
        one_model |= {"rank": spearmanr(seconds[long], estimates[long]).statistic, "three": three.max()}
        found.append(one_model | {"regret": np.median(first), "worst": first.max()})
    return found


ACCURACY = Table(
    "Relative errors of launches of at least 10 μs",
    {
        "model": "{model}",
        "launches": "{launches}",
        "mean": "{mean:.1%}",
        "median": "{median:.1%}",
        "max": "{max:.1%}",
        "signed": "{signed:+.1%}",
        "mean, under 10 μs": "{short:.1%}",
        "rank correlation": "{rank:.3f}",
        "regret, median": "{regret:.3f}",
        "regret, worst": "{worst:.3f}",
        "worst, best of three": "{three:.3f}",
    },
    accuracy,
)


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
    return Sheet(f"Calibration of the {device.name} (cycles unless stated)", [["constant"], ["value"]], rows).markdown()


TABLES: dict[str, Callable[[Row], dict[str, str]]] = {
    "ske_fit_h200": lambda result: {"": ACCURACY(result).markdown(), "constants": _constants(result)},
    "ske_blind_h200": lambda result: {"": ACCURACY(result).markdown()},
    "ske_kernels_h200": lambda result: {"": ACCURACY(result).markdown()},
}
"""Tables of the documentation, by the stem of the result and the part."""
