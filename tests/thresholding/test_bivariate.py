"""Rule bivariate: shrinkage by a coefficient, its parent and the energy around it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.checkout import usable_backends
from wavefilt.method import Method
from wavefilt.thresholding.bivariate import ROOT, Bivariate
from wavefilt.thresholding.local_shrinkage import Grid

HOSTS = [name for name in usable_backends() if name != "cuda"]
MAD = 0.6744897501960817


def by_formula(own, parent, around, noise, parent_noise, parts=1):
    """A coefficient as Sendur and Selesnick shrink it, from its neighbours, with the parent in the child's noise."""
    deviation = max(np.mean(np.abs(around) ** 2) / parts - noise**2, 0) ** 0.5
    magnitude = np.hypot(abs(own), parent * noise / parent_noise)
    with np.errstate(divide="ignore"):
        return own * max(magnitude - np.float64(3**0.5 * noise**2) / deviation, 0) / magnitude


def reflected(i, n):
    return -1 - i if i < 0 else 2 * n - 1 - i if i >= n else i


@pytest.mark.parametrize("parts", [1, 2])
def test_planes_by_a_loop(rng, parts):
    """Two directions at two levels; a child at 2k or 2k + 1 has parent k, the nearest by these grids."""
    shapes = [(6, 10)] * 2 + [(3, 5)] * 2
    noise = np.array([0.7, 0.4, 1.1, 0.6])
    bands = [rng.standard_normal((1, *shape)) + (parts - 1) * 1j * rng.standard_normal((1, *shape)) for shape in shapes]
    grids = [
        tuple(Grid(n, 2**j, first, 1, 1, False) for n in shape)
        for (j, first), shape in zip([(1, 0.0), (1, 0.0), (2, 1.0), (2, 1.0)], shapes, strict=True)
    ]
    found = Bivariate().shrink_planes(bands, ROOT * noise[:, None], grids, parts, 2)
    for b, (band, (rows, columns)) in enumerate(zip(bands, shapes, strict=True)):
        for i, j in np.ndindex(rows, columns):
            near = [
                band[0, reflected(i + p, rows), reflected(j + q, columns)] for p, q in product(range(-3, 4), repeat=2)
            ]
            parent, of_parent = (abs(bands[b + 2][0, i // 2, j // 2]), noise[b + 2]) if b < 2 else (0.0, 1.0)
            expected = by_formula(band[0, i, j], parent, near, noise[b], of_parent, parts)
            assert found[b][0, i, j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("backend", HOSTS)
def test_traces_by_a_loop(rng, backend):
    x = rng.standard_normal(256) + 4 * np.sin(np.arange(256) / 3) * (np.arange(256) // 64 == 1)
    coefficients = pywt.wavedec(x, "haar", level=3)
    bands = coefficients[:0:-1]
    noise = [np.median(np.abs(band)) / MAD for band in bands]
    shrunk = []
    for level, band in enumerate(bands):
        own = np.empty_like(band)
        for k in range(len(band)):
            parent, of_parent = (bands[level + 1][k // 2], noise[level + 1]) if level < 2 else (0.0, 1.0)
            own[k] = by_formula(band[k], parent, band[max(k - 3, 0) : k + 4], noise[level], of_parent)
        shrunk.append(own)
    expected = pywt.waverec([coefficients[0], *shrunk[::-1]], "haar")
    found = wavefilt.denoise(x, "haar", level=3, rule="bivariate", backend=backend)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("mode", ["symmetric", "periodization", "zero"])
@pytest.mark.parametrize("wavelet", ["haar", "db4", "sym8"])
def test_parents_are_at_the_same_place(mode, wavelet):
    """Impulses have the mean centre of their energy at one place in all bands of panels, by the bands' grids."""
    shape, method = (128, 136), Method(wavelet, 3, mode, dimensions=2)
    analysis = method.analysis(3)
    grids = method.kind.plane_grids(analysis, shape)
    found = np.zeros((8, len(grids), 2))
    for shift in range(8):
        x = np.zeros((1, *shape))
        x[0, 60 + shift, 60 + shift] = 1
        for own, band, pair in zip(found[shift], method.kind.analyse(x, analysis)[:0:-1], grids, strict=True):
            energy = np.square(band[0])
            assert energy.shape == tuple(grid.count for grid in pair)
            for axis, grid in enumerate(pair):
                times = grid.first + grid.step * np.arange(grid.count)
                own[axis] = energy.sum(axis=1 - axis) @ times / energy.sum()
    steps = np.array([[grid.step for grid in pair] for pair in grids])
    centres = found.mean(axis=0)
    assert (np.abs(centres - centres[0]) < 0.3 * steps).all()


@pytest.mark.parametrize("options", [{}, {"transform": "modwt"}, {"axes": (0, 1), "wavelet": "db4"}])
def test_it_removes_noise_and_keeps_signals(rng, options):
    t = np.arange(512)
    clean = np.sin(2 * np.pi * t / 40) * np.exp(-(((t - 256) / 60) ** 2)) * np.ones((64, 1)) * 5
    noise = rng.standard_normal(clean.shape)
    assert np.mean((wavefilt.denoise(clean + noise, rule="bivariate", **options) - clean) ** 2) < 0.15
    assert np.mean(wavefilt.denoise(noise, rule="bivariate", **options) ** 2) < 0.1


def test_zeros_and_what_is_kept(rng):
    x = rng.standard_normal((3, 400))
    x[1] = 0
    x[2, :200] = 0
    for options in ({}, {"transform": "modwt"}, {"axes": (0, 1), "wavelet": "haar", "level": 1}):
        y = wavefilt.denoise(x, rule="bivariate", **options)
        assert np.isfinite(y).all()
        assert not y[1].any()
    kept = wavefilt.denoise(x[0], "db2", level=4, rule="bivariate", keep=2)
    before, after = (wavefilt.wavedec(v, "db2", level=4, mode="symmetric") for v in (x[0], kept))
    assert np.allclose(before[1][4:-4], after[1][4:-4], atol=0.05 * np.abs(before[1]).max())
    assert not np.allclose(before[4], after[4], atol=0.1)
    assert np.array_equal(wavefilt.denoise(x[0], rule="bivariate", sigma=0.0), x[0])


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16", "i2"])
def test_dtypes(rng, dtype):
    x = (40 * rng.standard_normal((2, 700))).astype(dtype)
    y = wavefilt.denoise(x, rule="bivariate")
    assert y.dtype == ("f4" if dtype == "i2" else dtype)
    wide = wavefilt.denoise(x.astype("c16" if dtype[0] == "c" else "f8"), rule="bivariate")
    assert np.abs(y - wide).max() < 1e-3


def test_refusals(rng):
    with pytest.raises(ValueError, match="shrinks neighbourhoods its own way"):
        wavefilt.denoise(rng.standard_normal(100), rule="bivariate", shrink="soft")
    with pytest.raises(ValueError, match="needs the whole trace"):
        wavefilt.OnlineDenoiser(rule="bivariate", window=500)


def test_in_chunks_as_whole(rng, tmp_path):
    np.save(tmp_path / "x.npy", x := rng.standard_normal((2, 1_000_000)).astype("f4").cumsum(axis=1))
    options = {"rule": "bivariate", "backend": "numba", "level": 4}
    report = wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory="46MiB", **options)
    assert report.passes > 1
    assert np.array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, **options))
