"""What a multiprocessor (SM) can hold, in what portions, and which of its limits binds."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from wavefilt.vocabulary import check

Described = TypeVar("Described")
KIB = 1024


@dataclass(frozen=True)
class Capability:
    """Limits of a block and of an SM; registers are of 32 bits, shared memory in bytes.

    The defaults of the second half are the paper's rule, plain floors of whole blocks. Since compute capability 3.0
    registers are handed out to whole warps in portions of ``register_unit``, from one of ``partitions`` equal parts
    of the register file; shared memory comes in portions of ``shared_unit``, and since 8.0 the system keeps
    ``shared_reserved`` of each block.
    """

    name: str
    threads_per_block: int
    threads: int
    warps: int
    blocks: int
    registers: int
    registers_per_thread: int
    shared: int
    warp: int = 32
    register_group: int = 1
    """Threads that are given registers together: 1, or a warp."""
    register_unit: int = 1
    partitions: int = 1
    shared_unit: int = 1
    shared_reserved: int = 0


def _since_volta(name: str, warps: int, blocks: int, shared: int) -> Capability:
    """The limits that differ, and those that all have in common; ``shared`` in KiB."""
    portions = (32, 32, 256, 4, *((256, 0) if name.startswith("7.") else (128, KIB)))
    return Capability(name, 1024, 32 * warps, warps, blocks, 65536, 255, shared * KIB, *portions)


CAPABILITIES = {
    entry.name: entry
    for entry in (
        # a block, an SM: threads, threads, warps, blocks, registers, registers of a thread, shared memory
        Capability("G80", 512, 768, 24, 8, 8192, 124, 16 * KIB),
        # Table 3 as printed. A real GT200 has 32 warps and 1024 threads an SM: 24 and 768 are those of G80
        Capability("GTX280", 512, 768, 24, 8, 16384, 124, 16 * KIB),
        Capability("GTX480", 1024, 1536, 48, 8, 32768, 63, 48 * KIB),
        Capability("GTX670", 1024, 2048, 64, 16, 65536, 63, 48 * KIB),
        # CUDA C++ Programming Guide, technical specifications per compute capability: warps, blocks, shared KiB
        _since_volta("7.0", 64, 32, 96),
        _since_volta("7.2", 64, 32, 96),
        _since_volta("7.5", 32, 16, 64),
        _since_volta("8.0", 64, 32, 164),
        _since_volta("8.6", 48, 16, 100),
        _since_volta("8.7", 48, 16, 164),
        _since_volta("8.9", 48, 24, 100),
        _since_volta("9.0", 64, 32, 228),
        _since_volta("10.0", 64, 32, 228),
        _since_volta("12.0", 48, 24, 100),
    )
}
"""By name: the devices of the paper and its sources, and compute capabilities."""


@dataclass(frozen=True)
class Constraint:
    """One limit of the device: ``value`` of what ``unit`` names may be at most ``limit``.

    ``name`` and ``equation`` are the paper's; the equation is empty for a limit of its Table 3 without one.
    """

    name: str
    equation: str
    value: int
    limit: int
    unit: str

    @property
    def holds(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        return f"{self.name}: {self.value} {self.unit}, at most {self.limit}"


@dataclass(frozen=True)
class Occupancy:
    """What an SM holds at a time: ``blocks`` and their ``warps``.

    ``limits`` are the blocks that each resource has room for (one that is not used is left out), ``limit`` the first
    of those that allow the fewest, ``share`` the active warps over the most the SM can hold.
    """

    blocks: int
    warps: int
    limit: str
    limits: dict[str, int]
    share: float


def occupancy(device: str | Capability, threads: int, registers: int = 0, shared: int = 0) -> Occupancy:
    """Active blocks of an SM: the least of what its threads, registers, shared memory, warps and block cap allow.

    Integers are rounded down (the paper's (14)); registers and shared memory are counted in the device's portions.

    Parameters
    ----------
    device : str or Capability
        A name of `CAPABILITIES`: a device of the paper, or a compute capability such as "9.0".
    threads : int
        Threads of a block.
    registers : int
        32-bit registers of a thread; 0 if they are not known and shall limit nothing.
    shared : int
        Bytes of shared memory of a block, static and dynamic together. More than 48 KiB need the kernel's consent to
        run; the SM is taken to give shared memory all that it can share with the cache.

    Raises
    ------
    ValueError
        For an unknown device, a negative count, or a block that cannot run there; it names each limit broken.
    """
    cap = named(device, CAPABILITIES)
    count("threads", threads, 1)
    count("registers", registers)
    count("shared", shared)
    alone = residents(cap, threads, registers, shared)
    refuse(alone, cap.name)
    limits = {c.name: c.limit // c.value for c in alone[2:] if c.value}  # without those of a single block
    blocks = min(limits.values())
    warps = blocks * -(-threads // cap.warp)
    return Occupancy(blocks, warps, min(limits, key=lambda name: limits[name]), limits, warps / cap.warps)


def residents(cap: Capability, threads: int, registers: int, shared: int, blocks: int = 1) -> tuple[Constraint, ...]:
    """What a block, then what ``blocks`` of them on an SM need, and what there is."""
    warps = -(-threads // cap.warp)
    groups = -(-threads // cap.register_group) if registers else 0
    portion = max(1, -(-registers * cap.register_group // cap.register_unit) * cap.register_unit)
    room = cap.partitions * (cap.registers // cap.partitions // portion)  # groups: no group lies in two partitions
    of = "threads" if cap.register_group == 1 else "warps"
    bytes_ = -(-(shared + cap.shared_reserved) // cap.shared_unit) * cap.shared_unit
    return (
        Constraint("ThreadMaxInBlock", "10", threads, cap.threads_per_block, "threads in a block"),
        # the compiler's own limit, beside the paper's eight
        Constraint("RegistersPerThread", "", registers, cap.registers_per_thread, "registers of a thread"),
        Constraint("ThreadMaxInSM", "11", blocks * threads, cap.threads, "active threads"),
        Constraint("RegistersFilesInSM", "12", blocks * groups, room, f"{of} of {registers} registers a thread"),
        Constraint("MaxSharedMemory", "13", blocks * bytes_, cap.shared, "bytes of shared memory"),
        Constraint("WarpMaxInSM", "", blocks * warps, cap.warps, "active warps"),
        Constraint("BlockMaxInSM", "", blocks, cap.blocks, "active blocks"),
    )


def refuse(constraints: Iterable[Constraint], name: str) -> None:
    """Raise a ValueError that names every constraint that does not hold on the device ``name``."""
    broken = [str(constraint) for constraint in constraints if not constraint.holds]
    if broken:
        raise ValueError(f"this cannot run on {name}: {'; '.join(broken)}")


def named(device: str | Described, known: Mapping[str, Described]) -> Described:
    """The description of this name. Raises ValueError, with the names, for any other."""
    if not isinstance(device, str):
        return device
    check("device", device, known)
    return known[device]


def count(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least ``least``. Raises ValueError, naming it, for anything else."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
    return number


def amount(name: str, value: Any, least: float = 0) -> float:
    """A finite number of at least ``least``. Raises ValueError, naming it, for anything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not least <= number < math.inf:
        raise ValueError(f"{name}={value!r} must be a finite number of at least {least:g}")
    return number
