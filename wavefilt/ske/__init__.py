"""SKE, the estimate of a single kernel: the time of a CUDA kernel from counts, before it runs.

`estimate` is the classic model as it was published, reconstructed; `occupancy` counts the blocks of an SM, for the
devices of that time and for those since; `calibrated.estimate` has the skeleton of the classic model and constants
measured on the device at hand (`calibration`), or taken from a data sheet of another (`datasheet`). Nothing here needs
a GPU. docs/ske.md has the formulas and their limits.
"""

from .calibrated import CalibratedEstimate, Launch
from .calibration import Calibration, WrongDevice
from .classic import Estimate, Kernel, constraints, estimate, optimise, shapes, threads_by_shared
from .datasheet import DataSheet
from .occupancy import CAPABILITIES, Capability, Constraint, Occupancy, occupancy
from .tables import DEVICES, INSTRUCTIONS, MEMORIES, Device, Memory, communication, computation

__all__ = [
    "CAPABILITIES",
    "DEVICES",
    "INSTRUCTIONS",
    "MEMORIES",
    "CalibratedEstimate",
    "Calibration",
    "Capability",
    "Constraint",
    "DataSheet",
    "Device",
    "Estimate",
    "Kernel",
    "Launch",
    "Memory",
    "Occupancy",
    "WrongDevice",
    "communication",
    "computation",
    "constraints",
    "estimate",
    "occupancy",
    "optimise",
    "shapes",
    "threads_by_shared",
]
