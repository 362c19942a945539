"""Patches of DASCore: the samples that `wavefilt.denoise` gives, coordinates and attributes kept."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt


@pytest.fixture
def patch(rng):
    dc = pytest.importorskip("dascore")  # takes seconds to import
    x = np.sin(np.arange(600) / 9) + rng.standard_normal((5, 600))
    time = np.datetime64("2026-11-20") + np.arange(600) * np.timedelta64(2, "ms")
    coordinates = {"distance": np.arange(5.0), "time": time}
    return dc.Patch(x.astype("f4"), coordinates, ("distance", "time"), {"station": "S1", "history": ["read"]})


@pytest.mark.parametrize(
    ("dim", "options"),
    [
        ("time", {"rule": "sure", "backend": "pywavelets"}),
        ("time", {"scope": "record"}),
        ("distance", {"wavelet": "haar"}),
    ],
)
def test_samples_along_a_dimension(patch, dim, options):
    before = patch.data.copy()
    quiet = patch.wavefilt.denoise(dim=dim, **options)
    expected = wavefilt.denoise(before, axis=patch.dims.index(dim), **options)
    assert quiet.data.dtype == expected.dtype
    np.testing.assert_array_equal(quiet.data, expected)
    np.testing.assert_array_equal(patch.data, before)
    assert quiet.coords == patch.coords
    assert quiet.attrs.station == "S1"
    old, line = quiet.attrs.history
    named = options.get("backend", "auto")
    assert old == "read"
    assert line.startswith(f"wavefilt {wavefilt.__version__}: denoise(backend='{named}', dim='{dim}', keep=0, level=")
    assert tuple(patch.attrs.history) == ("read",)


@pytest.mark.parametrize("transform", ["dtcwt", "fk"])
def test_panels_by_other_transforms(patch, transform):
    quiet = patch.wavefilt.denoise(("time", "distance"), transform=transform)
    np.testing.assert_array_equal(quiet.data, wavefilt.denoise(patch.data, transform=transform, axes=(0, 1)))


@pytest.mark.parametrize("dim", [("time", "distance"), ("distance", "time")])
def test_panels_of_two_dimensions(patch, dim):
    for own in (patch, patch.transpose()):
        quiet = own.wavefilt.denoise(dim, "haar")
        axes = tuple(own.dims.index(name) for name in ("distance", "time"))
        np.testing.assert_array_equal(quiet.data, wavefilt.denoise(own.data, "haar", axes=axes))
        assert f"dim={dim!r}, keep=0, level=2" in quiet.attrs.history[-1]


def test_integers_and_gaps(patch):
    counts = patch.new(data=(100 * patch.data).astype("i2"))
    np.testing.assert_array_equal(counts.wavefilt.denoise().data, wavefilt.denoise(counts.data))
    holes = patch.data.copy()
    holes[2, 100:120] = np.nan
    np.testing.assert_array_equal(patch.new(data=holes).wavefilt.denoise().data, wavefilt.denoise(holes))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dim": "tme"}, "dim='tme' is not one of distance, time; did you mean 'time'"),
        ({"rule": "best"}, "rule='best' is not one of universal"),
        ({"lvel": 2}, "option='lvel' is not one of level, mode, .*did you mean 'level'"),
        ({"level": 9}, "level=9 is above the maximum of 5 for 600 samples"),
    ],
)
def test_what_is_refused(patch, options, words):
    with pytest.raises(ValueError, match=words):
        patch.wavefilt.denoise(**options)


def test_patches_without_samples(patch):
    with pytest.raises(ValueError, match="has no samples along axis 1"):
        patch.select(time=(0, 0), samples=True).wavefilt.denoise()


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [
        (("before", np.datetime64("2026-11-20T00:00:01"), 0.6), ("window", 200, 500)),
        (("seconds", 0.4, 1), ("window", 200, 500)),
        (("running", 0.3), ("running", 150)),
        (("intervals", [np.datetime64("2026-11-20T00:00:00.5")]), ("intervals", [250])),
    ],
)
def test_noise_in_seconds_and_times(patch, sigma, expected):
    quiet = patch.wavefilt.denoise(sigma=sigma, wavelet="db2")
    np.testing.assert_array_equal(quiet.data, wavefilt.denoise(patch.data, "db2", sigma=expected))
    with pytest.raises(ValueError, match="begins before the first sample"):
        patch.wavefilt.denoise(sigma=("before", np.datetime64("2026-11-20T00:00:01"), 6))
