"""The fast CPU backend, compiled by numba."""

from wavefilt import interrupts, limits

limits.need(400 * limits.MIB)  # for LLVM, its kernels and the stacks of threads
with interrupts.deferred():  # numba would be left half loaded
    from wavefilt.backends.numba_cpu.backend import NumbaCPU

__all__ = ["NumbaCPU"]
