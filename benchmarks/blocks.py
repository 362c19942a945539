"""The wavelet kernels with blocks of 32 to 1024 threads, as the paper behind the SKE model varied them.

Every output is compared before it is timed. `wavefilt bench blocks -o FILE` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common import columns
from wavefilt.benchmarks.common.columns import MODELS, Implementation, Mismatch, Prepared, labels
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import gpu_time
from wavefilt.benchmarks.common.tables import Column, Report, Row, sheet, size
from wavefilt.benchmarks.ske.fit import Case
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT

SAMPLES, TILE = 1 << 26, 4096
BLOCKS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
WAVELETS = ("db4", "db8")


@dataclass(frozen=True)
class Problem:
    """A trace, and the blocks and tiles of the launch that computes the finest levels of its transform."""

    samples: int
    block: int
    tile: int = TILE

    def __str__(self) -> str:
        return f"{self.samples} samples, blocks of {self.block} threads"

    def case(self, kernel: str) -> Case:
        """Return the launch of a kernel, which is named after transform and wavelet."""
        transform, wavelet = kernel.split("_")
        return Case(transform, wavelet, self.block, self.samples, tile=self.tile)

    def expected(self, oracle: str) -> Array:
        return _expected(oracle, self.samples, self.case(oracle).problem.level)


@cache
def _expected(kernel: str, samples: int, level: int) -> Array:
    """Return the coefficients of the same samples by the CPU, or their inverse with the same thresholds."""
    from wavefilt.benchmarks.ske.measure import THRESHOLD, noise

    transform, wavelet = kernel.split("_")
    backend, x = backends.get("numba"), noise(samples)[None]
    pyramid = backend.decompose(x, DWT.analysis(pywt.Wavelet(wavelet), "symmetric", level))
    if transform == "forward":
        return np.concatenate([band[0] for band in pyramid.coefficients])
    return np.asarray(backend.reconstruct(pyramid, Shrinkage("soft", np.full((level, 1), THRESHOLD)))[0])


def _prepared(kernel: str, problem: Problem) -> Prepared:
    from wavefilt.benchmarks.ske.measure import prepare

    ready = prepare(problem.case(kernel))

    def call() -> object:
        stream = ready.plan.own_stream
        ready.work(stream)
        stream.synchronize()
        return ready.y

    def host(y: object) -> Array:
        if kernel.startswith("forward"):
            return np.concatenate([band.reshape(-1) for band in ready.plan.coefficients(ready.plan.own_stream)])
        return np.asarray(ready.y.copy_to_host()).reshape(-1)

    def clock(repeats: int, warm: int) -> dict[str, float]:
        try:
            return gpu_time(ready.work, repeats=repeats)
        finally:
            ready.plan.release()

    return Prepared(call, host, clock)


def _kernel(transform: str, wavelet: str) -> Implementation:
    name, what = f"{transform}_{wavelet}", f"the finest levels of the {transform} transform by {wavelet}"
    return Implementation(
        name, (transform, wavelet), what, partial(_prepared, name), partial(backends.get, "cuda"), name
    )


KERNELS = tuple(_kernel(transform, wavelet) for transform in ("forward", "inverse") for wavelet in WAVELETS)
Step = tuple[Implementation, int]


def run(
    samples: int = SAMPLES,
    blocks: Sequence[int] = BLOCKS,
    repeats: int = 30,
    device: str | None = None,
    tile: int = TILE,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
) -> Row:
    """Return the milliseconds of each kernel with each block, measured on a GPU and estimated, as a table for JSON.

    Raises Mismatch if an output differs from that of the CPU backend, ValueError or OSError for an unknown calibration.
    """
    running, chosen, facts = columns.opened(KERNELS, device, "backend numba")
    of: dict[int, Row] = {block: {"block": block, "times": {}, "skipped": {}, "estimates": {}} for block in blocks}
    for kernel, block in progress([*product(running, blocks)]):
        try:
            times, refused = columns.measured(Problem(samples, block, tile), [kernel], repeats, np.inf)
        except Mismatch:
            raise
        except Exception as error:  # a block that the compiler or the driver refuses
            times, refused = {}, {kernel.name: f"{type(error).__name__}: {error}".splitlines()[0]}
        of[block]["times"] |= times
        of[block]["skipped"] |= refused
    if chosen is not None:
        for block, row in of.items():
            problem = Problem(samples, block, tile)
            row["estimates"] = {k.name: columns.estimates(problem.case(k.name).counted(), chosen) for k in KERNELS}
    return result(
        "blocks",
        unit="ms",
        samples=samples,
        method=f"{samples} samples in one trace, tiles of {tile}; median of {repeats} graphs of 20 launches",
        **facts,
        rows=[*of.values()],
        choices=choices([*of.values()]),
    )


def choices(rows: Sequence[Row]) -> dict[str, Row]:
    """Return for every kernel the fastest block, the choice of each model, and its time relative to the fastest."""
    found: dict[str, Row] = {}
    for kernel in KERNELS:
        times = {row["block"]: row["times"][kernel.name]["median"] for row in rows if kernel.name in row["times"]}
        entry: Row = {"fastest": min(times, key=times.__getitem__) if times else None}
        for model in MODELS:
            all_of = {row["block"]: row["estimates"].get(kernel.name, {}).get(model) for row in rows}
            known = {block: value for block, value in all_of.items() if value is not None}
            block = min(known, key=known.__getitem__) if known else None
            regret = times[block] / min(times.values()) if block in times else None
            entry[model] = {"block": block, "regret": regret}
        found[kernel.name] = entry
    return found


def report(found: Row) -> Report:
    """Return microseconds of every kernel by block, the choices, and notes."""
    heads: dict[str, Column] = {"threads": "{block}"}
    label, estimated = labels(found), bool(found["estimates"]["calibration"])
    for name, kernel in label.items():
        if any(row["times"] for row in found["rows"]):
            heads[f"{kernel}|measured"] = f"?{{times[{name}][median]:us}}"
        for model in MODELS if estimated else ():
            heads[f"SKE|{model}#{name}"] = f"?{{estimates[{name}][{model}]:us}}"
    times = sheet(f"{size(found['samples'])} samples by threads of a block, microseconds", heads, found["rows"])
    title = "Choice of the block size; regret is its time over the shortest time"
    chosen = sheet(title, CHOICES, [{"label": label[name], **entry} for name, entry in found["choices"].items()])
    notes = columns.notes(found, at=lambda row: f"{row['block']} threads")
    return Report([times, chosen], notes)


CHOICES: dict[str, Column] = {
    "|kernel": "{label}",
    "fastest|block": "?{fastest}",
    "SKE calibrated|would choose": "?{calibrated[block]}",
    "|regret#calibrated": "?{calibrated[regret]:.3f}",
    "SKE classic|would choose": "?{classic[block]}",
    "|regret#classic": "?{classic[regret]:.3f}",
}
