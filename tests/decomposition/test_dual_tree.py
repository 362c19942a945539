"""The dual-tree transform against the package dtcwt's values, which `tests/support/dual_tree_oracle.py` stored."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wavefilt
from tests.support.dual_tree_oracle import CASES, samples


@cache
def oracle():
    with np.load(Path(__file__).with_name("dual_tree.npz")) as stored:
        return dict(stored)


def axes_of(shape):
    return None if len(shape) == 1 else (0, 1)


@pytest.mark.parametrize("place", range(len(CASES)))
def test_values_are_those_of_the_package(place):
    shape, biort, qshift, level = CASES[place]
    found = wavefilt.dtcwt(samples(shape), biort, qshift, level, axes=axes_of(shape))
    assert len(found.highpasses) == level
    for name, got in {"low": found.lowpass, **dict(enumerate(found.highpasses))}.items():
        expected = oracle()[f"{place}_{name}"]
        assert got.dtype == expected.dtype
        assert_allclose(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (7,), (129,), (1, 1), (1, 9), (2, 3), (5, 9), (37, 129)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_shape_is_reconstructed_to_rounding(shape, dtype, rng):
    x = rng.standard_normal(shape).astype(dtype)
    for biort, qshift in [("near_sym_b", "qshift_b"), ("antonini", "qshift_06"), ("legall", "qshift_d")]:
        found = wavefilt.dtcwt(x, biort, qshift, 4, axes=axes_of(shape))
        assert {c.real.dtype for c in found.highpasses} == {found.lowpass.dtype} == {x.dtype}
        y = wavefilt.idtcwt(found)
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        assert_allclose(y, x, rtol=0, atol=60 * np.finfo(dtype).eps)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_other_axes_are_a_batch(axis, rng):
    x = rng.standard_normal((6, 10, 3))
    found = wavefilt.dtcwt(x, level=2, axis=axis)
    assert_allclose(wavefilt.idtcwt(found), x, atol=1e-13)
    for place in np.ndindex(*np.delete(x.shape, axis)):
        own = wavefilt.dtcwt(np.moveaxis(x, axis, -1)[place], level=2)
        assert_allclose(np.moveaxis(found.lowpass, axis, -1)[place], own.lowpass, rtol=0, atol=1e-14)
        for got, expected in zip(found.highpasses, own.highpasses, strict=True):
            assert_allclose(np.moveaxis(got, axis, -1)[place], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("axes", [None, (1, 2)])
def test_a_batch_of_no_traces(axes):
    found = wavefilt.dtcwt(np.empty((0, 6, 40)), level=3, axes=axes)
    assert wavefilt.idtcwt(found).shape == (0, 6, 40)


def test_levels(rng):
    x = rng.standard_normal(100)
    assert len(wavefilt.dtcwt(x).highpasses) == 5  # 50, 25, 13, 7, 4
    assert wavefilt.dtcwt(x[:3]).highpasses == ()
    assert_allclose(wavefilt.idtcwt(wavefilt.dtcwt(x[:3])), x[:3])
    assert_allclose(wavefilt.idtcwt(wavefilt.dtcwt(x, level=12)), x, atol=1e-13)


def test_directions():
    """A plane wave whose crests are at about the angle of a band, from a row towards row 0, is in that band."""
    rows, columns = np.mgrid[:64, :64]
    for band, degrees in enumerate((22, 45, 68, 112, 135, 158)):
        frequency = 1.2 if band in (1, 4) else 0.9
        angle = np.deg2rad(degrees)
        wave = np.cos(frequency * (rows * np.cos(angle) + columns * np.sin(angle)))
        details = wavefilt.dtcwt(wave, level=2, axes=(0, 1)).highpasses[1][4:-4, 4:-4]
        energies = (np.abs(details) ** 2).sum((0, 1))
        assert np.argmax(energies) == band
        assert energies[5 - band] < 0.3 * energies[band]
