"""Microbenchmarks of how parts of a launch go on beside each other: what `regime_kernels` show of this GPU.

Times are medians of 30 graphs of 20 launches, cycles medians of some runs. A row is what was measured, its sizes, and
``seconds`` of a launch or ``cycles``; one that fails has an ``error``.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.graph import checked
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.benchmarks.common.gpu_timing import LAUNCHES, REPEATS, WARM, Timing, measured
from wavefilt.benchmarks.common.tables import Row

from .calibration import MIB, Device
from .cases import Case
from .microkernels import LINE, kernels
from .regime_kernels import STREAMS, THREADS, TILE, UNROLLED, cold, issuing, loaded, tiles, unequal

TILE_BYTES, SYSTEM = 4 * TILE, 1024
"""Bytes of a tile, and of shared memory that the system keeps of each block."""
ROWS_AT = 10
"""Place of the rows among the arguments of the forward and of the inverse kernel."""
CHUNK = 16 * THREADS
"""Elements that a block of `loaded` copies at a time."""


@dataclass(frozen=True)
class Regimes:
    """How much is measured."""

    footprints: tuple[int, ...] = tuple(4 * MIB << i for i in range(8))
    residents: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    waves: tuple[float, ...] = (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8, 10)
    work: tuple[int, ...] = (0, 32, 128)
    inside: int = 512  # tiles of a ladder in L2
    warps: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    chains: tuple[int, ...] = (1, 2, 4, 8)
    apart: tuple[int, ...] = (0, 4, 16)
    shares: tuple[float, ...] = (0, 0.125, 0.25, 0.5, 0.75, 1)
    spaces: tuple[int, ...] = (8 * MIB, 256 * MIB)
    instructions: tuple[int, ...] = (256, 1024, 4096, 16384)
    unequal: tuple[int, ...] = (0, 16, 64, 256)
    threads: tuple[int, ...] = (64, 256, 1024)
    grids: tuple[int, ...] = (1, 132, 792, 3168, 13200)
    turns: int = 256
    steps: int = 512
    repeats: int = REPEATS
    launches: int = LAUNCHES


TINY = Regimes(
    footprints=(4 * TILE_BYTES,), residents=(6,), waves=(1,), work=(0, 1), inside=2, warps=(1,), chains=(1, 8),
    apart=(0, 16), shares=(0, 1), spaces=(8192,), instructions=(8,), unequal=(1,), threads=(64,), grids=(2,),
    turns=2, steps=8, repeats=1, launches=1,
)  # fmt: skip
"""For the simulator."""


class _Bench:
    """The measurements on one device, each a stream of rows."""

    def __init__(self, device: Device, sizes: Regimes) -> None:
        self.device, self.sizes = device, sizes
        self.cycles = cuda.to_device(np.zeros(2 * max(device.multiprocessors, 2), np.int64))
        self.out = cuda.device_array(2048 * max(device.multiprocessors, 1), np.float32)
        most = max(*(2 * size for size in sizes.footprints), *sizes.spaces) // 4
        self.x = cuda.to_device(np.ones(most, np.float32))
        self.y = cuda.device_array(most, np.float32)

    def seconds(self, work: Callable[[Any], None]) -> Row:
        timing = measured(work, self.sizes.launches, self.sizes.repeats, WARM)
        return {"seconds": timing.seconds, "spread": round(timing.spread, 4)}

    def counted(self, launch: Callable[[], None], many: int = 1) -> Row:
        """Medians of the first ``many`` cycles that a launch writes."""
        seen = []
        for _ in range(4 if SIMULATED else 10):
            launch()
            cuda.synchronize()
            seen.append(self.cycles.copy_to_host()[:many])
        every = [Timing.of(values) for values in np.array(seen[1:]).T]
        cycles = [timing.seconds for timing in every]
        return {"cycles": cycles if many > 1 else cycles[0], "spread": round(max(t.spread for t in every), 4)}

    def streams(self) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """One-shot tiles, 6 blocks an SM, over footprints; the same arrays in every launch, or two in turn."""
        for stream, (reads, writes) in STREAMS.items():
            for footprint in self.sizes.footprints:
                count = footprint // (4 * (sum(reads) + sum(writes)))
                for buffers in (1, 2):
                    what = {"stream": stream, "footprint": footprint, "buffers": buffers, "blocks": count}
                    yield what, lambda s=stream, n=count, k=buffers: self._tiles(s, 0, n, n, 6, k)  # type: ignore[misc]

    def ladder(self) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """Waves of one-shot tiles by how many blocks an SM holds, with arithmetic; over all they touch, or in L2."""
        s = self.sizes
        for work, nb, waves in itertools.product(s.work, s.residents, s.waves):
            blocks = max(math.ceil(self.device.multiprocessors * nb * waves), 1)
            for distinct in sorted({blocks, min(blocks, s.inside)}):
                what = {"work": work, "nb": nb, "waves": waves, "blocks": blocks, "distinct": distinct}
                yield what, lambda w=work, b=blocks, n=distinct, k=nb: self._tiles("1:1", w, b, n, k)  # type: ignore[misc]

    def _tiles(self, stream: str, work: int, blocks: int, distinct: int, nb: int, buffers: int = 1) -> Row:
        kernel, size = tiles(stream, work), 228 * 1024 // nb // LINE * LINE - SYSTEM - TILE_BYTES
        half = distinct * TILE
        sets = [(self.x[i * half :], self.y[i * half :]) for i in range(buffers)]
        turns = itertools.cycle(sets)
        if not SIMULATED:
            kernel[1, THREADS](*sets[0], distinct, np.float32(2))  # compiles
            _allow(kernel, size)
        found = self.seconds(lambda on: kernel[blocks, THREADS, on, size](*next(turns), distinct, np.float32(2)))
        return found | ({} if SIMULATED else {"resident": _resident(kernel, THREADS, size)})

    def issue(self) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """Cycles of 64 multiply-adds of every warp of one block by independent chains, with and without loads."""
        s = self.sizes
        for apart, chains, warps in itertools.product(s.apart, s.chains, s.warps):

            def run(apart: int = apart, chains: int = chains, warps: int = warps) -> Row:
                kernel = issuing(chains, apart)
                found = self.counted(lambda: kernel[1, 32 * warps](s.turns, np.float32(2), self.cycles, self.out))
                return found | {"cycles": found["cycles"] / s.turns}

            yield {"apart": apart, "chains": chains, "warps": warps, "fmas": UNROLLED}, run

    def waiting(self) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """Cycles of a load that nothing hides while some of six blocks an SM copy, and what they move."""
        for space, share in itertools.product(self.sizes.spaces, self.sizes.shares):
            yield {"space": space, "share": share}, lambda space=space, share=share: self._waiting(space, share)  # type: ignore[misc]

    def _waiting(self, space: int, share: float) -> Row:
        lines, apart, s = space // LINE, LINE // 4, self.sizes
        following, done = cuda.device_array(space // 4, np.uint32), cuda.to_device(np.zeros(1, np.int32))
        kernels().ring[max(min(lines // 32, 1024), 1), min(32, lines)](following, lines, apart)
        blocks = 1 + int(share * (6 * self.device.multiprocessors - 1))
        moved, out = cuda.to_device(np.zeros(blocks, np.int64)), cuda.device_array(1, np.uint32)
        chunks, runs, tiles_moved, before = max(space // 8 // CHUNK, 1), itertools.count(1), [], 50_000

        def run() -> None:
            done.copy_to_device(np.zeros(1, np.int32))
            first = next(runs) * (lines // 16 + 1) % lines * apart
            arrays = self.x, self.y, chunks, 1 << 14, done, self.cycles, moved, out
            loaded[blocks, THREADS](following, first, s.steps, 0 if SIMULATED else before, *arrays)
            cuda.synchronize()
            tiles_moved.append(int(moved.copy_to_host()[1:].sum()))

        found = self.counted(run)
        total = found["cycles"] + before
        return found | {
            "cycles": found["cycles"] / s.steps,
            "bytes a cycle": float(np.median(tiles_moved)) * 8 * CHUNK / total,
        }

    def cold(self) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """A launch of instructions in a row, gone through once or twice; and the cycles of the first and last turn."""
        for count, blocks, threads, turns in itertools.product(
            self.sizes.instructions, (1, self.device.multiprocessors), (32, 256), (1, 2)
        ):

            def run(count: int = count, blocks: int = blocks, threads: int = threads, turns: int = turns) -> Row:
                kernel, arguments = cold(count), (turns, np.float32(2), self.cycles, self.out)
                found = self.seconds(lambda on: kernel[blocks, threads, on](*arguments))
                return found | {"turn cycles": self.counted(lambda: kernel[blocks, threads](*arguments), 2)["cycles"]}

            yield {"instructions": count, "blocks": blocks, "threads": threads, "turns": turns}, run

    def barriers(self) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """Cycles of a turn in which one warp makes dependent multiply-adds and all others wait for it."""
        for count, threads in itertools.product(self.sizes.unequal, self.sizes.threads):

            def run(count: int = count, threads: int = threads) -> Row:
                kernel, turns = unequal(count), self.sizes.turns
                found = self.counted(lambda: kernel[1, threads](turns, np.float32(2), self.cycles, self.out))
                return found | {"cycles": found["cycles"] / turns}

            yield {"fmas": count, "threads": threads}, run

    def starts(self) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """The library's kernels for no rows: each block ends at once."""
        for kernel, wavelet, threads in itertools.product(("forward", "inverse"), ("haar", "db4"), (64, 256, 1024)):
            for blocks in self.sizes.grids:
                what = {"kernel": kernel, "wavelet": wavelet, "threads": threads, "blocks": blocks}
                case = Case(kernel, wavelet, threads, 4 * TILE)
                yield what, lambda case=case, blocks=blocks: self._start(case, blocks)  # type: ignore[misc]

    def _start(self, case: Case, blocks: int) -> Row:
        from .measure import arguments_of, prepare

        ready = prepare(case)
        try:
            ((kernel, arguments),) = arguments_of(ready.work)
            given = [*arguments[:ROWS_AT], 0, *arguments[ROWS_AT + 1 :]]
            return self.seconds(lambda on: kernel[blocks, case.threads, on](*given))
        finally:
            ready.plan.release()


def _allow(kernel: Any, size: int) -> None:
    """Let the kernel have so much dynamic shared memory, if that is more than every kernel may have."""
    from cuda.bindings import driver

    if size + TILE_BYTES <= 48 << 10:
        return
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    (compiled,) = kernel.overloads.values()
    function = compiled._codelibrary.get_cufunc()
    number = int(function.handle)
    try:
        device = checked(driver.cuDeviceGet(0))
        checked(driver.cuKernelSetAttribute(most, max(size, 0), driver.CUkernel(number), device))
    except Exception:  # the handle is of a function, as with older versions of cuda.core
        checked(driver.cuFuncSetAttribute(driver.CUfunction(number), most, max(size, 0)))


def _resident(kernel: Any, threads: int, size: int) -> int:
    (compiled,) = kernel.overloads.values()
    return int(compiled.max_cooperative_grid_blocks(threads, size) // cuda.get_current_device().MULTIPROCESSOR_COUNT)


NAMES = ("streams", "ladder", "issue", "waiting", "cold", "barriers", "starts")


def rows(sizes: Regimes | None = None, names: Iterable[str] = NAMES) -> Iterator[Row]:
    """All of them on the current GPU. BackendUnavailable if there is none."""
    bench = _Bench(Device.current(), sizes or (TINY if SIMULATED else Regimes()))
    for name in names:
        for what, run in getattr(bench, name)():
            row: Row = {"what": name, **what}
            try:
                row |= run()
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"
                print(row, file=sys.stderr, flush=True)
            yield row
