"""The calibrated model: latency, instruction issue and memory traffic of a launch, with constants of the device.

An SM executes B = b/S blocks in total, nb of them concurrently. Three times are lower bounds of a launch:

    latency      max(B/nb, 1) · latency of a single block: start, loads, barriers, multiply-adds
    issue        ⌈B⌉ · time that a block occupies the busiest pipe of an SM
    bandwidth    bytes read and written over the bandwidth measured for that many bytes

They overlap in part: the time of all blocks is the root of the sum of their squares, or the time of the longest block,
slowed by its neighbours, if that is larger. The launch overhead and the start of the first loads are added. Each part
is multiplied by a parameter theta >= 0, fitted once per device; every theta would be 1 if the microbenchmarks explained
everything.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from .devices import Calibration, Table
from .occupancy import CAPABILITIES, amount, count, occupancy

PARTS = ("start", "block", "memory", "barrier", "compute", "issue", "bandwidth", "crowding", "boundary")
"""Names of the parameters: one for each part of a time, and "boundary", a factor of the latency of boundary blocks."""
LATENCY = ("block", "memory", "barrier", "compute")
PIPES = {
    "issue": ("fma", "int", "int mul", "fma64", "other"),
    "fp32": ("fma",),
    "fp64": ("fma64",),
    "memory pipe": ("wavefront",),
}
"""Instructions that each pipe of an SM issues. Integer instructions have no pipe of their own here, because the
assembler distributes them over three pipes."""
SCHEDULERS = 4
"""Schedulers of an SM; each issues instructions of its own warps."""
START = 18.0
"""Cycles per warp to start a block."""
CROWDED = 7 / 8
"""Share of the shared memory; if resident blocks take more, the remaining L1 cache is so small that loads cost
additional bandwidth."""
Seconds = dict[str, float]


@dataclass(frozen=True)
class Launch:
    """Operation counts of one kernel launch.

    Parameters
    ----------
    blocks, threads : int
        Blocks of the grid, and threads per block.
    instructions : mapping
        Warp instructions of an average warp, by class: "fma", "fma64", "int", "int mul", and "other" for instructions
        that only take an issue slot. "wavefront" counts 128-byte transactions of L1 and shared memory.
    loads : mapping
        Dependent loads of the longest warp, from "global", "l1" and "shared".
    barriers : float
    read, written, touched : float
        Bytes read and written by the SMs, and the size of the memory they access.
    halves : float
        Bytes written in half sectors of 32 bytes, which pass L2 twice.
    path : mapping
        Instructions of the longest warp, if they differ from ``instructions``.
    parallel : float
        Independent multiply-adds of a warp (ILP).
    registers, shared : int
        Registers per thread, and bytes of shared memory per block.
    resident : int
        Resident blocks of an SM; 0 derives them from registers and shared memory.
    longest : Launch, optional
        A launch of the longest block alone, if blocks differ.
    boundary : bool
        Whether the blocks are those at the ends of rows.
    """

    name: str
    blocks: int
    threads: int
    instructions: Mapping[str, float]
    loads: Mapping[str, float] = field(default_factory=dict)
    barriers: float = 0
    read: float = 0
    written: float = 0
    touched: float = 0
    halves: float = 0
    path: Mapping[str, float] = field(default_factory=dict)
    parallel: float = 4
    registers: int = 0
    shared: int = 0
    resident: int = 0
    longest: Launch | None = None
    boundary: bool = False

    def __post_init__(self) -> None:
        for name in ("blocks", "threads"):
            count(name, getattr(self, name), 1)
        for name in ("registers", "shared", "resident"):
            count(name, getattr(self, name))
        for name in ("barriers", "read", "written", "touched", "halves"):
            amount(name, getattr(self, name))
        for name, value in {**self.instructions, **self.path, **self.loads}.items():
            amount(name, value)
        if not amount("parallel", self.parallel):
            raise ValueError("parallel=0 must be the independent instructions of a warp, at least 1")

    @property
    def bytes(self) -> float:
        """Bytes read and written."""
        return self.read + self.written


@dataclass(frozen=True)
class Parts:
    """Seconds of every part with parameter 1, and the occupancy.

    ``bulk`` holds the parts of all blocks and ``end`` those of the longest block, if there is one; ``boundary`` says
    for each of the two whether its blocks are at the ends of rows. ``nb`` blocks and ``n`` warps are resident on an SM,
    which executes ``warps`` in total; ``limit`` is the resource that limits nb. ``pipe`` is the busiest pipe, and
    ``memory`` the memory whose bandwidth counts.
    """

    start: Seconds
    bulk: Seconds
    end: Seconds
    boundary: tuple[bool, bool]
    nb: int
    n: int
    warps: int
    limit: str
    pipe: str
    memory: str


@dataclass(frozen=True)
class CalibratedEstimate:
    """Estimated ``seconds`` of a launch, which are the sum of ``parts``; ``resource`` names the largest part.

    ``binds`` is "latency", "issue" or "bandwidth", the longest of the three times, or "end", the longest block.
    ``at`` has the parts before their parameters, and the occupancy.
    """

    name: str
    seconds: float
    parts: Mapping[str, float]
    resource: str
    binds: str
    at: Parts


def interpolated(table: Table, at: float) -> float:
    """Interpolate a measured table: linear in log(at) between its entries, constant outside."""
    after = bisect_right(table, at, key=lambda entry: entry[0])
    if after in (0, len(table)):
        return table[-1 if after else 0][1]
    (x0, y0), (x1, y1) = table[after - 1 : after + 1]
    return y0 + (y1 - y0) * math.log(at / x0) / math.log(x1 / x0)


def parts(launch: Launch, device: Calibration) -> Parts:
    """Return the parts of the launch's time, each with parameter 1.

    Raises ValueError, naming the limit, if the launch cannot run on the device.
    """
    cap = CAPABILITIES[device.capability]
    held = occupancy(cap, launch.threads, launch.registers, launch.shared)
    turns = -(-launch.blocks // device.multiprocessors)
    nb = min(launch.resident or held.blocks, turns)
    across = -(-launch.threads // cap.warp)
    pipe, used = _fullest(launch, device, across, nb)
    waves = max(launch.blocks / device.multiprocessors / nb, 1.0)
    bulk = {name: waves * value for name, value in _waits(launch, launch.touched, device, across).items()}
    moved = _moved(launch, device)
    crowded = nb * (launch.shared + cap.shared_reserved) > CROWDED * cap.shared
    bulk |= {"issue": turns * used, "bandwidth": moved, "crowding": moved * crowded}
    end = Seconds()
    if launch.longest is not None:
        end = _waits(launch.longest, launch.touched, device, across)
        end["issue"] = _fullest(launch.longest, device, across, 1)[1]
        end["neighbours"] = (1 - 1 / nb) * turns * used  # issued by the other blocks meanwhile
    start = {"launch": device.launch, "start": device.launch if launch.bytes else 0.0}
    memory = "DRAM" if launch.touched > device.cache else "L2"
    limit = held.limit if nb == held.blocks else "grid"
    boundary = launch.boundary, launch.longest is not None and launch.longest.boundary
    return Parts(start, bulk, end, boundary, nb, nb * across, turns * across, limit, pipe, memory)


def _waits(launch: Launch, touched: float, device: Calibration, across: int) -> Seconds:
    """Return the latencies of a block that is alone on an SM; ``touched`` bytes decide where global loads hit."""
    cycle, latency, path = 1 / device.clock, device.latency, launch.path or launch.instructions
    beyond = min(max(math.log2(2 * touched / device.cache), 0.0), 1.0) if touched else 0.0
    places = {**latency, "global": latency["l2"] + beyond * (latency["dram"] - latency["l2"])}
    kinds = [(name, device.operations[name].latency) for name in ("fma", "fma64") if name in path]
    cycles = {
        "block": START * across,
        "memory": sum(m * places[name] for name, m in launch.loads.items()),
        "barrier": launch.barriers * interpolated(device.barrier, launch.threads),
        "compute": sum(path[name] * cycles for name, cycles in kinds) / launch.parallel,
    }
    return {name: value * cycle for name, value in cycles.items()}


def _fullest(launch: Launch, device: Calibration, across: int, nb: int) -> tuple[str, float]:
    """Return the pipe that a block occupies longest, if nb blocks are resident, and the seconds."""
    rates = {name: operation.rate for name, operation in device.operations.items()}
    slots = max(rates.values())  # the measured chain that fills the issue slots best
    slots *= min(nb * across / SCHEDULERS, 1.0)

    def busy(name: str) -> float:
        return sum(launch.instructions.get(i, 0.0) / (slots if name == "issue" else rates[i]) for i in PIPES[name])

    pipe = max(PIPES, key=busy)
    return pipe, across * busy(pipe) / device.clock


def _moved(launch: Launch, device: Calibration) -> float:
    """Return the seconds to move all bytes, or to move them through L2 with half sectors counted twice, if longer."""

    def seconds(read: float, written: float, touched: float) -> float:
        """Count equal amounts of reads and writes at the copy bandwidth, and the rest at its own."""
        both = min(read, written)
        ways = (device.bandwidth, 2 * both), (device.reads, read - both), (device.writes, written - both)
        return sum(size / interpolated(table or device.bandwidth, touched) for table, size in ways if size)

    through = seconds(launch.read, launch.written + launch.halves, min(launch.touched, device.cache / 2))
    return max(seconds(launch.read, launch.written, launch.touched), through)


def estimate(launch: Launch, device: Calibration) -> CalibratedEstimate:
    """Estimate the time of the launch on the device. Raises ValueError if it cannot run there."""
    at = parts(launch, device)
    found, binds = weighed(at, device.theta)
    most = max(found, key=lambda name: found[name])
    what = {"issue": at.pipe, "bandwidth": f"{at.memory} bandwidth", "compute": "instruction latency"}
    what |= {"memory": "memory latency", "barrier": "barriers", "start": "launch", "block": "start of blocks"}
    return CalibratedEstimate(launch.name, sum(found.values()), found, what.get(most, most), binds, at)


def weighed(at: Parts, theta: Mapping[str, float]) -> tuple[Seconds, str]:
    """Return the parts whose sum is the estimated time, in seconds, and the name of the longest bound."""
    factors = [theta.get("boundary", 1.0) if boundary else 1.0 for boundary in at.boundary]
    bulk, end = (
        {name: (factor if name in LATENCY else 1.0) * theta.get(name, 1.0) * x for name, x in seconds.items()}
        for seconds, factor in zip((at.bulk, at.end), factors, strict=True)
    )
    bulk["bandwidth"] += bulk.pop("crowding")
    latency = sum(bulk[name] for name in LATENCY)
    times = {"latency": latency, "issue": bulk["issue"], "bandwidth": bulk["bandwidth"]}
    whole, binds = math.hypot(*times.values()), max(times, key=lambda name: times[name])
    over = 1 / (whole or 1.0)  # each part counts in proportion to its square
    found = {name: x * over * (latency if name in LATENCY else x) for name, x in bulk.items()}
    if end:
        neighbours = theta.get("issue", 1.0) * end.pop("neighbours")
        end["issue"] += min(neighbours, sum(end.values()))
        if sum(end.values()) > whole:
            found, binds = {**end, "bandwidth": 0.0}, "end"
    return {name: theta.get(name, 1.0) * x for name, x in at.start.items()} | found, binds
