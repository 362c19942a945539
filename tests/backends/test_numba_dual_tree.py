"""Compiled dual-tree transforms of traces and panels against the reference."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt import backends
from wavefilt.thresholding.local_shrinkage import Local
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DTCWT, DTCWT2, Pyramid
from wavefilt.wavelets.dual_tree import BIORTS, QSHIFTS

REFERENCE, COMPILED = backends.get("pywavelets"), backends.get("numba")
CASES = [((2, 64, 96), 3), ((1, 37, 129), 4), ((1, 5, 9), 1), ((1, 300, 517), 5), ((1, 4, 700), 1), ((1, 700, 4), 1)]
CASES += [((2, 64), 3), ((1, 129), 4), ((1, 9), 1), ((2, 17003), 6), ((3, 40960), 2), ((1, 4), 1)]


def pyramid_of(x, level, wavelet="near_sym_b,qshift_b", backend=REFERENCE):
    kind = DTCWT if x.ndim == 2 else DTCWT2
    return backend.decompose(x, kind.analysis(kind.bank(wavelet), "symmetric", level))


def assert_alike(found, expected, dtype):
    for got, wanted in zip(found.coefficients, expected.coefficients, strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert np.abs(got - wanted).max() < 100 * np.finfo(dtype).eps


@pytest.mark.parametrize(("shape", "level"), CASES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_agrees_with_the_reference(shape, level, dtype, rng):
    x = rng.standard_normal(shape).astype(dtype)
    expected = pyramid_of(x, level)
    assert_alike(pyramid_of(x, level, backend=COMPILED), expected, dtype)
    y = COMPILED.reconstruct(expected)
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert np.abs(y - x).max() < 50 * np.finfo(dtype).eps
    bands = (6 * level if len(shape) == 3 else level + 1, shape[0])
    thresholds = np.abs(rng.standard_normal(bands)) * (rng.random(bands) > 0.2)
    shrinkage = Shrinkage(Local(), thresholds)
    assert_alike(COMPILED.shrunk(expected, shrinkage), REFERENCE.shrunk(expected, shrinkage), dtype)
    for own in (shrinkage, Shrinkage("soft", thresholds)):
        difference = COMPILED.reconstruct(expected, own) - REFERENCE.reconstruct(expected, own)
        assert np.abs(difference).max() < 100 * np.finfo(dtype).eps


@pytest.mark.parametrize("biort", BIORTS)
@pytest.mark.parametrize("qshift", QSHIFTS)
@pytest.mark.parametrize("shape", [(1, 40, 72), (2, 300)])
def test_every_filter(biort, qshift, shape, rng):
    x = rng.standard_normal(shape)
    expected = pyramid_of(x, 3, f"{biort},{qshift}")
    assert_alike(pyramid_of(x, 3, f"{biort},{qshift}", COMPILED), expected, "f8")
    assert np.abs(COMPILED.reconstruct(expected) - x).max() < 1e-13


@pytest.mark.parametrize("options", [{"axes": (0, 1)}, {}])
def test_any_number_of_threads_gives_the_same_bits(options, rng):
    x = rng.standard_normal((350, 600) if options else (2, 60_000)).astype("f4")
    before, found = wavefilt.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            wavefilt.set_num_threads(count)
            found.append(wavefilt.denoise(x, transform="dtcwt", backend="numba", **options))
    finally:
        wavefilt.set_num_threads(before)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rule_js_of_traces_is_compiled(dtype, rng, monkeypatch):
    x = (rng.standard_normal((3, 20_000)) + np.sin(np.arange(20_000) / 5)).astype(dtype)
    x[1] *= 1e15
    expected = wavefilt.denoise(x, transform="dtcwt", backend="pywavelets")
    monkeypatch.setattr(Local, "shrink", None)
    found = wavefilt.denoise(x, transform="dtcwt", backend="numba")
    scale = np.abs(x).max(axis=1, keepdims=True)
    assert np.abs((found - expected) / scale).max() < 100 * np.finfo(dtype).eps


@pytest.mark.parametrize("rule", ["js", "bayes", "bivariate"])
@pytest.mark.parametrize("axes", [{"axes": (1, 2)}, {}])
def test_denoising(rule, axes, rng):
    x = rng.standard_normal((2, 60, 131)) + np.sin(np.arange(131) / 5)
    options = {"transform": "dtcwt", "rule": rule, **axes}
    found, expected = (wavefilt.denoise(x, backend=name, **options) for name in ("numba", "pywavelets"))
    assert np.abs(found - expected).max() < 1e-10


def test_a_sample_that_is_not_finite_is_found(rng):
    x = rng.standard_normal((1, 40, 50))
    x[0, 39, 49] = np.nan
    analysis = DTCWT2.analysis(DTCWT2.bank("near_sym_b,qshift_b"), "symmetric", 2)
    peak, pyramid = COMPILED.peak_and_pyramid(x, analysis)
    assert np.isnan(peak)
    assert pyramid is None


def test_coefficients_that_do_not_belong_together():
    pyramid = pyramid_of(np.ones((1, 16, 16)), 2)
    low, *details = pyramid.coefficients
    for wrong in ((low[:, :2], *details), (low, *details[1:], details[0]), (low.astype("f4"), *details)):
        with pytest.raises(ValueError, match="do not belong together"):
            COMPILED.reconstruct(Pyramid(tuple(wrong), pyramid.analysis, pyramid.shape))
