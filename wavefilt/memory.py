"""Memory limits: which parts of a file fit, planned before anything is read.

A plan follows from the shape of the file, the options and the limit. The bytes needed for each byte of samples are a
property of the backend (`Backend.whole_bytes_factor`, `Backend.chunk_bytes_factor`) and of the options (`_extra`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from wavefilt import backends
from wavefilt.arrays import DType
from wavefilt.backends.interface import WHOLE_BYTES_FACTOR, Backend
from wavefilt.chunks import cut
from wavefilt.options import Options
from wavefilt.statistics import mergeable
from wavefilt.statistics.reference import LEAF

UNITS = {"": 1, "b": 1, "bytes": 1}
UNITS |= {f"{letter}{word}": base**power for power, letter in enumerate("kmgt", 1)
          for base, words in ((1000, ("b",)), (1024, ("ib", "i", ""))) for word in words}  # fmt: skip
"""Bytes of each unit, in lower case: KB and MB are powers of 1000; KiB, MiB, K and M are powers of 1024."""


def in_bytes(size: str | int) -> int:
    """Return the bytes, or samples, of a size such as 1000, ``"64Ki"``, ``"500MB"`` or ``"1.5 GiB"``.

    Raises ValueError for anything else, and unless the size is at least 1 and below 8 Ei.
    """
    if isinstance(size, int) and not isinstance(size, bool):
        found = float(size)
    else:
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", str(size))
        found = float(match[1]) * UNITS[match[2].lower()] if match and match[2].lower() in UNITS else 0
    if not 1 <= found < 1 << 63:
        raise ValueError(f"{size!r} is not a size such as 65536, 64Ki, 500MB or 1GiB")
    return int(found)


def spelled(size: int) -> str:
    """Return a size as text in the largest binary unit that it reaches, rounded up to three digits or more."""
    for unit, base in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= base:
            digits = 0 if size >= 100 * base else 1 if size >= 10 * base else 2
            return f"{math.ceil(size * 10**digits / base) / 10**digits:.{digits}f} {unit}"
    return f"{size} bytes"


FDR_PASSES = 20
"""Passes that rule fdr probably needs to count details above its thresholds."""
FIXED = 14 << 20
"""Bytes that do not depend on the size of a chunk: conversions, blocks of details, lists."""
SORTED = 10.0
"""Additional bytes per byte of samples for rules that sort details or count them in histograms."""
LEAST = 1 << 20
"""Smallest chunk in bytes of samples; smaller ones are mostly overhead."""
REREAD = 4
"""Largest number of times that a chunk of a file is decoded and encoded per pass; with gzip this dominates."""


@dataclass(frozen=True)
class Plan:
    """How a file is divided to fit in memory.

    ``buffer`` is the largest part in samples, ``passes`` the expected number of times that all samples are read,
    ``whole_memory`` the limit with which traces (or the record) stay whole.
    ``together`` is the number of traces that are whole in memory at a time. If that is 0, traces are divided into
    chunks of ``chunk`` bytes, and medians are searched with tables of ``bins`` bins.
    """

    backend: Backend
    level: int
    buffer: int
    passes: int
    whole_memory: str
    together: int = 0
    chunk: int = 0
    bins: int = 0


def plan(
    shape: tuple[int, int],
    dtype: DType,
    options: Options,
    limit: int,
    backend: str | Backend,
    neighbours: int = 1,
    overhead: int = 0,
) -> Plan:
    """Return the plan for traces of a dtype of computation; ``neighbours`` and ``overhead`` are those of the source.

    Raises ValueError if the limit is too small, with the minimum; for options that need whole traces that do not fit;
    and if chunks of the file would be read too often.
    """
    (rows, samples), item = shape, dtype.itemsize
    level = options.level_for(samples)
    analysis = options.analysis(level)
    chosen = backends.choose(backend, dtype.name, shape, analysis, True, options.on_host)
    record = options.scope == "record"
    unit = samples * item * (rows if record else 1)  # bytes that share thresholds
    fixed = FIXED + overhead
    factor = chosen.whole_bytes_factor + _extra(options, level, whole=True)
    whole = fixed + int(factor * unit)

    def check_neighbours(together: int) -> None:
        """Raise ValueError if, with this many traces at a time, chunks of the file would be read too often."""
        if neighbours > REREAD * together:
            enough = whole if record else fixed + int(factor * unit * -(-neighbours // REREAD))
            raise ValueError(
                f"{neighbours} neighbouring traces lie in the same chunks of the file, of which this limit allows "
                f"{together} at a time: raise it to `max_memory={spelled(enough)!r}`, or rechunk the array to fewer "
                "traces per chunk"
            )

    if whole <= limit:
        together = rows if record else min(int((limit - fixed) / factor / unit), rows)
        check_neighbours(together)
        if neighbours < together < rows:
            together -= together % neighbours
        return Plan(chosen, level, together * samples, 1, spelled(whole), together)
    if isinstance(backend, str) and backend == "auto" and chosen.chunk_bytes_factor is None:
        chosen = backends.choose("auto", dtype.name, shape, analysis)
    _check_chunks(options, chosen, spelled(whole))
    fixed += _kept(options, chosen, shape, dtype, level)
    assert chosen.chunk_bytes_factor is not None
    factor = chosen.chunk_bytes_factor + _extra(options, level, whole=False)
    halo = options.halo(level) or 0
    bins = 1 << max(min(limit // 32 // max(level, 1), mergeable.BINS).bit_length() - 1, 12)
    least = max(5 * halo * item, LEAST)
    if fixed + 4 * bins * level + factor * least > limit:
        minimum = min(whole, int(8 / 7 * (fixed + 4 * 4096 * level + factor * least)) + 1)  # 1/8: the tables
        if limit < minimum:
            few = f"`max_memory` of {spelled(limit)} is too little here: the minimum is {spelled(minimum)}"
            raise ValueError(few)
    chunk = int((limit - fixed - 4 * bins * level) / factor)
    parts = cut(rows, samples, halo, level, chunk // item) if level else []
    check_neighbours(max((len(part.numbers) for part in parts), default=1))
    longest = max((len(part.numbers) * part.length for part in parts), default=chunk // item)
    return Plan(chosen, level, longest, _passes(options, level), spelled(whole), chunk=chunk, bins=bins)


def whole_bytes_factor(backend: str) -> float:
    """Return `Backend.whole_bytes_factor` of a backend by its name; for "auto" the largest of all."""
    return WHOLE_BYTES_FACTOR if backend == "auto" else backends.get(backend).whole_bytes_factor


def _extra(options: Options, level: int, *, whole: bool) -> float:
    """Return the additional bytes per byte of samples for these options, of whole traces or of chunks."""
    rule, changing = options.rule, 1.0 if options.noise.changing else 0.0  # shrunk coefficients beside the originals
    shrunk = 1.5 if rule.together is not None else 0.0  # beside the original ones, and energies
    undecimated = options.transform.workspace * (level + 1) * (1.0 + shrunk + changing)
    if not whole:
        return undecimated + (SORTED if "histogram" in rule.needs or rule.together is not None else 0.0)
    many = rule.needs & {"sorted", "histogram"} or rule.own_function
    return undecimated + changing + (2.0 if options.spins > 1 else 0.0) + (SORTED if many else 0.0)


def _kept(options: Options, backend: Backend, shape: tuple[int, int], dtype: DType, level: int) -> int:
    """Return the bytes kept beside the chunks: coefficients of short levels."""
    (rows, samples), item, analysis = shape, dtype.itemsize, options.analysis(level)
    together = rows if options.scope == "record" else 1
    lengths = np.array(options.transform.sizes(analysis, (samples,)), np.int64) * together
    return int(1.6 * item * lengths[lengths <= backend.summation.whole].sum()) + 3 * LEAF * item * level


def _check_chunks(options: Options, backend: Backend, whole: str) -> None:
    """Raise ValueError for options and backends that do not support chunks."""
    unit = "the whole record" if options.scope == "record" else "whole traces"
    whole_rule = "sorted" in options.rule.needs or options.rule.blocks
    refused = {
        f"`rule={options.rule.option!r}`": whole_rule,
        f"`transform={options.transform.word!r}`": options.halo(1) is None,
        f"`spins={options.spins}`": options.spins > 1,
        "noise in a window, or that changes,": options.noise.window is not None or options.noise.changing,
        f"`backend={backend.name!r}`": backend.chunk_bytes_factor is None,
    }
    for option, needs_whole in refused.items():
        if needs_whole:
            raise ValueError(
                f"{option} needs {unit} in memory: raise the limit to `max_memory={whole!r}`, or choose another option"
            )


def _passes(options: Options, level: int) -> int:
    """Return the expected number of times that the samples are read."""
    if options.rule.values or level == 0:
        return 1
    needs = options.rule.needs
    measured = "mean_square" in needs or not isinstance(options.sigma, float | int)
    return 1 + measured + FDR_PASSES * ("exceeding" in needs) + level * ("histogram" in needs)
