"""One level of the wavelet transform of a real-time stream, and of its inverse, bit-identical to PyWavelets.

Both keep the samples or coefficients that the next ones still need: a number that depends on the filter.
"""

from __future__ import annotations

import numpy as np
import pywt

from wavefilt.arrays import Array


class Analysis:
    """Coefficients of samples (channels, samples) that come in parts. Coefficient k needs samples up to 2k + 1."""

    def __init__(self, bank: pywt.Wavelet, mode: str, like: Array) -> None:
        self._bank, self._mode, self._taps = bank, mode, bank.dec_len
        self._kept = like[:, :0]
        self._begun = False

    def push(self, x: Array, last: bool) -> tuple[Array, Array]:
        """The approximations and details that ``x`` completes; all that are left if it is the ``last``."""
        x = np.concatenate([self._kept, x], axis=1)
        samples = x.shape[1]
        if samples < self._taps and not last:  # the boundary mode needs so many samples from the beginning
            self._kept = x
            return x[:, :0], x[:, :0]
        begin = self._taps // 2 if self._begun else 0  # those before were returned already
        end = None if last else samples // 2
        # one pair of samples more than the filter needs, since two modes reflect the last but taps - 1
        self._kept, self._begun = x[:, samples // 2 * 2 - self._taps :], True
        approximations, details = pywt.dwt(x, self._bank, self._mode)
        return approximations[:, begin:end], details[:, begin:end]


class Synthesis:
    """Samples from coefficients that come in parts. Sample i needs coefficients up to (i + taps - 2) // 2."""

    def __init__(self, bank: pywt.Wavelet, mode: str, like: Array) -> None:
        self._bank, self._mode, self._taps = bank, mode, bank.dec_len
        self._approximations = self._details = like[:, :0]

    def push(self, approximations: Array, details: Array) -> Array:
        """The samples that these complete; what comes too early waits for its partner."""
        a = np.concatenate([self._approximations, approximations], axis=1)
        d = np.concatenate([self._details, details], axis=1)
        pairs, overlap = min(a.shape[1], d.shape[1]), self._taps // 2 - 1
        done = max(pairs - overlap, 0)
        self._approximations, self._details = a[:, done:], d[:, done:]
        if not done:
            return a[:, :0]
        return np.asarray(pywt.idwt(a[:, :pairs], d[:, :pairs], self._bank, self._mode))
