"""Simple models that the calibrated model has to beat: launch time plus bytes over bandwidth, and the classic model."""

from __future__ import annotations

from collections.abc import Callable

from wavefilt.ske.calibrated import Launch, estimate, interpolated
from wavefilt.ske.classic import Kernel
from wavefilt.ske.classic import estimate as classic_estimate
from wavefilt.ske.devices import LANES, Calibration
from wavefilt.ske.occupancy import CAPABILITIES
from wavefilt.ske.tables import INSTRUCTIONS, MEMORIES, Device

LOAD_STORE = 32
"""L of every SM since compute capability 7.0."""
CYCLES = {"fma": "fma", "int": "add", "int mul": "int mul", "fma64": "fma", "other": "add"}
"""Instruction class of the classic tables for each class of a `Launch`."""


def bandwidth(launch: Launch, device: Calibration) -> float:
    """Return the seconds of an empty kernel plus those of the bytes at the measured bandwidth."""
    return device.launch + (launch.bytes / interpolated(device.bandwidth, launch.touched) if launch.bytes else 0.0)


def classic(launch: Launch, device: Calibration) -> float:
    """Return the seconds of the classic model with the cycles of its own tables; global accesses are coalesced."""
    cap = CAPABILITIES[device.capability]
    held = Device(cap, 1 / device.clock, device.multiprocessors, LANES[device.capability][0], LOAD_STORE)
    wide = launch.bytes / 16 / (launch.blocks * launch.threads)  # 16-byte accesses per thread
    computation = sum(launch.instructions.get(name, 0) * INSTRUCTIONS[of] for name, of in CYCLES.items())
    shared = launch.instructions.get("wavefront", 0) / 4
    communication = wide * MEMORIES["global coalesced"].cycles + shared * MEMORIES["shared"].cycles
    kernel = Kernel(computation, communication, round(launch.barriers), registers=launch.registers)
    return classic_estimate(kernel, held, launch.threads, launch.blocks).Tn


MODELS: dict[str, Callable[[Launch, Calibration], float]] = {
    "SKE calibrated": lambda launch, d: estimate(launch, d).seconds,
    "launch + bytes/bandwidth, measured": bandwidth,
    "classic SKE": classic,
}
"""Seconds of a launch by each model."""
