"""Active blocks and warps of a multiprocessor, and which of its limits binds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .amounts import count
from .capability import Capability, as_capability


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
    cap = as_capability(device)
    count("threads", threads, 1)
    count("registers", registers)
    count("shared", shared)
    alone = residents(cap, threads, registers, shared)
    refuse([*of_a_block(cap, threads, registers), *alone], cap.name)
    limits = {c.name: c.limit // c.value for c in alone if c.value}
    blocks = min(limits.values())
    warps = blocks * -(-threads // cap.warp)
    return Occupancy(blocks, warps, min(limits, key=lambda name: limits[name]), limits, warps / cap.warps)


def of_a_block(cap: Capability, threads: int, registers: int) -> tuple[Constraint, ...]:
    """The limits of a block, whatever else the SM holds."""
    return (
        Constraint("ThreadMaxInBlock", "10", threads, cap.threads_per_block, "threads in a block"),
        # the compiler's own limit, beside the paper's eight
        Constraint("RegistersPerThread", "", registers, cap.registers_per_thread, "registers of a thread"),
    )


def residents(cap: Capability, threads: int, registers: int, shared: int, blocks: int = 1) -> tuple[Constraint, ...]:
    """What ``blocks`` blocks need of an SM, and what it has."""
    warps = -(-threads // cap.warp)
    groups = -(-threads // cap.register_group) if registers else 0
    portion = max(1, _up(registers * cap.register_group, cap.register_unit))
    room = cap.partitions * (cap.registers // cap.partitions // portion)  # groups: no group lies in two partitions
    of = "threads" if cap.register_group == 1 else "warps"
    bytes_ = _up(shared + cap.shared_reserved, cap.shared_unit)
    return (
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


def _up(value: int, unit: int) -> int:
    """``value`` rounded up to whole units."""
    return -(-value // unit) * unit
