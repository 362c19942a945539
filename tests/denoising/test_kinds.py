"""Objects that are no arrays of samples: each error names what to write instead."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES
from wavefilt.denoising.coordinates import check_even


@pytest.mark.parametrize(
    ("library", "make", "words"),
    [
        ("obspy", lambda o: o.read(), r"obspy\.Stream.*wavefilt\.obspy\.denoise\(x\)"),
        ("obspy", lambda o: o.read()[0], r"obspy\.Trace.*wavefilt\.obspy\.denoise\(x\)"),
        ("obspy", lambda o: list(o.read()), r"obspy\.Trace.*wavefilt\.obspy\.denoise\(x\)"),
        ("xarray", lambda x: x.DataArray(np.ones(64)), r"import wavefilt\.xarray, then x\.wavefilt\.denoise\(dim\)"),
        ("xarray", lambda x: x.Dataset({"a": x.DataArray(np.ones(64))}), r"x\.wavefilt\.denoise\(dim\)"),
        ("dascore", lambda d: d.get_example_patch(), r"dascore\.Patch.*x\.wavefilt\.denoise\(dim\)"),
        ("dask.array", lambda d: d.ones(64), r"wavefilt\.dask\.denoise\(x\)"),
        ("pandas", lambda p: [p.DataFrame(np.ones((64, 2)))], r"pandas\.DataFrame.*x\.to_numpy\(\)"),
        ("wavefilt", lambda w: w.read(SAMPLES / "seismic.dat"), r"wavefilt\.Recording.*x\.denoise\(\)"),
    ],
)
def test_objects_of_other_libraries(library, make, words):
    pytest.importorskip(library)
    x = make(importlib.import_module(library))
    with pytest.raises(TypeError, match=words):
        wavefilt.denoise(x)


@pytest.mark.parametrize("kind", [str, Path, lambda name: str(name).encode(), lambda name: [str(name)]])
def test_paths(kind, tmp_path):
    with pytest.raises(
        TypeError, match=r"is a path, .*wavefilt\.read\('.*line\.sgy'\)\.denoise\(\), or .*denoise_file"
    ):
        wavefilt.denoise(kind(tmp_path / "line.sgy"))
    folder = tmp_path / "line 7"
    folder.mkdir()
    with pytest.raises(
        TypeError, match=r"denoise_file\(source, target\) for each file, .*wavefilt denoise '.*line 7/\*'"
    ):
        wavefilt.denoise(kind(folder))
    with pytest.raises(TypeError, match="is a path"):
        wavefilt.wavedec(str(tmp_path), "db2")


def test_an_uneven_coordinate_of_xarray_is_refused(rng):
    xarray = pytest.importorskip("xarray")
    importlib.import_module("wavefilt.xarray")
    time = np.arange(200) * 0.5
    array = xarray.DataArray(rng.standard_normal(200), {"time": time}, "time")
    array.wavefilt.denoise()
    array.assign_coords(time=time[::-1]).wavefilt.denoise()
    for place, change in ((50, 0.2), (199, 3.0)):
        uneven = array.assign_coords(time=time + np.where(np.arange(200) >= place, change, 0))
        words = (
            rf"coordinate 'time' is not evenly .* from sample {place - 1} .* is {0.5 + change:g}, the median is 0\.5"
        )
        for data in (uneven, uneven.to_dataset(name="a")):
            with pytest.raises(ValueError, match=words):
                data.wavefilt.denoise()
        uneven.drop_vars("time").wavefilt.denoise()


def test_times_that_are_objects():
    days = [datetime(2024, 2, day, tzinfo=UTC) for day in range(1, 30)]
    check_even(np.array(days, object), "x", "")
    with pytest.raises(ValueError, match=r"from sample 4 .* is 172800 s, the median is 86400 s"):
        check_even(np.array(days[:5] + days[6:], object), "x", "")
    check_even(np.array(["a", "c", "b"], object), "x", "")


def test_an_uneven_coordinate_of_dascore_is_refused():
    dascore = pytest.importorskip("dascore")
    patch = dascore.get_example_patch()
    time = patch.get_array("time").copy()
    time[700:] += np.timedelta64(1, "ms")
    with pytest.raises(ValueError, match=r"coordinate 'time' is not evenly .* is 0\.005 s, the median is 0\.004 s"):
        patch.update_coords(time=time).wavefilt.denoise()
    jitter = patch.get_array("time") + (np.arange(len(time)) % 2) * np.timedelta64(10, "us")
    patch.update_coords(time=jitter).wavefilt.denoise()
