"""A file streamed beside the same samples in memory.

python -m wavefilt.benchmarks.throughput.streaming [FILE.json] [BACKEND].

Files of float32 in the page cache; every run of the file in a process of its own, whose peak is taken beside that of
loading the libraries. The backend is numba, or the one named.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import wavefilt
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import summary
from wavefilt.benchmarks.common.tables import Sheet, number
from wavefilt.outofcore.sizes import in_bytes

GIB, LIMITS, REPEATS = 4, ("1GiB", "256MiB", "64MiB"), 3
PIECE = 1 << 22


def run(
    gib: float = GIB, limits: tuple[str, ...] = LIMITS, repeats: int = REPEATS, backend: str = "numba"
) -> dict[str, Any]:
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
                _compare(target, y)
                target.unlink()
            del y
    rows: list[dict[str, Any]] = []
    for limit, found in streamed.items():
        times = summary([each["ms"] for each in found])
        peak = max(each["peak"] for each in found)
        rows.append({"limit": in_bytes(limit), "ms": times, "synced_ms": summary([e["synced_ms"] for e in found]),
                     "peak": peak, "passes": found[0]["passes"]})  # fmt: skip
    whole = summary(memory)
    for row in rows:
        row["rate"] = whole["median"] / row["ms"]["median"]
        row["synced_rate"] = whole["median"] / row["synced_ms"]["median"]
    return {
        "study": "streaming", "date": datetime.now(UTC).date().isoformat(), "environment": environment(),
        "backend": backend, "bytes": 4 * samples, "memory_ms": whole, "limits": rows,
    }  # fmt: skip


def _write(path: Path, samples: int) -> None:
    """A sweep in noise, a piece at a time."""
    rng = np.random.default_rng(7)
    x = np.lib.format.open_memmap(path, "w+", "f4", (samples,))
    for a in range(0, samples, PIECE):
        part = x[a : a + PIECE]
        part[:] = np.sin(np.linspace(0, 4000, len(part))) + 0.3 * rng.standard_normal(len(part), dtype=np.float32)


def _compare(path: Path, y: np.ndarray[Any, Any]) -> None:
    z = np.load(path, mmap_mode="r")
    for a in range(0, len(y), PIECE):
        if not np.array_equal(z[a : a + PIECE], y[a : a + PIECE]):
            raise Mismatch(f"streamed samples differ from those in memory between {a} and {a + PIECE}")


def _measured(source: Path, target: Path, limit: str, backend: str) -> dict[str, float]:
    """One run in a process of its own."""
    done = subprocess.run([sys.executable, "-m", __spec__.name, "--one", source, target, limit, backend], check=True,
                          capture_output=True, text=True)  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def one(source: str, target: str, limit: str, backend: str) -> dict[str, float]:
    """Milliseconds until all is written, and until the disk has it; bytes of memory at most, beside the libraries'."""
    small = Path(target).with_name("small.npy")
    np.save(small, np.zeros(1 << 16, "f4"))
    for name in ("numba", backend):  # the first sums up energies for the others
        wavefilt.denoise_file(small, target, backend=name, overwrite=True)
    os.unlink(target)
    before, synced, fsync = _peak(), 0.0, os.fsync

    def timed(fd: Any) -> None:
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


def table(result: dict[str, Any]) -> Sheet:
    """A row for each limit."""
    mib, whole = 1 << 20, result["memory_ms"]["median"]
    rows = [["in memory", number(result["bytes"] / mib / whole * 1e3), "1", "1", "", ""]]
    for row in result["limits"]:
        rows.append([
            f"{row['limit'] // mib} MiB", number(result["bytes"] / mib / row["ms"]["median"] * 1e3),
            f"{row['rate']:.2f}", f"{row['synced_rate']:.2f}", f"{row['peak'] / mib:.0f} MiB", f"{row['passes']:.1f}",
        ])  # fmt: skip
    heads: list[Sequence[str]] = [
        ("limit", ""), ("rate", "MiB/s"), ("of that", "in memory"), ("until the disk", "has it"),
        ("peak", "of memory"), ("times", "read"),
    ]  # fmt: skip
    size = result["bytes"] / 2**30
    where = result["environment"]["gpu"] if result["backend"] == "cuda" else result["backend"]
    return Sheet(f"One trace of {size:g} GiB float32, db8, rule bayes, {where}, median", heads, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(*sys.argv[2:])))
    else:
        path, backend = (*sys.argv[1:], None, None)[:2]
        result = run(backend=backend or "numba")
        print(table(result).text(100))
        if path:
            Path(path).write_text(json.dumps(result, indent=1) + "\n")
