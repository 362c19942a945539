"""The lines that give what is shown: they are run, and their samples compared with those that are drawn."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT, run
from wavefilt.recording import Recording
from wavefilt.viewer import lines
from wavefilt.viewer.bandpass import BandPass
from wavefilt.viewer.source import of, of_file
from wavefilt.viewer.state import denoise

SAMPLE = ROOT / "samples" / "seismic.dat"
CHOICES = {
    "defaults": {},
    "words": {"wavelet": "sym4", "level": 3, "rule": "sure", "shrink": "hard", "sigma": "global", "scope": "record"},
    "numbers": {"wavelet": "db2", "level": 2, "rule": [3.5, np.float64(1.25)], "keep": 1, "blend": 0.25},
    "window": {"sigma": ("seconds", 0.0, 0.1), "mode": "periodic", "detrend": "line"},
    "changing": {"sigma": ("running", 0.2), "rule": "universal"},
    "transform": {"transform": "modwt", "wavelet": "db4", "sigma": 1.5},
    "shifts": {"spins": 4, "level": 3},
    "panel": {"two_dimensional": True, "wavelet": "db2", "scope": "trace"},
    "own wavelet": {"transform": "dtcwt", "rule": "bayes", "two_dimensional": True},
}


def executed(text, **names):
    exec(text, names)
    return names


@pytest.fixture
def gather(tmp_path):
    path = tmp_path / "a shot.dat"
    path.write_bytes(SAMPLE.read_bytes())
    return path


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_python_and_command_of_a_file_give_what_is_shown(gather, choice, tmp_path, capsys):
    source = of(gather)
    shown = denoise(source, choice).rows
    found = executed(lines.python(source, choice))["denoised"]
    np.testing.assert_array_equal(found.samples, shown)
    words = shlex.split(lines.command(source, choice, str(tmp_path / "out.dat")))
    assert words[0] == "wavefilt"
    assert run(capsys, *words[1:])[0] == 0
    np.testing.assert_array_equal(wavefilt.read(tmp_path / "out.dat").samples, shown)


def test_the_command_repeats_the_layout_and_counts_samples_without_an_interval(tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal((300, 4)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    path = str(tmp_path / "x.npy")
    source = of_file(path, wavefilt.read(path, axis=0), {"axis": 0, "format": "npy", "ns": None})
    choice = {"sigma": ("window", 10, 100), "level": 2}
    shown = denoise(source, choice).rows
    words = shlex.split(lines.command(source, choice, str(tmp_path / "y.npy")))
    assert words[:7] == ["wavefilt", "denoise", path, "--axis", "0", "--format", "npy"]
    assert run(capsys, *words[1:])[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").T, shown)
    found = executed(lines.python(source, choice))["denoised"]
    np.testing.assert_array_equal(found.outcome.samples, shown)


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_python_of_an_array_gives_what_is_shown(choice):
    x = np.random.default_rng(1).standard_normal((6, 512)).cumsum(axis=1)
    source = of(x, 0.001)
    found = executed(lines.python(source, choice), x=x)["denoised"]
    np.testing.assert_array_equal(found, denoise(source, choice).rows)
    assert lines.command(source, choice) is None


def test_python_of_a_recording_and_of_one_trace():
    x = np.random.default_rng(2).standard_normal(400)
    recording = Recording(x[None], (0.01,), "npy", None)
    choice = {"sigma": ("seconds", 0.5, 1.5), "level": 2}
    shown = denoise(of(recording), choice).rows
    np.testing.assert_array_equal(
        executed(lines.python(of(recording), choice), recording=recording)["denoised"].samples, shown
    )
    np.testing.assert_array_equal(executed(lines.python(of(x, 0.01), choice), x=x)["denoised"][None], shown)


def test_python_of_a_stream():
    obspy = pytest.importorskip("obspy")
    rng = np.random.default_rng(3)
    stream = obspy.Stream([obspy.Trace(rng.standard_normal(500 - 40 * i), {"delta": 0.01}) for i in range(3)])
    source, choice = of(stream), {"sigma": ("seconds", 0.0, 1.0), "level": 2, "rule": "sure"}
    assert source.rows.shape == (3, 500)
    shown = denoise(source, choice).rows
    for trace, row in zip(executed(lines.python(source, choice), stream=stream)["denoised"], shown, strict=True):
        np.testing.assert_allclose(trace.data, row[: len(trace)], rtol=1e-12, atol=1e-12)
    assert of(stream[0]).rows.shape == (1, 500)


@pytest.mark.parametrize("two_dimensional", [False, True])
@pytest.mark.parametrize("dims", [("trace", "time"), ("t", "x")])
def test_python_of_a_data_array(dims, two_dimensional):
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(np.random.default_rng(4).standard_normal((64, 64)), dims=dims)
    x = x.assign_coords({dims[-1]: np.arange(64) * 0.5})
    source, choice = of(x), {"level": 2, "wavelet": "db2", "two_dimensional": two_dimensional}
    assert source.interval == 0.5
    np.testing.assert_array_equal(
        executed(lines.python(source, choice), x=x)["denoised"].values, denoise(source, choice).rows
    )


@pytest.mark.parametrize("gap", [False, True])
def test_python_of_the_band_pass_gives_what_is_shown(gap):
    x = np.random.default_rng(5).standard_normal((3, 200))
    x[1, 50:60] = np.nan if gap else 0
    source, band_pass = of(x, 0.004), BandPass(5.0, 40.0)
    shown = band_pass.filtered(source)
    found = executed(band_pass.python(source), x=x)["filtered"]
    np.testing.assert_allclose(found[~np.isnan(x)], shown[~np.isnan(x)])
    assert np.isnan(shown).sum() == 10 * gap


def test_the_band_pass_is_that_of_obspy():
    obspy = pytest.importorskip("obspy")
    rng = np.random.default_rng(6)
    x = rng.standard_normal(2000) * np.hanning(2000) ** 4
    trace = obspy.Trace(x.copy(), {"delta": 0.01})
    trace.filter("bandpass", freqmin=2.0, freqmax=10.0, corners=4, zerophase=True)
    np.testing.assert_allclose(BandPass(2.0, 10.0).filtered(of(x, 0.01))[0], trace.data, atol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(0, 5), (5, 5), (9, 5), (5, 500)])
def test_a_band_pass_without_a_band_is_refused(low, high):
    with pytest.raises(ValueError, match="Nyquist"):
        BandPass(low, high).filtered(of(np.ones(200), 0.001))


def test_a_band_pass_of_a_short_trace_is_refused():
    with pytest.raises(ValueError, match="more than 27 samples"):
        BandPass(5, 50).filtered(of(np.ones(20), 0.001))


def test_what_cannot_be_viewed_is_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"an array .* not a pandas\.DataFrame"):
        of(pandas.DataFrame({"a": [1.0]}))
    with pytest.raises(ValueError, match="samples,"):
        of(np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="samples,"):
        of(np.ones((2, 0)))
    with pytest.raises(ValueError, match="positive"):
        of(np.ones(9), -1)
    with pytest.raises(ValueError, match="has its own"):
        of(SAMPLE, 0.1)
    with pytest.raises(OSError, match=r"no\.dat"):
        of(tmp_path / "no.dat")


def test_masked_samples_are_gaps():
    x = np.ma.masked_greater(np.arange(40.0), 35)
    assert np.isnan(of(x).rows).sum() == 4
