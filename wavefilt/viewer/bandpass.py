"""The band-pass that a denoised recording is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array

from .source import Source

CORNERS = 4
"""Order of the filter, which ObsPy calls corners."""


@dataclass(frozen=True)
class BandPass:
    """A Butterworth filter between two frequencies in Hz, run forwards and backwards."""

    low: float
    high: float

    def filtered(self, source: Source) -> Array:
        """The rows of the source, gaps filtered as zeros and left as they are.

        Raises ValueError for frequencies out of order, beyond the Nyquist frequency, and for traces that are too short.
        """
        from scipy import signal

        rate = 1 / (source.interval or 1)
        if not 0 < self.low < self.high < rate / 2:
            unit = "Hz" if source.interval else "cycles per sample"
            raise ValueError(
                f"a band-pass from {self.low:g} to {self.high:g} {unit}: frequencies must rise from above 0 to below "
                f"{rate / 2:g}, the Nyquist frequency"
            )
        rows, bands = source.rows, signal.butter(CORNERS, (self.low, self.high), "bandpass", fs=rate, output="sos")
        if rows.shape[1] <= (least := 3 * (2 * len(bands) + 1)):
            raise ValueError(f"a band-pass needs more than {least} samples, and there are {rows.shape[1]}")
        filtered = signal.sosfiltfilt(bands, np.nan_to_num(rows)).astype(rows.dtype)
        return np.where(np.isnan(rows), rows, filtered)

    def python(self, source: Source) -> str:
        """The lines that filter the samples so."""
        rate = 1 / (source.interval or 1)
        samples = f"np.nan_to_num({source.samples})" if np.isnan(source.rows).any() else source.samples
        numpy = "import numpy as np\n" if samples != source.samples else ""
        return (
            f"{numpy}import scipy.signal\n{source.imports}\n"
            f'bands = scipy.signal.butter({CORNERS}, {(self.low, self.high)}, "bandpass", fs={rate!r}, output="sos")\n'
            f"filtered = scipy.signal.sosfiltfilt(bands, {samples})"
        )
