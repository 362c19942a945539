"""Measure the constants of a GPU for the calibrated SKE model: `wavefilt ske calibrate`.

Each constant is the median of several runs; its spread is the distance of the quartiles relative to the median. Kernels
with an argument ``cycles`` write the elapsed clock cycles of each block there, so that launch overhead is not measured.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda, describe, require
from wavefilt.backends.cuda.runtime.wide import load4, store
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.common.measuring import gpu_time, summary
from wavefilt.benchmarks.common.tables import Row, Times, spread
from wavefilt.ske.devices import Calibration, Operation, Table

KIB, MIB = 1 << 10, 1 << 20
UNROLLED = 64
"""Operations in the body of a chain's loop, so that the loop itself costs little."""
LINE = 128
"""Bytes of a cache line, the stride of a pointer chase."""
SHARED_LOADS = 16
"""16-byte loads per thread and turn of ``read_shared``."""

if SIMULATED:

    def ticks() -> int:
        return time.perf_counter_ns()

else:
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def ticks(typing: Any) -> Any:
        """Return the clock cycles of this multiprocessor."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [])
            return builder.call(ir.InlineAsm(kind, "mov.u64 $0, %clock64;", "=l,~{memory}", side_effect=True), [])

        return types.int64(), generate


OPERATIONS: dict[str, tuple[str, int]] = {
    "fma": ("float32", 1),
    "fma64": ("float64", 1),
    "add and flip": ("uint32", 2),
}
"""Operations of chains: the data type, and the instructions per step."""


@cache
def chain(operation: str) -> Any:
    """Return a kernel in which every thread executes ``turns`` times `UNROLLED` dependent steps."""
    number = np.dtype(OPERATIONS[operation][0]).type
    unrolled = UNROLLED
    half = number(0.5) if number is not np.uint32 else number(3)
    steps = {
        # a literal factor: three register operands would halve the rate, because the banks deliver two per cycle
        "fma": lambda x, a, b: x * half + b,
        "fma64": lambda x, a, b: x * a + b,
        # two pipes: the assembler moves the addition to the pipe of multiplications
        "add and flip": lambda x, a, b: (x + a) ^ b,
    }
    step = cuda.jit(device=True, inline="always")(steps[operation])

    @cuda.jit
    def chain_kernel(values, turns, cycles, out):
        a, b = values[0], values[1]
        x = values[2] + number(cuda.threadIdx.x)
        cuda.syncthreads()
        start = ticks()
        for _ in range(turns):
            for _ in range(unrolled):
                x = number(step(x, a, b))
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cycles[cuda.blockIdx.x] = ticks() - start
        out[cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x] = x

    return chain_kernel


@cache
def kernels() -> SimpleNamespace:
    """Return the other kernels, by name."""
    shared_loads, ring_size, room = SHARED_LOADS, 1024, 4096

    @cuda.jit
    def empty():
        pass

    @cuda.jit
    def ring(following, lines, apart):
        """Link all lines (a power of two) to one cycle in an unpredictable order."""
        first, step = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, cuda.gridDim.x * cuda.blockDim.x
        for i in range(first, lines, step):
            following[i * apart] = ((i * 1664525 + 1013904223) & (lines - 1)) * apart

    @cuda.jit
    def chase(following, first, before, steps, cycles, out):
        """Follow the links with one thread: ``before`` untimed steps, then ``steps`` timed ones."""
        place = following[first]
        for _ in range(before):
            place = following[place]
        start = ticks()
        for _ in range(steps):
            place = following[place]
        out[0] = place  # before the clock is read
        cycles[0] = ticks() - start

    @cuda.jit
    def chase_shared(steps, cycles, out):
        following = cuda.shared.array(ring_size, np.uint32)
        for i in range(cuda.threadIdx.x, ring_size, cuda.blockDim.x):
            following[i] = (i + 33) & (ring_size - 1)
        cuda.syncthreads()
        place = following[cuda.threadIdx.x]
        start = ticks()
        for _ in range(steps):
            place = following[place]
        out[0] = place
        cycles[0] = ticks() - start

    @cuda.jit
    def read_shared(turns, cycles, out):
        """Saturate shared memory with 16-byte loads without bank conflicts."""
        buffer = cuda.shared.array(room, np.float32)
        thread = cuda.threadIdx.x
        for i in range(thread, room, cuda.blockDim.x):
            buffer[i] = i
        a = b = c = d = np.float32(0)
        cuda.syncthreads()
        start = ticks()
        for turn in range(turns):
            for j in range(shared_loads):
                e, f, g, h = load4(buffer, 4 * ((thread + 32 * (turn + j)) & (ring_size - 1)))
                a += e
                b += f
                c += g
                d += h
        cuda.syncthreads()
        if thread == 0:
            cycles[cuda.blockIdx.x] = ticks() - start
        out[cuda.blockIdx.x * cuda.blockDim.x + thread] = (a + b) + (c + d)

    @cuda.jit
    def copy(x, y, chunks, rounds):
        """Copy in 16-byte accesses, four per thread in flight, ``rounds`` times over all chunks.

        A chunk is four accesses of every thread of a block. For several rounds, the numbers of blocks and chunks must
        be coprime, so that a block does not find its own data in its L1 cache.
        """
        width = cuda.blockDim.x
        for item in range(cuda.blockIdx.x, chunks * rounds, cuda.gridDim.x):
            v = 16 * (item % chunks) * width + 4 * cuda.threadIdx.x
            a, b = load4(x, v), load4(x, v + 4 * width)
            c, d = load4(x, v + 8 * width), load4(x, v + 12 * width)
            store(y, v, a)
            store(y, v + 4 * width, b)
            store(y, v + 8 * width, c)
            store(y, v + 12 * width, d)

    @cuda.jit
    def read(x, never, out):
        """Read one chunk per block; the sum is stored only if it is ``never``."""
        width, total = cuda.blockDim.x, np.float32(0)
        for i in range(4):
            a, b, c, d = load4(x, 16 * cuda.blockIdx.x * width + 4 * (cuda.threadIdx.x + i * width))
            total += (a + b) + (c + d)
        if total == never:
            out[0] = total

    @cuda.jit
    def write(y, value):
        """Write one chunk per block."""
        width = cuda.blockDim.x
        for i in range(4):
            store(y, 16 * cuda.blockIdx.x * width + 4 * (cuda.threadIdx.x + i * width), (value, value, value, value))

    @cuda.jit
    def barriers(turns, cycles):
        cuda.syncthreads()
        start = ticks()
        for _ in range(turns):
            cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cycles[cuda.blockIdx.x] = ticks() - start

    every = (empty, ring, chase, chase_shared, read_shared, copy, read, write, barriers)
    return SimpleNamespace(**{f.__name__: f for f in every})


@dataclass(frozen=True)
class Sizes:
    """Sizes of the microbenchmarks."""

    turns: int = 64
    steps: int = 4096
    footprints: tuple[int, ...] = tuple(16 * KIB << i for i in range(17))  # to 1 GiB
    threads: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)
    copies: tuple[int, ...] = tuple(MIB << i for i in range(11))  # to 1 GiB, read and written together
    streams: tuple[int, ...] = tuple(4 * MIB << i for i in range(8))  # to 512 MiB
    launches: int = 200
    repeats: int = 9


TINY = Sizes(2, 8, (1024, 2048, 4096), (2, 4), (4096, 8192), (4096, 8192, 16384), 2, 1)
"""For the simulator."""


@dataclass(frozen=True)
class Device:
    """Properties of the current device, as the driver reports them."""

    name: str
    capability: str
    multiprocessors: int
    cache: int
    memory: int
    block: int  # threads of blocks that fill an SM

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
    """The microbenchmarks on one device; ``spread`` is that of each measurement."""

    def __init__(self, device: Device, sizes: Sizes) -> None:
        self.device, self.sizes = device, sizes
        self.multiprocessors, self.lanes = device.multiprocessors, min(32, device.block)
        self.kernels, self.spread = kernels(), dict[str, float]()
        self.cycles = cuda.to_device(np.zeros(max(2 * device.multiprocessors, 2), np.int64))

    def ticks(self, name: str, launch: Callable[[], None], blocks: int = 1) -> float:
        """Return the median over runs, after one to warm up, of the cycles counted by the blocks of a launch."""
        counted = []
        for _ in range(self.sizes.repeats + 1):
            launch()
            cuda.synchronize()
            counted.append(np.median(self.cycles.copy_to_host()[:blocks]))
        return self._keep(name, summary(counted[1:]))

    def seconds(self, name: str, launches: int, kernel: Any, blocks: int, threads: int, *arguments: Any) -> float:
        """Return the median time of a launch."""
        timing = gpu_time(lambda on: kernel[blocks, threads, on](*arguments), launches, self.sizes.repeats, 2)
        return 1e-3 * self._keep(name, timing)

    def _keep(self, name: str, found: Times) -> float:
        self.spread[name] = round(2 * spread(found), 4)
        return found["median"]

    def operation(self, name: str) -> Operation:
        """Measure the latency with one warp, the rate with fully occupied SMs."""
        number, instructions = OPERATIONS[name]
        blocks, threads, turns = self.multiprocessors, self.device.block, self.sizes.turns
        kernel, steps = chain(name), turns * UNROLLED * instructions
        arguments = _values(number), turns, self.cycles, cuda.device_array(blocks * threads, number)
        alone = self.ticks(f"latency, {name}", partial(kernel[1, self.lanes], *arguments))
        full = self.ticks(f"rate, {name}", partial(kernel[blocks, threads], *arguments), blocks)
        return Operation(alone / steps, threads / 32 * steps / full)

    def wavefront(self, latency: float) -> Operation:
        """Measure the rate of 128-byte transactions of shared memory, a quarter of a warp's 16-byte access."""
        blocks, threads, turns = self.multiprocessors, self.device.block, self.sizes.turns
        out = cuda.device_array(blocks * threads, np.float32)
        read = partial(self.kernels.read_shared[blocks, threads], turns, self.cycles, out)
        return Operation(latency, threads / 32 * turns * 4 * SHARED_LOADS / self.ticks("rate, wavefront", read, blocks))

    def clock(self) -> float:
        """Measure the clock frequency under arithmetic load."""
        blocks, threads = self.multiprocessors, self.device.block
        out = cuda.device_array(blocks * threads, np.float32)
        arguments = _values("float32"), 200 * self.sizes.turns, self.cycles, out
        seconds = self.seconds("clock", 1, chain("fma"), blocks, threads, *arguments)
        return float(np.median(self.cycles.copy_to_host()[:blocks])) / seconds

    def chases(self) -> Pairs:
        """Measure the latency of loads against the size of the accessed memory."""
        apart, steps, found = LINE // 4, self.sizes.steps, []
        footprints = [size for size in self.sizes.footprints if size <= self.device.memory // 4]
        following, out = cuda.device_array(footprints[-1] // 4, np.uint32), cuda.device_array(1, np.uint32)
        for size in footprints:
            lines, runs = size // LINE, itertools.count(1)
            self.kernels.ring[max(min(lines // 32, 1024), 1), min(32, lines)](following, lines, apart)

            def run(lines: int = lines, runs: Iterator[int] = runs) -> None:
                first = next(runs) * (lines // 16 + 1) % lines * apart  # elsewhere than in the run before
                self.kernels.chase[1, 1](following, first, min(lines, steps), steps, self.cycles, out)

            found.append((size, self.ticks(f"load, {size} bytes", run) / steps))
        return found

    def latencies(self, chases: Pairs) -> dict[str, float]:
        """Return the latency of L1 (the least), of L2 (up to half of it) and of DRAM (beyond four times L2)."""
        half, most = self.device.cache / 2, 4 * self.device.cache
        inside = [cycles for size, cycles in chases if MIB <= size <= half] or [chases[len(chases) // 2][1]]
        beyond = [cycles for size, cycles in chases if size >= most] or [chases[-1][1]]
        arguments = self.sizes.steps, self.cycles, cuda.device_array(1, np.uint32)
        shared = self.ticks("load, shared", partial(self.kernels.chase_shared[1, self.lanes], *arguments))
        least = min(cycles for _, cycles in chases)
        loads = {"l1": least, "shared": shared / self.sizes.steps}
        return loads | {"l2": float(np.median(inside)), "dram": float(np.median(beyond))}

    def barrier(self) -> Pairs:
        """Measure the cycles of a barrier against the threads of the only block of an SM."""
        found, blocks, turns = [], self.multiprocessors, self.sizes.turns
        for threads in self.sizes.threads:
            wait = partial(self.kernels.barriers[blocks, threads], turns, self.cycles)
            found.append((threads, self.ticks(f"barrier, {threads} threads", wait, blocks) / turns))
        return found

    def bandwidth(self) -> Pairs:
        """Measure the bandwidth of repeated copies against the bytes of both arrays."""
        threads, found = min(256, self.device.block), []
        blocks = 4 * self.multiprocessors - 1  # odd, since chunks are a power of two
        sizes = [size for size in self.sizes.copies if size <= self.device.memory // 4]
        arrays = _source_and_target(sizes[-1] // 8)
        for size in sizes:
            chunks, rounds = size // 8 // (16 * threads), max(sizes[-1] // size, 1)
            arguments = self.kernels.copy, blocks, threads, *arrays, chunks, rounds
            found.append((size, rounds * size / self.seconds(f"copy of {size} bytes", 1, *arguments)))
        return found

    def streams(self) -> dict[str, Pairs]:
        """Measure the bandwidth of blocks that read, write or copy one chunk each, against the bytes touched.

        Each value is that of the bytes a launch moves more than the smallest launch.
        """
        threads = min(256, self.device.block)
        sizes = [size for size in self.sizes.streams if size <= self.device.memory // 4]
        (x, y), out = _source_and_target(sizes[-1] // 4), cuda.device_array(1, np.float32)
        zero, found = np.float32(0), dict[str, Pairs]()
        for name, bytes_per_chunk in {"read": 64 * threads, "write": 64 * threads, "copy": 128 * threads}.items():
            times = []
            for size in sizes:
                blocks = size // bytes_per_chunk
                arguments = {"read": (x, zero - 1, out), "write": (y, zero), "copy": (x, y, blocks, 1)}[name]
                kernel = getattr(self.kernels, name)
                launches = sizes[-1] // size  # one small launch is shorter than its timing is precise
                label = f"one-shot {name} of {size} bytes"
                times.append(self.seconds(label, launches, kernel, blocks, threads, *arguments))
            pairs = zip(sizes[1:], times[1:], strict=True)
            found[name] = [(size, (size - sizes[0]) / max(seconds - times[0], 1e-12)) for size, seconds in pairs]
        return found


def constants() -> Calibration:
    """Measure the current device, without fitted parameters. Raises BackendUnavailable if there is none."""
    began = time.perf_counter()
    device = Device.current()
    bench = Bench(device, TINY if SIMULATED else Sizes())
    chases, streams = bench.chases(), bench.streams()
    latency, operations = bench.latencies(chases), {name: bench.operation(name) for name in OPERATIONS}
    operations["wavefront"] = bench.wavefront(latency["shared"])
    inside = [pair for pair in bench.bandwidth() if pair[0] <= device.cache]
    beyond = [pair for pair in streams["copy"] if pair[0] > device.cache]  # as kernels read and write: once
    facts: Row = {"date": date.today().isoformat(), "device": describe()}
    facts["versions"] = {name: version(name) for name in ("numpy", "numba", "numba-cuda")}
    facts["loads"] = [list(pair) for pair in chases]
    return Calibration(
        name=device.name,
        capability=device.capability,
        multiprocessors=device.multiprocessors,
        clock=bench.clock(),
        cache=device.cache,
        memory=device.memory,
        launch=bench.seconds("launch", bench.sizes.launches, bench.kernels.empty, 1, 32),
        latency=latency,
        operations=operations,
        bandwidth=_table([*inside, *beyond]),
        reads=_table(streams["read"]),
        writes=_table(streams["write"]),
        barrier=_table(bench.barrier()),
        measured=facts | {"spread": bench.spread, "seconds": round(time.perf_counter() - began, 1)},
    )


def _values(number: str) -> Any:
    """Return a, b and the first x of a chain, such that x stays finite."""
    return cuda.to_device(np.array([3, 5, 7] if number == "uint32" else [0.5, 1, 2], number))


def _source_and_target(n: int) -> tuple[Any, Any]:
    return cuda.to_device(np.ones(n, np.float32)), cuda.device_array(n, np.float32)


def _table(pairs: Pairs) -> Table:
    return tuple((float(at), float(value)) for at, value in pairs)
