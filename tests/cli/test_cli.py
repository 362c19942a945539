"""The command as users meet it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT, SAMPLES, needs, run, run_cli
from wavefilt import report

SAMPLE = SAMPLES / "seismic.dat"
PLOTS = needs("matplotlib")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own with the sample in it."""
    (tmp_path / "seismic.dat").write_bytes(SAMPLE.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_main_job(here, capsys):
    code, out, err = run(capsys, "denoise", "seismic.dat")
    assert (code, out) == (0, "")
    assert "seismic.dat -> seismic.denoised.dat  db8 L5 bayes soft  sigma" in err
    assert "% energy" in err
    assert re.search(r" s \((pywavelets|numba)\)$", err)
    expected = wavefilt.denoise(wavefilt.read(SAMPLE).samples)
    assert np.array_equal(wavefilt.read("seismic.denoised.dat").samples, expected)


def test_options_reach_the_library(here, capsys):
    method = {"level": 3, "rule": "sure", "shrink": "garrote", "sigma": "global", "mode": "periodic", "scope": "record"}
    options = [word for name, value in method.items() for word in (f"--{name}", str(value))]
    options += ["-w", "sym6", "--backend", "pywavelets"]
    assert run(capsys, "denoise", "seismic.dat", "-o", "out.dat", *options)[0] == 0
    expected = wavefilt.denoise(wavefilt.read(SAMPLE).samples, "sym6", backend="pywavelets", **method)
    assert np.array_equal(wavefilt.read("out.dat").samples, expected)


def test_numbers_as_rule_and_sigma(here, capsys):
    assert run(capsys, "denoise", "seismic.dat", "-o", "a.dat", "--rule", "5,2.5", "-l", "2")[0] == 0
    expected = wavefilt.denoise(wavefilt.read(SAMPLE).samples, rule=[5, 2.5], level=2)
    assert np.array_equal(wavefilt.read("a.dat").samples, expected)
    assert run(capsys, "denoise", "seismic.dat", "-o", "b.dat", "--rule", "universal", "--sigma", "3")[0] == 0
    expected = wavefilt.denoise(wavefilt.read(SAMPLE).samples, rule="universal", sigma=3)
    assert np.array_equal(wavefilt.read("b.dat").samples, expected)


def test_overwriting_is_refused(here, capsys):
    assert run(capsys, "denoise", "seismic.dat")[0] == 0
    before = (here / "seismic.denoised.dat").read_bytes()
    code, _, err = run(capsys, "denoise", "seismic.dat", "--rule", "universal")
    assert (code, "--overwrite" in err) == (2, True)
    assert (here / "seismic.denoised.dat").read_bytes() == before
    assert run(capsys, "denoise", "seismic.dat", "--rule", "universal", "--overwrite")[0] == 0
    assert (here / "seismic.denoised.dat").read_bytes() != before


@pytest.mark.parametrize("target", ["seismic.dat", "./seismic.dat", "link.dat"])
def test_the_input_is_never_the_output(here, capsys, target):
    (here / "link.dat").symlink_to("seismic.dat")
    code, _, err = run(capsys, "denoise", "seismic.dat", "-o", target, "--overwrite")
    assert (code, "is the input" in err) == (2, True)
    assert (here / "seismic.dat").read_bytes() == SAMPLE.read_bytes()


def test_dry_run_writes_nothing(here, capsys):
    code, _, err = run(capsys, "denoise", "seismic.dat", "--dry-run", "--out-dir", "new", "--sidecar")
    assert code == 0
    assert "seg2, 24 traces" in err
    assert "96.0 KiB  db8 L5 bayes soft  about 384 KiB of memory (dry run)" in err
    assert os.listdir(here) == ["seismic.dat"]


def test_json_and_sidecar_hold_every_resolved_parameter(here, capsys):
    code, out, _ = run(capsys, "denoise", "seismic.dat", "--json", "--sidecar", "-q")
    assert code == 0
    facts = json.loads(out)
    sidecar = json.loads((here / "seismic.denoised.dat.wavefilt.json").read_text())
    assert facts.items() <= sidecar.items()
    assert sidecar["input_sha256"] == hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
    assert sidecar["options"]["backend"] == "auto"
    (estimate,) = sidecar["estimates"]
    live = wavefilt.read(SAMPLE).live
    assert np.median(np.array(estimate["sigma"])[live], axis=0).tolist() == facts["sigma"]
    assert (facts["level"], facts["taps"], facts["shrink"]) == (5, 16, "soft")
    assert facts["backend"] in ("pywavelets", "numba")
    assert len(facts["sigma"]) == len(facts["thresholds"]) == 5
    assert 0 < facts["energy_removed"] < 1


def test_quiet_and_verbose(here, capsys):
    assert run(capsys, "denoise", "seismic.dat", "-q") == (0, "", "")
    err = run(capsys, "denoise", "seismic.dat", "-v", "--overwrite")[2]
    assert "level 5: sigma" in err


def test_the_small_sample_pays_no_compilation(here):
    result = run_cli("denoise", "seismic.dat", "--json", cwd=here)
    assert json.loads(result.stdout)["backend"] == "pywavelets"


def test_streams(here, capsys):
    options = ("--backend", "pywavelets")  # "auto" may choose another where it has been used before
    result = run_cli("denoise", "-", *options, stdin=SAMPLE.read_bytes())
    assert result.returncode == 0
    assert run(capsys, "denoise", "seismic.dat", *options)[0] == 0
    assert result.stdout == (here / "seismic.denoised.dat").read_bytes()
    to_file = run_cli("denoise", "-", "-o", "x.dat", *options, stdin=SAMPLE.read_bytes(), cwd=here)
    assert (to_file.returncode, to_file.stdout) == (0, b"")
    assert (here / "x.dat").read_bytes() == result.stdout
    assert run(capsys, "denoise", "-", "--json")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["seismic.dat", "-o", "z.png", "--plot", "z.png"], 2, "same file", marks=PLOTS),
        pytest.param(["shot.png", "-o", "z.dat", "--plot", "shot.png", "--overwrite"], 2, "is the input", marks=PLOTS),
        (["x.wavefilt.json", "-o", "x", "--sidecar", "--overwrite"], 2, "is the input"),
        (["gone.dat", "--overwrite"], 3, "No such file"),
        (["gone/gone.dat"], 3, "No such file"),
        (["seismic.dat", "--dry-run", "-l", "30"], 1, "above the maximum"),
        (["seismic.dat", "--dry-run", "--rule", "1,2,3"], 1, "3 thresholds for 5 levels"),
        (["seismic.dat", "--rule", "a number"], 2, "--rule 'a number' is not one of"),
        (["seismic.dat", "--sigma", "1,2"], 2, "--sigma 1.0,2.0 must be"),
        (["n" * 252 + ".dat"], 3, "name too long"),
        (["seismic.dat", "--out-dir", "seismic.dat/sub"], 2, "Not a directory"),
        (["seismic.dat", "-o", ""], 2, "empty"),
        (["-", "-"], 2, "can be read once"),
        (["seismic.dat", "--columns", "1-99999999999"], 2, "more than 65536 columns"),
        (["[1].dat"], 3, "No such file"),
    ],
)
def test_mistakes_cost_no_file(here, capsys, arguments, code, words):
    for name in ("shot.png", "x.wavefilt.json", "1.dat", "gone.denoised.dat"):
        (here / name).write_bytes(SAMPLE.read_bytes())
    before = {name: (here / name).read_bytes() for name in os.listdir(here)}
    got, out, err = run(capsys, "denoise", *arguments)
    assert (got, out) == (code, "")
    assert words.lower() in err.lower()
    assert {name: (here / name).read_bytes() for name in os.listdir(here)} == before


def test_json_of_odd_samples_is_json(here, capsys):
    np.save("nan.npy", np.full((2, 40), np.nan))
    np.save("short.npy", np.ones((3, 5)))
    for name in ("nan.npy", "short.npy"):
        for command in ("info", "denoise"):
            code, out, _ = run(capsys, command, name, "--json", *(["--dry-run"] if command == "denoise" else []))
            assert code == 0
            assert json.loads(out, parse_constant=pytest.fail)["samples"] in (40, 5)
    assert "sigma unknown" in run(capsys, "denoise", "short.npy")[2]


def test_a_full_disk_is_an_error_not_a_traceback():
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m wavefilt.cli wavelets > /dev/full"
    result = subprocess.run(command, shell=True, capture_output=True, env=env, timeout=60)
    assert result.returncode != 0
    assert b"Traceback" not in result.stderr
    assert b"No space left" in result.stderr


def test_a_pipe_with_a_sidecar(here):
    command = f"{sys.executable} -m wavefilt.cli denoise <(cat seismic.dat) -o p.dat --sidecar"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(["bash", "-c", command], capture_output=True, env=env, timeout=60)
    assert result.returncode == 0, result.stderr
    assert json.loads((here / "p.dat.wavefilt.json").read_text())["samples"] == 1024


def test_plot(here, capsys):
    pytest.importorskip("matplotlib")
    assert run(capsys, "denoise", "seismic.dat", "--plot", "p.png")[0] == 0
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = run(capsys, "denoise", "seismic.dat", "-o", "b.dat", "--plot", "p.png")
    assert (code, "exists" in err) == (2, True)


def test_info(here, capsys):
    code, out, _ = run(capsys, "info", "seismic.dat", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["format"], facts["traces"], facts["dead_traces"]) == ("seg2", 24, 1)
    assert len(facts["sigma_by_level"]) == 5
    code, out, _ = run(capsys, "info", "seismic.dat")
    assert "level 1, finest" in out


@pytest.mark.parametrize("dtype", ["i1", "i2", ">i4", "i8", "u1", "u2", "u8", "f2", "f4", "c8", "c16"])
def test_info_of_every_dtype(here, capsys, dtype):
    np.save("x.npy", np.arange(100).reshape(2, 50).astype(dtype))
    code, out, err = run(capsys, "info", "x.npy", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert (facts["minimum"], facts["maximum"], facts["gap_samples"], facts["dead_traces"]) == (0, 99, 0, 0)
    assert facts["dtype"] == np.dtype(dtype).name


def test_gaps_and_masked_samples_are_not_examined():
    x = np.array([[-3.0, 1, np.nan, 1e9] * 9, [0, 0, np.nan, 1e9] * 9, [np.nan] * 36])
    for traces in (np.ma.masked_equal(x, 1e9), np.where(x == 1e9, np.nan, x), np.ma.masked_equal(x * (1 - 0j), 1e9)):
        recording = wavefilt.Recording(traces, (None,) * 3, "npy", None)
        facts = report.examine(recording)
        found = [facts[name] for name in ("minimum", "maximum", "gap_samples", "dead_traces")]
        assert found == [-3, 1, 72, 1]
        assert report.energy_removed(recording, recording) == 0
    half = wavefilt.Recording(x / 2, (None,) * 3, "npy", None)
    assert report.energy_removed(wavefilt.Recording(np.ma.masked_equal(x, 1e9), (None,) * 3, "npy", None), half) == 0.25
    integers = wavefilt.Recording(np.ma.masked_equal([[7, -2, 9] * 4], 9), (None,), "npy", None)
    assert [report.examine(integers)[name] for name in ("minimum", "maximum", "gap_samples")] == [-2, 7, 4]
    nothing = report.examine(wavefilt.Recording(x[2:], (None,), "npy", None))
    assert [nothing[name] for name in ("minimum", "maximum", "dead_traces")] == [None, None, 0]


def test_the_dataset_is_told_as_it_was_named(here, capsys):
    h5py = pytest.importorskip("h5py")
    with h5py.File("a.h5", "w") as file:
        file["ints"], file["more"] = np.arange(600).reshape(2, 300) % 17, np.ones((2, 300))
    for more in (["--sidecar"], ["--max-memory", "1GiB"], ["--dry-run"]):
        code, out, err = run(capsys, "denoise", "a.h5::ints", "--json", "--log", "log", "--overwrite", *more)
        assert code == 0
        assert err.startswith("a.h5::ints -> a.denoised.h5  ")
        assert json.loads(out)["input"] == json.loads((here / "log").read_text())["input"] == "a.h5::ints"
    assert json.loads((here / "a.denoised.h5.wavefilt.json").read_text())["input"] == "a.h5::ints"
    assert json.loads(run(capsys, "info", "a.h5::ints", "--json")[1])["input"] == "a.h5::ints"


def test_versions_are_those_installed():
    assert report.versions()["PyWavelets"] == importlib.metadata.version("PyWavelets")


def test_what_was_removed_from_a_store_replaces_a_store(here, capsys):
    zarr = pytest.importorskip("zarr")
    for name in ("x.zarr", "r.zarr"):
        zarr.create_array(name, data=np.random.default_rng(3).standard_normal((2, 300)))
    arguments = ["denoise", "x.zarr", "--removed", "r.zarr", "-o", "y.zarr"]
    code, _, err = run(capsys, *arguments)
    assert (code, "r.zarr exists; use --overwrite" in err) == (2, True)
    assert not (here / "y.zarr").exists()
    assert run(capsys, *arguments, "--overwrite")[0] == 0
    x, y, removed = (wavefilt.read(name).samples for name in ("x.zarr", "y.zarr", "r.zarr"))
    assert np.array_equal(removed, x - y)
    code, _, err = run(capsys, "denoise", "seismic.dat", "--removed", "r.zarr", "--overwrite")
    assert (code, "is a folder" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--two-dimensional"], "note: unchanged: too few traces or samples for one level of db8 in two dimensions"),
        (["-l", "0"], "note: unchanged: no levels were asked for"),
        (["-l", "0", "-v"], "note: unchanged: no levels were asked for"),
        (["-l", "0", "--dry-run"], "note: unchanged: no levels were asked for"),
    ],
)
def test_a_file_that_stays_as_it_was_is_told(here, capsys, options, words):
    code, _, err = run(capsys, "denoise", "seismic.dat", *options)
    assert code == 0
    assert err.count(words) == 1
    assert len(err.splitlines()) == 2 + ("-v" in options)  # which says whether signal was removed
    if "-v" not in options:
        assert run(capsys, "denoise", "seismic.dat", *options, "-q", "--overwrite") == (0, "", "")


@pytest.mark.parametrize("more", [[], ["--max-memory", "1GiB"]])
def test_traces_too_short_for_a_level_are_told(here, capsys, more):
    np.save("short.npy", np.ones((3, 5)))
    code, _, err = run(capsys, "denoise", "short.npy", *more)
    assert (code, err.splitlines()[1:]) == (
        0,
        ["  note: unchanged: no trace is long enough for one level (5): haar has 2 levels"],
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_under_the_log_names_it(here, capsys):
    for inputs in (["seismic.dat"], ["seismic.dat", "gone.dat"]):
        code, _, err = run(capsys, "denoise", *inputs, "--log", "/dev/full", "--overwrite")
        assert code == 1
        assert err.splitlines()[-1] == "wavefilt: error: --log /dev/full: No space left on device"


def test_an_unknown_backend_is_told_all_there_are(here, capsys):
    code, _, err = run(capsys, "denoise", "seismic.dat", "--backend", "nump")
    assert code == 2
    assert "--backend nump is not one of auto, pywavelets, numba, cuda; did you mean 'numba'?" in err


def test_wavelets(capsys):
    rows = json.loads(run(capsys, "wavelets", "--json")[1])
    assert len(rows) == 106
    assert {"name": "db8", "taps": 16}.items() <= {r["name"]: r for r in rows}["db8"].items()
    assert len(run(capsys, "wavelets", "sym")[1].splitlines()) == 20
    assert "qshift_b" in run(capsys, "wavelets")[1].splitlines()[-2]
    assert "such as sine32x64" in run(capsys, "wavelets")[1].splitlines()[-1]
    assert run(capsys, "wavelets", "dab")[0] == 2


def test_backends(capsys):
    state = json.loads(run(capsys, "backends", "--json")[1])
    assert state["pywavelets"]["usable"] is True
    assert list(state) == wavefilt.backends.names()
    assert "pywavelets" in run(capsys, "backends")[1]


@pytest.mark.parametrize("command", [[], ["denoise"], ["info"], ["wavelets"], ["backends"], ["warm-up"]])
def test_help(command, capsys):
    code, out, _ = run(capsys, *command, "--help")
    assert code == 0
    assert out.startswith("Usage: wavefilt")


def test_version(capsys):
    assert "wavefilt, version" in run(capsys, "--version")[1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting_leaves_no_partial_output(here, number, code):
    # the temporary file is there and unfinished when the signal comes
    script = (
        "import os, time, wavefilt.io, wavefilt.cli\n"
        "os.fsync = lambda _: (print('writing', flush=True), time.sleep(30))\n"
        "wavefilt.cli.main(['denoise', 'seismic.dat'])\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    assert process.stdout.readline() == b"writing\n"
    assert any(name.endswith(".tmp") for name in os.listdir(here))
    time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert b"Traceback" not in err
    assert os.listdir(here) == ["seismic.dat"]


def test_a_reader_that_goes_away_is_no_traceback(here):
    command = f"{sys.executable} -m wavefilt.cli wavelets | head -n 1"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, shell=True, capture_output=True, env=env, timeout=60)
    assert result.stdout.startswith(b"name")
    assert b"Traceback" not in result.stderr


def test_noise_window_and_what_was_removed(here, capsys):
    options = ["--rule", "ebayes", "--shrink", "mean", "--keep", "1", "--noise-window", "0", "0.15"]
    assert run(capsys, "denoise", "seismic.dat", "-o", "out.dat", "--removed", "noise.dat", *options)[0] == 0
    before, after, noise = (wavefilt.read(name).samples for name in ("seismic.dat", "out.dat", "noise.dat"))
    expected = wavefilt.denoise(before, rule="ebayes", shrink="mean", keep=1, sigma=("window", 0, 150))
    assert np.array_equal(after, expected)
    assert np.array_equal(noise, before - after)
    assert np.abs(noise).max() > 1
    code, _, err = run(capsys, "denoise", "seismic.dat", "-o", "b.dat", "--noise-window", "0", "9")
    assert (code, "from 0 s to 9 s does not lie in the traces, which end at 1.024 s" in err) == (1, True)
    assert run(capsys, "denoise", "seismic.dat", "--dry-run", "--noise-window", "0", "9")[0] == 1
    code, _, err = run(capsys, "denoise", "seismic.dat", "-o", "b.dat", "--noise-window", "0", "1", "--sigma", "2")
    assert (code, "give one" in err) == (2, True)
    assert not (here / "b.dat").exists()


@pytest.mark.parametrize("options", [{"transform": "modwt"}, {"spins": "3"}])
def test_translation_invariance(here, capsys, options):
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    code, out, err = run(capsys, "denoise", "seismic.dat", "-o", "out.dat", "--json", *arguments)
    assert (code, "MODWT" in err or "3 spins" in err) == (0, True)
    options = {name: int(value) if value.isdecimal() else value for name, value in options.items()}
    assert json.loads(out).items() >= {"keep": 0, "transform": "dwt", "spins": 1, **options}.items()
    before = wavefilt.read(SAMPLE).samples
    assert np.array_equal(wavefilt.read("out.dat").samples, wavefilt.denoise(before, **options))
    assert not np.array_equal(wavefilt.denoise(before), wavefilt.denoise(before, **options))
