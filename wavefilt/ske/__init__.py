"""Estimate the run time of a single CUDA kernel (SKE) before it runs; no GPU is needed.

`estimate` is the classic model as published and `occupancy` counts the resident blocks of a multiprocessor.
`calibrated.estimate` is a model of current GPUs, with constants that were measured on the device or taken from a data
sheet (`devices`). docs/ske.md has the formulas and their limits.
"""

from .calibrated import CalibratedEstimate, Launch
from .classic import Estimate, Kernel, constraints, estimate, optimise, shapes, threads_by_shared
from .devices import Calibration, WrongDevice
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
