"""The synthetic records are what they claim to be, reproducible, and denoising them gains what is promised."""

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import wavefilt

SAMPLES = Path(__file__).parents[2] / "samples"
DEAD = 16
LIVE = [trace for trace in range(24) if trace != DEAD]

# SNR gains in dB of db8 at level 5, measured 1.57, 3.76, 5.60, 4.33, 5.54, 4.91, 3.98, 4.40, 6.48, 5.42, 5.28 from 6.00
GAINS = {
    "universal": 1.4,
    "minimax": 3.5,
    "sure": 5.3,
    "hybrid": 4.1,
    "bayes": 5.3,
    "fdr": 4.7,
    "blockjs": 3.8,
    "neighblock": 4.2,
    "js": 6.2,
    "bivariate": 6.6,
    "ebayes": 5.2,
    "ebayes-cauchy": 5.1,
}


@pytest.fixture(scope="module")
def twin():
    """The ASCII twin: times (samples,) and traces (traces, samples)."""
    table = np.loadtxt(SAMPLES / "seismic.txt")
    return table[:, 0], table[:, 1:].T


@pytest.fixture(scope="module")
def clean():
    return np.load(SAMPLES / "seismic_clean.npy")


def script(name, *arguments):
    command = [sys.executable, str(SAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=SAMPLES.parent, timeout=60).stdout


def snr(samples, clean):
    """SNR in dB over the live traces."""
    signal, noise = clean[LIVE].astype(float), samples[LIVE].astype(float) - clean[LIVE]
    return 10 * np.log10(np.sum(signal**2) / np.sum(noise**2))


@pytest.mark.parametrize("name", ["make_seismic.py", "denoise_gather.py", "denoise_stream.py"])
def test_help_runs_nothing(name):
    assert script(name, "--help").startswith("usage:")


def test_making_the_records_again_gives_the_same_bytes(tmp_path):
    script("make_seismic.py", tmp_path)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["field.dat", "seismic.dat", "seismic.txt", "seismic_clean.npy"]
    for name in made:
        assert (tmp_path / name).read_bytes() == (SAMPLES / name).read_bytes(), name


def test_obspy_reads_the_record_and_its_headers(twin):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ObsPy's own imports, and its note on every SEG-2 file
        obspy = pytest.importorskip("obspy")
        stream = obspy.read(SAMPLES / "seismic.dat")
    times, traces = twin
    assert [trace.data.dtype for trace in stream] == [np.dtype("<f4")] * 24
    np.testing.assert_array_equal([trace.data for trace in stream], traces.astype(np.float32))
    assert {trace.stats.delta for trace in stream} == {times[1]}
    places = [float(trace.stats.seg2.RECEIVER_LOCATION) for trace in stream]
    assert places == list(wavefilt.read(SAMPLES / "seismic.dat").offsets)
    assert stream[0].stats.starttime == obspy.UTCDateTime(2024, 6, 11, 10, 42, 17)


@pytest.mark.parametrize("name", ["seismic.dat", "seismic.txt"])
def test_wavefilt_reads_both_forms_alike(name, twin):
    times, traces = twin
    recording = wavefilt.read(SAMPLES / name)
    assert recording.interval == pytest.approx(times[1])
    np.testing.assert_array_equal(np.asarray(recording.samples, np.float32), traces.astype(np.float32))


def test_record_has_the_stated_snr_and_a_dead_trace(twin, clean):
    assert snr(twin[1], clean) == pytest.approx(6.0, abs=0.01)
    assert not clean[DEAD].any()
    assert not twin[1][DEAD].any()
    assert all(trace.any() for trace in twin[1][LIVE])


def test_field_record_declares_its_noise_and_denoising_it_gains_what_the_tutorial_says():
    made, recording = runpy.run_path(str(SAMPLES / "make_seismic.py")), wavefilt.read(SAMPLES / "field.dat")
    clean, noisy = made["field_record"]()
    assert recording.samples.tobytes() == noisy.tobytes()
    assert set(recording.delays) == {-0.5}
    assert np.flatnonzero(recording.live).tolist() == LIVE
    before_shot = recording.samples[:, : made["BEFORE"]]
    assert not clean[:, : made["BEFORE"]].any()
    assert before_shot[made["NOISY"]].std() > 2 * np.delete(before_shot, made["NOISY"], axis=0).std(axis=1).max()
    denoised = recording.denoise()
    assert "header DELAY" in denoised.noise.source
    gain, trust = snr(denoised.samples, clean) - snr(noisy, clean), denoised.trust(recording)
    assert gain == pytest.approx(8.5, abs=0.1)
    assert gain - 5 < trust.gain_range[0] < gain < trust.gain_range[1]
    assert trust.effect.gain_db == pytest.approx(gain, abs=1)
    assert (trust.verdict, trust.noisy_traces.tolist()) == ("harmless", [made["NOISY"]])


@pytest.mark.parametrize("rule", GAINS)
def test_denoising_gains(rule, twin, clean):
    noisy = twin[1].astype(np.float32)
    denoised = wavefilt.denoise(noisy, rule=rule)
    assert snr(denoised, clean) - snr(noisy, clean) > GAINS[rule]
    assert denoised[DEAD].tobytes() == noisy[DEAD].tobytes()


def test_example_prints_what_each_rule_gains_and_writes_the_record(tmp_path, twin):
    out = tmp_path / "denoised.dat"
    lines = re.findall(r"^([\w-]+) +(\d+\.\d\d) dB$", script("denoise_gather.py", out), re.MULTILINE)
    printed = {name: float(value) for name, value in lines}
    assert list(printed) == ["before", *GAINS]
    assert printed["before"] == 6.0
    assert all(printed[rule] > 6.0 + gain for rule, gain in GAINS.items())
    written = wavefilt.read(out)
    expected = wavefilt.denoise(twin[1].astype(np.float32), "sym8", rule="js", transform="modwt", level=6)
    np.testing.assert_allclose(written.samples, expected, atol=1e-4)


def test_example_ends_without_a_traceback_if_its_output_exists_or_nobody_reads(tmp_path):
    command = [sys.executable, "-u", str(SAMPLES / "denoise_gather.py"), str(tmp_path / "out.dat")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unread:
        unread.stdout.close()
        assert unread.stderr.read() == b""
    assert (tmp_path / "out.dat").exists()
    again = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (again.returncode, again.stdout) == (2, "")
    assert "Traceback" not in again.stderr
