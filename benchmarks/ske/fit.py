"""The launches that the calibrated SKE model is fitted to, as sizes alone, and the fit of its parameters by SciPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product

import numpy as np
import pywt

from wavefilt.arrays import Floats
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske import calibrated
from wavefilt.ske.calibrated import PARTS, Launch
from wavefilt.ske.devices import Calibration

from .counts import Problem, forward, inverse, one_block, search

LEVEL = 8
MEBI = 1 << 20


@dataclass(frozen=True)
class Case:
    """Launches that are measured together: the ``kernel`` is one of `KERNELS`.

    ``rows`` traces of ``samples`` samples, blocks of ``threads`` threads and tiles of ``tile`` samples; 0 is the
    backend's choice.
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
        """The run; of the transforms only as deep as the finest launch goes."""
        taps = pywt.Wavelet(self.wavelet).dec_len
        level = min(LEVEL, pywt.dwt_max_level(self.samples, taps))
        suited = KernelOptions().suited(taps, "float32", self.rows, self.samples)
        tile = 0 if self.kernel == "one block" else self.tile or suited.tile
        whole = Problem(taps, self.samples, self.rows, level, tile, self.threads or suited.threads)
        return replace(whole, level=whole.fused[0]) if self.kernel in ("forward", "inverse") else whole

    def counted(self) -> list[Launch]:
        """Return the operation counts of the launches."""
        return KERNELS[self.kernel](self.problem)


KERNELS: dict[str, Callable[[Problem], list[Launch]]] = {
    "forward": forward,
    "inverse": inverse,
    "one block": lambda problem: [one_block(problem)],
    "search": search,
}
"""Counts: the finest launch of a transform, the only one of rows of one block each, the search for the median."""


THREADS, TILES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024), (1024, 2048, 4096)
SHAPES = ((4096, 256), (2048, 128), (1024, 64), (4096, 512))
"""Tiles and blocks of the inverse."""
Shapes = tuple[tuple[int, int], ...]
LONG: Shapes = ((16, MEBI), (512, 64 << 10), (1000, 50_000), (4096, 16 << 10))
SHORT: Shapes = (
    (24, 1024),
    (96, 6000),
    (132, 1000),
    (132, 10_000),
    (264, 5000),
    (512, 8192),
    (528, 3000),
    (1000, 2000),
)
SHORT += ((2048, 4096), (4000, 2000), (4096, 1024), (8000, 1500), (10_000, 512), (20_000, 700), (50_000, 256))
SEARCHED: Shapes = ((1, 6 * MEBI), (4, 4 * MEBI), (64, 256 << 10), (128, 100_000))
"""Rows and samples: of transforms, of rows of one block each, of searches beside those of one row and of `LONG`."""


def fit_cases() -> Iterator[Case]:
    """Return the launches that parameters are fitted to, with the two shortest filters."""
    for wavelet in ("haar", "db4"):
        for threads, tile, i in product(THREADS, TILES, range(7)):
            yield Case("forward", wavelet, threads, MEBI << i, tile=tile)
        for (tile, threads), i in product(SHAPES, range(7)):
            yield Case("inverse", wavelet, threads, MEBI << i, tile=tile)
        for kernel, (rows, samples) in product(("forward", "inverse"), LONG):
            yield Case(kernel, wavelet, 0, samples, rows, 0)
        for rows, samples in SHORT:
            yield Case("one block", wavelet, 0, samples, rows, 0)
    for rows, samples in ((1, MEBI), (1, 4 * MEBI), (1, 16 * MEBI), (1, 64 * MEBI), *LONG, *SEARCHED):
        yield Case("search", "db4", 0, samples, rows, 0)


SPRINGS = np.array([0.0 if name in ("start", "crowding") else 0.3 for name in PARTS])
"""Weights that hold parameters near 1; none where no microbenchmark measures the part."""


def launches(row: Row) -> list[Launch]:
    """Return the operation counts of a measured row, with the registers and shared memory that the driver reported."""
    made, found = Case.of(row).counted(), list[Launch]()
    for i, one in enumerate(made):
        seen: Row = row["launches"][i] if i < len(row["launches"]) else {}
        spilled = seen.get("local", 0) * one.threads * one.blocks  # bytes, written once
        held = {name: seen[name] for name in ("registers", "shared") if name in seen}
        found.append(replace(one, written=one.written + spilled, **held))
    return found


def fitted(rows: Iterable[Row], device: Calibration) -> Calibration:
    """Return the calibration with theta fitted to measured rows, and the errors that remain.

    The fit is robust least squares of the logarithms of the times. Weak springs hold each theta near 1, its value if
    the microbenchmarks explained everything, so that parts which the rows cannot separate share the remainder.
    """
    from scipy.optimize import least_squares

    chosen = [row for row in rows if "error" not in row]
    seconds = np.array([float(row["seconds"]) for row in chosen])
    parts = [[calibrated.parts(one, device) for one in launches(row)] for row in chosen]

    def predicted(theta: Floats) -> Floats:
        by_name = dict(zip(PARTS, map(float, theta), strict=True))
        return np.array(
            [sum(sum(calibrated.weighed(at, by_name)[0].values()) for at in together) for together in parts]
        )

    def residuals(theta: Floats) -> Floats:
        return np.append(np.log(predicted(theta)) - np.log(seconds), SPRINGS * (theta - 1))

    start = np.where(SPRINGS > 0, 1.0, 0.1)
    theta = least_squares(residuals, start, bounds=(0, 6), loss="soft_l1", f_scale=0.1, max_nfev=60).x
    errors = np.abs(predicted(theta) / seconds - 1)
    facts = {
        "kernels": sorted({f"{row['kernel']} {row['wavelet']}" for row in chosen}),
        "rows": len(chosen),
        "mean error": float(errors.mean()),
        "max error": float(errors.max()),
    }
    return replace(device, theta=dict(zip(PARTS, map(float, theta), strict=True)), fit=facts)
