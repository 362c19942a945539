"""The constants of a GPU by microbenchmarks, for the calibrated SKE model: `wavefilt ske calibrate`.

Each constant is the median of several runs; the distance of the quartiles, relative to it, is kept as its spread.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.graph import stream as new_stream
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda, describe, require
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.common.gpu_timing import Timing, measured
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske.calibration import Calibration, Operation, Table

from .microkernels import ACCESSES, LINE, OPERATIONS, SHARED_LOADS, UNROLLED, chain, kernels

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    turns: int = 64
    steps: int = 4096
    footprints: tuple[int, ...] = tuple(16 * KIB << i for i in range(17))  # to 1 GiB
    threads: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)
    warps: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    copies: tuple[int, ...] = tuple(MIB << i for i in range(11))  # to 1 GiB, read and written together
    strides: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    elements: int = 64 * MIB  # float32 of the copy by few warps
    accesses: int = 4 * MIB  # of each stride
    blocks: int = 1 << 16
    launches: int = 200
    repeats: int = 9


TINY = Sizes(2, 8, (1024, 2048, 4096), (2, 4), (1, 2), (4096, 8192), (1, 2), 64, 64, 2, 2, 1)
"""For the simulator."""


@dataclass(frozen=True)
class Device:
    """What the driver says of the current device."""

    name: str
    capability: str
    multiprocessors: int
    cache: int
    memory: int
    block: int  # threads of the blocks that fill an SM

    @staticmethod
    def current() -> Device:
        require()
        if SIMULATED:
            return Device("simulator", "9.0", 1, 8192, 1 << 30, 4)
        device = cuda.get_current_device()
        name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
        total = int(cuda.current_context().get_memory_info().total)
        capability = ".".join(map(str, device.compute_capability))
        return Device(name, capability, int(device.MULTIPROCESSOR_COUNT), int(device.L2_CACHE_SIZE), total, 1024)


Pairs = list[tuple[int, float]]


class Bench:
    """The microbenchmarks on one device; what each left of spread is in ``spread``."""

    def __init__(self, device: Device, sizes: Sizes) -> None:
        self.device, self.sizes = device, sizes
        self.multiprocessors, self.lanes = device.multiprocessors, min(32, device.block)
        self.kernels, self.spread = kernels(), dict[str, float]()
        self.cycles = cuda.to_device(np.zeros(max(2 * device.multiprocessors, 2), np.int64))

    def ticks(self, name: str, launch: Callable[[], None], blocks: int = 1) -> float:
        """Median over runs, after one to warm up, of the cycles that the blocks of a launch counted."""
        counted = []
        for _ in range(self.sizes.repeats + 1):
            launch()
            cuda.synchronize()
            counted.append(np.median(self.cycles.copy_to_host()[:blocks]))
        return self._keep(name, Timing.of(counted[1:]))

    def seconds(self, name: str, launches: int, kernel: Any, blocks: int, threads: int, *arguments: Any) -> float:
        """Median time of a launch."""
        timing = measured(lambda on: kernel[blocks, threads, on](*arguments), launches, self.sizes.repeats, 2)
        return self._keep(name, timing)

    def _keep(self, name: str, timing: Timing) -> float:
        self.spread[name] = round(timing.spread, 4)
        return timing.seconds

    def operation(self, name: str) -> Operation:
        """Latency from one warp, rate from an SM full of warps."""
        number, instructions = OPERATIONS[name]
        blocks, threads, turns = self.multiprocessors, self.device.block, self.sizes.turns
        kernel, steps = chain(name), turns * UNROLLED * instructions
        arguments = _values(number), turns, self.cycles, cuda.device_array(blocks * threads, number)
        alone = self.ticks(f"latency, {name}", partial(kernel[1, self.lanes], *arguments))
        full = self.ticks(f"rate, {name}", partial(kernel[blocks, threads], *arguments), blocks)
        return Operation(alone / steps, threads / 32 * steps / full)

    def wavefront(self, latency: float) -> Operation:
        """128 bytes of shared memory: what a cycle of its pipe moves for a warp, a quarter of a 16-byte access."""
        blocks, threads, turns = self.multiprocessors, self.device.block, self.sizes.turns
        out = cuda.device_array(blocks * threads, np.float32)
        read = partial(self.kernels.read_shared[blocks, threads], turns, self.cycles, out)
        return Operation(latency, threads / 32 * turns * 4 * SHARED_LOADS / self.ticks("rate, wavefront", read, blocks))

    def clock(self) -> float:
        """Cycles a second of an SM under arithmetic load."""
        blocks, threads = self.multiprocessors, self.device.block
        out = cuda.device_array(blocks * threads, np.float32)
        arguments = _values("float32"), 200 * self.sizes.turns, self.cycles, out
        seconds = self.seconds("clock", 1, chain("fma"), blocks, threads, *arguments)
        return float(np.median(self.cycles.copy_to_host()[:blocks])) / seconds

    def chases(self) -> Pairs:
        """Cycles of a load by the bytes that loads are spread over."""
        apart, steps, found = LINE // 4, self.sizes.steps, []
        footprints = [size for size in self.sizes.footprints if size <= self.device.memory // 4]
        following, out = cuda.device_array(footprints[-1] // 4, np.uint32), cuda.device_array(1, np.uint32)
        for size in footprints:
            lines, runs = size // LINE, itertools.count(1)
            self.kernels.ring[max(min(lines // 32, 1024), 1), min(32, lines)](following, lines, apart)

            def run(lines: int = lines, runs: Iterator[int] = runs) -> None:
                first = next(runs) * (lines // 16 + 1) % lines * apart  # elsewhere than the run before, not in L2 now
                self.kernels.chase[1, 1](following, first, min(lines, steps), steps, self.cycles, out)

            found.append((size, self.ticks(f"load, {size} bytes", run) / steps))
        return found

    def latencies(self, chases: Pairs) -> dict[str, float]:
        """Cycles of a load from each memory: of L1 the least; of L2 up to half of it; of DRAM beyond four times."""
        half, most = self.device.cache / 2, 4 * self.device.cache
        inside = [cycles for size, cycles in chases if MIB <= size <= half] or [chases[len(chases) // 2][1]]
        beyond = [cycles for size, cycles in chases if size >= most] or [chases[-1][1]]
        arguments = self.sizes.steps, self.cycles, cuda.device_array(1, np.uint32)
        shared = self.ticks("load, shared", partial(self.kernels.chase_shared[1, self.lanes], *arguments))
        least = min(cycles for _, cycles in chases)
        loads = {"l1": least, "shared": shared / self.sizes.steps}
        return loads | {"l2": float(np.median(inside)), "dram": float(np.median(beyond))}

    def barrier(self) -> Pairs:
        """Cycles of a barrier by the threads of the only block of an SM."""
        found, blocks, turns = [], self.multiprocessors, self.sizes.turns
        for threads in self.sizes.threads:
            wait = partial(self.kernels.barriers[blocks, threads], turns, self.cycles)
            found.append((threads, self.ticks(f"barrier, {threads} threads", wait, blocks) / turns))
        return found

    def launch(self) -> float:
        return self.seconds("launch", self.sizes.launches, self.kernels.empty, 1, 32)

    def queued(self) -> float:
        """An empty kernel among many in a stream, which wait behind a long one while Python queues them."""
        if SIMULATED:
            return self.launch()
        on, times = new_stream(), []
        configured = self.kernels.empty[1, 32, on]
        for _ in range(5):
            self.kernels.spin[1, 1, on](60_000_000)
            start, stop = cuda.event(), cuda.event()
            start.record(on)
            for _ in range(self.sizes.launches):
                configured()
            stop.record(on)
            stop.synchronize()
            times.append(1e-3 * cuda.event_elapsed_time(start, stop) / self.sizes.launches)
        return self._keep("launch, queued", Timing.of(times))

    def block(self, launch: float, clock: float) -> Pairs:
        """Cycles that an SM spends on starting and ending a block that does nothing."""
        found, blocks = [], self.sizes.blocks
        for threads in self.sizes.threads:
            seconds = self.seconds(f"blocks of {threads} threads", 2, self.kernels.empty, blocks, threads)
            found.append((threads, max(seconds - launch, 0.0) * clock * self.multiprocessors / blocks))
        return found

    def warps(self) -> Pairs:
        """Seconds of one copy by warps on an SM: a thread has one load under way."""
        n, most, found = self.sizes.elements, self.device.block // 32 or 1, []
        arguments = *_source_and_target(n), n, np.float32(2)
        for warps in self.sizes.warps:
            each = -(-warps // most)
            blocks, threads = each * self.multiprocessors, warps // each * self.lanes
            seconds = self.seconds(f"copy, {warps} warps", 1, self.kernels.scale, blocks, threads, *arguments)
            found.append((warps, seconds))
        return found

    def bandwidth(self) -> Pairs:
        """Bytes a second, read and written, by the bytes of both arrays."""
        threads, found = min(256, self.device.block), []
        blocks = 4 * self.multiprocessors - 1  # odd: chunks are a power of two
        sizes = [size for size in self.sizes.copies if size <= self.device.memory // 4]
        arrays = _source_and_target(sizes[-1] // 8)
        for size in sizes:
            chunks, rounds = size // 8 // (16 * threads), max(sizes[-1] // size, 1)
            arguments = self.kernels.copy, blocks, threads, *arrays, chunks, rounds
            found.append((size, rounds * size / self.seconds(f"copy of {size} bytes", 1, *arguments)))
        return found

    def strides(self) -> Pairs:
        """Time of loads whose lanes are so many elements apart, over that of neighbours."""
        n, threads, found = self.sizes.accesses, min(256, self.device.block), []
        x = cuda.to_device(np.ones(n * self.sizes.strides[-1], np.float32))
        out, blocks = cuda.device_array(1, np.float32), n // (threads * ACCESSES)
        for stride in self.sizes.strides:
            arguments = self.kernels.strided, blocks, threads, x, stride, np.float32(-1), out
            found.append((stride, self.seconds(f"stride {stride}", 4, *arguments)))
        return [(stride, seconds / found[0][1]) for stride, seconds in found]


def constants(sizes: Sizes | None = None) -> Calibration:
    """The current device measured, without fitted parameters. BackendUnavailable if there is none."""
    began = time.perf_counter()
    device = Device.current()
    bench = Bench(device, sizes or (TINY if SIMULATED else Sizes()))
    clock, launch, chases = bench.clock(), bench.launch(), bench.chases()
    latency, operations = bench.latencies(chases), {name: bench.operation(name) for name in OPERATIONS}
    operations["wavefront"] = bench.wavefront(latency["shared"])
    told: Row = {"date": date.today().isoformat(), "device": describe()}
    told["versions"] = {name: version(name) for name in ("numpy", "numba", "numba-cuda")}
    told["loads"] = [list(pair) for pair in chases]
    return Calibration(
        name=device.name,
        capability=device.capability,
        multiprocessors=device.multiprocessors,
        clock=clock,
        cache=device.cache,
        memory=device.memory,
        launch=launch,
        queued=bench.queued(),
        block=_table(bench.block(launch, clock)),
        latency=latency,
        operations=operations,
        bandwidth=_table(bench.bandwidth()),
        barrier=_table(bench.barrier()),
        strides=_table(bench.strides()),
        warps=_table(bench.warps()),
        measured=told | {"spread": bench.spread, "seconds": round(time.perf_counter() - began, 1)},
    )


def _values(number: str) -> Any:
    """What a chain is made of, a and b of x a + b and the first x: such that x stays finite."""
    return cuda.to_device(np.array([3, 5, 7] if number == "uint32" else [0.5, 1, 2], number))


def _source_and_target(n: int) -> tuple[Any, Any]:
    return cuda.to_device(np.ones(n, np.float32)), cuda.device_array(n, np.float32)


def _table(pairs: Pairs) -> Table:
    return tuple((float(at), float(value)) for at, value in pairs)
