"""The fast CPU backend, compiled by numba."""

from wavefilt.backends.numba_cpu.backend import NumbaCPU

__all__ = ["NumbaCPU"]
