"""The calibrated model: the skeleton of SKE with constants of the device at hand, and bounds for hiding.

An SM gets B = b/S blocks in all and holds nb of them at a time. Alone, a block takes what it waits for and what it uses
of the SM, one after the other; what nb blocks share is busy nb times as long:

    steady      (B/nb) block + (1 - 1/nb) floor     the law latency/n + floor, exact for one block at a time
    end         longest + min(floor, longest)       the block that takes longest, held up by its neighbours

where ``floor`` is the longer of what all B blocks keep the fullest pipe of an SM busy for, and of all bytes at the
bandwidth measured for as many. The time is that of an empty launch and the longer of both: a sum of parts, each a
constant of the device times what the launch does, times a parameter theta >= 0 fitted once per device. If the
microbenchmarks measured everything, every theta would be 1.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from .calibration import Calibration, Table
from .occupancy import CAPABILITIES, amount, count, occupancy

PARTS = ("start", "compute", "memory", "barrier", "issue", "bandwidth")
"""The parts with a parameter. Beside them an empty launch is taken as measured."""
PIPES = {
    "issue": ("fma", "int", "int mul", "fma64", "other"),
    "fp32": ("fma",),
    "fp64": ("fma64",),
    "memory pipe": ("wavefront",),
}
"""Which instructions each pipe of an SM issues. Integers are not among them: the assembler spreads what is declared as
such over three pipes."""
Seconds = dict[str, float]


@dataclass(frozen=True)
class Launch:
    """One kernel launch as the model sees it. Counts are warp instructions.

    ``instructions`` are of an average warp, by class: "fma", "fma64", "int", "int mul", and "other" for all that only
    take an issue slot; "wavefront" are not instructions but 128-byte transactions in which accesses pass the pipe of L1
    and shared memory. ``path`` are those of the warp that the others wait for, if they differ. ``loads`` are the loads
    on that path that wait for each other, "global", "l1" and "shared", ``parallel`` (ILP) the independent instructions
    of a warp. ``bytes`` cross the boundary of the SMs, ``touched`` are different ones. ``resident`` is the number of
    blocks on an SM if it is known; else it follows from registers and shared memory. ``longest`` is a launch of the
    block alone that takes longest, if blocks differ.
    """

    name: str
    blocks: int
    threads: int
    instructions: Mapping[str, float]
    loads: Mapping[str, float] = field(default_factory=dict)
    barriers: float = 0
    bytes: float = 0
    touched: float = 0
    path: Mapping[str, float] = field(default_factory=dict)
    parallel: float = 4
    registers: int = 0
    shared: int = 0
    resident: int = 0
    longest: Launch | None = None

    def __post_init__(self) -> None:
        for name in ("blocks", "threads"):
            count(name, getattr(self, name), 1)
        for name in ("registers", "shared", "resident"):
            count(name, getattr(self, name))
        for name in ("barriers", "bytes", "touched"):
            amount(name, getattr(self, name))
        for name, value in {**self.instructions, **self.path, **self.loads}.items():
            amount(name, value)
        if not amount("parallel", self.parallel):
            raise ValueError("parallel=0 must be the independent instructions of a warp, at least 1")


@dataclass(frozen=True)
class Parts:
    """Seconds of every part before its parameter, and how the SMs are filled.

    What ``binds`` is "latency", "floor" or "end", the longest block. ``nb`` blocks and ``n`` warps are on an SM at a
    time, ``warps`` in all; ``limit`` keeps nb from being larger;
    ``pipe`` is the one that is full first, ``memory`` the level whose bandwidth counts.
    """

    seconds: Mapping[str, float]
    binds: str
    nb: int
    n: int
    warps: int
    limit: str
    pipe: str
    memory: str


@dataclass(frozen=True)
class CalibratedEstimate:
    """``seconds`` of a launch, the ``parts`` they are the sum of, and ``resource``, what most of them is spent on."""

    name: str
    seconds: float
    parts: Mapping[str, float]
    resource: str
    at: Parts


def interpolated(table: Table, at: float) -> float:
    """Value of a measured table, linear in log(at) between its entries and constant beyond them."""
    after = bisect_right(table, at, key=lambda entry: entry[0])
    if after in (0, len(table)):
        return table[-1 if after else 0][1]
    (x0, y0), (x1, y1) = table[after - 1 : after + 1]
    return y0 + (y1 - y0) * math.log(at / x0) / math.log(x1 / x0)


def parts(launch: Launch, device: Calibration) -> Parts:
    """Every part of the launch's time, in seconds, each with parameter 1; which of the times it is depends on theta.

    Raises ValueError if the launch cannot run there, naming the limit.
    """
    cap = CAPABILITIES[device.capability]
    held = occupancy(cap, launch.threads, launch.registers, launch.shared)
    turns = -(-launch.blocks // device.multiprocessors)
    nb = min(launch.resident or held.blocks, turns)
    across = -(-launch.threads // cap.warp)
    share = max(launch.blocks / device.multiprocessors, 1.0)  # blocks of an average SM
    pipe, used = _fullest(launch, device, across)
    alone = _block(launch, device, across)
    in_memory = launch.bytes / interpolated(device.bandwidth, launch.touched) if launch.bytes else 0.0
    floors = {"issue": share * used}, {"bandwidth": in_memory}
    floor = max(floors, key=lambda seconds: _weighed(seconds, device))
    waves = max(share / nb, 1.0)
    together = {name: waves * value for name, value in alone.items()}
    binds = "latency" if _weighed(together, device) > _weighed(floor, device) else "floor"
    together = {name: value + (1 - 1 / nb) * floor.get(name, 0.0) for name, value in together.items()}
    if launch.longest is not None:
        end = _block(launch.longest, device, across)
        delay = min(_weighed(floor, device) if nb > 1 else 0.0, _weighed(end, device))
        weight = delay / (_weighed(floor, device) or 1.0)
        end = {name: value + weight * floor.get(name, 0.0) for name, value in end.items()}
        if _weighed(end, device) > _weighed(together, device):
            together, binds = end, "end"
    seconds = {"launch": device.launch, "start": device.launch if launch.bytes else 0.0}
    seconds |= {name: together[name] for name in PARTS[1:]}
    seconds["launch"] += together["launch"]
    memory = "DRAM" if launch.touched > device.cache else "L2"
    limit = held.limit if nb == held.blocks else "grid"
    return Parts(seconds, binds, nb, nb * across, turns * across, limit, pipe, memory)


def _block(launch: Launch, device: Calibration, across: int) -> Seconds:
    """The parts of the time of a block that has an SM for itself, from its start to its end."""
    cycle = 1 / device.clock
    waiting = "dram" if launch.touched > device.cache else "l2"
    path = launch.path or launch.instructions
    rank = {name: device.operations[name].latency for name in device.operations}
    computed = sum(x * rank.get(i, rank["fma"]) for i, x in path.items() if i != "wavefront") / launch.parallel
    waited = sum(m * device.latency[waiting if j == "global" else j] for j, m in launch.loads.items())
    inside = [rate for size, rate in device.bandwidth if size <= device.cache / 2] or [device.bandwidth[0][1]]
    return {
        "launch": interpolated(device.block, launch.threads) * cycle,
        "compute": computed * cycle,
        "memory": waited * cycle,
        "barrier": launch.barriers * interpolated(device.barrier, launch.threads) * cycle,
        "issue": _fullest(launch, device, across)[1],
        "bandwidth": launch.bytes / launch.blocks * device.multiprocessors / sorted(inside)[len(inside) // 2],
    }


def _fullest(launch: Launch, device: Calibration, across: int) -> tuple[str, float]:
    """The pipe that a block keeps busy for longest, and for how many seconds."""
    rates = {name: operation.rate for name, operation in device.operations.items()}
    slots = max(rates.values())  # of all chains one comes closest to filling the issue slots

    def busy(name: str) -> float:
        return sum(launch.instructions.get(i, 0.0) / (slots if name == "issue" else rates[i]) for i in PIPES[name])

    pipe = max(PIPES, key=busy)
    return pipe, across * busy(pipe) / device.clock


def _weighed(seconds: Seconds, device: Calibration) -> float:
    return sum(device.theta.get(name, 1.0) * value for name, value in seconds.items())


def estimate(launch: Launch, device: Calibration) -> CalibratedEstimate:
    """Time of the launch on the device. Raises ValueError if it cannot run there."""
    at = parts(launch, device)
    weighed = {name: device.theta.get(name, 1.0) * value for name, value in at.seconds.items()}
    most = max(weighed, key=lambda name: weighed[name])
    what = {"issue": at.pipe, "bandwidth": f"{at.memory} bandwidth", "compute": "instruction latency"}
    what |= {"memory": "memory latency", "barrier": "barriers", "start": "launch"}
    return CalibratedEstimate(launch.name, sum(weighed.values()), weighed, what.get(most, most), at)
