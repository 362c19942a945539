"""The rules js and bivariate, which shrink a coefficient by those around it, against loops over the coefficients."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.checkout import usable_backends

HOSTS = [name for name in usable_backends() if name != "cuda"]
MAD = 0.6744897501960817
LAMBDA, LAMBDA_MEASURED = 2.0, 2.5
"""Factors of the noise power, estimated by medians and given or measured."""


def energy(band, limit, spacing, half, periodic):
    """Return the weighted mean of |W|²/limit² over neighbours in time; weights fall by e every three."""
    found, count = np.zeros(len(band)), len(band)
    for k in range(count):
        places = [(k + q * spacing, np.exp(-abs(q) / 3)) for q in range(-half, half + 1)]
        places = [(p % count, w) for p, w in places] if periodic else [(p, w) for p, w in places if 0 <= p < count]
        values, weights = zip(*((abs(band[p]) ** 2, w) for p, w in places), strict=True)
        found[k] = np.average(values, weights=weights) / limit**2
    return found


def shrunk_by_loops(coefficients, limits, wavelet, mode, transform):
    """Shrink one trace's bands, [approximation, coarsest, ..., finest], as the formula says."""
    bands, bank, level = coefficients[::-1], pywt.Wavelet(wavelet), len(coefficients) - 1
    taps, squares = bank.dec_len, np.square(bank.dec_lo)
    lag = (taps - 1) / 2 - np.arange(taps) @ squares / squares.sum()
    if transform == "dwt":
        periodic = mode == "periodization"
        late = 0 if periodic else taps // 2 - 1
        lag = round(lag)

        def finer(i, k):  # places in band i - 1
            return (k + lag,) if i == level else (2 * k - late, 2 * k - late + 1)

        def coarser(i, k):
            return k - lag if i == level - 1 else (k + late) // 2

        means = [(1, 4)] * (level + 1)
    else:
        periodic, levels = mode.startswith("period"), [*range(1, level + 1), level]
        begins = [0 if periodic else (2**j - 1) * taps // 2 for j in levels]
        lag = round(lag * 2**level)

        def finer(i, k):
            t = k - begins[i] + (lag if i == level else 2 ** (i - 1))
            return (t + begins[i - 1],)

        def coarser(i, k):
            return k - begins[i] - (lag if i == level - 1 else 2**i) + begins[i + 1]

        means = [(2**j, 4) for j in levels]
    energies = [energy(band, limit, *mean, periodic) for band, limit, mean in zip(bands, limits, means, strict=True)]

    def at(i, k):
        return energies[i][k % len(bands[i]) if periodic else min(max(k, 0), len(bands[i]) - 1)]

    shrunk = []
    for i, band in enumerate(bands):
        found = band.copy()
        for k in range(len(band)):
            around = [energies[i][k]] * 2
            if i > 0:
                around.append(np.mean([at(i - 1, p) for p in finer(i, k)]))
            if i < level:
                around.append(at(i + 1, coarser(i, k)))
            found[k] *= max(0, 1 - 1 / np.mean(around))
        shrunk.append(found)
    return shrunk[::-1]


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("transform", ["dwt", "modwt"])
@pytest.mark.parametrize("mode", ["symmetric", "periodization", "periodic", "zero"])
def test_js_by_loops(rng, name, transform, mode):
    """If sigma is a number, the noise of every band is known."""
    for wavelet, level, samples in (("db8", 3, 301), ("haar", 4, 64), ("sym8", 1, 33), ("db3", 2, 24)):
        x = rng.standard_normal((2, samples)) * np.exp(rng.standard_normal((2, samples)))
        x -= x.mean(axis=1, keepdims=True)
        forward, inverse = {
            "dwt": (wavefilt.wavedec, wavefilt.waverec),
            "modwt": (wavefilt.modwt, wavefilt.imodwt),
        }[transform]
        fading = 2 ** (-0.5 * np.array([*range(1, level + 1), level]))
        limits = 0.7 * np.sqrt(LAMBDA_MEASURED) * (fading if transform == "modwt" else np.ones(level + 1))
        options = {"rule": "js", "sigma": 0.7, "mode": mode, "transform": transform, "backend": name, "level": level}
        found = wavefilt.denoise(x, wavelet, **options)
        for row, own in zip(x, found, strict=True):
            coefficients = forward(row, wavelet, level=level, mode=mode)
            expected = shrunk_by_loops(coefficients, limits, wavelet, mode, transform)
            np.testing.assert_allclose(own, inverse(expected, wavelet, mode)[:samples], atol=1e-11)


def test_js_takes_the_noise_of_each_level_from_its_median(rng):
    x = rng.standard_normal(512) * np.linspace(1, 4, 512)
    x -= x.mean()
    coefficients = wavefilt.wavedec(x, "sym8", "periodization", 4)
    limits = [np.median(np.abs(c)) / MAD * np.sqrt(LAMBDA) for c in coefficients[::-1]]
    expected = wavefilt.waverec(
        shrunk_by_loops(coefficients, limits, "sym8", "periodization", "dwt"), "sym8", "periodization"
    )
    found = wavefilt.denoise(x, "sym8", level=4, rule="js", mode="periodization")
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_js_of_sections_by_three_by_three_neighbours(rng, name, mode):
    """Each band by itself; the approximation stays."""
    x = rng.standard_normal((2, 64, 88))
    found = wavefilt.denoise(x, "db2", level=2, rule="js", mode=mode, axes=(1, 2), backend=name)

    def shrunk(d):
        wide = np.pad(d, 1, "wrap" if mode == "periodization" else "symmetric") ** 2
        around = sum(wide[i : i + d.shape[0], j : j + d.shape[1]] for i, j in product(range(3), repeat=2)) / 9
        return d * np.maximum(1 - LAMBDA * (np.median(np.abs(d)) / MAD) ** 2 / around, 0)

    for plane, own in zip(x, found, strict=True):
        approximation, *levels = pywt.wavedec2(plane, "db2", mode, 2)
        expected = pywt.waverec2([approximation, *(tuple(map(shrunk, bands)) for bands in levels)], "db2", mode)
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-12)


def bivariate(own, parent, around, noise, parent_noise):
    """Shrink one coefficient by Sendur and Selesnick's formula, with the parent scaled to the child's noise."""
    deviation = max(np.mean(np.abs(around) ** 2) - noise**2, 0) ** 0.5
    magnitude = np.hypot(abs(own), parent * noise / parent_noise)
    with np.errstate(divide="ignore"):
        return own * max(magnitude - np.float64(3**0.5 * noise**2) / deviation, 0) / magnitude


@pytest.mark.parametrize("backend", HOSTS)
def test_bivariate_by_loops(rng, backend):
    """By Haar wavelets, where the parent of coefficient k is k // 2."""
    x = rng.standard_normal(256) + 4 * np.sin(np.arange(256) / 3) * (np.arange(256) // 64 == 1)
    coefficients = pywt.wavedec(x, "haar", level=3)
    bands = coefficients[:0:-1]
    noise = [np.median(np.abs(band)) / MAD for band in bands]
    shrunk = []
    for j, band in enumerate(bands):
        own = np.empty_like(band)
        for k in range(len(band)):
            parent, of_parent = (bands[j + 1][k // 2], noise[j + 1]) if j < 2 else (0.0, 1.0)
            own[k] = bivariate(band[k], parent, band[max(k - 3, 0) : k + 4], noise[j], of_parent)
        shrunk.append(own)
    found = wavefilt.denoise(x, "haar", level=3, rule="bivariate", backend=backend)
    np.testing.assert_allclose(found, pywt.waverec([coefficients[0], *shrunk[::-1]], "haar"), atol=1e-12)


@pytest.mark.parametrize("backend", HOSTS)
def test_bivariate_of_sections_by_loops(rng, backend):
    """In each of the three orientations, with seven by seven neighbours."""
    x = rng.standard_normal((24, 40)) + 3 * (np.arange(40) > 20)
    approximation, *levels = pywt.wavedec2(x, "haar", level=2)
    noise = [[np.median(np.abs(band)) / MAD for band in bands] for bands in levels]
    for j, o in product((1, 0), range(3)):  # finer bands first, by parents that are as they were
        band = levels[j][o]
        wide, own = np.pad(band, 3, "symmetric"), np.empty_like(band)
        for i, k in np.ndindex(band.shape):
            parent, of_parent = (abs(levels[0][o][i // 2, k // 2]), noise[0][o]) if j else (0.0, 1.0)
            own[i, k] = bivariate(band[i, k], parent, wide[i : i + 7, k : k + 7], noise[j][o], of_parent)
        levels[j] = (*levels[j][:o], own, *levels[j][o + 1 :])
    found = wavefilt.denoise(x, "haar", level=2, rule="bivariate", axes=(0, 1), backend=backend)
    np.testing.assert_allclose(found, pywt.waverec2([approximation, *levels], "haar"), atol=1e-12)


def test_many_levels_of_a_long_trace(rng):
    """The coefficients of a mean lie farther apart than a tile of a compiled kernel is long."""
    x = rng.standard_normal((1, 60_003)).astype("f4")
    options = {"wavelet": "db4", "level": 11, "rule": "js", "transform": "modwt"}
    expected = wavefilt.denoise(x, backend="pywavelets", **options)
    for _ in range(4):  # a kernel that read beyond its workspace ended one process in two
        assert np.abs(wavefilt.denoise(x, backend="numba", **options) - expected).max() < 1e-5


def test_js_keeps_an_offset(rng):
    x = rng.standard_normal(2048)
    assert np.allclose(wavefilt.denoise(x + 500, rule="js"), wavefilt.denoise(x, rule="js") + 500)
    assert wavefilt.denoise(x + 500, rule="js").mean() == pytest.approx(500, abs=0.1)


def test_bivariate_of_zeros(rng):
    x = rng.standard_normal((3, 400))
    x[1] = 0
    x[2, :200] = 0
    for options in ({}, {"transform": "modwt"}, {"axes": (0, 1), "wavelet": "haar", "level": 1}):
        y = wavefilt.denoise(x, rule="bivariate", **options)
        assert np.isfinite(y).all()
        assert not y[1].any()
    assert np.array_equal(wavefilt.denoise(x[0], rule="bivariate", sigma=0.0), x[0])
