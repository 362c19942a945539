"""What fits in a limit of memory: whole traces or chunks, how many samples of them, and what cannot be done so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wavefilt import backends
from wavefilt.chunking.chunks import cut, halo
from wavefilt.method import Method
from wavefilt.outofcore.prefetch import Energies, energies
from wavefilt.outofcore.sizes import spelled
from wavefilt.statistics import reproducible
from wavefilt.statistics.reproducible import Adding, Pairwise
from wavefilt.wavelets.filters import detail_lengths

FIXED = 14 << 20
"""Bytes for what does not grow with a chunk: conversions, blocks of details, lists."""
CHUNKED = {"numba": 5.8, "pywavelets": 7.5}
"""Bytes for each byte of samples in a chunk: two buffers, coefficients, a result and the one before it, and the
backend's own. Measured: `benchmarks/throughput/streaming.py`, `tests/outofcore/test_streaming.py`."""
WHOLE = {"numba": 9.0, "pywavelets": 11.0, "cuda": 9.0}
"""The same for whole traces, whose gaps take more than anything else."""
HELD = 5.5
"""The same for pieces of what a device holds: two buffers ahead, one for what was sent, two for what comes back."""
PIECE = 64 << 20
"""Bytes of samples in such a piece, above which transfers are no faster."""
SORTED = 10.0
"""Bytes more where rules sort details or weigh them one by one."""
LEAST = 1 << 20
"""Bytes of samples in a chunk, below which it is hardly more than overhead."""
REREAD = 4
"""Times that one chunk of a file is decoded, and encoded, in a pass at most: with gzip that takes most of the time."""
SORTING = ("sure", "hybrid")
WEIGHING = ("ebayes", "ebayes-cauchy")


@dataclass(frozen=True)
class Plan:
    """How a file goes through memory.

    ``whole`` says whether traces stay whole, ``together`` of them at a time; else chunks have ``chunk`` bytes, unless
    they are ``held`` by a device.
    ``buffer`` is the largest part in samples, ``passes`` how often all are probably read, ``whole_spelled`` the memory
    that would keep traces whole. The rest is for `wavefilt.statistics.reproducible`.
    """

    backend: backends.Backend
    level: int
    whole: bool
    together: int
    chunk: int
    buffer: int
    passes: int
    whole_spelled: str
    adding: Adding
    gathered: int
    bins: int
    release: Callable[[], None]
    energies: Energies
    held: bool = False


def plan(
    shape: tuple[int, int], dtype: np.dtype[Any], method: Method, limit: int, backend: str | backends.Backend,
    neighbours: int = 1, overhead: int = 0,
) -> Plan:  # fmt: skip
    """The plan for traces of a dtype of computation; ``neighbours`` and ``overhead`` are those of the source.

    Raises ValueError if nothing fits, with the least that would, for what needs whole traces that do not fit, and where
    chunks of the file would be read over and over.
    """
    rows, samples = shape
    fixed = FIXED + overhead
    level, taps = method.level_for(samples), method.bank.dec_len
    modwt = level if method.transform == "modwt" else 0
    chosen = backends.choose(backend, dtype.name, shape, taps, denoising=True, modwt=modwt)
    unit = samples * dtype.itemsize * (rows if method.scope == "record" else 1)
    factor = WHOLE.get(chosen.name, max(WHOLE.values())) + _extra(method, level)
    whole = fixed + int(factor * unit)
    share = -(-neighbours // REREAD)  # so many traces at a time, and their chunks are not read more often
    enough = fixed + int(factor * unit * share)
    if whole <= limit:
        together = rows if method.scope == "record" else min(int((limit - fixed) / factor / unit), rows)
        if together < rows:
            _check_neighbours(neighbours, together, enough)
            together -= together % neighbours if together > neighbours else 0
        return _plan(chosen, level, True, together, 0, together * samples, 1, spelled(whole), 0)
    if isinstance(backend, str) and backend == "auto" and chosen.name not in CHUNKED:
        chosen = backends.choose("auto", dtype.name, shape, taps)
    held = hasattr(chosen, "held")
    _check_chunks(method, chosen.name, held, spelled(whole))
    if held:
        found = _held(chosen, level, rows * samples, dtype, limit, fixed, spelled(whole))
        _check_neighbours(neighbours, max(found.buffer // samples, 1) if method.scope == "record" else 1, enough)
        return found
    lengths = np.array(detail_lengths(samples, taps, method.mode, level), np.int64) * (
        rows if method.scope == "record" else 1
    )
    _, gathered, *_ = _own(chosen)
    kept = int(1.6 * dtype.itemsize * lengths[lengths <= gathered].sum())
    around = 3 * reproducible.LEAF * dtype.itemsize * level
    bins = 1 << max(min(limit // 32 // max(level, 1), reproducible.BINS).bit_length() - 1, 12)
    fixed += kept + around + 4 * bins * level
    factor = CHUNKED[chosen.name] + (SORTED if method.rule in WEIGHING else 0)

    def takes(size: int) -> int:
        """A limit with chunks of so many bytes."""
        tables = 8 / 7  # which take an eighth of the limit at most
        return min(whole, int(tables * (FIXED + overhead + kept + around + 4 * 4096 * level + factor * size)) + 1)

    least = max(5 * halo(taps, level) * dtype.itemsize, LEAST)
    if fixed + factor * least > limit:
        raise ValueError(f"max_memory of {spelled(limit)} is too little here: {spelled(takes(least))} is the least")
    chunk = int((limit - fixed) / factor)
    parts = cut(rows, samples, taps, level, chunk // dtype.itemsize) if level else []
    together = max((p.rows.stop - p.rows.start for p in parts), default=1)
    if together < rows:
        enough = takes(share * samples * dtype.itemsize) if method.scope == "record" else enough
        _check_neighbours(neighbours, together, enough)
    longest = max(((p.rows.stop - p.rows.start) * p.length for p in parts), default=chunk // dtype.itemsize)
    return _plan(chosen, level, False, 0, chunk, longest, _passes(method, level), spelled(whole), bins)


def _plan(backend: backends.Backend, level: int, whole: bool, together: int, chunk: int, buffer: int, passes: int,
          spelling: str, bins: int) -> Plan:  # fmt: skip
    adding, gathered, release, sums = _own(backend)
    return Plan(backend, level, whole, together, chunk, buffer, passes, spelling, adding, gathered, bins, release, sums)


def _held(backend: backends.Backend, level: int, size: int, dtype: np.dtype[Any], limit: int, fixed: int,
          spelling: str) -> Plan:  # fmt: skip
    """The plan for traces held by a device, of ``size`` samples in all."""
    least = fixed + int(HELD * LEAST)
    if limit < least:
        raise ValueError(f"max_memory of {spelled(limit)} is too little here: {spelled(least)} is the least")
    from wavefilt.backends.numba_cpu import partial_sums as adding

    piece = min(int((limit - fixed) / HELD), PIECE) // dtype.itemsize
    found = _plan(backend, level, False, 0, piece * dtype.itemsize, min(piece, size), 2, spelling, 0)
    return replace(found, held=level > 0, energies=adding.energies)


def _own(backend: backends.Backend) -> tuple[Adding, int, Callable[[], None], Energies]:
    """How the backend adds up squares, from what size it does so block by block, how it gives up unused memory.

    And what sums up energies.
    """
    if backend.name == "numba":
        from wavefilt.backends.numba_cpu import memory, selection
        from wavefilt.backends.numba_cpu import partial_sums as adding

        return adding.Chunks(), selection.SHORT, memory.trim, adding.energies
    return Pairwise(), reproducible.BINS, lambda: None, energies


def _extra(method: Method, level: int) -> float:
    """Bytes for each byte of samples that an option takes beside the ordinary ones."""
    coefficients = 2.0 * (level + 1) if method.transform == "modwt" else 0.0
    return (
        coefficients
        + (2.0 if method.spins > 1 else 0.0)
        + (
            SORTED
            if isinstance(method.rule, str) and method.rule in (*SORTING, *WEIGHING, "blockjs", "neighblock")
            else 0
        )
    )


def _check_chunks(method: Method, backend: str, held: bool, whole: str) -> None:
    """Raise ValueError for what chunks, or a device that holds the samples, cannot do."""
    unit = "the whole record" if method.scope == "record" else "whole traces"
    sorting = isinstance(method.rule, str) and method.rule in SORTING
    refused = {
        f"rule={method.rule!r}": not held and (sorting or method.shrink_word == "block"),
        f"transform={method.transform!r}": not held and method.transform != "dwt",
        f"spins={method.spins}": method.spins > 1,
        f"sigma={method.sigma!r}": method.window is not None,
        f"backend={backend!r}": not held and backend not in CHUNKED,
    }  # fmt: skip
    for option, needs_whole in refused.items():
        if needs_whole:
            raise ValueError(f"{option} needs {unit} in memory, which takes max_memory={whole!r} here; raise it, or "
                             "choose another")  # fmt: skip


def _check_neighbours(neighbours: int, together: int, enough: int) -> None:
    """Raise ValueError if chunks of the file that so many traces share would be read too often."""
    if neighbours > REREAD * together:
        raise ValueError(f"{neighbours} neighbouring traces lie in the same chunks of the file, of which this limit "
                         f"takes {together} at a time: max_memory={spelled(enough)!r} suits these chunks; raise "
                         "it, or rechunk the array to fewer traces in a chunk")  # fmt: skip


def _passes(method: Method, level: int) -> int:
    """How often the samples are probably read."""
    if method.fixed_thresholds or level == 0:
        return 1
    looks = 0 if isinstance(method.sigma, float | int) and method.rule in ("universal", "minimax") else 1
    return looks + 1 + {"fdr": 20, "ebayes": level, "ebayes-cauchy": level}.get(str(method.rule), 0)
