"""What the calibrated model has to beat, for a `Launch`: launch plus bytes over bandwidth, and the classic model."""

from __future__ import annotations

from wavefilt.ske.calibrated import Launch, interpolated
from wavefilt.ske.calibration import Calibration
from wavefilt.ske.classic import R_BLOCKS, R_WARPS, Kernel
from wavefilt.ske.classic import estimate as classic_estimate
from wavefilt.ske.datasheet import LANES
from wavefilt.ske.occupancy import CAPABILITIES
from wavefilt.ske.tables import INSTRUCTIONS, MEMORIES, Device

LOAD_STORE = 32
"""L: of every SM since 7.0."""
CYCLES = {"fma": "fma", "int": "add", "int mul": "int mul", "fma64": "fma", "other": "add"}
"""The instruction of the classic tables that each class is counted as."""


def bandwidth(launch: Launch, device: Calibration) -> float:
    """Seconds of an empty kernel, and of the bytes at the bandwidth measured for as many."""
    return device.launch + (launch.bytes / interpolated(device.bandwidth, launch.touched) if launch.bytes else 0.0)


def classic(launch: Launch, device: Calibration, rw: float = R_WARPS, rb: float = R_BLOCKS) -> float:
    """Seconds by the classic model with the cycles of its own tables; accesses to global memory count as coalesced."""
    cap = CAPABILITIES[device.capability]
    held = Device(cap, 1 / device.clock, device.multiprocessors, LANES[device.capability][0], LOAD_STORE)
    wide = launch.bytes / 16 / (launch.blocks * launch.threads)  # accesses of a thread
    computation = sum(launch.instructions.get(name, 0) * INSTRUCTIONS[of] for name, of in CYCLES.items())
    shared = launch.instructions.get("wavefront", 0) / 4
    communication = wide * MEMORIES["global coalesced"].cycles + shared * MEMORIES["shared"].cycles
    kernel = Kernel(computation, communication, round(launch.barriers), registers=launch.registers)
    return classic_estimate(kernel, held, launch.threads, launch.blocks, rw=rw, rb=rb).Tn
