"""The accessor of xarray: the samples that `wavefilt.denoise` gives, coordinates and attributes kept."""

from __future__ import annotations

import re

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
    quiet = array.wavefilt.denoise(dim, **options)
    expected = wavefilt.denoise(array.values, axis=array.dims.index(dim), **options)
    xarray.testing.assert_equal(quiet, array.copy(data=expected))
    assert (quiet.dtype, quiet.name) == (array.dtype, "velocity")


@pytest.mark.parametrize(
    ("dim", "axes"), [(("time", "channel"), (2, 0)), (["channel", "time"], (2, 0)), (("shot", "channel"), (2, 1))]
)
def test_panels_of_two_dimensions(rng, dim, axes):
    """The one called time, else the first, is along the traces; gaps and dead traces tell which is which."""
    x = rng.standard_normal((40, 8, 50))
    x[:, 1, 7] = 0
    x[5:9, 0, 20] = np.nan
    array = xarray.DataArray(
        x, {"time": np.arange(40) * 0.01, "channel": np.arange(50.0) ** 2}, ("time", "shot", "channel")
    )
    expected = wavefilt.denoise(x, "db2", axes=axes)
    quiet = array.wavefilt.denoise(dim, "db2")
    np.testing.assert_array_equal(quiet, expected)
    assert f"dim={dim!r}" in quiet.attrs["history"]
    assert "level=3" in array.wavefilt.denoise(("channel", "time"), "db2").attrs["history"]
    dataset = xarray.Dataset({"a": array, "b": array[:, 0, 0].drop_vars("channel")})
    both = dataset.wavefilt.denoise(dim, "db2")
    np.testing.assert_array_equal(both["a"], expected)
    xarray.testing.assert_identical(both["b"], dataset["b"])


@pytest.mark.parametrize("transform", ["dtcwt", "fk"])
def test_panels_by_other_transforms(rng, transform):
    array = xarray.DataArray(rng.standard_normal((2, 60, 90)), dims=("shot", "time", "distance"))
    expected = wavefilt.denoise(array.values, transform=transform, axes=(2, 1))
    for own in (array, array.chunk(shot=1)):
        quiet = own.wavefilt.denoise(("time", "distance"), transform=transform)
        np.testing.assert_allclose(quiet, expected, atol=1e-12)
        assert f"rule='js', scope='trace', sigma='level', spins=1, transform='{transform}'" in quiet.attrs["history"]
    assert ("level=" in quiet.attrs["history"].replace("'level'", "")) == (transform != "fk")


def test_panels_are_no_chunks(rng):
    array = xarray.DataArray(rng.standard_normal((6, 40, 50)), dims=("shot", "channel", "time"))
    lazy = array.chunk(shot=2).wavefilt.denoise(("time", "channel"), "db2", backend="pywavelets")
    assert lazy.chunksizes["shot"] == (2, 2, 2)
    np.testing.assert_array_equal(lazy, wavefilt.denoise(array.values, "db2", axes=(1, 2), backend="pywavelets"))
    with pytest.raises(ValueError, match=r"axes=\(1, 2\) is not possible for panels cut into chunks: rechunk both"):
        array.chunk(channel=20).wavefilt.denoise(("time", "channel"))
    with pytest.raises(ValueError, match='not possible for a record of several chunks: use scope="trace"'):
        array.chunk(shot=2).wavefilt.denoise(("time", "channel"), scope="record")


def test_what_is_kept_and_what_is_not(array):
    quiet = array.wavefilt.denoise().wavefilt.denoise(rule=[1.0, 2], level=2, sigma=0.5)
    assert quiet.attrs["units"] == "m/s"
    assert (array.attrs, array.encoding) == ({"units": "m/s"}, {"dtype": "int16"})
    assert quiet.encoding == {}
    first, second = quiet.attrs["history"].split("\n")
    stamp = rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ wavefilt {re.escape(wavefilt.__version__)}: "
    assert re.match(stamp + r"denoise\(backend='auto', dim='time', keep=0, level=5, .*rule='bayes'", first)
    assert re.match(stamp + r"denoise\(backend='auto', dim='time', .*level=2, .*rule=\[1.0, 2.0\], .*sigma=0.5", second)
    older = array.assign_attrs(history=["read", "scaled"])
    assert older.wavefilt.denoise(rule="neighblock").attrs["history"].startswith("read\nscaled\n2")


@pytest.mark.parametrize("chunks", [{"channel": 2}, {"time": 450}])
def test_dask_stays_lazy(array, chunks):
    da = pytest.importorskip("dask.array")
    lazy = array.chunk(chunks).wavefilt.denoise("time", rule="universal", level=2, backend="pywavelets")
    assert isinstance(lazy.data, da.Array)
    assert lazy.chunksizes == array.chunk(chunks).chunksizes
    expected = wavefilt.denoise(array.values, axis=0, rule="universal", level=2, backend="pywavelets")
    xarray.testing.assert_allclose(lazy.compute(), array.copy(data=expected), rtol=1e-6)
    with pytest.raises(ValueError, match=r"rule='sure' .* not possible for traces cut into chunks"):
        array.chunk(time=450).wavefilt.denoise(rule="sure")


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
    assert quiet.attrs["title"] == "line 7"
    assert "rule='universal'" in quiet.attrs["history"]
    assert "rule='universal'" in quiet["counts"].attrs["history"]
    assert dataset.attrs == {"title": "line 7"}
    with pytest.raises(ValueError, match=r"no numeric variable has the dimension 'time'; variables: \['label'"):
        dataset[["label", "gain"]].wavefilt.denoise()
    dataset["velocity"][0, 1] = np.inf
    with pytest.raises(ValueError, match="variable 'velocity': infinite value at trace 1, sample 0"):
        dataset.wavefilt.denoise()


def test_gaps_come_back(array):
    array[200:210, 1] = np.nan
    quiet = array.wavefilt.denoise()
    np.testing.assert_array_equal(quiet, wavefilt.denoise(array.values, axis=0))
    assert int(np.isnan(quiet).sum()) == 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dim": "tme"}, "dim='tme' is not one of time, channel; did you mean 'time'"),
        ({"dim": ("time", "depth")}, "dim='depth' is not one of time, channel"),
        ({"dim": ("time", "time")}, "must be one dimension, or a pair of them"),
        ({"dim": ("time", "channel"), "sigma": ("running", 1.0)}, "is for traces, not for two dimensions"),
        ({"rule": "best"}, "rule='best' is not one of universal"),
        ({"return_noise": True}, "option='return_noise' is not one of level, mode, .*dim"),
        ({"backend": "gpu"}, "backend='gpu' is not one of auto"),
    ],
)
def test_words_that_are_not_known(array, options, words):
    for one in (array, array.to_dataset(), array.chunk()):
        with pytest.raises(ValueError, match=words):
            one.wavefilt.denoise(**options)


def test_arrays_without_samples_or_numbers(array):
    with pytest.raises(ValueError, match="has no samples along axis 0"):
        array[:0].wavefilt.denoise()
    with pytest.raises(TypeError, match="samples of dtype bool cannot be denoised"):
        (array > 0).wavefilt.denoise()


def test_noise_in_seconds_and_times(rng):
    x = rng.standard_normal((2, 2000)) * np.linspace(1, 5, 2000)
    time = np.datetime64("2026-03-01T12:00", "ns") + np.arange(2000) * np.timedelta64(20, "ms")
    array = xarray.DataArray(x, {"time": time}, ("channel", "time"))
    pick = np.datetime64("2026-03-01T12:00:30")
    for sigma, expected in (
        (("before", pick, 10), ("window", 1000, 1500)),
        (("window", pick - np.timedelta64(10, "s"), pick), ("window", 1000, 1500)),
        (("window", 1000, 1500), ("window", 1000, 1500)),
        (("running", 8), ("running", 400)),
        (("intervals", [pick]), ("intervals", [1500])),
    ):
        wanted = wavefilt.denoise(x, sigma=expected)
        np.testing.assert_array_equal(array.wavefilt.denoise(sigma=sigma).values, wanted)
        both = xarray.Dataset({"v": array}).wavefilt.denoise(sigma=sigma)
        np.testing.assert_array_equal(both["v"].values, wanted)
        assert repr(expected[0]) in both.attrs["history"]
    numbers = array.assign_coords(time=5 + 0.02 * np.arange(2000)).wavefilt.denoise(sigma=("before", 35, 10))
    np.testing.assert_array_equal(numbers.values, wavefilt.denoise(x, sigma=("window", 1000, 1500)))
    with pytest.raises(ValueError, match="dimension 'time' without coordinate: its sampling interval is not known"):
        array.drop_vars("time").wavefilt.denoise(sigma=("running", 8))


def test_running_noise_of_lazy_arrays(rng):
    pytest.importorskip("dask")
    x = rng.standard_normal((4, 1500))
    array = xarray.DataArray(x, {"time": 0.01 * np.arange(1500)}, ("channel", "time")).chunk({"channel": 2})
    lazy = array.wavefilt.denoise(sigma=("running", 3))
    assert lazy.chunks is not None
    np.testing.assert_array_equal(lazy.values, wavefilt.denoise(x, sigma=("running", 300)))
