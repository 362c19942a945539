"""Denoising in two dimensions: sections, gathers and images, both axes of which are transformed together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wavefilt import arrays, backends
from wavefilt.denoising.estimation import Estimate
from wavefilt.denoising.traces import Outcome, check_size
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.method import Method
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.wavelets.filters import detail_lengths

from . import gaps

BANDS = "DVH"
"""The bands of a level in the order of estimates: high along both axes, along the second, along the first."""


@dataclass(frozen=True)
class SectionMethod(Method):
    """How to denoise in two dimensions, checked. What is for traces alone is refused."""

    bands: ClassVar[int] = len(BANDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        refused = {
            f"transform={self.transform!r}": self.transform != "dwt",
            f"spins={self.spins}": self.spins > 1,
            f"sigma={self.sigma!r}": self.window is not None,
            f"rule={self.rule!r}": self.shrink_word == "block",
        }
        for option, wrong in refused.items():
            if wrong:
                raise ValueError(f"{option} is for traces, not for two dimensions")


def denoise(x: Any, method: SectionMethod, axes: Any, backend: str | backends.Backend, return_noise: bool) -> Any:
    """`wavefilt.denoise` with ``axes``."""
    if np.ndim(axes) != 1 or len(axes) != 2:
        raise ValueError(f"axes={axes!r} must be a pair of axes")
    if backends.on_gpu(x):
        from . import device_arrays

        return device_arrays.denoise(x, method, tuple(axes), backend, return_noise)
    if isinstance(x, (list, tuple)) and any(map(backends.on_gpu, x)):
        raise ValueError("a list of arrays on GPUs is not denoised in two dimensions; denoise one after the other")
    taken = arrays.take(x, *axes)
    samples = run(taken.rows, method, backend).samples
    y = taken.restore(samples)
    return (y, taken.restore(taken.rows - samples)) if return_noise else y


def run(
    sections: NDArray[Any], method: Method, backend: str | backends.Backend = "auto", report: bool = False
) -> Outcome:
    """Denoise ``sections`` (sections, rows, columns), of a dtype of computation, and tell how it was done.

    Its one estimate has a column for each section, or for all of scope "record", and three rows for each level: those
    of `BANDS`, the finest level first. ``report`` as in `wavefilt.denoising.run`.
    """
    shape = sections.shape[1], sections.shape[2]
    level = method.level_for(min(shape))
    chosen = backends.choose2(backend, arrays.dtype_name(sections.dtype), sections.shape, method.bank.dec_len)
    if not level or not sections.size:
        _check_finite(sections)
        return Outcome(sections.copy(), method, chosen.name, level, [])
    if hasattr(chosen, "denoise2"):
        done = chosen.denoise2(sections, method, level, report)
        if done is not None:
            return Outcome(done[0], method, chosen.name, level, _reported(sections, method, level, done[1]))
    peak = chosen.peak(sections)
    if not math.isfinite(peak):
        _check_finite(sections)
    check_size(sections, peak, 2 * level + 1, method)
    pyramid = chosen.decompose2(sections, (method.bank, method.bank), (method.mode, method.mode), level)
    statistics = chosen.statistics([pyramid], method.scope)
    sharing = len(sections) if method.scope == "record" else 1
    sigma, thresholds = method.thresholds(statistics, math.prod(shape) * sharing)
    if not np.isfinite(thresholds).all():
        raise ValueError(SQUARES_OVERFLOW)
    power = statistics.mean_square() if report else None
    spread = (3 * level, len(sections))
    sigma, thresholds = (np.ascontiguousarray(np.broadcast_to(v, spread)) for v in (sigma, thresholds))
    shrinkage = Shrinkage(method.function(math.prod(shape)), thresholds, sigma)
    y = chosen.reconstruct2(pyramid, shrinkage)
    unchanged = ~thresholds.any(axis=0)
    y[unchanged] = sections[unchanged]
    powers = None if power is None else np.broadcast_to(power, spread)
    (piece,) = gaps.whole(sections.reshape(len(sections), -1))
    estimate = Estimate(piece, sigma, thresholds, powers, statistics.counts // sharing)
    return Outcome(y, method, chosen.name, level, [estimate])


def _reported(sections: NDArray[Any], method: Method, level: int, measured: backends.Measured | None) -> list[Estimate]:
    """The estimate of all sections from what a device measured; none if nothing was asked for."""
    if measured is None:
        return []
    (piece,) = gaps.whole(sections.reshape(len(sections), -1))
    lengths = [detail_lengths(n, method.bank.dec_len, method.mode, level) for n in sections.shape[1:]]
    counts = np.repeat(np.prod(np.array(lengths, np.int64), axis=0), len(BANDS))
    return [Estimate(piece, measured.sigma, measured.thresholds, measured.power, counts)]


def _check_finite(sections: NDArray[Any]) -> None:
    """Raise ValueError, naming the first, if samples are missing or infinite."""
    wrong = np.argwhere(~np.isfinite(sections))
    if len(wrong):
        section, row, column = wrong[0]
        kind = "infinite value" if np.isinf(sections[section, row, column]) else "gap (NaN or masked sample)"
        raise ValueError(
            f"{kind} at row {row}, column {column} of section {section} (counted from 0), {len(wrong)} in all; in two "
            "dimensions every sample is needed: fill them, or denoise the traces, which are split at gaps"
        )
