"""The calibrated SKE model against measured times, by the protocol of docs/ske.md.

python -m wavefilt.benchmarks.ske.validation measure --json ROWS.json      # on a GPU
python -m wavefilt.benchmarks.ske.validation table ROWS.json --device h200 # anywhere
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.benchmarks.common.environment import environment
from wavefilt.ske import baselines, fit
from wavefilt.ske.calibrated import PARTS, Launch
from wavefilt.ske.calibration import Calibration, load

from .cases import cases, quick
from .fit import Row, fitted, launches, parameters, predicted

SHORT = 10e-6
"""Kernels below these seconds are reported apart: they are mostly launch, which any model gets right."""
NOISY, FLAT = 0.05, 0.10
"""Rows whose quartiles lie further apart are marked; blocks whose times differ by less have no order to predict."""


def measure(device: dict[str, Any], path: Path | None = None, few: bool = False, repeats: int = 30) -> Row:
    """Measure every case, writing the file after each so that none is lost."""
    from .measure import rows

    result: Row = {"device": device, "environment": environment(), "rows": []}
    for row in rows(quick() if few else cases(), repeats):
        result["rows"].append(row)
        if path is not None:
            path.write_text(json.dumps(result, indent=1) + "\n")
    return result


def measure_fit() -> list[Row]:
    """The cases of the fit set alone."""
    from .measure import rows

    return list(rows((case for case in cases() if case.fit), repeats=15))


def this_device() -> dict[str, Any]:
    """What names the current GPU."""
    from .calibration import Device

    device = Device.current()
    return {"name": device.name, "multiprocessors": device.multiprocessors}


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


def summary(errors: ArrayLike) -> str:
    e = np.asarray(errors, np.float64)
    return f"{np.abs(e).mean():.1%} | {np.median(np.abs(e)):.1%} | {np.abs(e).max():.1%} | {e.mean():+.1%}"


def choices(rows: Sequence[Row], predictions: Sequence[float]) -> list[tuple[str, float, float | None]]:
    """For every kernel and size measured with several blocks: regret, and rank correlation unless times are flat."""
    from scipy.stats import spearmanr

    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[row["kernel"], row["wavelet"], row["rows"], row["samples"], row["tile"]].append(i)
    found = []
    for key, members in groups.items():
        if len(members) < 3:
            continue
        times, models = (np.array([values[i] for i in members]) for values in
                         ([row["seconds"] for row in rows], predictions))  # fmt: skip
        regret = float(times[models.argmin()] / times.min())
        flat = times.max() / times.min() - 1 < FLAT
        rho = None if flat else float(spearmanr(models, times).statistic)
        found.append((f"{key[0]}, {key[1]}, {key[2]} x {key[3]}", regret, rho))
    return found


def table(result: Row, device: Calibration, every: bool = False) -> str:
    """Errors on the held-out kernels, of every model; regret of the blocks it would choose; one kernel left out."""
    rows = [row for row in result["rows"] if "error" not in row]
    made = [launches(row) for row in rows]
    times = np.array([row["seconds"] for row in rows])
    test = np.array([not row["fit"] for row in rows])
    long = times >= SHORT
    lines = [f"{device.name}; {len(rows)} rows, {int(test.sum())} held out, "
             f"{sum(row['spread'] > NOISY for row in rows)} with a spread above {NOISY:.0%}", ""]  # fmt: skip
    head = "| mean | median | max | signed |\n|---|---|---|---|---|---|"
    lines += [f"| held out | rows {head}"]
    all_of = {name: np.array([model(m, device) for m in made]) for name, model in MODELS.items()}
    for name, predictions in all_of.items():
        errors = fit.relative(predictions, times)
        for what, mask in (("at least 10 us", test & long), ("under 10 us", test & ~long)):
            if mask.any():
                lines.append(f"| {name}, {what} | {int(mask.sum())} | {summary(errors[mask])} |")
    errors = fit.relative(all_of["SKE calibrated"], times)
    for what, mask in (("at least 10 us", ~test & long), ("under 10 us", ~test & ~long)):
        if mask.any():
            lines.append(f"| SKE calibrated, fit rows, {what} | {int(mask.sum())} | {summary(errors[mask])} |")
    lines += ["", f"| SKE calibrated by kernel | rows {head}"]
    for kernel in dict.fromkeys((row["kernel"], row["wavelet"]) for row in rows):
        mask = np.array([(row["kernel"], row["wavelet"]) == kernel for row in rows]) & long
        if mask.any():
            role = "fit" if not test[mask].any() else "held out"
            lines.append(f"| {' '.join(kernel)} ({role}) | {int(mask.sum())} | {summary(errors[mask])} |")
    held = [row for row, t in zip(rows, test, strict=True) if t]
    lines += ["", "| blocks of | regret | rank correlation |", "|---|---|---|"]
    found = choices(held, all_of["SKE calibrated"][test])
    for name, regret, rho in found:
        lines.append(f"| {name} | {regret:.3f} | {'flat' if rho is None else f'{rho:.2f}'} |")
    if found:
        regrets = [regret for _, regret, _ in found]
        lines += ["", f"Regret: median {np.median(regrets):.3f}, worst {max(regrets):.3f}"]
    lines += ["", "| left out of a fit on all | mean | median | max | signed |", "|---|---|---|---|---|"]
    kernels = np.array([row["kernel"] for row in rows])
    for kernel in dict.fromkeys(kernels):
        rest = kernels != kernel
        if rest.sum() >= len(PARTS) and (~rest & long).any():
            other = parameters([(made[i], float(times[i])) for i in np.flatnonzero(rest)], device)
            errors = fit.relative(
                [predicted(made[i], other) for i in np.flatnonzero(~rest & long)], times[~rest & long]
            )
            lines.append(f"| {kernel} | {summary(errors)} |")
    lines += ["", "theta: " + ", ".join(f"{name} {value:.3g}" for name, value in device.theta.items())]
    if every:
        lines += ["", f"| row | measured us | spread | {' | '.join(MODELS)} |", "|---" * (3 + len(MODELS)) + "|"]
        for i, row in enumerate(rows):
            name = f"{row['kernel']} {row['wavelet']} {row['rows']} x {row['samples']}, {row['threads']}, {row['tile']}"
            values = " | ".join(f"{p[i] / times[i] - 1:+.0%}" for p in all_of.values())
            name += " (fit)" if row["fit"] else ""
            lines.append(f"| {name} | {1e6 * times[i]:.2f} | {row['spread']:.1%} | {values} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("rows", nargs="?", type=Path, help="measured rows")
    parser.add_argument("--json", type=Path, help="write the rows (measure) or the fitted calibration (table) here")
    parser.add_argument("--device", help="a calibration: a shipped name or a file")
    parser.add_argument("--quick", action="store_true", help="measure a few cases only")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--every", action="store_true", help="print every row")
    arguments = parser.parse_args()
    if arguments.what == "measure":
        measure(this_device(), arguments.json, arguments.quick, arguments.repeats)
        return
    result = json.loads(arguments.rows.read_text())
    device = load(arguments.device)
    device.require(result["device"]["name"])
    device = fitted(result["rows"], device)
    if arguments.json:
        arguments.json.write_text(device.to_json())
    print(table(result, device, arguments.every))


if __name__ == "__main__":
    main()
