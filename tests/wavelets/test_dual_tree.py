"""Filters of the dual-tree transform: their conditions, and white noise through them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wavefilt
from wavefilt.wavelets.dual_tree import BIORTS, QSHIFTS, DualTree, noise


@pytest.mark.parametrize("name", BIORTS)
def test_filters_of_the_first_level_are_biorthogonal(name):
    bank = DualTree(name).first
    for taps in bank:
        assert len(taps) % 2 == 1
        assert_allclose(taps, taps[::-1], atol=0)
    assert_allclose((bank.dec_lo.sum(), bank.rec_lo.sum()), 1, rtol=1e-14)
    whole = np.convolve(bank.dec_lo, bank.rec_lo) + np.convolve(bank.dec_hi, bank.rec_hi)
    assert_allclose(whole, np.arange(len(whole)) == len(whole) // 2, atol=1e-14)


@pytest.mark.parametrize("name", QSHIFTS)
def test_filters_of_other_levels_are_orthogonal(name):
    bank = DualTree(qshift=name).later
    taps = len(bank.dec_lo)
    for a, b, unit in ((bank.dec_lo, bank.dec_lo, 1), (bank.dec_hi, bank.dec_hi, 1), (bank.dec_lo, bank.dec_hi, 0)):
        products = np.correlate(a, b, "full")[(taps - 1) % 2 :: 2]
        assert_allclose(products, unit * (np.arange(taps - 1) == taps // 2 - 1), atol=1e-11)


@pytest.mark.parametrize(("biort", "qshift"), [("near_sym_b", "qshift_b"), ("legall", "qshift_06")])
def test_noise_is_what_the_transform_makes_of_unit_impulses(biort, qshift):
    """The rows of the transform's matrix: sums of their squares, and products of neighbouring ones."""
    found = wavefilt.dtcwt(np.eye(1024), biort, qshift, 4)
    for j, high in enumerate(found.highpasses, 1):
        low = wavefilt.dtcwt(np.eye(1024), biort, qshift, j).lowpass
        middle = high.shape[-1] // 2
        parts = [(low[:, 2 * middle], low[:, 2 * middle + 1]), (high[:, middle].real, high[:, middle].imag)]
        for moments, (a, b) in zip(noise(DualTree(biort, qshift), j), parts, strict=True):
            assert_allclose((a @ a, b @ b, a @ b), (moments.variance, *moments), rtol=1e-12, atol=1e-14)
