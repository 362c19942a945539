"""Runs of equal samples in traces on the device, as `wavefilt.arrays.equal_runs` finds them; dead traces have none."""

from __future__ import annotations

from functools import cache

from wavefilt.arrays import least_run
from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device

PROBES = 4
"""Pairs of samples that a thread compares."""
least_of = device(least_run)


@device
def run_at(x, start, samples, i, least):
    """Whether sample ``i`` of a trace and the one ``least`` // 2 after it are in a run that ends near.

    Every run of ``least`` samples has two such samples, and one that does not fill the trace ends near some of them.
    """
    step, value = least // 2, x[start + i]
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
def probing(build: Build) -> Kernel:
    """Kernel that flags runs of equal samples in traces of ``samples`` samples as samples that are not finite."""
    threads = build.threads

    @kernel(build)
    def probe_kernel(x, samples, traces, flags):
        trace = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if trace >= traces:
            return
        least, start, suspected = least_of(samples), trace * samples, 0
        step = least // 2
        first, last = (cuda.blockIdx.x * PROBES * threads + cuda.threadIdx.x) * step, samples - step - 1
        for j in range(PROBES):  # all loads are under way together
            at = start + min(first + j * threads * step, last)
            suspected |= (x[at] == x[at + step]) << j
        if suspected:
            for j in range(PROBES):
                i = min(first + j * threads * step, last)
                if suspected >> j & 1 and run_at(x, start, samples, i, least):
                    flags[NOT_FINITE] = 1

    return probe_kernel
