"""Denoising a volume by Dask on one and on two processes: ``python -m wavefilt.benchmarks.throughput.dask_scaling``.

Blocks are read from an uncompressed zarr array; what comes back is the energy of each trace, so that no copy of the
result is timed. Besides: what merging statistics costs of a run over many chunks, by the workers' own clocks.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import wavefilt
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result, version
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import summary
from wavefilt.benchmarks.common.tables import Report, Row, Table, quartiles, size
from wavefilt.method import Method
from wavefilt.statistics.mergeable import State
from wavefilt.vocabulary import Scope

if TYPE_CHECKING:
    import dask.array
    import zarr

Ki, Mi = 1 << 10, 1 << 20
WAVELET, LEVEL, BACKEND, PROCESSES = "db8", 5, "numba", (1, 2)
ITEM = 4  # bytes of a float32 sample
TOLERANCE = 1e-4  # of the float32 energy of a trace
FOLDER = os.environ.get("WAVEFILT_BENCHMARK_DIR")


@dataclass(frozen=True)
class Case:
    """Traces of float32 samples in chunks of (traces, samples), and the scope of their thresholds."""

    traces: int
    samples: int
    chunk: tuple[int, int]
    scope: Scope = "trace"

    @property
    def name(self) -> str:
        return f"{self.traces} x {size(self.samples)}"


CASES = (Case(256, Mi, (8, Mi)), Case(64, Mi, (8, Mi), "record"), Case(64, Mi, (8, 512 * Ki)))
QUICK = (Case(8, 64 * Ki, (2, 64 * Ki)), Case(8, 64 * Ki, (2, 16 * Ki), "record"))
MERGED, QUICK_MERGED = Case(1024, Mi, (1, Mi), "record"), Case(8, 64 * Ki, (1, 64 * Ki), "record")


def _volume(folder: str, case: Case) -> zarr.Array:
    """A new zarr array of noise around a sine."""
    import zarr

    shape, path = (case.traces, case.samples), f"{folder}/{case.name}.zarr"
    volume = zarr.create_array(path, shape=shape, chunks=case.chunk, dtype="f4", compressors=None)
    rng, t = np.random.default_rng(1), np.arange(case.samples)
    for trace in range(case.traces):
        volume[trace] = np.sin(t / (20 + trace)) + rng.standard_normal(case.samples, np.float32)
    return volume


def _energy(volume: zarr.Array, case: Case) -> dask.array.Array:
    """The energy of each denoised trace, lazily."""
    import dask.array as da

    import wavefilt.dask

    array = da.from_array(volume, chunks=case.chunk, name=False, lock=False)
    denoised = wavefilt.dask.denoise(array, WAVELET, level=LEVEL, scope=case.scope, backend=BACKEND)
    parts = denoised.map_blocks(_energies, dtype="f8", meta=np.empty((0, 0)), chunks=(denoised.chunks[0], 1))
    return parts.sum(axis=1)


def _energies(block: NDArray[np.float32]) -> NDArray[np.float64]:
    """Of each trace of a block, shape (traces, 1)."""
    return np.array([[np.einsum("i,i", trace, trace, dtype="f8")] for trace in block])


def _at_once(volume: zarr.Array, case: Case) -> NDArray[np.float64]:
    """The same without dask, the volume in memory."""
    denoised = wavefilt.denoise(volume[:], WAVELET, level=LEVEL, scope=case.scope, backend=BACKEND)
    return _energies(denoised)[:, 0]


def measure(case: Case, repeats: int) -> Row:
    """Seconds on each number of processes. Raises Mismatch if the energies are not those of one machine."""
    from wavefilt.dask import cluster

    taken: dict[str, list[float]] = {str(processes): [] for processes in PROCESSES}
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, ExitStack() as stack:
        volume = _volume(folder, case)
        expected = _at_once(volume, case)
        clients = {n: stack.enter_context(cluster.connected(f"local:{n}")) for n in PROCESSES}
        for n, client in clients.items():
            if len(client.run(wavefilt.get_num_threads)) != n:
                raise Mismatch(f"{n} processes were asked for")
        for _ in range(1 + repeats):  # the first one loads the compiled kernels
            for n, client in clients.items():  # in turns: other work on the machine meets all alike
                start = time.perf_counter()
                found = client.compute(_energy(volume, case)).result()
                taken[str(n)].append(time.perf_counter() - start)
                worst = float(np.max(np.abs(found / expected - 1)))
                if worst > TOLERANCE:
                    raise Mismatch(f"{case.name}, {case.scope}: energies differ by {worst:.1e}")
    times = {n: summary(own[1:]) for n, own in taken.items()}
    ratio = times["1"]["median"] / times["2"]["median"]
    return {**asdict(case), "name": case.name, "seconds": times, "ratio": ratio, "worst": worst}


def merging(case: Case) -> Row:
    """Which share of the workers' time the merging of statistics takes, with the transfers it waits for."""
    from distributed import get_task_stream

    from wavefilt.dask import cluster

    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        volume = _volume(folder, case)
        with cluster.connected("local:2") as client:
            _energy(volume, case).compute()  # loads the compiled kernels
            start = time.perf_counter()
            with get_task_stream(client, plot=False) as stream:
                _energy(volume, case).compute()
            seconds = time.perf_counter() - start
    spent = {"merging": 0.0, "looks": 0.0, "all": 0.0}
    for task in stream.data:
        own, key = sum(step["stop"] - step["start"] for step in task["startstops"]), str(task["key"])
        spent["all"] += own
        if any(word in key for word in ("-merged", "-state", "-thresholds")):
            spent["merging"] += own
        elif "-count" in key:
            spent["looks"] += own  # and what dask fused with them: reading, in the first one
    looks = State.of(Method(scope=case.scope), np.array([case.samples]), 1, np.dtype("f4")).passes
    chunks = case.traces * case.samples // (case.chunk[0] * case.chunk[1])
    share = spent["merging"] / spent["all"]
    counted = {"chunks": chunks, "looks": looks, "tasks": len(stream.data)}
    return {**asdict(case), "name": case.name, **counted, "seconds": seconds, "spent": spent, "share": share}


def run(quick: bool, repeats: int = 3) -> Row:
    """All cases, and the share of merging."""
    repeats = 1 if quick else repeats
    found = result("dask", quick=quick, repeats=repeats, wavelet=WAVELET, level=LEVEL, backend=BACKEND)
    found["environment"] |= {"dask": version("dask"), "zarr": version("zarr")}
    found["rows"] = [measure(case, repeats) for case in (QUICK if quick else CASES)]
    return found | {"merging": merging(QUICK_MERGED if quick else MERGED)}


TABLE = Table(
    "Denoising a volume with Dask, in seconds, median (quartiles): {wavelet}, {level} levels, bayes, {backend}, "
    "float32, {environment[processor]}, {environment[cores]} cores, dask {environment[dask]}",
    {
        "volume,|scope": "{name}, {scope}",
        "chunk": "{chunk[0]:size} x {chunk[1]:size}",
        "1 process": lambda row: quartiles(row["seconds"]["1"]),
        "2 processes": lambda row: quartiles(row["seconds"]["2"]),
        "|ratio": "{ratio:.2f}",
    },
)


def report(found: Row) -> Report:
    """Times of the cases, what merging costs, and how many cores there were to share."""
    one, where = found["merging"], found["environment"]
    note = (
        f"Merging the statistics of {one['chunks']} chunks ({one['name']}, scope {one['scope']}) took "
        f"{100 * one['share']:.1f} % of the time of the tasks of two processes, waiting for transfers included; the "
        f"run took {one['seconds']:.1f} s. The load of the machine at the beginning was {where['load']:.1f} on "
        f"{where['cores']} cores."
    )
    return Report([TABLE(found)], [note])


if __name__ == "__main__":
    main(run, report)
