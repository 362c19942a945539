"""Backends: what computes transforms and statistics, chosen by name or by size."""

from wavefilt.arrays import on_gpu
from wavefilt.backends.interface import Backend, DeviceBackend
from wavefilt.backends.registry import available, choose, get, home, names
from wavefilt.statistics.reference import Measured, Statistics
from wavefilt.transforms import Pyramid

__all__ = [
    "Backend",
    "DeviceBackend",
    "Measured",
    "Pyramid",
    "Statistics",
    "available",
    "choose",
    "get",
    "home",
    "names",
    "on_gpu",
]
