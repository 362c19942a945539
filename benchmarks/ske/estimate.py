"""Predicted times of the library's launches, and blocks and tiles ranked by them: `wavefilt ske estimate, tune`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import pywt

from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.work_counts.statistics import denoise
from wavefilt.backends.cuda.work_counts.transforms import Problem
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske.calibrated import CalibratedEstimate, estimate
from wavefilt.ske.calibration import Calibration
from wavefilt.wavelets.filters import as_wavelet

THREADS = (64, 128, 256, 512, 1024)
TILES = (1024, 2048, TILE_BYTES // 4)


@dataclass(frozen=True)
class Ranked:
    """A block and a tile, with the estimates of the denoise's launches, and its measured seconds if there are any."""

    candidate: Problem
    found: Sequence[CalibratedEstimate]
    measured: float | None = None

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.found)


def problem(
    wavelet: str, samples: int, rows: int = 1, level: int = 8, block: int | None = None, tile: int | None = None
) -> Problem:
    """A denoise of float32 traces, with the backend's block and tile where none are given.

    Raises ValueError for an unknown wavelet or a level too deep.
    """
    from wavefilt.method import Method

    bank: pywt.Wavelet = as_wavelet(wavelet)
    found = Problem(bank.dec_len, samples, rows, Method(wavelet=wavelet, level=level).level_for(samples))
    suited = Options().suited(bank.dec_len, "float32", rows, samples)
    return replace(found, threads=block or suited.threads, tile=tile or suited.tile or found.tiles_of)


def estimates(wanted: Problem, device: Calibration) -> list[CalibratedEstimate]:
    """Of every launch of the denoise, in order."""
    return [estimate(launch, device) for launch in denoise(wanted)]


def of_device(device: Calibration) -> Row:
    """For JSON: what an estimate is of, and whether of a "calibration" or of a "data sheet"."""
    return {"device": device.name, "basis": device.basis}


def facts(found: Sequence[CalibratedEstimate], device: Calibration) -> list[Row]:
    """For JSON."""
    return [of_device(device) | asdict(one) for one in found]


def ranking(found: Sequence[Ranked], device: Calibration) -> list[Row]:
    """For JSON: seconds estimated and, where they are known, measured."""
    return [
        of_device(device)
        | {"block": one.candidate.threads, "tile": one.candidate.tiles_of}
        | {"estimate": one.seconds, "measured": one.measured, "launches": [asdict(launch) for launch in one.found]}
        for one in found
    ]


def table(found: Sequence[CalibratedEstimate], device: Calibration) -> str:
    """The launches with their parts in microseconds, and the whole."""
    head = _head("launch", "time", found) + "  blocks x warps on an SM; binds, mostly"
    lines = [f"Estimate for {device.name}, microseconds", *_caution(device), "", head]
    for one in found:
        filled = f"{one.at.nb} x {one.at.n // one.at.nb}"
        lines.append(f"{_line(one.name, [one])}  {filled}; {one.binds}, {one.resource}")
    return "\n".join([*lines, _line("whole", found)])


def _caution(device: Calibration) -> list[str]:
    return [device.caution] if device.caution else []


def _head(first: str, time: str, found: Sequence[CalibratedEstimate]) -> str:
    return f"{first:22}{time:>9}  " + "".join(f"{name:>11}" for name in found[0].parts)


def _line(name: str, found: Sequence[CalibratedEstimate]) -> str:
    """Time and parts of some launches together."""
    parts = "".join(f"{1e6 * sum(one.parts[part] for one in found):11.2f}" for part in found[0].parts)
    return f"{name:22}{1e6 * sum(one.seconds for one in found):9.2f}  {parts}"


def ranked(wanted: Problem, device: Calibration) -> list[Ranked]:
    """Every block and tile that can run, the one with the least estimate for a denoise first."""
    found = []
    for threads, tile in itertools.product(THREADS, TILES):
        candidate = replace(wanted, threads=threads, tile=tile)
        with suppress(ValueError):  # more registers or shared memory than a block may have
            found.append(Ranked(candidate, estimates(candidate, device)))
    return sorted(found, key=lambda one: one.seconds)


def measured(wavelet: str, candidate: Problem) -> float:
    """Seconds of the denoise on the current GPU."""
    from wavefilt.benchmarks.common.gpu_timing import measured as timed

    from .cases import Case
    from .measure import prepare

    shape = candidate.threads, candidate.samples, candidate.rows, candidate.tiles_of
    ready = prepare(Case("denoise", wavelet, *shape, level=candidate.level))
    try:
        return timed(ready.work).seconds
    finally:
        ready.plan.release()


def tuning(found: Sequence[Ranked], device: Calibration) -> str:
    """The ranking with the parts of each estimate, and measured times where there are any."""
    times = [one.measured for one in found if one.measured is not None]
    head = _head("block, tile", "estimate", found[0].found) + (
        f"{'measured':>11}{'error':>7}{'of best':>9}" if times else ""
    )
    lines = [f"Estimates of a denoise for {device.name}, microseconds", *_caution(device), "", head]
    for one in found:
        line = _line(f"{one.candidate.threads}, {one.candidate.tiles_of}", one.found)
        if one.measured is not None:
            line += f"{1e6 * one.measured:11.2f}{one.seconds / one.measured - 1:+7.0%}{one.measured / min(times):9.2f}"
        lines.append(line)
    if times and found[0].measured is not None:
        lines += ["", f"Regret of the first: {found[0].measured / min(times):.3f}"]
    return "\n".join(lines)
