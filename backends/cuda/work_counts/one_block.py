"""What the kernel does that denoises short rows alone, counted as the transforms' kernels are."""

from __future__ import annotations

from dataclasses import replace

from wavefilt.backends.cuda.dwt.tiling import up4
from wavefilt.ske.calibrated import Launch

from .transforms import SHRINKING, Problem, Warp, analysis_cost, synthesis_cost

ROUNDS, THREADS, MOST_TAPS, MOST_LEVELS, REGISTERS, SLACK = 5, (128, 256, 512), 32, 8, 64, 16
MOST_SAMPLES, BINS = 48 << 20, 2048
"""Constants of `one_block`, which imports the compiler; a test compares them."""
STATIC = 10 << 10
"""Bytes of shared memory beside the row, for one median."""
BLOCK, LOAD, LEVEL, ANALYSED, SYNTHESISED, SHRUNK = 250, 12, 40, 24, 44, 14
"""Other integer instructions of a warp, as counted on an H200: for a block, for four samples loaded, for a level, for a
group of outputs of each direction, and for four details shrunk."""


def threads_for(problem: Problem) -> int | None:
    """Threads of a block; None where rows are denoised by several."""
    p = problem
    if p.periodized or p.itemsize != 4 or p.taps > MOST_TAPS or p.tile or not 0 < p.level <= MOST_LEVELS:
        return None
    groups = -(-p.lengths[1] // 4)
    suited = THREADS[:2] if p.rows * p.samples > MOST_SAMPLES else THREADS
    return next((threads for threads in suited if groups <= ROUNDS * threads), None)


def denoise(problem: Problem, threads: int) -> Launch:
    """The launch by blocks of so many threads, by the universal rule and the noise of the finest level."""
    p = replace(problem, threads=threads)
    mean, longest = (_block(Warp(p, which)) for which in (False, True))
    size = 4 * p.rows * p.samples
    shared = 4 * (p.samples + p.taps + SLACK * p.level) + STATIC
    made = Launch("denoise rows", p.rows, threads, mean.instructions, longest.loads, longest.barriers)
    made = replace(made, read=size, written=size, touched=2 * size, path=longest.instructions)
    return replace(made, registers=REGISTERS, shared=shared, boundary=True)


def _block(warp: Warp) -> Warp:
    p, f = warp.problem, warp.problem.filter
    warp.issue(1, int=BLOCK, other=BLOCK)
    times = warp.executions(up4(p.samples) // 4)
    warp.access(2 * times, 4)
    warp.issue(times, int=LOAD, other=6)
    warp.wait(1, 2)
    fma, wide = analysis_cost(f)
    for n in p.lengths[1:]:
        beyond, times = warp.executions(f.lead + f.taps), warp.executions(-(-n // 4))
        warp.issue(beyond, int=60, fma=3, other=12)
        warp.issue(1, int=LEVEL)
        warp.fma(times * fma)
        warp.access(times * (wide + 2), 4)
        warp.issue(times, int=ANALYSED)
        warp.wait(3, 0, 8)
    _median(warp)
    warp.issue(1, int=60, fma64=12, other=30)
    warp.wait(2, 2)
    compared, computed = SHRINKING["soft"]
    for n in p.lengths[1:]:
        times = warp.executions(-(-n // 4))
        warp.access(2 * times, 4)
        warp.issue(times, int=4 * compared + SHRUNK)
        warp.fma(4 * times * computed)
    fma, wide = synthesis_cost(f, 4)
    for n in p.lengths[-2::-1]:
        times = warp.executions(-(-n // 8))
        warp.fma(times * fma)
        warp.access(times * (wide + 2), 4)
        warp.issue(times, int=SYNTHESISED, wavefront=8)  # two lanes meet in a bank
        warp.wait(2, 0, 6)
    return warp


def _median(warp: Warp) -> None:
    """The finest details counted in bins, those of one bin listed, and these compared."""
    p = warp.problem
    times = warp.executions(-(-p.lengths[1] // 4))
    warp.access(2 * times, 4)
    warp.issue(times, int=20, other=28, wavefront=8)
    warp.issue(BINS / p.threads, int=4, other=3)
    warp.issue(1, int=200, other=100)
    warp.wait(10, 0, 60)
