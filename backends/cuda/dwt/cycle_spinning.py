"""Cycle spinning on the device: the mean of denoises of shifted rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from wavefilt.backends.cuda.modwt import kernels
from wavefilt.backends.cuda.options import THREADS
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Kernel, Samples
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.thresholding.kernels import leave, marking
from wavefilt.options import Options
from wavefilt.wavelets import boundary

from .tiling import FLAGS, ROWS, grid


@cache
def mean(dtype: str, threads: int) -> Kernel:
    """Kernel that takes one more of ``count`` results into their mean, from its sample ``shift`` on and round."""
    number = np.dtype(dtype).type

    @kernel(dtype, threads)
    def mean_kernel(y, pitch, shift, rows, total, length, count):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row < rows and i < length:
            at = i + shift if i + shift < pitch else i + shift - pitch
            place = row * length + i
            total[place] += (y[row * pitch + at] - total[place]) / number(count)

    return mean_kernel


def denoise(
    once: Callable[[Samples], tuple[Samples, object] | None], x: Samples, method: Options, level: int
) -> Samples | None:
    """The rows of ``x``, an array on a GPU, as its kind, by denoising ``once`` and again; None if not finite.

    As `wavefilt.engine.denoise`: rows go round in periodic modes, in
    others they begin earlier in their extension.
    """
    done = once(x)
    if done is None:
        return None
    total, dtype = done[0], interop.dtype_name(x)
    rows, samples = x.shape
    circular = method.mode in boundary.ROUND
    stream = interop.current_stream(x)
    extend = kernels.extend("periodic" if circular else method.mode, dtype, THREADS)
    flags = cuda.to_device(np.zeros(FLAGS, np.int32))
    for turn, shift in enumerate(method.shifts(level)[1:], 1):
        length = samples if circular else samples + shift
        shape = grid(-(-length // THREADS), rows)
        shifted = interop.empty((rows, length), dtype, x)
        extend[shape, THREADS, stream](
            interop.flat(x), samples, samples, rows, -shift, 0, interop.flat(shifted), length, length, flags
        )
        done = once(shifted)
        if done is None:
            return None
        first = shift % length if circular else shift
        mean(dtype, THREADS)[shape, THREADS, stream](
            interop.flat(done[0]), length, first, rows, interop.flat(total), samples, turn + 1
        )
    live, source = cuda.to_device(np.ones(rows, np.int32)), interop.flat(x)  # constant rows come as they are
    marking(dtype, THREADS)[-(-rows // THREADS), THREADS, stream](source, samples, rows, live, 0, 1, 0)
    leave(source, interop.flat(total), samples, rows, live, THREADS, stream)
    return total
