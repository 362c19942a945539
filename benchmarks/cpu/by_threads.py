"""One `denoise` by different numbers of threads, beside a copy by as many: `wavefilt bench cpu --threads 1,2,4`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pywt

import wavefilt
from wavefilt import threads
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.measuring import signal, summary
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.wavelets.filters import max_level

Ki, Mi = 1 << 10, 1 << 20
CASES: dict[str, tuple[tuple[int, int], Row]] = {
    **{f"{n} Ki": ((1, n * Ki), {}) for n in (64, 256)},
    **{f"{n} Mi": ((1, n * Mi), {}) for n in (1, 4, 16, 64)},
    "4096 x 4096": ((4096, 4096), {}),
    "10,000 x 4096": ((10_000, 4096), {}),
    "100,000 x 512": ((100_000, 512), {}),
    "4 Mi, MODWT": ((1, 4 * Mi), {"transform": "modwt", "level": 5}),
    "4096 x 4096, two axes": ((4096, 4096), {"axes": (0, 1), "level": 5}),
}
"""Shape, and options besides those of `denoised`."""
QUICK = ("64 Ki", "1 Mi")
COPIED = 256 * Mi
"""Bytes that are copied."""


def counts(text: str) -> list[int]:
    """Numbers of threads: 1,2,4. Raises ValueError for others than whole numbers from 1 on."""
    if not all(part.isascii() and part.isdigit() and int(part) for part in text.split(",")):
        raise ValueError(f"{text!r} must be whole numbers of at least 1, with commas between them")
    return sorted({int(part) for part in text.split(",")})


def denoised(x: Array, options: Row) -> Callable[[], object]:
    level = min(8, max_level(x.shape[-1], pywt.Wavelet("db8")))
    chosen: Row = {"level": level, "rule": "universal", **options}
    return lambda: wavefilt.denoise(x, "db8", backend="numba", **chosen)


def run(numbers: Sequence[int], repeats: int, quick: bool, steps: Callable[[Sequence[str]], Iterator[str]]) -> Row:
    """Seconds of each case by each number of threads, which take turns, and of a copy."""
    before = threads.get_num_threads()
    rows = []
    try:
        for name in steps(list(QUICK if quick else CASES)):
            shape, options = CASES[name]
            x = signal(*shape)
            call = denoised(x, options)
            times = in_turn(call, numbers, max(repeats, min(50, 8 * Mi // x.size)))
            first = times[numbers[0]]["median"]
            for count in numbers:
                faster = first / times[count]["median"]
                efficiency = faster * numbers[0] / count
                rate = x.size / times[count]["median"]
                row = {"name": name, "threads": count, "seconds": times[count], "samples_per_second": rate}
                row |= {"shape": x.shape, "bytes": x.nbytes, "options": options}
                rows.append(row | {"speedup": faster, "efficiency": efficiency})
    finally:
        threads.set_num_threads(before)
    rates = bandwidth(numbers, COPIED // 16 if quick else COPIED, repeats)
    return {"study": "threads", "environment": environment(), "caches": caches(), "rows": rows, "copy": rates}


def bandwidth(numbers: Sequence[int], size: int, repeats: int) -> list[Row]:
    """Bytes read and written in a second by copies of so many bytes, by each number of threads."""
    before = threads.get_num_threads()
    try:
        copies = in_turn(_copy(size), numbers, repeats)
    finally:
        threads.set_num_threads(before)
    return [{"threads": count, "bytes_per_second": 2 * size / copies[count]["median"]} for count in numbers]


def in_turn(call: Callable[[], object], numbers: Sequence[int], repeats: int) -> dict[int, dict[str, float]]:
    """Seconds of the third of three calls by each number.

    Those before it bring the data to the caches of its threads, and prepare what arrays of one shape have in common.
    """
    times: dict[int, list[float]] = {count: [] for count in numbers}
    for turn in range(repeats + 1):
        for count in numbers:
            threads.set_num_threads(count)
            call()
            call()
            start = time.perf_counter()
            call()
            if turn:
                times[count].append(time.perf_counter() - start)
    return {count: summary(seconds) for count, seconds in times.items()}


def _copy(size: int) -> Callable[[], object]:
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)

    def copy(begin: int, end: int) -> None:
        np.copyto(target[begin:end], source[begin:end])

    return lambda: threads.parallel(copy, size, 1 << 20)


def caches() -> dict[str, str]:
    """Sizes of the first processor's data caches by level, as Linux tells them; none elsewhere."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found[f"L{level}"] = size
    return found


TABLE = Table(
    lambda result: f"Milliseconds by threads (quartiles in brackets): {result['environment']['processor']}",
    {
        "case": "{name}",
        "threads": "{threads}",
        "ms": "{seconds:quartiles in ms}",
        "speed-up": "{speedup:n}",
        "efficiency": "{efficiency:.0%}",
        "Msamples/s": lambda row: f"{row['samples_per_second'] / 1e6:.0f}",
        "a copy by|as many, ms": "{copy:n}",
        "copies": "{copies:n}",
    },
    lambda result: with_copies(result),
)


def with_copies(result: Row) -> Iterator[Row]:
    """Rows with the milliseconds of copying the samples by as many threads, and how many copies would take as long."""
    rates = {row["threads"]: row["bytes_per_second"] for row in result["copy"]}
    for row in result["rows"]:
        seconds = 2 * row["bytes"] / rates[row["threads"]]
        yield row | {"copy": 1e3 * seconds, "copies": row["seconds"]["median"] / seconds}


def report(result: Row) -> Report:
    """A row a case and number of threads, with the caches and the bandwidth of a copy."""
    return Report([TABLE(result)], machine(result))


def machine(result: Row) -> list[str]:
    """The caches and the bandwidth in words."""
    rates = ", ".join(f"{row['bytes_per_second'] / 1e9:.1f} by {row['threads']}" for row in result["copy"])
    sizes = ", ".join(f"{level} {size}" for level, size in result["caches"].items()) or "not known"
    return [f"Caches: {sizes}.", f"A copy, GB/s read and written by threads: {rates}."]
