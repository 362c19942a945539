"""The parameters of the calibrated SKE model, fitted to ladders of tiles and to the kernels of the fit set.

SciPy is imported when one is made.
"""

from __future__ import annotations

import math
from collections import defaultdict
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
from wavefilt.ske.calibration import Calibration, Table

from . import baselines
from .cases import LEVEL, Case

Known = tuple[list[Launch], float]
LADDER = 0.3
"""Weight of a ladder's launch beside a kernel's."""
SPRINGS = np.array([0.0 if name in ("start", "crowding") else 0.3 for name in PARTS])
"""Of the parameters; nothing measures the start of a kernel that loads, and few kernels are crowded."""
TILE = 4096
"""Samples of a tile of `regimes`."""


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
            written=launch.written + seen.get("local", 0) * launch.threads * launch.blocks,  # spilled: written once
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


def with_tiles(device: Calibration, regimes: Iterable[Row]) -> Calibration:
    """With the bandwidths of one-shot tiles, which are those of kernels; in L2 of the one way or the other alone.

    Each is that of all a larger launch moves more than the smallest.
    """
    streams: dict[str, list[Row]] = defaultdict(list)
    for row in regimes:
        if row["what"] == "streams" and row["buffers"] == 1 and "error" not in row:
            streams[row["stream"]].append(row)

    def table(stream: str) -> Table:
        first, *others = streams[stream]
        pairs = ((r["footprint"] - first["footprint"], r["seconds"] - first["seconds"]) for r in others)
        return tuple((float(r["footprint"]), more / longer) for r, (more, longer) in zip(others, pairs, strict=True))

    inside = [pair for pair in device.bandwidth if pair[0] <= device.cache]
    beyond = [pair for pair in table("1:1") if pair[0] > device.cache]
    return replace(device, bandwidth=(*inside, *beyond), reads=table("read"), writes=table("write"))


def tiles(rows: Iterable[Row]) -> list[Known]:
    """The ladders of `regimes` as launches whose counts are known, and their seconds."""
    found = []
    for row in rows:
        if row["what"] != "ladder" or "error" in row:
            continue
        counts = {"fma": 16 * row["work"], "int": 40, "other": 26, "wavefront": 64}
        size, touched = (4 * TILE * row[of] for of in ("blocks", "distinct"))
        made = Launch(
            "tiles",
            row["blocks"],
            256,
            counts,
            {"global": 1, "shared": 1},
            2,
            size,
            size,
            2 * touched,
            resident=row["resident"],
        )
        found.append(([made], float(row["seconds"])))
    return found


def parameters(known: Sequence[Known], device: Calibration, weights: ArrayLike = 1.0) -> Calibration:
    """The calibration with theta fitted to these launches: least squares of the logarithms of times, robust.

    A weak spring holds each theta near the 1 that it would have if the microbenchmarks measured everything, so that
    parts which go together in the fit rows share what there is.
    """
    from scipy.optimize import least_squares

    times = np.log([seconds for _, seconds in known])
    parts = [[calibrated.parts(launch, device) for launch in made] for made, _ in known]

    def residuals(theta: Floats) -> Floats:
        by_name = dict(zip(PARTS, map(float, theta), strict=True))
        found = [sum(sum(calibrated.weighed(at, by_name)[0].values()) for at in each) for each in parts]
        return np.append(weights * (np.log(found) - times), SPRINGS * (theta - 1))

    begun = np.where(SPRINGS > 0, 1.0, 0.1)
    theta = least_squares(residuals, begun, bounds=(0, 6), loss="soft_l1", f_scale=0.1, max_nfev=60).x
    return replace(device, theta=dict(zip(PARTS, map(float, theta), strict=True)))


def predicted(made: Sequence[Launch], device: Calibration) -> float:
    return sum(calibrated.estimate(launch, device).seconds for launch in made)


def fitted(rows: Iterable[Row], device: Calibration, regimes: Iterable[Row] = ()) -> Calibration:
    """The calibration with the parameters, both laws of hiding and what the fits left over.

    From the fit rows among ``rows``, and the ladders of tiles among the rows of ``regimes``.
    """
    chosen = [row for row in rows if row.get("fit") and "error" not in row]
    kernels, ladder = [(launches(row), float(row["seconds"])) for row in chosen], tiles(regimes)
    known = kernels + ladder
    device = parameters(known, device, np.repeat([1.0, LADDER], [len(kernels), len(ladder)]))
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
        "rows": len(known),
        **summary(errors[: len(kernels)], "kernels' "),
        **(summary(errors[len(kernels) :], "tiles' ") if ladder else {}),
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
