"""Runs of equal samples in traces on the device, as `wavefilt.arrays.equal_runs` finds them; dead traces have none."""

from __future__ import annotations

from functools import cache

from wavefilt.arrays import least_run
from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device

least_of = device(least_run)


def probes(samples: int) -> int:
    """Return how many pairs of samples of a trace, half a run apart, show whether it may have runs."""
    return max(samples - 1, 0) // (least_run(samples) // 2)


@device
def run_at(x, start, samples, probe):
    """Whether the two samples of a probe are in a run that ends near.

    Every run has two such samples, and one that does not fill the trace ends near some of them.
    """
    least = least_of(samples)
    step = least // 2
    i = probe * step
    value = x[start + i]
    if x[start + i + step] != value:
        return False
    first, last = i, i + 1
    while last < samples and last < i + 2 * step and x[start + last] == value:
        last += 1
    if last <= i + step:
        return False
    while first > 0 and first > i - step and x[start + first - 1] == value:
        first -= 1
    ends = (last < samples and x[start + last] != value) or (first > 0 and x[start + first - 1] != value)
    return ends and last - first >= least


@cache
def finding(threads: int) -> DeviceFunction:
    """Device function: flag runs near the probes ``first`` to ``last`` of a trace as samples that are not finite."""

    @device
    def find(x, start, samples, first, last, flags):
        probe = first + threads - 1 - cuda.threadIdx.x  # by threads that are done first
        while probe < last:
            if run_at(x, start, samples, probe):
                flags[NOT_FINITE] = 1
            probe += threads

    return find


@cache
def flagging(build: Build) -> Kernel:
    """Kernel with a thread for each probe, where the transform's kernels do not look for runs themselves."""

    @kernel(build)
    def flag_runs(x, samples, traces, each, flags):
        i = cuda.grid(1)
        trace = i // each
        if trace < traces and run_at(x, trace * samples, samples, i - trace * each):
            flags[NOT_FINITE] = 1

    return flag_runs
