"""From what size the numba backend is the faster one; imports neither numba nor its backend.

The constants were measured on 2 cores of an AMD EPYC.
"""

from __future__ import annotations

from math import prod

from wavefilt.transforms import Analysis

DTYPES = ("float32", "float64")

ROW = 512
"""Samples a row must have: of shorter rows PyWavelets does many in less time where other work takes one of the cores.

With both cores free numba was the faster one from 128 on.
"""

LOADED = 1024
"""Samples in all from which kernels in memory win, whatever the filter."""

FIRST = {2: 3_480_000, 4: 4_200_000, 16: 2_600_000, 40: 1_260_000}
"""Samples in all from which they win in a process that has yet to load them, by the number of taps."""

COMPILING = 60
"""How many times as many where no process has compiled them: that takes 4 s, and loading 0.06."""

SLOW = 15
"""How many times as many from which a call with compiled kernels takes a second less."""

FIRST_MODWT = 6_000_000
"""Samples times taps times levels from which a MODWT's do: 0.085 s for loading over 14 ns, the reference's time for a
tap there and back (7), and for rule "js" (another 11). Once loaded they win at any size."""

FIRST2 = 6_800_000
"""Samples times taps from which transforms of two axes do."""

loaded: set[str] = set()
"""Names of the dtypes whose kernels this process has used, with "modwt" or "dwt2" before for those transforms; the
backend adds them."""


def faster(shape: tuple[int, ...], analysis: Analysis, dtype: str) -> bool:
    """Whether numba takes less time than PyWavelets for a batch (batch, *shape), in this process as it is."""
    if dtype not in DTYPES or (_decimated(analysis) and shape[-1] < ROW):
        return False
    if in_use(analysis, dtype):
        return not _decimated(analysis) or prod(shape) >= LOADED
    return _work(shape, analysis) >= 1


def worth_compiling(shape: tuple[int, ...], analysis: Analysis) -> bool:
    """Whether numba, which is `faster` once compiled, is so though kernels may have to be compiled first."""
    return _work(shape, analysis) >= COMPILING


def slow(shape: tuple[int, ...], analysis: Analysis) -> bool:
    """Whether kernels, once compiled, save a second or more of this call."""
    return _work(shape, analysis) >= SLOW


def in_use(analysis: Analysis, dtype: str) -> bool:
    """Whether this process has used kernels of the transform."""
    return (dtype if _decimated(analysis) else f"{analysis.transform.name} {dtype}") in loaded


def _work(shape: tuple[int, ...], analysis: Analysis) -> float:
    """In units of what pays for loading kernels; negative for a transform that has none."""
    name, taps, samples = analysis.transform.name, analysis.taps, prod(shape)
    if _decimated(analysis):
        return samples / FIRST[min(FIRST, key=lambda measured: abs(measured - taps))]
    undecimated, panels = samples * taps * analysis.level / FIRST_MODWT, samples * taps / FIRST2
    work = {"modwt": undecimated, "modwt2": 3 * undecimated, "dwt2": panels}
    work["dtcwt"], work["dtcwt2"] = 2 * panels, 4 * panels  # there are two trees an axis
    return work.get(name, -1.0)


def _decimated(analysis: Analysis) -> bool:
    """Return whether the kernels belong to the decimated transform: the DWT of traces, or wavelet packets."""
    return analysis.transform.name in ("dwt", "wp")


def note(transform: str, dtype: str) -> None:
    """Remember that this process has used the kernels of a transform."""
    loaded.add(dtype if transform in ("dwt", "wp") else f"{transform} {dtype}")
