"""The calibrated model: what the blocks of a launch wait for, issue and move, with constants of the device at hand.

An SM gets B = b/S blocks in all and holds nb of them at a time. Three times bound a launch from below:

    latency      max(B/nb, 1) · what a block waits for if it is alone: its start, loads, barriers, multiply-adds
    issue        ⌈B⌉ · what a block keeps the fullest pipe of an SM busy for
    bandwidth    all bytes at the bandwidth measured for as many

They go on beside each other, more or less: the time of the blocks is the root of the sum of their squares. If one block
takes longer than the others, it is that block's time, held up by its neighbours, if this is more. An empty launch and
the start of the first loads come to it. Every part is a constant of the device times what the launch does, times a
parameter theta >= 0 fitted once per device. If the microbenchmarks measured everything, every theta would be 1.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from .calibration import Calibration, Table
from .occupancy import CAPABILITIES, amount, count, occupancy

PARTS = ("start", "block", "memory", "barrier", "compute", "issue", "bandwidth", "crowding", "boundary")
"""The parameters: of the parts of a time, and how much longer a block of a row's ends waits than its counts say."""
LATENCY = ("block", "memory", "barrier", "compute")
PIPES = {
    "issue": ("fma", "int", "int mul", "fma64", "other"),
    "fp32": ("fma",),
    "fp64": ("fma64",),
    "memory pipe": ("wavefront",),
}
"""Which instructions each pipe of an SM issues. Integers are not among them: the assembler spreads what is declared as
such over three pipes."""
SCHEDULERS = 4
"""Of an SM: each issues for its own warps."""
START = 18.0
"""Cycles that a block's start takes for each of its warps."""
CROWDED = 7 / 8
"""Of shared memory: blocks that take more leave so little of the L1 cache that loads take more of the bandwidth."""
Seconds = dict[str, float]


@dataclass(frozen=True)
class Launch:
    """One kernel launch as the model sees it. Counts are warp instructions.

    ``instructions`` are of an average warp, by class: "fma", "fma64", "int", "int mul", and "other" for all that only
    take an issue slot; "wavefront" are not instructions but 128-byte transactions in which accesses pass the pipe of L1
    and shared memory. ``path`` are those of the warp that the others wait for, if they differ. ``loads`` are the loads
    on that path that wait for each other, "global", "l1" and "shared", ``parallel`` (ILP) the independent multiply-adds
    of a warp. Bytes ``read`` and ``written`` cross the boundary of the SMs, ``touched`` are different ones; ``halves``
    are those written by half sectors of 32 bytes at a time, which take L2 twice. ``resident`` is the number of blocks
    on an SM if it is known; else it follows from registers and shared memory. ``longest`` is a launch of the block
    alone that takes longest, if blocks differ; ``boundary`` says that blocks are of a row's ends.
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
        """Read and written."""
        return self.read + self.written


@dataclass(frozen=True)
class Parts:
    """Seconds of every part before its parameter, and how the SMs are filled.

    ``bulk`` are those of all blocks, ``end`` those of the longest if there is one, ``boundary`` says which of the two
    are of blocks of a row's ends. ``nb`` blocks and ``n`` warps are on
    an SM at a time, ``warps`` in all; ``limit`` keeps nb from being larger; ``pipe`` is the one that is full first,
    ``memory`` the level whose bandwidth counts.
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
    """``seconds`` of a launch, the ``parts`` they are the sum of, and ``resource``, what most of them is spent on.

    ``binds`` is "latency", "issue" or "bandwidth", the longest of the three times, or "end", the longest block.
    """

    name: str
    seconds: float
    parts: Mapping[str, float]
    resource: str
    binds: str
    at: Parts


def interpolated(table: Table, at: float) -> float:
    """Value of a measured table, linear in log(at) between its entries and constant beyond them."""
    after = bisect_right(table, at, key=lambda entry: entry[0])
    if after in (0, len(table)):
        return table[-1 if after else 0][1]
    (x0, y0), (x1, y1) = table[after - 1 : after + 1]
    return y0 + (y1 - y0) * math.log(at / x0) / math.log(x1 / x0)


def parts(launch: Launch, device: Calibration) -> Parts:
    """Every part of the launch's time, in seconds, each with parameter 1.

    Raises ValueError if the launch cannot run there, naming the limit.
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
        end["neighbours"] = (1 - 1 / nb) * turns * used  # what the others issue meanwhile, at most as much
    start = {"launch": device.launch, "start": device.launch if launch.bytes else 0.0}
    memory = "DRAM" if launch.touched > device.cache else "L2"
    limit = held.limit if nb == held.blocks else "grid"
    boundary = launch.boundary, launch.longest is not None and launch.longest.boundary
    return Parts(start, bulk, end, boundary, nb, nb * across, turns * across, limit, pipe, memory)


def _waits(launch: Launch, touched: float, device: Calibration, across: int) -> Seconds:
    """What a block alone on an SM waits for, from its start to its end; loads are from what is ``touched`` in all."""
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
    """The pipe that a block keeps busy for longest if nb are there, and for how many seconds."""
    rates = {name: operation.rate for name, operation in device.operations.items()}
    slots = max(rates.values())  # of all chains one comes closest to filling the issue slots
    slots *= min(nb * across / SCHEDULERS, 1.0)

    def busy(name: str) -> float:
        return sum(launch.instructions.get(i, 0.0) / (slots if name == "issue" else rates[i]) for i in PIPES[name])

    pipe = max(PIPES, key=busy)
    return pipe, across * busy(pipe) / device.clock


def _moved(launch: Launch, device: Calibration) -> float:
    """Seconds of all bytes, and through L2 with those again that are written by halves, if that is more."""

    def seconds(read: float, written: float, touched: float) -> float:
        """As many of each kind as of the other go together, the rest by themselves."""
        both = min(read, written)
        ways = (device.bandwidth, 2 * both), (device.reads, read - both), (device.writes, written - both)
        return sum(size / interpolated(table or device.bandwidth, touched) for table, size in ways if size)

    through = seconds(launch.read, launch.written + launch.halves, min(launch.touched, device.cache / 2))
    return max(seconds(launch.read, launch.written, launch.touched), through)


def estimate(launch: Launch, device: Calibration) -> CalibratedEstimate:
    """Time of the launch on the device. Raises ValueError if it cannot run there."""
    at = parts(launch, device)
    found, binds = weighed(at, device.theta)
    most = max(found, key=lambda name: found[name])
    what = {"issue": at.pipe, "bandwidth": f"{at.memory} bandwidth", "compute": "instruction latency"}
    what |= {"memory": "memory latency", "barrier": "barriers", "start": "launch", "block": "start of blocks"}
    return CalibratedEstimate(launch.name, sum(found.values()), found, what.get(most, most), binds, at)


def weighed(at: Parts, theta: Mapping[str, float]) -> tuple[Seconds, str]:
    """The parts that a time is the sum of, in seconds, and what binds it."""
    factors = [theta.get("boundary", 1.0) if boundary else 1.0 for boundary in at.boundary]
    bulk, end = (
        {name: (factor if name in LATENCY else 1.0) * theta.get(name, 1.0) * x for name, x in seconds.items()}
        for seconds, factor in zip((at.bulk, at.end), factors, strict=True)
    )
    bulk["bandwidth"] += bulk.pop("crowding")
    latency = sum(bulk[name] for name in LATENCY)
    times = {"latency": latency, "issue": bulk["issue"], "bandwidth": bulk["bandwidth"]}
    whole, binds = math.hypot(*times.values()), max(times, key=lambda name: times[name])
    over = 1 / (whole or 1.0)  # parts of a root of squares are in proportion to the squares
    found = {name: x * over * (latency if name in LATENCY else x) for name, x in bulk.items()}
    if end:
        neighbours = theta.get("issue", 1.0) * end.pop("neighbours")
        end["issue"] += min(neighbours, sum(end.values()))
        if sum(end.values()) > whole:
            found, binds = {**end, "bandwidth": 0.0}, "end"
    return {name: theta.get(name, 1.0) * x for name, x in at.start.items()} | found, binds
