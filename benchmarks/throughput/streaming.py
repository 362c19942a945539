"""A file streamed beside the same samples in memory.

``python -m wavefilt.benchmarks.throughput.streaming [--backend NAME] [-o FILE]``.

Files of float32 in the page cache; every run of the file in a process of its own, whose peak is taken beside that of
loading the libraries.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

import wavefilt
from wavefilt.backends import names
from wavefilt.benchmarks.common.command import Results, with_results
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import summary
from wavefilt.benchmarks.common.tables import Row, Table, number
from wavefilt.outofcore.sizes import in_bytes

if TYPE_CHECKING:
    from _typeshed import HasFileno

GIB, LIMITS, REPEATS = 4, ("1GiB", "256MiB", "64MiB"), 3
CHUNK = 1 << 22
MIB = 1 << 20


def run(gib: float = GIB, limits: tuple[str, ...] = LIMITS, repeats: int = REPEATS, backend: str = "numba") -> Row:
    """Milliseconds in memory and streamed at each limit, with the peak of memory; the samples compared each time."""
    samples = int(gib * (1 << 28))
    memory: list[float] = []
    streamed: dict[str, list[dict[str, float]]] = {limit: [] for limit in limits}
    with tempfile.TemporaryDirectory(dir=os.environ.get("WAVEFILT_BENCHMARK_DIR")) as folder:
        source, target = Path(folder) / "x.npy", Path(folder) / "y.npy"
        _write(source, samples)
        wavefilt.denoise(np.zeros(samples, "f4"), backend=backend)  # loads the kernels
        for _ in range(repeats):
            x = np.load(source)
            start = time.perf_counter()
            y = wavefilt.denoise(x, backend=backend)
            memory.append(1e3 * (time.perf_counter() - start))
            del x  # so that both files stay in the page cache
            for limit in limits:
                streamed[limit].append(_measured(source, target, limit, backend))
                if not np.array_equal(np.load(target, mmap_mode="r"), y):
                    raise Mismatch(f"samples streamed within {limit} differ from those in memory")
                target.unlink()
            del y
    whole, rows = summary(memory), []
    for limit, found in streamed.items():
        row: Row = {"limit": in_bytes(limit), "peak": max(one["peak"] for one in found), "passes": found[0]["passes"]}
        row |= {name: summary([one[name] for one in found]) for name in ("ms", "synced_ms")}
        row |= {"rate": whole["median"] / row["ms"]["median"]}
        rows.append(row | {"synced_rate": whole["median"] / row["synced_ms"]["median"]})
    return result("streaming", backend=backend, bytes=4 * samples, memory_ms=whole, limits=rows)


def _write(path: Path, samples: int) -> None:
    """A sweep in noise, written in chunks."""
    rng = np.random.default_rng(7)
    x = np.lib.format.open_memmap(path, "w+", "f4", (samples,))
    for a in range(0, samples, CHUNK):
        part = x[a : a + CHUNK]
        part[:] = np.sin(np.linspace(0, 4000, len(part))) + 0.3 * rng.standard_normal(len(part), dtype=np.float32)


def _measured(source: Path, target: Path, limit: str, backend: str) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, "-m", str(__spec__.name), "--one", str(source), str(target), limit, backend]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def one(source: str, target: str, limit: str, backend: str) -> dict[str, float]:
    """Milliseconds until all is written and until it is on the disk; peak bytes of memory beyond the libraries'."""
    small = Path(target).with_name("small.npy")
    np.save(small, np.zeros(1 << 16, "f4"))
    for name in ("numba", backend):  # the first sums up energies for the others
        wavefilt.denoise_file(small, target, backend=name, overwrite=True)
    os.unlink(target)
    before, synced, fsync = _peak(), 0.0, os.fsync

    def timed(fd: int | HasFileno) -> None:
        nonlocal synced
        start = time.perf_counter()
        fsync(fd)
        synced += time.perf_counter() - start

    os.fsync = timed
    start = time.perf_counter()
    report = wavefilt.denoise_file(source, target, backend=backend, max_memory=limit)
    whole = time.perf_counter() - start
    return {"ms": 1e3 * (whole - synced), "synced_ms": 1e3 * whole, "peak": _peak() - before, "passes": report.passes}


def _peak() -> int:
    """Bytes of memory this process has held at once."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def _rows(found: Row) -> Iterator[Row]:
    """The samples in memory first."""
    blank = {"peak": "", "passes": ""}
    yield {"name": "in memory", "ms": found["memory_ms"], "rate": "1", "synced_rate": "1"} | blank
    for row in found["limits"]:
        texts = {name: f"{row[name]:.2f}" for name in ("rate", "synced_rate")}
        texts |= {"peak": f"{row['peak'] / MIB:.0f} MiB", "passes": f"{row['passes']:.1f}"}
        yield row | texts | {"name": f"{row['limit'] // MIB} MiB"}


def _title(found: Row) -> str:
    where = found["environment"]["gpu"] if found["backend"] == "cuda" else found["backend"]
    return f"One trace of {found['bytes'] / 2**30:g} GiB float32, db8, rule bayes, {where}, median"


TABLE = Table(
    _title,
    {
        "limit": "{name}",
        "rate|MiB/s": lambda row: number(1e3 * row["bytes"] / MIB / row["ms"]["median"]),
        "of that|in memory": "{rate}",
        "until the disk|has it": "{synced_rate}",
        "peak|of memory": "{peak}",
        "times|read": "{passes}",
    },
    lambda found: ({"bytes": found["bytes"], **row} for row in _rows(found)),
)


@click.command()
@click.option("--backend", type=click.Choice(names()), default="numba", show_default=True)
@with_results
def main(backend: str, results: Results) -> None:
    """A file streamed beside the same samples in memory."""
    results.report(run(backend=backend), TABLE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(*sys.argv[2:])))
    else:
        main()
