"""Resident blocks of a multiprocessor (SM), and the resource that limits them."""

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

    The defaults of the fields from ``register_group`` on are the paper's rule, which only rounds down to whole blocks.
    Since compute capability 3.0, registers are allocated to whole warps in units of ``register_unit``, from one of
    ``partitions`` equal parts of the register file. Shared memory is allocated in units of ``shared_unit``; since 8.0
    the system reserves ``shared_reserved`` per block.
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
    """Threads for which registers are allocated together: 1, or a warp."""
    register_unit: int = 1
    partitions: int = 1
    shared_unit: int = 1
    shared_reserved: int = 0


def _since_volta(name: str, warps: int, blocks: int, shared: int) -> Capability:
    """Return the limits of a compute capability since 7.0; ``shared`` is in KiB."""
    portions = (32, 32, 256, 4, *((256, 0) if name.startswith("7.") else (128, KIB)))
    return Capability(name, 1024, 32 * warps, warps, blocks, 65536, 255, shared * KIB, *portions)


CAPABILITIES = {
    entry.name: entry
    for entry in (
        # threads per block; per SM: threads, warps, blocks, registers; registers per thread; shared memory per SM
        Capability("G80", 512, 768, 24, 8, 8192, 124, 16 * KIB),
        # Table 3 as printed. A real GT200 has 32 warps and 1024 threads per SM; 24 and 768 are the values of G80
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
"""Devices of the paper and compute capabilities, by name."""


@dataclass(frozen=True)
class Constraint:
    """A limit of the device: ``value``, in the given ``unit``, must be at most ``limit``.

    ``name`` and ``equation`` are those of the paper; limits that are only in its Table 3 have no equation.
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
    """Resident ``blocks`` of an SM and their ``warps``.

    ``limits`` is the number of blocks that each used resource allows, ``limit`` the first resource that allows the
    fewest, and ``share`` the resident warps relative to the maximum.
    """

    blocks: int
    warps: int
    limit: str
    limits: dict[str, int]
    share: float


def occupancy(device: str | Capability, threads: int, registers: int = 0, shared: int = 0) -> Occupancy:
    """Return the resident blocks of an SM, as limited by threads, registers, shared memory, warps and blocks.

    Implements (14) of the paper, with the allocation units of the device for registers and shared memory.

    Parameters
    ----------
    device : str or Capability
        A name in `CAPABILITIES`: a device of the paper, or a compute capability such as "9.0".
    threads : int
        Threads per block.
    registers : int
        32-bit registers per thread; 0 if they are not known, which sets no limit.
    shared : int
        Bytes of shared memory per block, static and dynamic. More than 48 KiB must be enabled for the kernel. The
        largest carve-out of shared memory is assumed.

    Raises
    ------
    ValueError
        For an unknown device, a negative count, or a block that cannot run there; every violated limit is named.
    """
    cap = named(device, CAPABILITIES)
    count("threads", threads, 1)
    count("registers", registers)
    count("shared", shared)
    alone = residents(cap, threads, registers, shared)
    refuse(alone, cap.name)
    limits = {c.name: c.limit // c.value for c in alone[2:] if c.value}  # without the limits of a single block
    blocks = min(limits.values())
    warps = blocks * -(-threads // cap.warp)
    return Occupancy(blocks, warps, min(limits, key=lambda name: limits[name]), limits, warps / cap.warps)


def residents(cap: Capability, threads: int, registers: int, shared: int, blocks: int = 1) -> tuple[Constraint, ...]:
    """Return the limits of a block, then those of ``blocks`` resident blocks."""
    warps = -(-threads // cap.warp)
    groups = -(-threads // cap.register_group) if registers else 0
    portion = max(1, -(-registers * cap.register_group // cap.register_unit) * cap.register_unit)
    room = cap.partitions * (cap.registers // cap.partitions // portion)  # in groups: a group lies in one partition
    of = "threads" if cap.register_group == 1 else "warps"
    bytes_ = -(-(shared + cap.shared_reserved) // cap.shared_unit) * cap.shared_unit
    return (
        Constraint("ThreadMaxInBlock", "10", threads, cap.threads_per_block, "threads in a block"),
        # a limit of the compiler, in addition to the paper's eight
        Constraint("RegistersPerThread", "", registers, cap.registers_per_thread, "registers of a thread"),
        Constraint("ThreadMaxInSM", "11", blocks * threads, cap.threads, "active threads"),
        Constraint("RegistersFilesInSM", "12", blocks * groups, room, f"{of} of {registers} registers a thread"),
        Constraint("MaxSharedMemory", "13", blocks * bytes_, cap.shared, "bytes of shared memory"),
        Constraint("WarpMaxInSM", "", blocks * warps, cap.warps, "active warps"),
        Constraint("BlockMaxInSM", "", blocks, cap.blocks, "active blocks"),
    )


def refuse(constraints: Iterable[Constraint], name: str) -> None:
    """Raise a ValueError that names every violated constraint of the device ``name``."""
    broken = [str(constraint) for constraint in constraints if not constraint.holds]
    if broken:
        raise ValueError(f"this cannot run on {name}: {'; '.join(broken)}")


def named(device: str | Described, known: Mapping[str, Described]) -> Described:
    """Return the description with this name. Raises ValueError, with the known names, for an unknown name."""
    if not isinstance(device, str):
        return device
    check("device", device, known)
    return known[device]


def count(name: str, value: Any, least: int = 0) -> int:
    """Return a whole number of at least ``least``. Raises ValueError, naming it, for anything else."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"`{name}={value!r}` must be a whole number of at least {least}")
    return number


def amount(name: str, value: Any, least: float = 0) -> float:
    """Return a finite number of at least ``least``. Raises ValueError, naming it, for anything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not least <= number < math.inf:
        raise ValueError(f"`{name}={value!r}` must be a finite number of at least {least:g}")
    return number
