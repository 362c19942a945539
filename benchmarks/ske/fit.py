"""The launches that the calibrated SKE model is fitted to, as sizes alone, and the fit of its parameters by SciPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pywt
from numpy.typing import ArrayLike

from wavefilt.arrays import Floats
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske import calibrated
from wavefilt.ske.calibrated import PARTS, Launch
from wavefilt.ske.devices import Calibration

from .counts import Problem, forward, inverse

LEVEL = 8
MEBI = 1 << 20


@dataclass(frozen=True)
class Case:
    """The launch of a transform ("forward" or "inverse") that computes the finest levels.

    ``rows`` traces of ``samples`` samples, blocks of ``threads`` threads and tiles of ``tile`` samples.
    """

    kernel: str
    wavelet: str
    threads: int
    samples: int
    rows: int = 1
    tile: int = 4096

    @staticmethod
    def of(row: Row) -> Case:
        """Return the case of a measured row."""
        return Case(**{field.name: row[field.name] for field in fields(Case) if field.name in row})

    @property
    def problem(self) -> Problem:
        """The transform, as deep as its finest launch goes."""
        taps = pywt.Wavelet(self.wavelet).dec_len
        whole = Problem(taps, self.samples, self.rows, LEVEL, self.tile, self.threads)
        return replace(whole, level=whole.fused[0])

    def counted(self) -> Launch:
        """Return the operation counts of the launch."""
        (only,) = (forward if self.kernel == "forward" else inverse)(self.problem)
        return only


THREADS, TILES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024), (1024, 2048, 4096)


def fit_cases() -> Iterator[Case]:
    """Return the forward launch with the two shortest filters, for 10 block sizes, 3 tiles and 7 sizes."""
    for wavelet, threads, tile in itertools.product(("haar", "db4"), THREADS, TILES):
        for i in range(7):
            yield Case("forward", wavelet, threads, MEBI << i, tile=tile)


SPRINGS = np.array([0.0 if name in ("start", "crowding") else 0.3 for name in PARTS])
"""Weights that hold parameters near 1; none where no microbenchmark measures the part."""


def launch(row: Row) -> Launch:
    """Return the operation counts of a measured row, with the registers and shared memory that the driver reported."""
    made, seen = Case.of(row).counted(), row["launches"][0]
    spilled = seen.get("local", 0) * made.threads * made.blocks  # bytes, written once
    held = {name: seen[name] for name in ("registers", "shared") if name in seen}
    return replace(made, written=made.written + spilled, **held)


def predicted(rows: Iterable[Row], device: Calibration) -> Floats:
    """Return the estimated seconds of measured rows."""
    return np.array([calibrated.estimate(launch(row), device).seconds for row in rows])


def relative(predictions: ArrayLike, seconds: ArrayLike) -> Floats:
    """Return signed relative errors."""
    return np.asarray(predictions, np.float64) / np.asarray(seconds, np.float64) - 1


def parameters(launches: Sequence[Launch], seconds: ArrayLike, device: Calibration) -> Calibration:
    """Return the calibration with theta fitted to launches: robust least squares of the logarithms of times.

    Weak springs hold each theta near 1, its value if the microbenchmarks explained everything, so that parts which the
    rows cannot separate share the remainder.
    """
    from scipy.optimize import least_squares

    times = np.log(seconds)
    parts = [calibrated.parts(one, device) for one in launches]

    def residuals(theta: Floats) -> Floats:
        by_name = dict(zip(PARTS, map(float, theta), strict=True))
        found = [sum(calibrated.weighed(at, by_name)[0].values()) for at in parts]
        return np.append(np.log(found) - times, SPRINGS * (theta - 1))

    start = np.where(SPRINGS > 0, 1.0, 0.1)
    theta = least_squares(residuals, start, bounds=(0, 6), loss="soft_l1", f_scale=0.1, max_nfev=60).x
    return replace(device, theta=dict(zip(PARTS, map(float, theta), strict=True)))


def fitted(rows: Iterable[Row], device: Calibration) -> Calibration:
    """Return the calibration with fitted parameters and the residuals."""
    chosen = [row for row in rows if "error" not in row]
    launches, seconds = [launch(row) for row in chosen], [float(row["seconds"]) for row in chosen]
    device = parameters(launches, seconds, device)
    residuals = {
        "kernels": sorted({f"{row['kernel']} {row['wavelet']}" for row in chosen}),
        "rows": len(chosen),
        **summary(relative(predicted(chosen, device), seconds)),
    }
    return replace(device, fit=residuals)


def summary(errors: Floats) -> dict[str, float]:
    """Return the mean and the largest absolute error."""
    return {"mean error": float(np.abs(errors).mean()), "max error": float(np.abs(errors).max())}
