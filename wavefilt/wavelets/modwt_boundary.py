"""Boundary coefficients of the MODWT: those beyond the samples, needed for perfect reconstruction.

With h half the filter's taps, level j's coefficients of sample t are computed from samples t - (2^j - 1)(h - 1) to
t + (2^j - 1) h, and sample t from coefficients t - (2^j - 1) h to t + (2^j - 1)(h - 1). Where ``start_level`` levels
were skipped, all distances are 2^start_level times as long.
"""

from __future__ import annotations

ROUND = ("periodic", "periodization")
"""Periodic modes, in which a level has just as many coefficients as there are samples."""


def check(samples: int, mode: str) -> None:
    """Raise ValueError where a reflection would have to extend a single sample."""
    if samples == 1 and mode in ("reflect", "antireflect"):
        raise ValueError(f"mode={mode!r} cannot extend a single sample")


def kept(taps: int, mode: str, level: int, start_level: int = 0) -> tuple[int, int]:
    """Coefficients of this level before sample 0 and after the last that the inverse computes samples from."""
    if mode in ROUND:
        return 0, 0
    span = ((1 << level) - 1) << start_level
    return span * (taps // 2), span * (taps // 2 - 1)


def needed(taps: int, mode: str, level: int, deepest: int, start_level: int = 0) -> tuple[int, int]:
    """Approximations of this level (samples: 0) before sample 0 and after the last that `kept` of the deepest needs."""
    if mode in ROUND:
        return 0, 0
    before, after = kept(taps, mode, deepest, start_level)
    span = ((1 << deepest) - (1 << level)) << start_level
    return before + span * (taps // 2 - 1), after + span * (taps // 2)


def length(samples: int, taps: int, mode: str, level: int, start_level: int = 0) -> int:
    """Coefficients of a level in all."""
    return samples + sum(kept(taps, mode, level, start_level))
