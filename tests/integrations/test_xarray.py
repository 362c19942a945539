"""The accessor of xarray: the samples of `wavefilt.denoise`, coordinates and attributes kept."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt

xarray = pytest.importorskip("xarray")

import wavefilt.xarray  # noqa: E402


@pytest.fixture
def array(rng):
    """float32 (time, channel), with an encoding as of a file that stores integers."""
    x = np.sin(np.arange(900) / 9)[:, None] + rng.standard_normal((900, 4))
    coordinates = {"time": np.arange(900) * 0.01, "depth": ("channel", np.arange(4.0))}
    found = xarray.DataArray(x.astype("f4"), coordinates, ("time", "channel"), "velocity", {"units": "m/s"})
    found.encoding = {"dtype": "int16"}
    return found


@pytest.mark.parametrize(
    ("dim", "options"), [("time", {}), ("time", {"wavelet": "sym8", "rule": "sure"}), ("channel", {"wavelet": "haar"})]
)
def test_samples_along_a_dimension(array, dim, options):
    array[200:210, 1] = np.nan
    quiet = array.wavefilt.denoise(dim, **options)
    expected = wavefilt.denoise(array.values, axis=array.dims.index(dim), **options)
    xarray.testing.assert_equal(quiet, array.copy(data=expected))
    older = array.assign_attrs(history=["read", "scaled"]).wavefilt.denoise(dim, **options)
    assert older.attrs["history"].startswith("read\nscaled\n2")
    assert f"wavefilt {wavefilt.__version__}" in older.attrs["history"]
    assert f"dim='{dim}'" in older.attrs["history"]
    assert (quiet.dtype, quiet.name, quiet.attrs["units"], quiet.encoding) == (array.dtype, "velocity", "m/s", {})
    assert (array.attrs, array.encoding) == ({"units": "m/s"}, {"dtype": "int16"})


@pytest.mark.parametrize(
    ("dim", "axes"), [(("time", "channel"), (2, 0)), (["channel", "time"], (2, 0)), (("shot", "channel"), (2, 1))]
)
def test_sections_of_two_dimensions(rng, dim, axes):
    """The dimension called time, else the first, is along the traces; gaps and dead traces tell which is which."""
    x = rng.standard_normal((40, 8, 50))
    x[:, 1, 7] = 0
    x[5:9, 0, 20] = np.nan
    array = xarray.DataArray(
        x, {"time": np.arange(40) * 0.01, "channel": np.arange(50.0) ** 2}, ("time", "shot", "channel")
    )
    expected = wavefilt.denoise(x, "db2", axes=axes)
    np.testing.assert_array_equal(array.wavefilt.denoise(dim, "db2"), expected)
    dataset = xarray.Dataset({"a": array, "b": array[:, 0, 0].drop_vars("channel")})
    both = dataset.wavefilt.denoise(dim, "db2")
    np.testing.assert_array_equal(both["a"], expected)
    xarray.testing.assert_identical(both["b"], dataset["b"])


def test_the_history_of_a_small_section_has_the_wavelet_that_was_used(rng):
    array = xarray.DataArray(rng.standard_normal((20, 300)), dims=("distance", "time"))
    with pytest.warns(UserWarning, match="db3 is used"):
        quiet = array.wavefilt.denoise(("time", "distance"))
    assert "level=2, " in quiet.attrs["history"]
    assert "wavelet='db3'" in quiet.attrs["history"]


@pytest.mark.parametrize("options", [{"transform": "dtcwt"}, {"transform": "fk"}, {"wavelet": "db2"}], ids=str)
def test_sections_of_lazy_arrays(rng, options):
    pytest.importorskip("dask")
    options = {"backend": "pywavelets"} | options
    array = xarray.DataArray(rng.standard_normal((6, 60, 90)), dims=("shot", "time", "distance"))
    expected = wavefilt.denoise(array.values, axes=(2, 1), **options)
    np.testing.assert_allclose(array.wavefilt.denoise(("time", "distance"), **options), expected, atol=1e-12)
    lazy = array.chunk(shot=2).wavefilt.denoise(("time", "distance"), **options)
    assert lazy.chunksizes["shot"] == (2, 2, 2)
    np.testing.assert_allclose(lazy, expected, atol=1e-12)
    for chunks, more in (({"distance": 20}, {}), ({"shot": 2}, {"scope": "record"})):
        with pytest.raises(ValueError, match="not possible"):
            array.chunk(chunks).wavefilt.denoise(("time", "distance"), **options, **more)


@pytest.mark.parametrize("chunks", [{"channel": 2}, {"time": 450}])
def test_dask_stays_lazy(array, chunks):
    da = pytest.importorskip("dask.array")
    options = {"rule": "universal", "level": 2, "backend": "pywavelets"}
    lazy = array.chunk(chunks).wavefilt.denoise("time", **options)
    assert isinstance(lazy.data, da.Array)
    assert lazy.chunksizes == array.chunk(chunks).chunksizes
    expected = wavefilt.denoise(array.values, axis=0, **options)
    xarray.testing.assert_allclose(lazy.compute(), array.copy(data=expected), rtol=1e-6)


def test_variables_of_a_dataset(array):
    counts = (100 * array).astype("i4")
    counts[3] = 0
    others = {
        "label": ("time", np.full(900, "a")),
        "dead": ("time", np.zeros(900, bool)),
        "gain": ("channel", [1.0] * 4),
    }
    dataset = xarray.Dataset({"velocity": array, "counts": counts, **others}, attrs={"title": "line 7"})
    quiet = dataset.wavefilt.denoise(dim="time", rule="universal")
    for name, kept in dataset[list(others)].data_vars.items():
        xarray.testing.assert_identical(quiet[name], kept)
    for name in ("velocity", "counts"):
        expected = wavefilt.denoise(dataset[name].values, rule="universal", axis=0)
        assert quiet[name].dtype == expected.dtype
        np.testing.assert_array_equal(quiet[name], expected)
        assert "rule='universal'" in quiet[name].attrs["history"]
    assert quiet.attrs["title"] == "line 7"
    assert dataset.attrs == {"title": "line 7"}
    with pytest.raises(ValueError, match="label"):
        dataset[["label", "gain"]].wavefilt.denoise()
    dataset["velocity"][0, 1] = np.inf
    with pytest.raises(ValueError, match="trace 1, sample 0"):
        dataset.wavefilt.denoise()


UNKNOWN = [{"dim": "tme"}, {"dim": ("time", "depth")}, {"dim": ("time", "time")}, {"rule": "best"}, {"backend": "gpu"}]


@pytest.mark.parametrize("options", [*UNKNOWN, {"return_residual": True}], ids=str)
def test_unknown_words_are_named(array, options):
    for one in (array, array.to_dataset(), array.chunk()):
        with pytest.raises(ValueError, match="dimension|" + next(iter(options))):
            one.wavefilt.denoise(**options)


def test_arrays_without_samples_or_numbers(array):
    for bad in (array[:0], array > 0):
        with pytest.raises((TypeError, ValueError)):
            bad.wavefilt.denoise()


PICK = np.datetime64("2026-03-01T12:00:30")


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [
        (("before", PICK, 10), ("window", 1000, 1500)),
        (("window", PICK - np.timedelta64(10, "s"), PICK), ("window", 1000, 1500)),
        (("window", 1000, 1500), ("window", 1000, 1500)),
        (("running", 8), ("running", 400)),
        (("intervals", [PICK]), ("intervals", [1500])),
    ],
)
def test_noise_in_seconds_and_times(rng, sigma, expected):
    x = rng.standard_normal((2, 2000)) * np.linspace(1, 5, 2000)
    time = np.datetime64("2026-03-01T12:00", "ns") + np.arange(2000) * np.timedelta64(20, "ms")
    array = xarray.DataArray(x, {"time": time}, ("channel", "time"), "v")
    wanted = wavefilt.denoise(x, sigma=expected)
    np.testing.assert_array_equal(array.wavefilt.denoise(sigma=sigma).values, wanted)
    np.testing.assert_array_equal(array.to_dataset().wavefilt.denoise(sigma=sigma)["v"].values, wanted)
    if sigma[0] == "running":
        lazy = array.chunk(channel=1).wavefilt.denoise(sigma=sigma)
        np.testing.assert_array_equal(lazy.values, wanted)
        with pytest.raises(ValueError, match="interval"):
            array.drop_vars("time").wavefilt.denoise(sigma=sigma)
        with pytest.raises(ValueError, match="does not increase"):
            array[:, ::-1].wavefilt.denoise(sigma=sigma)
    elif sigma[0] == "before":
        numbers = array.assign_coords(time=5 + 0.02 * np.arange(2000))
        np.testing.assert_array_equal(numbers.wavefilt.denoise(sigma=("before", 35, 10)).values, wanted)
