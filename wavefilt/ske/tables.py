"""Tables 1 to 3 of the paper: cycles of instructions and memory accesses, and devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavefilt.vocabulary import check

from .occupancy import CAPABILITIES, KIB, Capability, amount, count

INSTRUCTIONS = {
    # Table 1
    **dict.fromkeys(("add", "mul", "compare", "bit", "conversion", "sync"), 4),
    **dict.fromkeys(("int mul", "reciprocal", "rsqrt", "log"), 16),
    **dict.fromkeys(("sqrt", "fast sin", "fast cos", "exp"), 32),
    "float div": 36,
    **dict.fromkeys(("trig", "int div", "int mod", "control flow"), 500),
    # not in the paper: measured on a GeForce 9800 GT
    **dict.fromkeys(("fma", "min", "max", "mul24"), 4),
    "fast div": 20,
}
"""p_i: cycles per warp of an instruction of each class."""


@dataclass(frozen=True)
class Memory:
    """Cycles of an access, and size in bytes."""

    cycles: float
    size: int


MEMORIES = {
    "register": Memory(1, 65536 * 4),
    "shared": Memory(1, 48 * KIB),  # without bank conflicts
    "constant": Memory(4, 48 * KIB),  # as in the text; real devices have 64 KB
    "global coalesced": Memory(500 / 8, 4 * KIB**3),
    "texture": Memory(300, 4 * KIB**3),
    "local": Memory(500, 16 * KIB),  # per thread
    "global": Memory(500, 4 * KIB**3),
}
"""q_i: Table 2, for a GTX 680."""


def computation(counts: Mapping[str, int]) -> float:
    """Return the sum of n_i p_i, the instruction cycles of one thread, from counts by class of `INSTRUCTIONS`."""
    for name in counts:
        check("instruction", name, INSTRUCTIONS)
    return float(sum(count(name, n) * INSTRUCTIONS[name] for name, n in counts.items()))


def communication(accesses: Mapping[str, int], words: int = 1) -> float:
    """Return the sum of m_i q_i, the memory cycles of one thread, from accesses by kind of `MEMORIES`.

    ``words`` is the factor ceil(8 D/Bit) of (6), the number of words per access of D bytes; 1 in the paper's examples.
    """
    for name in accesses:
        check("memory", name, MEMORIES)
    return count("words", words, 1) * float(sum(count(name, m) * MEMORIES[name].cycles for name, m in accesses.items()))


@dataclass(frozen=True)
class Device:
    """A device of the classic model: five of its nine inputs, and the limits of its constraints.

    ``clock`` is the clock period T in seconds, ``multiprocessors`` is S, and ``processors`` and ``load_store`` are P
    and L per multiprocessor (L is None where it is not known). The ``capability`` has the warp size W and the limits
    of a multiprocessor. ``constant`` and ``storage`` are the bytes of constant and global memory.
    """

    capability: Capability
    clock: float
    multiprocessors: int
    processors: int
    load_store: int | None
    constant: int = MEMORIES["constant"].size
    storage: int = MEMORIES["global"].size

    def __post_init__(self) -> None:
        for name in ("multiprocessors", "processors"):
            count(name, getattr(self, name), 1)
        if self.load_store is not None:
            count("load_store", self.load_store, 1)
        if not amount("clock", self.clock):
            raise ValueError("clock=0 must be a period in seconds")

    @property
    def name(self) -> str:
        return self.capability.name


DEVICES = {
    device.name: device
    for device in (
        # Table 3; L from section 3.4, which does not mention GT200. T is printed for the GTX 670 only, the others are
        # published shader clocks
        Device(CAPABILITIES["GTX280"], 1 / 1.296e9, 30, 8, None),
        Device(CAPABILITIES["GTX480"], 1 / 1.401e9, 15, 32, 16),
        Device(CAPABILITIES["GTX670"], 1e-9, 7, 192, 32),
    )
}
