"""pandas: Series and DataFrames denoised along their index, as the arrays they hold; uneven indexes refused."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt

pd = pytest.importorskip("pandas")


@pytest.fixture
def frame(rng):
    x = np.sin(np.arange(500) / 9)[:, None] + 0.3 * rng.standard_normal((500, 3))
    found = pd.DataFrame(x, pd.date_range("2026-01-01", periods=500, freq="4ms", tz="UTC"), ["z", "n", "e"])
    found.attrs["station"] = "A01"
    return found


@pytest.mark.parametrize("options", [{}, {"rule": "sure", "wavelet": "sym8"}, {"scope": "record"}, {"axis": 0}])
def test_a_frame_is_its_array_along_the_index(frame, options):
    before = frame.copy()
    expected = wavefilt.denoise(frame.to_numpy(), **options | {"axis": 0})
    quiet = wavefilt.denoise(frame, **options)
    pd.testing.assert_frame_equal(quiet, pd.DataFrame(expected, frame.index, frame.columns), check_freq=True)
    assert quiet.attrs == {"station": "A01"}
    pd.testing.assert_frame_equal(frame, before)


def test_a_series_is_its_array(frame):
    series = frame["n"].astype("float32")
    quiet, noise = wavefilt.denoise(series, return_residual=True)
    assert (quiet.name, noise.name, quiet.dtype) == ("n", "n", np.float32)
    expected = wavefilt.denoise(series.to_numpy())
    pd.testing.assert_series_equal(quiet, pd.Series(expected, series.index, name="n"))
    pd.testing.assert_series_equal(noise, series - quiet)
    assert not np.array_equal(quiet, series)


def test_columns_keep_their_floating_dtype_and_integers_get_that_of_the_computation(frame):
    mixed = frame.copy()
    mixed["z"] = mixed["z"].astype("float32")
    mixed["n"] = (1000 * mixed["n"]).astype("int16")
    mixed.columns = ["a", "b", "a"]  # a name twice
    quiet = wavefilt.denoise(mixed)
    assert list(quiet.dtypes) == [np.float32, np.float64, np.float64]
    assert list(quiet.columns) == ["a", "b", "a"]
    expected = wavefilt.denoise(mixed.to_numpy(np.float64), axis=0)
    np.testing.assert_array_equal(quiet.to_numpy(), np.where([True, False, False], expected.astype("f4"), expected))
    short = wavefilt.denoise((1000 * frame).astype("int16"))
    assert set(short.dtypes) == {np.dtype(np.float32)}


def test_missing_values_are_gaps_of_their_column(frame):
    holed = frame.copy()
    holed.iloc[200:230, 1] = np.nan
    quiet = wavefilt.denoise(holed)
    np.testing.assert_array_equal(quiet.isna(), holed.isna())
    pd.testing.assert_series_equal(quiet["z"], wavefilt.denoise(frame["z"]))
    pd.testing.assert_series_equal(quiet["n"][:200], wavefilt.denoise(frame["n"][:200]), check_freq=False)


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        (lambda x: x.astype("Float64"), TypeError, "Float64"),
        (lambda x: x["z"].astype("Float64"), TypeError, "Float64"),
        (lambda x: x.assign(e="a"), TypeError, "'e'"),
        (lambda x: x.assign(n=x["n"] > 0), TypeError, "'n'"),
        (lambda x: x.set_index("z"), ValueError, "evenly"),
        (lambda x: x.drop(x.index[100]), ValueError, "sample 99"),
        (lambda x: x.reset_index(drop=True).drop([7, 9]), ValueError, "sample 6"),
        (lambda x: x.set_axis(x.index.where(x.index != x.index[3])), ValueError, "NaT"),
        (lambda x: x.set_axis(np.zeros(500)), ValueError, "median"),
        (lambda x: x.set_axis(pd.MultiIndex.from_product([[1, 2], range(250)])), ValueError, "levels"),
        (lambda x: x.set_axis(x.index - x.index[0] + pd.to_timedelta(np.arange(500) ** 2, "us")), ValueError, "evenly"),
    ],
)
def test_uneven_samples_are_refused(frame, change, error, word):
    with pytest.raises(error, match=word):
        wavefilt.denoise(change(frame))


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(500),
        pd.Index(range(1000, 0, -2)),
        pd.Index(np.arange(500) * 0.004),
        pd.Index((1e4 + np.arange(500) * 0.01).astype("float32")),  # rounded by a tenth of the interval
        pd.to_timedelta(np.arange(500) * 3_333_333, "ns"),
        pd.date_range("2026-03-28", periods=500, freq="h", tz="Europe/Paris"),  # over a change of the clock
        pd.period_range("2020-01", periods=500, freq="M"),
        pd.Index([f"sample {i}" for i in range(500)]),
    ],
    ids=lambda index: f"{type(index).__name__} {index.dtype}",
)
def test_even_indexes_and_labels(frame, index):
    quiet = wavefilt.denoise(frame.set_axis(index))
    pd.testing.assert_index_equal(quiet.index, index)
    np.testing.assert_array_equal(quiet, wavefilt.denoise(frame.to_numpy(), axis=0))


def test_other_functions_take_series_and_no_frames(frame):
    for function in (
        lambda x: wavefilt.denoise(x, axis=1),
        lambda x: wavefilt.wavedec(x, "db2"),
        lambda x: wavefilt.OnlineDenoiser("haar", 1, 0.5, channels=3).push(x),
    ):
        with pytest.raises((TypeError, ValueError), match="to_numpy"):
            function(frame)
    np.testing.assert_array_equal(wavefilt.wavedec(frame["z"], "db2")[0], wavefilt.wavedec(frame["z"].array, "db2")[0])
