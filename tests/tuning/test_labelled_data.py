"""`wavefilt.compare` of objects of ObsPy, xarray and DASCore, and of recordings: as of their samples."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt

obspy = pytest.importorskip("obspy")
SOME = ["universal", "bayes", "js"]


def risks(found):
    return {trial.options["rule"]: trial.risk for trial in found.trials}


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(4).standard_normal((5, 1500)) + 5 * (np.arange(1500) % 700 < 30)


@pytest.fixture(scope="module")
def wanted(x):
    return risks(wavefilt.compare(x, rule=SOME, sigma=("window", 50, 450)))


SECONDS = {"rule": SOME, "sigma": ("seconds", 0.5, 4.5)}
TIMES = np.arange(1500) * 0.01


def test_streams(x, wanted):
    stream = obspy.Stream([obspy.Trace(trace, {"delta": 0.01, "station": f"A{i}"}) for i, trace in enumerate(x)])
    found = wavefilt.compare(stream, **SECONDS)
    assert (risks(found), found.interval) == (wanted, 0.01)
    denoised = eval(found.python, {"wavefilt": wavefilt, "stream": stream})
    alike = wavefilt.denoise(x, rule=found.best.options["rule"], sigma=("window", 50, 450))
    np.testing.assert_array_equal([trace.data for trace in denoised], alike)
    start = stream[0].stats.starttime
    assert risks(wavefilt.compare(stream, rule=SOME, sigma=("window", start + 0.5, start + 4.5))) == wanted
    assert wavefilt.compare(stream[0], rule=SOME).traces == 1
    stream[0].trim(endtime=start + 9)
    assert wavefilt.compare(stream, rule=SOME).traces == 5
    np.testing.assert_allclose(wavefilt.estimate_sigma(stream), 1, rtol=0.2)


def test_recordings(x, wanted):
    found = wavefilt.compare(wavefilt.Recording(x, (0.01,) * 5, "npy", None, source="a.npy"), **SECONDS)
    assert (risks(found), found.interval) == (wanted, 0.01)
    assert found.python.startswith("wavefilt.read('a.npy').denoise(sigma=('seconds', 0.5, 4.5), rule=")


def test_xarray(x, wanted):
    xarray = pytest.importorskip("xarray")
    labelled = xarray.DataArray(x.T, dims=("time", "trace"), coords={"time": TIMES})
    found = wavefilt.compare(labelled, **SECONDS)
    assert risks(found) == wanted
    assert found.python.startswith("x.wavefilt.denoise('time', sigma=")


def test_dascore(x, wanted):
    dascore = pytest.importorskip("dascore")
    times = dascore.to_datetime64(0) + dascore.to_timedelta64(TIMES)
    patch = dascore.Patch(x, dims=("distance", "time"), coords={"distance": np.arange(5), "time": times})
    assert risks(wavefilt.compare(patch, **SECONDS)) == wanted
