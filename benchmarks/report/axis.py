"""An axis of a plot: from values to places, and where its numbers stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDING = 1e-9
STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high`` at places from ``start`` to ``end``; ``log`` or linear."""

    low: float
    high: float
    start: float
    end: float
    log: bool = True

    @staticmethod
    def of(values: Sequence[float], start: float, end: float, exact: bool = False) -> Axis:
        """Logarithmic, and linear for values that are not all positive.

        Ends at round numbers, or with ``exact`` a small margin beyond the values.
        """
        low, high = min(values), max(values)
        if low <= 0:
            step = _step((high - low) / 4 or 1)
            low, high = step * math.floor(low / step), step * math.ceil(high / step)
            return Axis(low, high if high > low else low + 1, start, end, log=False)
        if exact:
            margin = (high / low) ** 0.03 if high > low else 2
            return Axis(low / margin, high * margin, start, end)
        low = max(v for v in _around(low) if v <= low * (1 + ROUNDING))
        high = min(v for v in _around(high) if v >= high * (1 - ROUNDING))
        return Axis(low, high if high > low else 10 * low, start, end)

    def __call__(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self) -> list[float]:
        """Powers of ten, or 1, 2, 5 where they would be few; round steps on a linear axis."""
        if not self.log:
            step = _step((self.high - self.low) / 4)
            return [step * i for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in (STEPS[:1], STEPS[:3]):
            found = [s * 10.0**e for e in range(first, last + 1) for s in steps]
            found = [v for v in found if self.low * (1 - ROUNDING) <= v <= self.high * (1 + ROUNDING)]
            if len(found) > 2:
                break
        return found


def _around(value: float) -> list[float]:
    """Round numbers from below the value to above it."""
    power = 10.0 ** math.floor(math.log10(value))
    return [s * power for s in STEPS]


def _step(value: float) -> float:
    """The next larger round number."""
    return min(v for v in _around(value) if v >= value * (1 - ROUNDING))


def plain(value: float) -> str:
    """Without an exponent."""
    return f"{value:.0f}" if abs(value) >= 1 or value == 0 else f"{value:.6f}".rstrip("0")
