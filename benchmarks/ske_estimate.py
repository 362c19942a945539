"""Predicted times of the library's launches, and blocks and tiles ranked by them: `wavefilt ske estimate, tune`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pywt

from wavefilt.backends.cuda.counts import Problem, forward, inverse
from wavefilt.backends.cuda.search_counts import denoise
from wavefilt.filters import as_wavelet
from wavefilt.ske.calibrated import CalibratedEstimate, estimate
from wavefilt.ske.calibration import Calibration

THREADS = (64, 128, 256, 512, 1024)
TILES = (1024, 2048, 4096)


def problem(wavelet: str, samples: int, rows: int = 1, level: int = 8, block: int = 256, tile: int = 0) -> Problem:
    """A denoise of float32 traces. Raises ValueError for an unknown wavelet or a level too deep."""
    from wavefilt.method import Method

    bank: pywt.Wavelet = as_wavelet(wavelet)
    return Problem(bank.dec_len, samples, rows, Method(wavelet=wavelet, level=level).level_for(samples),
                   tile=tile, threads=block)  # fmt: skip


def estimates(wanted: Problem, device: Calibration) -> list[CalibratedEstimate]:
    """Of every launch of the denoise, in order."""
    return [estimate(launch, device) for launch in denoise(wanted)]


def facts(found: Sequence[CalibratedEstimate]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(one) for one in found]


def table(found: Sequence[CalibratedEstimate], device: Calibration) -> str:
    """The launches with their parts in microseconds, and the whole."""
    names = list(found[0].parts)
    lines = [f"Estimate for {device.name}, microseconds", "", f"{'launch':22}{'time':>9}  " + "".join(
        f"{name:>11}" for name in names) + "  blocks x warps on an SM; binds, mostly"]  # fmt: skip
    for one in found:
        parts = "".join(f"{1e6 * one.parts[name]:11.2f}" for name in names)
        filled = f"{one.at.nb} x {one.at.n // one.at.nb}"
        lines.append(f"{one.name:22}{1e6 * one.seconds:9.2f}  {parts}  {filled}; {one.at.binds}, {one.resource}")
    whole = sum(one.seconds for one in found)
    total = "".join(f"{1e6 * sum(one.parts[name] for one in found):11.2f}" for name in names)
    lines.append(f"{'whole':22}{1e6 * whole:9.2f}  {total}")
    return "\n".join(lines)


def ranked(wanted: Problem, device: Calibration) -> list[tuple[float, Problem]]:
    """Seconds of both transforms for every block and tile that can run, the fastest first."""
    found = []
    for threads in THREADS:
        for tile in TILES:
            candidate = replace(wanted, threads=threads, tile=tile)
            try:
                found.append((_transforms(candidate, device), candidate))
            except ValueError:  # more registers or shared memory than a block may have
                continue
    return sorted(found, key=lambda entry: entry[0])


def _transforms(candidate: Problem, device: Calibration) -> float:
    return sum(estimate(launch, device).seconds for launch in (*forward(candidate), *inverse(candidate)))


def measured(wavelet: str, candidate: Problem) -> float:
    """Seconds of both transforms on the current GPU."""
    from .ske_cases import Case
    from .ske_measure import prepare
    from .timing import measured as timed

    total = 0.0
    for kernel in ("forward", "inverse"):
        case = Case(kernel, wavelet, candidate.threads, candidate.samples, candidate.rows, candidate.tiles_of)
        plan, work = prepare(case, candidate.level)
        total += timed(work).seconds
        plan.release()
    return total


def tuning(found: Sequence[tuple[float, Problem]], times: Sequence[float] | None = None) -> str:
    """The ranking, with the measured times where there are any."""
    lines = [f"{'block':>6}{'tile':>6}{'estimate us':>13}" + (f"{'measured us':>13}{'of best':>9}" if times else "")]
    for i, (seconds, candidate) in enumerate(found):
        line = f"{candidate.threads:6}{candidate.tiles_of:6}{1e6 * seconds:13.2f}"
        lines.append(line + (f"{1e6 * times[i]:13.2f}{times[i] / min(times):9.2f}" if times else ""))
    return "\n".join(lines)
