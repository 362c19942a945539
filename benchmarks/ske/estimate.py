"""Estimated times of the launches of a denoising run: `wavefilt ske estimate`.

The launches are those of the universal rule with the noise of the finest level, for float32 traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import pywt

from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske.calibrated import CalibratedEstimate, estimate
from wavefilt.ske.devices import Calibration
from wavefilt.wavelets.filters import as_wavelet

from .counts import Problem, denoise, row_threads


def problem(
    wavelet: str, samples: int, rows: int = 1, level: int = 8, block: int | None = None, tile: int | None = None
) -> Problem:
    """Describe a run; the backend's own block and tile are the defaults.

    Raises ValueError for an unknown wavelet and for more levels than the traces allow.
    """
    from wavefilt.options import Options

    taps = pywt.Wavelet(as_wavelet(wavelet).name).dec_len
    whole = Problem(taps, samples, rows, Options(wavelet=wavelet, level=level).level_for(samples))
    suited = KernelOptions().suited(taps, "float32", rows, samples)
    if tile is None and block is None and row_threads(whole):
        return whole
    whole = replace(whole, threads=block or suited.threads)
    return replace(whole, tile=tile or suited.tile or whole.tiles_of)


def estimates(wanted: Problem, device: Calibration) -> list[CalibratedEstimate]:
    """Estimate every launch, in order."""
    return [estimate(launch, device) for launch in denoise(wanted)]


def facts(launches: Sequence[CalibratedEstimate], device: Calibration) -> list[Row]:
    """Return the launches as JSON objects."""
    return [{"device": device.name, "basis": device.basis} | asdict(one) for one in launches]


def table(launches: Sequence[CalibratedEstimate], device: Calibration) -> str:
    """Return the launches with their parts in microseconds, and the sum."""

    def line(name: str, launches: Sequence[CalibratedEstimate]) -> str:
        parts = "".join(f"{1e6 * sum(one.parts[part] for one in launches):11.2f}" for part in launches[0].parts)
        return f"{name:22}{1e6 * sum(one.seconds for one in launches):9.2f}  {parts}"

    lines = [f"Estimate for {device.name}, microseconds", *([device.caution] if device.caution else []), ""]
    parts = "".join(f"{name:>11}" for name in launches[0].parts)
    lines.append(f"{'launch':22}{'time':>9}  {parts}  blocks x warps per SM; bound, largest part")
    for one in launches:
        held = f"{one.at.nb} x {one.at.n // one.at.nb} ({one.at.limit})"
        lines.append(f"{line(one.name, [one])}  {held}; {one.binds}, {one.resource}")
    return "\n".join([*lines, line("whole", launches)])
