"""What a multiprocessor (SM) can hold, and in what portions: the paper's three devices, G80, and 7.0 to 10.0."""

from __future__ import annotations

from dataclasses import dataclass

from wavefilt.vocabulary import check

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
    )
}
"""By name: the devices of the paper and its sources, and compute capabilities."""


def as_capability(device: str | Capability) -> Capability:
    """The capability of this name. Raises ValueError, with the names, for any other."""
    if isinstance(device, Capability):
        return device
    check("device", device, CAPABILITIES)
    return CAPABILITIES[device]
