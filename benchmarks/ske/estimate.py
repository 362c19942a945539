"""Estimated times of the launches of a denoising run, and block and tile sizes ranked by them: `wavefilt ske estimate`.

The launches are those of the universal rule with the noise of the finest level, for float32 traces.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import pywt

from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES
from wavefilt.backends.cuda.options import Options
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske.calibrated import CalibratedEstimate, estimate
from wavefilt.ske.devices import Calibration
from wavefilt.wavelets.filters import as_wavelet

from .counts import Problem, denoise, row_threads

THREADS = (64, 128, 256, 512, 1024)
TILES = (1024, 2048, TILE_BYTES // 4)


@dataclass(frozen=True)
class Ranked:
    """A block and tile size, with the estimates of the launches."""

    candidate: Problem
    launches: Sequence[CalibratedEstimate]

    @property
    def seconds(self) -> float:
        """Estimated time of the run."""
        return sum(one.seconds for one in self.launches)


def problem(
    wavelet: str, samples: int, rows: int = 1, level: int = 8, block: int | None = None, tile: int | None = None
) -> Problem:
    """Describe a run; the backend's own block and tile are the defaults.

    Raises ValueError for an unknown wavelet, or more levels than the traces allow.
    """
    from wavefilt.method import Method

    taps = pywt.Wavelet(as_wavelet(wavelet).name).dec_len
    whole = Problem(taps, samples, rows, Method(wavelet=wavelet, level=level).level_for(samples))
    suited = Options().suited(taps, "float32", rows, samples)
    whole = replace(whole, threads=block or suited.threads)
    if tile is None and row_threads(whole):
        return whole  # one block per row
    return replace(whole, tile=tile or suited.tile or whole.tiles_of)


def estimates(wanted: Problem, device: Calibration) -> list[CalibratedEstimate]:
    """Estimate every launch, in order."""
    return [estimate(launch, device) for launch in denoise(wanted)]


def ranked(wanted: Problem, device: Calibration) -> list[Ranked]:
    """Estimate every valid block and tile size, the shortest time first."""
    found = []
    for threads, tile in itertools.product(THREADS, TILES):
        candidate = replace(wanted, threads=threads, tile=tile)
        with suppress(ValueError):  # more registers or shared memory than a block may have
            found.append(Ranked(candidate, estimates(candidate, device)))
    return sorted(found, key=lambda one: one.seconds)


def facts(launches: Sequence[CalibratedEstimate], device: Calibration) -> list[Row]:
    """Return the launches as JSON objects."""
    return [{"device": device.name, "basis": device.basis} | asdict(one) for one in launches]


def ranking_facts(ranking: Sequence[Ranked], device: Calibration) -> list[Row]:
    """Return the ranking as JSON objects."""
    origin = {"device": device.name, "basis": device.basis, "unit": "s"}
    shapes = [{"block": one.candidate.threads, "tile": one.candidate.tiles_of} for one in ranking]
    return [origin | shape | {"estimate": one.seconds} for shape, one in zip(shapes, ranking, strict=True)]


def table(launches: Sequence[CalibratedEstimate], device: Calibration) -> str:
    """Return the launches with their parts in microseconds, and the sum."""
    lines = [*_title("Estimate", device), _head("launch", launches) + "  blocks x warps per SM; bound, largest part"]
    for one in launches:
        held = f"{one.at.nb} x {one.at.n // one.at.nb} ({one.at.limit})"
        lines.append(f"{_line(one.name, [one])}  {held}; {one.binds}, {one.resource}")
    return "\n".join([*lines, _line("whole", launches)])


def ranking_table(ranking: Sequence[Ranked], device: Calibration) -> str:
    """Return the ranking with the parts of each estimate in microseconds."""
    lines = [*_title("Estimates by block and tile size", device), _head("block, tile", ranking[0].launches)]
    names = (f"{one.candidate.threads}, {one.candidate.tiles_of}" for one in ranking)
    return "\n".join([*lines, *(_line(name, one.launches) for name, one in zip(names, ranking, strict=True))])


def _title(what: str, device: Calibration) -> list[str]:
    return [f"{what} for {device.name}, microseconds", *([device.caution] if device.caution else []), ""]


def _head(first: str, launches: Sequence[CalibratedEstimate]) -> str:
    return f"{first:22}{'time':>9}  " + "".join(f"{name:>11}" for name in launches[0].parts)


def _line(name: str, launches: Sequence[CalibratedEstimate]) -> str:
    parts = "".join(f"{1e6 * sum(one.parts[part] for one in launches):11.2f}" for part in launches[0].parts)
    return f"{name:22}{1e6 * sum(one.seconds for one in launches):9.2f}  {parts}"
