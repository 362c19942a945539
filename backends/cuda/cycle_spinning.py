"""Cycle spinning on the device: the mean of denoises of shifted rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import FLAGS, ROWS, grid
from wavefilt.backends.cuda.modwt import ROWS_EACH, extend
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, Kernel, Samples
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.thresholding import leave, marking
from wavefilt.options import Options
from wavefilt.wavelets import boundary


@cache
def mean(build: Build) -> Kernel:
    """Kernel that takes one more of ``count`` results into their mean, from its sample ``shift`` on and round."""
    number, threads = np.dtype(build.dtype).type, build.threads

    @kernel(build)
    def mean_kernel(y, pitch, shift, rows, total, length, count):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row < rows and i < length:
            at = i + shift if i + shift < pitch else i + shift - pitch
            place = row * length + i
            total[place] += (y[row * pitch + at] - total[place]) / number(count)

    return mean_kernel


def denoise(
    once: Callable[[Samples], tuple[Samples, object] | None], x: Samples, options: Options, level: int, build: Build
) -> Samples | None:
    """Return the mean of denoised shifted rows of ``x``, an array on a GPU, as its kind; None if not finite.

    As `wavefilt.engine.denoise`: rows go round in periodic modes, in others they begin earlier in their
    extension.
    """
    done = once(x)
    if done is None:
        return None
    total, dtype, threads = done[0], build.dtype, build.threads
    rows, samples = x.shape
    circular = options.mode in boundary.ROUND
    stream = interop.current_stream(x)
    extension = extend("periodic" if circular else options.mode, build)
    flags = cuda.to_device(np.zeros(FLAGS, np.int32))
    for turn, (shift,) in enumerate(options.shifts(level)[1:], 1):
        length = samples if circular else samples + shift
        blocks = -(-length // threads)
        shifted = interop.empty((rows, length), dtype, x)
        extension[grid(blocks, -(-rows // ROWS_EACH)), threads, stream](
            interop.flat(x), samples, rows, -shift, 0, interop.flat(shifted), length, flags
        )
        done = once(shifted)
        if done is None:
            return None
        first = shift % length if circular else shift
        mean(build)[grid(blocks, rows), threads, stream](
            interop.flat(done[0]), length, first, rows, interop.flat(total), samples, turn + 1
        )
    live, source = cuda.to_device(np.ones(rows, np.int32)), interop.flat(x)  # constant rows come as they are
    marking(build)[-(-rows // threads), threads, stream](source, samples, rows, live, 0, 1, 0)
    leave(source, interop.flat(total), samples, rows, live, build, stream)
    return total
