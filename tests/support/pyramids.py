"""Pyramids as backends take them, in few words."""

from __future__ import annotations

from wavefilt.transforms import DWT, Pyramid


def pyramid_of(coefficients, bank, mode, samples) -> Pyramid:
    """Coefficients (cA_n, cD_n, ..., cD_1) of traces of so many samples."""
    return Pyramid(tuple(coefficients), DWT.analysis(bank, mode, len(coefficients) - 1), (samples,))
