"""The dual-tree transforms as `denoise` uses them: coefficients, noise, chunks, gaps and options."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from wavefilt import backends
from wavefilt.denoising.pipeline import run
from wavefilt.errors import OptionError
from wavefilt.method import Method
from wavefilt.transforms import DTCWT, DTCWT2

REFERENCE = backends.get("pywavelets")


def kind_of(shape):
    return DTCWT if len(shape) == 1 else DTCWT2


def pyramid_of(x, level=3, wavelet="near_sym_b,qshift_b"):
    kind = kind_of(x.shape[1:])
    return REFERENCE.decompose(x, kind.analysis(kind.bank(wavelet), "symmetric", level))


def gather(rng, shape=(96, 200), sd=0.5):
    """Events of two dips, and the same in noise."""
    rows, columns = np.indices(shape)
    clean = sum(np.exp(-(((columns - at - dip * rows) / 4) ** 2)) for at, dip in ((40, 0.6), (150, -0.5)))
    clean = np.diff(clean, axis=1, prepend=0) * 4
    return clean, clean + sd * rng.standard_normal(shape)


@pytest.mark.parametrize("wavelet", ["near_sym_b,qshift_b", "legall,qshift_06"])
def test_coefficients_are_those_of_the_function(wavelet, rng):
    """Where 2^level divides the lengths; else of the samples extended at the end."""
    biort, qshift = wavelet.split(",")
    x = rng.standard_normal((2, 43))
    found = wavefilt.dtcwt(np.pad(x, [(0, 0), (0, 5)], "symmetric"), biort, qshift, 3)
    low, *details = pyramid_of(x, 3, wavelet).coefficients
    assert_array_equal(low.view("f8"), found.lowpass)
    assert all(map(np.array_equal, details[::-1], found.highpasses))
    x = rng.standard_normal((2, 15, 22))
    found = wavefilt.dtcwt(np.pad(x, [(0, 0), (0, 1), (0, 2)], "symmetric"), biort, qshift, 3, axes=(1, 2))
    low, *details = pyramid_of(x, 3, wavelet).coefficients
    assert_array_equal(low, found.lowpass)
    assert len(details) == 18
    for j, level in enumerate(found.highpasses[::-1]):
        for band in range(6):
            assert_array_equal(details[6 * j + band], level[..., band])


@pytest.mark.parametrize("shape", [(4,), (17,), (1001,), (4, 4), (5, 9), (37, 129)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_any_shape_is_reconstructed(shape, dtype, rng):
    x = rng.standard_normal((3, *shape)).astype(dtype)
    pyramid = pyramid_of(x, 4)
    sizes = pyramid.analysis.transform.sizes(pyramid.analysis, shape)
    assert sizes == [d.shape[1] for d in pyramid.details]
    y = REFERENCE.reconstruct(pyramid)
    assert (y.dtype, y.flags.c_contiguous) == (x.dtype, True)
    assert_allclose(y, x, rtol=0, atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("wavelet", ["near_sym_b,qshift_b", "legall,qshift_a"])
@pytest.mark.parametrize("shape", [(1 << 19,), (1024, 1024)])
def test_white_noise_is_found_in_every_band(wavelet, shape, rng):
    """Standard deviations as the filters have them, parts as correlated, and quantiles that fit: without signal."""
    x = 3 * rng.standard_normal((1, *shape))
    pyramid, kind = pyramid_of(x, 4, wavelet), kind_of(shape)
    method = Method(wavelet, transform="dtcwt", dimensions=kind.dimensions, level=4)
    statistics = REFERENCE.statistics([pyramid.with_approximation if kind is DTCWT else pyramid], "trace")
    bands = method.bands(4)
    sigma = kind.noise(statistics, "level", bands)
    counts = np.array(statistics.counts)[:, None]
    power = np.sqrt(statistics.mean_square() / 2) / (3 * method.noise_gains(len(bands)))
    assert np.all(np.abs(power - 1) < 0.003 + 2 / np.sqrt(counts))
    assert np.all(np.abs(sigma / (3 * method.noise_gains(len(bands))) - 1) < 4 / np.sqrt(counts))
    for band, details in zip(bands, method.counted(pyramid.coefficients, pyramid.analysis, shape), strict=True):
        real, imaginary = details.real.ravel(), details.imag.ravel()
        difference = np.mean(real * imaginary) if kind is DTCWT else (real**2 - imaginary**2).mean() / 2
        power = np.mean(real**2 + imaginary**2) / 2
        assert abs(abs(difference / power) - abs(band.correlation)) < 4 / np.sqrt(details.size)


def test_noise_of_mirrored_directions_is_the_smaller(rng):
    """One plane wave raises the noise of its own direction alone, which takes that of the mirrored one."""
    rows, columns = np.indices((128, 128))
    wave = 3 * np.cos(0.9 * (rows + columns))
    x = wave + rng.standard_normal((128, 128))
    method = Method(transform="dtcwt", dimensions=2)
    statistics = REFERENCE.statistics([pyramid_of(x[None])], "trace")
    sigma = method.kind.noise(statistics, "level", method.bands(3))[6:12, 0]
    assert_array_equal(sigma, sigma[::-1])
    assert np.all(np.abs(sigma[[1, 4]] / 0.5 - 1) < 0.15)
    alone = statistics.quantile_abs(range(7, 13), 0.3)
    assert alone.max() > 4 * alone.min()


@pytest.mark.parametrize("sigma", [("running", 512), ("intervals", (2048,)), ("window", 0, 3000), "level"])
def test_noise_of_traces(sigma, rng):
    """Of white noise alone all rules for coloured noise find the same, and next to nothing is left."""
    x = rng.standard_normal((2, 4096))
    for rule in ("js", "universal"):
        y = wavefilt.denoise(x, rule=rule, sigma=sigma, level=4, transform="dtcwt")
        assert np.sum(y**2) < (0.1 if rule == "js" else 0.2) * np.sum(x**2)
        outcome = run(x, Method(rule=rule, sigma=sigma, level=4, transform="dtcwt"), REFERENCE, report=True)
        gains = np.exp2([band.noise_exponent for band in DTCWT.bands(4)])[:, None]
        assert np.all(np.abs(outcome.estimates[0].sigma / gains - 1) < 0.2)


def test_a_number_is_the_noise_of_the_samples(rng):
    _, x = gather(rng)
    found = wavefilt.denoise(x, transform="dtcwt", axes=(0, 1))
    assert np.std(wavefilt.denoise(x, transform="dtcwt", axes=(0, 1), sigma=0.5) - found) < 0.03
    assert np.std(wavefilt.denoise(x, transform="dtcwt", axes=(0, 1), sigma="global") - found) < 0.03
    assert np.std(wavefilt.denoise(x, transform="dtcwt", axes=(0, 1), sigma=1.5) - found) > 0.1


@pytest.mark.parametrize("shape", [(96, 200), (41, 201), (24, 160)])
def test_a_gather_gains_more_than_by_the_separable_transform(shape, rng):
    clean, x = gather(rng, shape)
    found = wavefilt.denoise(x, transform="dtcwt", axes=(0, 1))
    other = wavefilt.denoise(x, "db4", axes=(0, 1))
    own, separable = (10 * np.log10(np.sum((x - clean) ** 2) / np.sum((y - clean) ** 2)) for y in (found, other))
    assert own > separable + 2.5


def test_float32_and_batches(rng):
    x = np.stack([gather(rng)[1] for _ in range(2)])
    for options in ({"axes": (1, 2)}, {}):
        found = wavefilt.denoise(x, transform="dtcwt", **options)
        single = wavefilt.denoise(x.astype("f4"), transform="dtcwt", **options)
        assert single.dtype == "f4"
        assert_allclose(single, found, atol=1e-4)
        assert_array_equal(wavefilt.denoise(x[1], transform="dtcwt", **({"axes": (0, 1)} if options else {})), found[1])


def test_gaps_and_dead_traces_of_panels(rng):
    clean, x = gather(rng)
    gappy = x.copy()
    gappy[10, 50:80] = np.nan
    gappy[20] = np.nan
    gappy[30] = 2.5
    found = wavefilt.denoise(gappy, transform="dtcwt", axes=(0, 1))
    assert_array_equal(np.isnan(found), np.isnan(gappy))
    assert_array_equal(found[30], gappy[30])
    there = ~np.isnan(gappy)
    there[30] = False
    whole = wavefilt.denoise(x, transform="dtcwt", axes=(0, 1))
    assert np.std(found[there] - clean[there]) < 1.3 * np.std(whole[there] - clean[there])


def test_shares_of_live_samples():
    live = np.ones((40, 50), bool)
    analysis = pyramid_of(np.zeros((1, 40, 50)), 2).analysis
    assert all(np.allclose(share, 1) for share in DTCWT2.live_shares(live, analysis))
    live[:, 25:] = False
    shares = DTCWT2.live_shares(live, analysis)
    sizes = DTCWT2.sizes(analysis, live.shape)
    assert [share.size for share in shares] == sizes
    planes = [share.reshape(-1, 52 >> i // 6 + 1) for i, share in enumerate(shares)]
    assert all(np.allclose(plane[:, 0], 1) and np.allclose(plane[:, -1], 0, atol=1e-6) for plane in planes)
    assert all(abs(plane.mean() - 25 / 52) < 0.03 for plane in planes)


def test_levels_leave_two_coefficients():
    method = Method(transform="dtcwt", dimensions=2)
    assert method.level_for(24, 1000) == 3
    assert method.level_for(256, 1024) == 6
    assert Method(transform="dtcwt").level_for(24) == 3
    with pytest.raises(OptionError, match="maximum of 3"):
        Method(transform="dtcwt", dimensions=2, level=4).level_for(24, 1000)
    x = np.arange(6.0).reshape(2, 3)
    with pytest.warns(UserWarning, match="too few"):
        assert_array_equal(wavefilt.denoise(x, transform="dtcwt", axes=(0, 1)), x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wavelet": "db8"}, "names of two filters"),
        ({"wavelet": "near_sym_b,qshift_e"}, "qshift"),
        ({"mode": "periodic"}, "mode"),
        ({"spins": 4}, "spins"),
        ({"rule": "blockjs"}, "blockjs"),
    ],
)
def test_options_that_it_does_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        wavefilt.denoise(np.ones(100), transform="dtcwt", **options)


def test_wavelets_that_are_none():
    with pytest.raises(TypeError, match="DualTree"):
        wavefilt.denoise(np.ones(100), 3, transform="dtcwt")
    with pytest.raises(OptionError, match="real samples"):
        wavefilt.denoise(np.arange(100) + 1j, transform="dtcwt")
