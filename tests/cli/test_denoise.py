"""`wavefilt denoise` of one file: results, what is printed, and what is written beside the result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES, needs, run, run_cli
from tests.support.signals import partly_dead

SAMPLE = SAMPLES / "seismic.dat"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the sample record in it."""
    (tmp_path / "seismic.dat").write_bytes(SAMPLE.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def denoised(capsys, *arguments):
    """Run the command, which must succeed, with JSON output; return its facts and standard error."""
    code, out, err = run(capsys, "denoise", *arguments, "--json")
    assert code == 0, err
    return json.loads(out, parse_constant=pytest.fail), err


WORDS = "level=3 rule=sure shrink=garrote sigma=global mode=periodic scope=record backend=pywavelets wavelet=sym6"
OPTIONS = {
    "": {},
    " ".join(f"--{word.replace('=', ' ')}" for word in WORDS.split()): dict(word.split("=") for word in WORDS.split()),
    "--rule 5,2.5 -l 2": {"rule": [5, 2.5], "level": 2},
    "--rule universal --sigma 3": {"rule": "universal", "sigma": 3},
    "--transform modwt": {"transform": "modwt"},
    "--spins 3": {"spins": 3},
    "--preset gentle": {"preset": "gentle"},
    "--preset section": {"two_dimensional": True},
    "--two-dimensional -w db2": {"two_dimensional": True, "wavelet": "db2"},
    "--detrend line --blend 0.25": {"detrend": "line", "blend": 0.25},
    "--shrink mean --keep 1 --rule ebayes": {"rule": "ebayes", "shrink": "mean", "keep": 1},
    "--noise-window 0 0.15": {"sigma": ("window", 0, 150)},
}


@pytest.mark.parametrize("line", OPTIONS)
def test_options_reach_the_library(here, capsys, line):
    facts, err = denoised(capsys, "seismic.dat", "-o", "out.dat", "--residual", "noise.dat", *line.split())
    before, after, noise = (wavefilt.read(name).samples for name in ("seismic.dat", "out.dat", "noise.dat"))
    options = OPTIONS[line] | ({"level": int(OPTIONS[line]["level"])} if "level" in OPTIONS[line] else {})
    np.testing.assert_array_equal(after, wavefilt.read("seismic.dat").denoise(**options).samples)
    np.testing.assert_array_equal(noise, before - after)
    assert np.abs(noise).max() > 0.1
    assert err.startswith("seismic.dat -> out.dat  ")
    for name in ("level", "rule", "shrink", "transform", "spins", "keep"):
        assert facts[name] == options.get(name, facts[name])


def test_json_holds_every_resolved_option(here, capsys):
    facts, _ = denoised(capsys, "seismic.dat", "-q", "--log", "log", "--preset", "gentle")
    assert facts.items() <= json.loads((here / "log").read_text()).items()
    before = wavefilt.read(SAMPLE)
    finest = wavefilt.estimate_sigma(before.samples[before.live], "db8", level=1)
    assert facts["sigma"][0] == pytest.approx(np.median(finest), rel=0.05)
    assert (facts["level"], facts["taps"], facts["shrink"]) == (5, 16, "soft")
    assert len(facts["sigma"]) == len(facts["thresholds"]) == 5
    assert 0 < facts["residual_energy"] < 1


def test_a_small_file_in_a_new_process_waits_for_no_compiler(here):
    facts = json.loads(run_cli("denoise", "seismic.dat", "--json", cwd=here).stdout)
    assert facts["backend"] == "pywavelets"


def test_details_are_of_live_traces_and_the_same_of_a_streamed_file(here, capsys, rng):
    x, dead = partly_dead(rng, 20_000, "f4")
    np.save("x.npy", x)
    facts, err = denoised(capsys, "x.npy", "-v")
    streamed, _ = denoised(capsys, "x.npy", "-v", "--overwrite", "--max-memory", "16M")
    assert facts["live_traces"] == streamed["noisy_traces"] == np.count_nonzero(~dead) == 9
    for name in ("sigma", "sigma_range", "thresholds", "thresholds_range"):
        np.testing.assert_allclose(streamed[name], facts[name], rtol=1e-6)
    for index, (sigma, (low, high)) in enumerate(zip(facts["sigma"], facts["sigma_range"], strict=True), 1):
        assert 0 < low < sigma < high
        assert f"level {index}: sigma {sigma:.4g} ({low:.4g} to {high:.4g})" in err
    assert err.count("trust: ") == 1


def test_streams(here, capsys):
    options = ("--backend", "pywavelets")  # "auto" may choose another where it has been used before
    result = run_cli("denoise", "-", *options, stdin=SAMPLE.read_bytes())
    assert result.returncode == 0
    assert run(capsys, "denoise", "seismic.dat", *options)[0] == 0
    assert result.stdout == (here / "seismic.denoised.dat").read_bytes()
    to_file = run_cli("denoise", "-", "-o", "x.dat", *options, stdin=SAMPLE.read_bytes(), cwd=here)
    assert (to_file.returncode, to_file.stdout) == (0, b"")
    assert (here / "x.dat").read_bytes() == result.stdout


def test_a_named_pipe(here):
    command = f"{sys.executable} -m wavefilt denoise <(cat seismic.dat) -o p.dat --json"
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["samples"] == 1024
    assert (here / "p.dat").exists()
    command += " --overwrite --max-memory 1GiB"
    streamed = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert (streamed.returncode, b"pipe" in streamed.stderr) == (2, True)


@pytest.mark.parametrize("command", ["info", "denoise --dry-run", "denoise", "denoise --max-memory 1GiB"])
@pytest.mark.parametrize("name", ["gaps", "short", "silent"])
def test_json_of_odd_samples_is_json(here, capsys, command, name):
    samples = {"gaps": np.full((2, 40), np.nan), "short": np.ones((3, 5)), "silent": np.zeros((2, 40))}[name]
    np.save("x.npy", samples)
    code, out, _ = run(capsys, *command.split(), "x.npy", "--json")
    assert code == 0
    facts = json.loads(out, parse_constant=pytest.fail)
    assert facts["samples"] == samples.shape[1]


UNCHANGED = ["seismic.dat -l 0", "seismic.dat -l 0 --dry-run", "short.npy", "none.npy"]


@pytest.mark.parametrize("line", [*UNCHANGED, "short.npy --max-memory 1GiB"])
def test_an_unchanged_file_is_noted_once(here, capsys, line):
    np.save("short.npy", np.ones((3, 5)))
    np.save("none.npy", np.full(500, np.nan))
    code, _, err = run(capsys, "denoise", *line.split())
    why = {"short.npy": "5 samples are too few for one level of db8; haar would", "none.npy": "no samples outside gaps"}
    assert (code, err.count(f"unchanged: {why.get(line.split()[0], 'no levels')}")) == (0, 1)
    assert run(capsys, "denoise", *line.split(), "-q", "--overwrite") == (0, "", "")


def test_a_shorter_wavelet_is_noted(here, capsys):
    line = "seismic.dat --two-dimensional -w db8 --transform dwt --rule bayes -v"
    code, _, err = run(capsys, "denoise", *line.split())
    assert (code, err.count("db3 is used")) == (0, 1)


def test_a_dataset_is_named_as_it_was_given(here, capsys):
    h5py = pytest.importorskip("h5py")
    with h5py.File("a.h5", "w") as file:
        file["ints"], file["more"] = np.arange(600).reshape(2, 300) % 17, np.ones((2, 300))
    for more in ([], ["--max-memory", "1GiB"], ["--dry-run"]):
        facts, err = denoised(capsys, "a.h5::ints", "--log", "log", "--overwrite", *more)
        assert err.startswith("a.h5::ints -> a.denoised.h5  ")
        assert facts["input"] == json.loads((here / "log").read_text())["input"] == "a.h5::ints"
    assert json.loads(run(capsys, "info", "a.h5::ints", "--json")[1])["input"] == "a.h5::ints"


def test_the_residual_of_a_store_is_a_store(here, capsys):
    zarr = pytest.importorskip("zarr")
    for name in ("x.zarr", "r.zarr"):
        zarr.create_array(name, data=np.random.default_rng(3).standard_normal((2, 300)))
    arguments = ["denoise", "x.zarr", "--residual", "r.zarr", "-o", "y.zarr"]
    code, _, err = run(capsys, *arguments)
    assert (code, "r.zarr" in err, (here / "y.zarr").exists()) == (2, True, False)
    assert run(capsys, *arguments, "--overwrite")[0] == 0
    x, y, removed = (wavefilt.read(name).samples for name in ("x.zarr", "y.zarr", "r.zarr"))
    np.testing.assert_array_equal(removed, x - y)
    assert run(capsys, "denoise", "seismic.dat", "--residual", "r.zarr", "--overwrite")[0] == 2


@needs("matplotlib")
def test_reports(here, capsys):
    """A report has figures, and is of one file."""
    facts, err = denoised(capsys, "seismic.dat", "--report", "one.html", "--backend", "pywavelets")
    page = (here / "one.html").read_text()
    assert facts["trust"]["summary"] in err
    assert facts["trust"]["summary"].partition("; ")[2] in page
    assert page.count("<img") == 2
    assert "wavefilt denoise seismic.dat" in page
    assert run(capsys, "denoise", "seismic.dat", "b.dat", "--report", "two.html", "--overwrite")[0] == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the device that is always full is one of Linux")
def test_a_full_disk_is_named(here, capsys):
    code, _, err = run(capsys, "denoise", "seismic.dat", "-o", "/dev/full", "--overwrite")
    assert (code, "/dev/full: " in err) == (1, True)
    command = [sys.executable, "-m", "wavefilt", "denoise", "seismic.dat", "-o", "-"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "standard output: " in done.stderr) == (1, True)
    for inputs in (["seismic.dat"], ["seismic.dat", "gone.dat"]):
        code, _, err = run(capsys, "denoise", *inputs, "--log", "/dev/full", "--overwrite")
        assert code == 1
        assert "/dev/full" in err.splitlines()[-1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("arguments", [["seismic.dat"], ["x.npy", "--max-memory", "1GiB"]])
def test_a_signal_leaves_no_partial_output(here, number, code, arguments):
    np.save("x.npy", np.ones((2, 500)))
    # the temporary file is there and unfinished when the signal comes
    script = (
        "import os, time, wavefilt.io, wavefilt.cli\n"
        "os.fsync = lambda _: (print('writing', flush=True), time.sleep(30))\n"
        f"wavefilt.cli.main(['denoise', *{arguments}])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    assert any(name.endswith(".tmp") for name in os.listdir(here))
    time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert b"Traceback" not in err
    assert sorted(os.listdir(here)) == ["seismic.dat", "x.npy"]


def test_noise_of_wavelet_packets_is_printed_by_node(here, capsys):
    np.save("x.npy", np.random.default_rng(0).standard_normal((2, 512)))
    _, err = denoised(capsys, "x.npy", "--transform", "wp", "-l", "2", "-v")
    assert [line.split(":")[0].split()[1] for line in err.splitlines() if line.startswith("  node")] == [
        *("d", "da", "ad", "dd"),
    ]
