"""Simple models that the calibrated model has to beat: launch time plus bytes over bandwidth, and the classic model."""

from __future__ import annotations

from collections.abc import Callable

from wavefilt.ske.calibrated import Launch, estimate, interpolated
from wavefilt.ske.classic import R_BLOCKS, R_WARPS, Kernel
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


def classic(launch: Launch, device: Calibration, rw: float = R_WARPS, rb: float = R_BLOCKS) -> float:
    """Return the seconds of the classic model with the cycles of its own tables; global accesses are coalesced."""
    cap = CAPABILITIES[device.capability]
    held = Device(cap, 1 / device.clock, device.multiprocessors, LANES[device.capability][0], LOAD_STORE)
    wide = launch.bytes / 16 / (launch.blocks * launch.threads)  # 16-byte accesses per thread
    computation = sum(launch.instructions.get(name, 0) * INSTRUCTIONS[of] for name, of in CYCLES.items())
    shared = launch.instructions.get("wavefront", 0) / 4
    communication = wide * MEMORIES["global coalesced"].cycles + shared * MEMORIES["shared"].cycles
    kernel = Kernel(computation, communication, round(launch.barriers), registers=launch.registers)
    return classic_estimate(kernel, held, launch.threads, launch.blocks, rw=rw, rb=rb).Tn


def bandwidth_fitted(launch: Launch, device: Calibration) -> float:
    """Return launch time plus bytes over bandwidth, with both constants fitted to the rows of the calibration."""
    fitted = device.fit["launch and bandwidth"]
    return float(fitted["launch"] + launch.bytes / fitted["bytes a second"])


def classic_fitted(launch: Launch, device: Calibration) -> float:
    """Return the classic model with a factor, r_w and r_b fitted to the rows of the calibration."""
    fitted = device.fit["classic"]
    return float(fitted["scale"] * classic(launch, device, fitted["rw"], fitted["rb"]))


CALIBRATED = "SKE calibrated"
MODELS: dict[str, Callable[[Launch, Calibration], float]] = {
    CALIBRATED: lambda launch, d: estimate(launch, d).seconds,
    "launch + bytes/bandwidth, measured": bandwidth,
    "launch + bytes/bandwidth, fitted": bandwidth_fitted,
    "classic SKE, scaled": lambda launch, d: float(d.fit["classic"]["table scale"]) * classic(launch, d),
    "classic SKE, scale, rw and rb fitted": classic_fitted,
}
"""Seconds of a launch by each model."""
