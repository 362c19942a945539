"""Patches of DASCore: the samples of `wavefilt.denoise`, coordinates and attributes kept."""

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


ALONG = [("time", {"rule": "sure", "backend": "pywavelets"}), ("time", {"scope": "record"})]
ALONG += [("distance", {"wavelet": "haar"}), (("time", "distance"), {"wavelet": "haar"})]
ALONG += [(("distance", "time"), {"transform": "dtcwt"}), (("time", "distance"), {"transform": "fk"})]


@pytest.mark.parametrize(("dim", "options"), ALONG, ids=str)
@pytest.mark.parametrize("kind", ["f4", "i2", "gaps", "transposed"])
def test_samples_along_dimensions(patch, dim, options, kind):
    if kind == "i2":
        patch = patch.new(data=(100 * patch.data).astype("i2"))
    elif kind == "gaps" and dim == "time":
        holes = patch.data.copy()
        holes[2, 100:120] = np.nan
        patch = patch.new(data=holes)
    elif kind == "transposed":
        patch = patch.transpose()
    before = patch.data.copy()
    quiet = patch.wavefilt.denoise(dim, **options)
    if isinstance(dim, str):
        axes = {"axis": patch.dims.index(dim)}
    else:
        axes = {"axes": tuple(patch.dims.index(name) for name in ("distance", "time"))}
    expected = wavefilt.denoise(before, **axes, **options)
    assert quiet.data.dtype == expected.dtype
    np.testing.assert_array_equal(quiet.data, expected)
    np.testing.assert_array_equal(patch.data, before)
    assert quiet.coords == patch.coords
    assert quiet.attrs.station == "S1"
    old, *_, line = quiet.attrs.history
    assert old == "read"
    assert f"wavefilt {wavefilt.__version__}" in line
    assert f"dim={dim!r}" in line


def test_the_history_of_a_small_section_has_the_wavelet_that_was_used(patch):
    with pytest.warns(UserWarning, match="haar is used"):
        quiet = patch.wavefilt.denoise(("time", "distance"))
    assert "wavelet='haar'" in quiet.attrs.history[-1]


@pytest.mark.parametrize("options", [{"dim": "tme"}, {"rule": "best"}, {"lvel": 2}, {"level": 9}], ids=str)
def test_unknown_words_are_named(patch, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        patch.wavefilt.denoise(**options)
    with pytest.raises(ValueError, match="no samples"):
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
