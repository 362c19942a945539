"""The fast CPU backend, compiled by numba."""

from wavefilt import interrupts

with interrupts.deferred():  # numba would be left half loaded
    from wavefilt.backends.numba_cpu.backend import NumbaCPU

__all__ = ["NumbaCPU"]
