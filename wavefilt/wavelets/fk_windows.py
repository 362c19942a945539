"""Windows of the f-k transform, by name: what stands for a wavelet there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wavefilt.errors import OptionError, options


@dataclass(frozen=True)
class Window:
    """Sine tapers over so many ``traces`` and ``samples``, both even."""

    traces: int
    samples: int

    @property
    def name(self) -> str:
        return f"sine{self.traces}x{self.samples}"

    @property
    def dec_len(self) -> int:
        """Its samples along a trace."""
        return self.samples


def as_window(wavelet: object) -> Window:
    """The window of a name such as "sine32x64": 32 traces and 64 samples. Raises ValueError for another."""
    if isinstance(wavelet, Window):
        return wavelet
    found = re.fullmatch(r"sine(\d+)x(\d+)", wavelet) if isinstance(wavelet, str) else None
    sizes = [int(size) for size in found.groups()] if found else []
    if not found or any(size < 2 or size % 2 for size in sizes):
        what = ' is no window of transform "fk": those are named as sine32x64, 32 traces by 64 samples, both even'
        raise OptionError(options(wavelet=wavelet), what)
    return Window(*sizes)
