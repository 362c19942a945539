"""The parameters of the calibrated SKE model, fitted to microbenchmarks and to the kernels of the fit set.

All fits are on relative residuals. SciPy is imported when one is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pywt
from numpy.typing import ArrayLike

from wavefilt.arrays import Floats
from wavefilt.backends.cuda.work_counts import panels, statistics, transforms, undecimated
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske import calibrated
from wavefilt.ske.calibrated import PARTS, Launch
from wavefilt.ske.calibration import Calibration

from . import baselines
from .cases import LEVEL, Case

Known = tuple[list[Launch], float]
TURNS = 1 << 18
"""Steps of the chains, chases and barriers as the fit sees them: so many that their launch does not count."""
MOST_ROUNDS = 50


def launches(row: Row) -> list[Launch]:
    """What the row's case launches, with what the driver reported: registers, shared memory, blocks, spilled bytes."""
    made = counted(Case.of(row))
    found = [seen for seen in row["launches"] if "registers" in seen]
    if len(found) != len(made):
        return made
    names = ("registers", "shared", "resident")
    return [
        replace(
            launch,
            bytes=launch.bytes + seen.get("local", 0) * launch.threads * launch.blocks,  # spilled: written once
            **{name: seen[name] for name in names},
        )
        for launch, seen in zip(made, found, strict=True)
    ]


def counted(case: Case) -> list[Launch]:
    """What a case launches, from its sizes alone."""
    taps, itemsize = pywt.Wavelet(case.wavelet).dec_len, np.dtype(case.dtype).itemsize
    common = {"itemsize": itemsize, "threads": case.threads}
    if case.transform == "dwt2":
        periodized = case.mode == "periodization"
        size = case.samples, case.columns, case.rows, case.level or LEVEL
        panel = panels.Panels(taps, *size, periodized=periodized, tile=case.tile, **common)
        made = panels.forward(panel) if case.kernel == "forward" else panels.inverse(panel, case.function)[::-1]
        return [made[case.launch]]
    if case.transform == "modwt":
        of = undecimated.Undecimated(taps, case.samples, case.rows, case.level or LEVEL, case.mode, **common)
        made = undecimated.forward(of) if case.kernel == "forward" else undecimated.inverse(of, case.function)[::-1]
        return [made[case.launch]]
    problem = transforms.Problem(
        taps, case.samples, case.rows, case.level or LEVEL, case.mode == "periodization", tile=case.tile, **common
    )
    if not case.single:
        return statistics.OF[case.kernel](problem)
    if not case.level:
        problem = replace(problem, level=problem.fused[0])
    if case.kernel == "forward":
        return [transforms.forward(problem)[case.launch]]
    return [transforms.inverse(problem, case.function)[::-1][case.launch]]


def microbenchmarks(device: Calibration) -> list[Known]:
    """The calibration's own measurements as launches whose counts are known exactly, and their seconds."""
    S, cycle, rows = device.multiprocessors, 1 / device.clock, list[Known]()

    def counted(launch: Launch, cycles: float) -> None:
        """A measurement inside a kernel, in clock cycles: its launch and its block's start come to it."""
        rest = calibrated.interpolated(device.block, launch.threads)
        rows.append(([launch], device.launch + (cycles + rest) * cycle))

    for name in ("fma", "int", "fma64"):
        latency = device.operations[name].latency
        counted(Launch(f"chain {name}", 1, 32, {name: TURNS}, parallel=1), TURNS * latency)
    slots = max(operation.rate for operation in device.operations.values())
    counted(Launch("chains", S, 1024, {"other": TURNS}, path={"other": 0}), 32 * TURNS / slots)
    for name in ("l2", "shared"):
        waits = {"global" if name == "l2" else name: TURNS}
        counted(Launch(f"chase {name}", 1, 32, {}, waits), TURNS * device.latency[name])
    for threads, cycles in device.barrier:
        counted(Launch("barriers", S, int(threads), {}, barriers=TURNS), TURNS * cycles)
    for size, rate in device.bandwidth:
        moved = size * max(device.bandwidth[-1][0] / size, 1.0)
        rows.append(([Launch("copy", 4 * S - 1, 256, {}, bytes=moved, touched=size)], device.launch + moved / rate))
    elements = 64 << 20
    for warps, seconds in device.warps:
        each = -(-int(warps) // 32)
        loads = elements / (S * warps * 32)
        counts = {"fma": loads, "int": 6 * loads, "other": 4 * loads, "wavefront": 2 * loads}
        moved, threads = 8.0 * elements, int(warps) // each * 32
        made = Launch("scale", each * S, threads, counts, {"global": loads}, bytes=moved, touched=moved, resident=each)
        rows.append(([made], seconds))
    return rows


def parameters(known: Sequence[Known], device: Calibration) -> Calibration:
    """The calibration with theta fitted to these launches.

    Which of a launch's times binds depends on theta: both are found in turn, and the best of all iterations is kept.
    """
    names, times = (*PARTS, "launch"), np.array([seconds for _, seconds in known])
    best, least = device, np.inf
    device = replace(device, theta=dict.fromkeys(PARTS, 1.0))
    for _ in range(MOST_ROUNDS):
        each = [[calibrated.parts(launch, device).seconds for launch in made] for made, _ in known]
        table = np.array([[sum(seconds[name] for seconds in parts) for name in names] for parts in each])
        now = np.array([device.theta[name] for name in PARTS])
        left = float(np.square(relative(table @ np.append(now, 1.0), times)).sum())
        if left < least:
            best, least = device, left
        found = nonnegative(table[:, :-1], times, table[:, -1])
        if np.allclose(found, now, rtol=1e-6, atol=1e-9):
            break
        device = replace(device, theta=dict(zip(PARTS, map(float, (found + now) / 2), strict=True)))
    return best


def predicted(made: Sequence[Launch], device: Calibration) -> float:
    return sum(calibrated.estimate(launch, device).seconds for launch in made)


def fitted(rows: Iterable[Row], device: Calibration) -> Calibration:
    """The calibration with the parameters, both laws of hiding and what the fits left over; from its fit rows."""
    chosen = [row for row in rows if row.get("fit") and "error" not in row]
    kernels = [(launches(row), float(row["seconds"])) for row in chosen]
    known = kernels + microbenchmarks(device)
    device = parameters(known, device)
    errors = relative([predicted(made, device) for made, _ in known], [time for _, time in known])
    seconds = [time for _, time in kernels]
    single = [made[0] for made, _ in kernels]
    at = [calibrated.parts(launch, device) for launch in single]
    base = [baselines.classic(launch, device, 1.0, 1.0) for launch in single]
    scale, rw, rb = geometric(base, [p.n for p in at], [p.nb for p in at], seconds)
    plain = [baselines.classic(launch, device) for launch in single]
    start, rate = launch_and_bandwidth([launch.bytes for launch in single], seconds)
    warps, times = zip(*device.warps, strict=True)
    table_scale = float(np.exp(np.mean(np.log(np.array(seconds) / plain))))
    left = {
        "kernels": sorted({f"{row['kernel']} {row['wavelet']}" for row in chosen}),
        "microbenchmarks": sorted({made[0].name for made, _ in known[len(kernels) :]}),
        "rows": len(known),
        **summary(errors),
        **summary(errors[: len(kernels)], "kernels' "),
        "classic": {"scale": scale, "rw": rw, "rb": rb, "table scale": table_scale},
        "launch and bandwidth": {"launch": start, "bytes a second": rate},
    }
    return replace(device, hiding=hiding(warps, times), fit=left)


def nonnegative(parts: ArrayLike, seconds: ArrayLike, fixed: ArrayLike = 0.0) -> Floats:
    """theta >= 0 that minimises sum(((parts theta + fixed) / seconds - 1)²).

    Parameters
    ----------
    parts : shape (rows, parameters)
    seconds : shape (rows,), above 0
    fixed : seconds of each row that no parameter scales

    Raises
    ------
    ValueError
        For fewer rows than parameters, or times that are not above 0.
    """
    from scipy.optimize import nnls

    matrix, times = np.asarray(parts, np.float64), np.asarray(seconds, np.float64)
    if matrix.ndim != 2 or times.shape != matrix.shape[:1] or matrix.shape[0] < matrix.shape[1]:
        raise ValueError(f"{matrix.shape} parts and {times.shape} times: at least one row for each parameter is needed")
    if not (times > 0).all():
        raise ValueError("every measured time must be above 0")
    theta, _ = nnls(matrix / times[:, None], 1 - np.asarray(fixed, np.float64) / times)
    return np.asarray(theta, np.float64)


def relative(predicted: ArrayLike, seconds: ArrayLike) -> Floats:
    """Signed relative errors."""
    return np.asarray(predicted, np.float64) / np.asarray(seconds, np.float64) - 1


def launch_and_bandwidth(sizes: ArrayLike, seconds: ArrayLike) -> tuple[float, float]:
    """(t0, bytes a second) of time = t0 + bytes / bandwidth, the model that any other has to beat."""
    sizes = np.asarray(sizes, np.float64)
    start, slope = nonnegative(np.column_stack([np.ones_like(sizes), sizes]), seconds)
    return float(start), 1 / float(slope) if slope else math.inf


def hiding(warps: ArrayLike, seconds: ArrayLike) -> dict[str, dict[str, float]]:
    """Both laws of hiding for a fixed work done by n warps an SM: latency/n + floor, and the classic r^(n-1).

    Of each its parameters, and the mean and the largest relative error.
    """
    n, times = np.asarray(warps, np.float64), np.asarray(seconds, np.float64)
    latency, floor = nonnegative(np.column_stack([1 / n, np.ones_like(n)]), times)
    slope, level = np.polyfit(n - 1, np.log(times), 1)
    found = {
        "latency/n + floor": ({"latency": latency, "floor": floor}, latency / n + floor),
        "geometric": ({"r": math.exp(slope), "first": math.exp(level)}, np.exp(level + slope * (n - 1))),
    }
    return {
        law: {k: float(v) for k, v in parameters.items()} | summary(relative(predicted, times))
        for law, (parameters, predicted) in found.items()
    }


def geometric(
    base: Sequence[float], warps: Sequence[int], blocks: Sequence[int], seconds: Sequence[float]
) -> tuple[float, float, float]:
    """(scale, rw, rb) of the classic form: time = scale base rw^(nw-1) rb^(nb-1), both at most 1."""
    from scipy.optimize import lsq_linear

    logs = np.log(np.asarray(seconds)) - np.log(np.asarray(base))
    matrix = np.column_stack([np.ones(len(logs)), np.asarray(warps) - 1.0, np.asarray(blocks) - 1.0])
    found = lsq_linear(matrix, logs, ([-np.inf] * 3, [np.inf, 0.0, 0.0])).x
    scale, rw, rb = (math.exp(x) for x in found)
    return scale, rw, rb


def summary(errors: Floats, of: str = "") -> dict[str, float]:
    """Mean and largest absolute error."""
    return {f"{of}mean error": float(np.abs(errors).mean()), f"{of}max error": float(np.abs(errors).max())}
