"""Many files by one command: which they are, where results go, how failures, the table and the log tell of them."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT, run
from wavefilt.backends.crossover import numba_crossover
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.throughput import batches
from wavefilt.cli import main
from wavefilt.cli.denoise import batch, workers
from wavefilt.cli.failure import Failure


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    """A folder of its own with four files in folders, each of other samples; `bad.npy` is damaged."""
    for i, name in enumerate(("a/1.npy", "a/2.npy", "b/1.npy", "b/deep/3.npy")):
        path = tmp_path / "survey" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, (i + 1) * rng.standard_normal((2, 300)))
    (tmp_path / "bad.npy").write_bytes((tmp_path / "survey/a/1.npy").read_bytes()[:200])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: str | Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())


def content(folder: str | Path) -> dict[str, bytes]:
    return {name: Path(folder, name).read_bytes() for name in files(folder)}


@pytest.mark.parametrize(
    ("patterns", "written"),
    [
        (["survey/**/*.npy"], ["a/1", "a/2", "b/1", "b/deep/3"]),
        (["survey/*/1.npy", "survey/a/*"], ["a/1", "a/2", "b/1"]),
        (["survey/b/**/*.npy"], ["1", "deep/3"]),
        (["survey/**/3.npy"], ["b/deep/3"]),
        (["survey/a/1.npy", "survey/b/1.npy"], ["a/1", "b/1"]),
        (["survey/b/../a/?.npy", "survey/b/1.npy"], ["a/1", "a/2", "b/1"]),
        (["survey/a/1.npy"], ["1"]),
    ],
)
def test_results_lie_in_the_folder_as_the_inputs_do(here, capsys, patterns, written):
    assert run(capsys, "denoise", *patterns, "--out-dir", "out", "-q") == (0, "", "")
    assert files("out") == [f"{name}.denoised.npy" for name in written]


def test_each_file_is_denoised_as_if_alone(here, capsys):
    assert run(capsys, "denoise", "survey/**/*.npy", "--out-dir", "out")[0] == 0
    for name in ("a/1", "a/2", "b/1", "b/deep/3"):
        expected = wavefilt.denoise(np.load(f"survey/{name}.npy"))
        assert np.array_equal(np.load(f"out/{name}.denoised.npy"), expected)


def test_a_pattern_leaves_out_results_beside_the_inputs(here, capsys):
    assert run(capsys, "denoise", "survey/a/*", "--sidecar", "-q") == (0, "", "")
    first = content("survey/a")
    assert len(first) == 6
    code, _, err = run(capsys, "denoise", "survey/a/*", "--sidecar")
    assert (code, "survey/a/1.denoised.npy exists; use --overwrite" in err) == (2, True)
    assert run(capsys, "denoise", "survey/**/*.npy", "--overwrite", "-q") == (0, "", "")
    assert sorted(content("survey/a")) == sorted(first)
    code, _, err = run(capsys, "denoise", "survey/a/*.d*", "--overwrite")
    assert (code, "survey/a/*.d*: this pattern matches earlier results alone" in err) == (3, True)


def test_results_that_are_named_are_denoised(here, capsys):
    assert run(capsys, "denoise", "survey/a/*.npy", "-q")[0] == 0
    assert run(capsys, "denoise", "survey/a/*.denoised.npy", "-q")[0] == 0
    assert run(capsys, "denoise", "survey/a/1.denoised.npy", "-q", "--overwrite")[0] == 0
    assert files("survey/a") == sorted(f"{i}{'.denoised' * n}.npy" for i in (1, 2) for n in range(3))
    assert run(capsys, "denoise", "survey/a/*.npy", "--out-dir", "out", "-q")[0] == 0
    assert len(files("out")) == 6


def test_patterns_take_zarr_stores_whole_and_leave_other_folders(here, capsys):
    zarr = pytest.importorskip("zarr")
    zarr.create_array("survey/b/cube.zarr", shape=(2, 300), dtype="f4")[:] = 1
    assert run(capsys, "denoise", "survey/b/**", "--out-dir", "out", "-q") == (0, "", "")
    assert sorted(os.listdir("out")) == ["1.denoised.npy", "cube.denoised.zarr", "deep"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["survey/**/*.npy", "x/*.sgy"], 3, "x/*.sgy: no file matches this pattern"),
        (["survey/a/*.npy", "link/*.npy"], 2, "two outputs would be the same file"),
        (["survey/a/1.npy", "survey/a/1.denoised.npy", "--overwrite"], 2, "is the input"),
        (["survey/a/*.npy", "--log", "survey/a/1.npy", "--overwrite"], 2, "is the input"),
        (["survey/a/*.npy", "--log", "hard", "--overwrite"], 2, "is the input"),
        (["survey/a/*.npy", "--log", "bad.npy"], 2, "bad.npy exists; use --overwrite"),
        (["survey/a/*.npy", "--log", "no/log"], 2, "the folder no does not exist"),
        (["survey/a/*.npy", "--log", "survey/a/2.denoised.npy"], 2, "two outputs would be the same file"),
        (["survey/*/*.npy", "-o", "x.npy"], 2, "-o takes one input"),
        (["survey/a/*.npy", "--out-dir", "bad.npy/x"], 2, "Not a directory"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(here, capsys, arguments, code, words):
    os.symlink("survey/a", "link")
    os.link("survey/a/2.npy", "hard")
    if "--overwrite" in arguments:
        np.save("survey/a/1.denoised.npy", np.ones(300))
    before = content(".")
    got, out, err = run(capsys, "denoise", *arguments)
    assert (got, out) == (code, "")
    assert words in err
    assert content(".") == before


def test_failures_are_listed_at_the_end_and_the_rest_is_done(here, capsys):
    code, out, err = run(capsys, "denoise", "bad.npy", "survey/**/*.npy", "no/gone.npy")
    assert (code, out) == (4, "")
    assert sum("denoised" in name for name in files("survey")) == 4
    *_, ended, head, bad, gone = err.splitlines()
    assert ended.startswith("6 files: 4 done, 2 failed, ")
    assert head == "wavefilt: error: 2 of 6 files failed:"
    assert bad.startswith("  bad.npy: ")
    assert gone == "  no/gone.npy: No such file or directory"
    assert err.count("bad.npy") == 1


def test_fail_fast_stops_and_tells_what_was_done(here, capsys):
    line = "denoise survey/a/1.npy bad.npy survey/a/2.npy --out-dir out --fail-fast --log log"
    code, _, err = run(capsys, *line.split())
    assert code == 3
    assert "3 files: 1 done, 1 failed, 1 not begun" in err
    assert "bad.npy" in err
    assert files("out") == ["survey/a/1.denoised.npy"]
    assert len(Path("log").read_text().splitlines()) == 2


def test_the_table_is_short_and_its_figures_are_those_of_the_files(here, capsys):
    np.save("survey/long.npy", 10 * np.ones((3, 5)))  # too short for a level: its noise is not known
    code, out, err = run(capsys, "denoise", "survey/**/*.npy", "--out-dir", "out", "--json")
    assert code == 0
    facts = [json.loads(line) for line in out.splitlines()]
    table = {line[:20].strip(): line[20:].split() for line in err.splitlines()}
    assert table["traces"] == ["2", "2", "3", "11"]
    assert table["samples"] == ["15", "600", "600", "2,415"]
    sigma = sorted(found["sigma"][0] for found in facts if found["sigma"])
    assert len(sigma) == 4
    assert table["sigma, finest level"] == [f"{v:.3g}" for v in (sigma[0], (sigma[1] + sigma[2]) / 2, sigma[-1])]
    removed = [100 * found["energy_removed"] for found in facts]
    assert table["removed energy, %"] == [f"{v:.3g}" for v in (min(removed), np.median(removed), max(removed))]
    assert len(err.splitlines()) == 7
    assert "5 files: 5 done (1 unchanged), 0 failed" in err
    assert len(run(capsys, "denoise", "survey/**/*.npy", "--out-dir", "out", "--overwrite", "-v")[2].splitlines()) > 12


def test_the_log_has_an_object_for_every_file(here, capsys):
    arguments = ["denoise", "bad.npy", "survey/a/*.npy", "--out-dir", "out", "--log", "out/log.jsonl", "--json"]
    code, out, _ = run(capsys, *arguments)
    assert code == 4
    lines = Path("out/log.jsonl").read_text().splitlines()
    failed, *done = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert [failed[name] for name in ("input", "output", "status")] == ["bad.npy", "out/bad.denoised.npy", "failed"]
    assert failed["error"].startswith("bad.npy: ")
    assert [found["status"] for found in done] == ["done", "done"]
    for found, line in zip(done, out.splitlines(), strict=True):
        assert json.loads(line).items() <= found.items()
        assert found["elapsed_s"] >= found["seconds"] > 0
        assert (found["error"], found["traces"], found["samples"], found["wavelet"]) == (None, 2, 300, "db8")
    before = Path("out/log.jsonl").read_bytes()
    assert run(capsys, *arguments)[0] == 2
    assert Path("out/log.jsonl").read_bytes() == before


def test_a_dry_run_writes_neither_log_nor_folder(here, capsys):
    before = content(".")
    code, out, err = run(capsys, "denoise", "survey/*/*.npy", "--out-dir", "out", "--log", "log", "--dry-run", "--json")
    assert code == 0
    assert len(err.splitlines()) == len(out.splitlines()) == 3
    assert all(json.loads(line)["dry_run"] for line in out.splitlines())
    assert content(".") == before
    assert not Path("out").exists()


def test_a_format_that_is_not_streamed_fails_alone(here, capsys):
    Path("shot.dat").write_bytes((ROOT / "samples/seismic.dat").read_bytes())
    code, _, err = run(capsys, "denoise", "shot.dat", "survey/a/1.npy", "--max-memory", "1GiB", "--out-dir", "out")
    assert code == 4
    assert "  shot.dat: " in err
    assert files("out") == ["survey/a/1.denoised.npy"]


def test_small_files_are_worth_processes_by_their_work(monkeypatch):
    monkeypatch.setattr(wavefilt, "get_num_threads", lambda: 8)
    assert batch._workers([1e5] * 20) == 0
    assert 1 < batch._workers([1e5] * 400) < 8
    assert batch._workers([1e5] * 100_000) == 8


SHARED = """
import sys, wavefilt.cli, wavefilt.cli.denoise.batch as batch
batch.START, batch.SMALL = 0.01, 10_000
if __name__ == "__main__":
    wavefilt.cli.main(sys.argv[1:])
"""
"""The command, which takes processes for few files, and none for one of 11 kB."""


def test_processes_give_what_one_does(here, capsys, monkeypatch):
    monkeypatch.setattr(numba_crossover, "loaded", set())  # "auto" goes by what this process has used
    Path("wavefilt_shared.py").write_text(SHARED)
    np.save("survey/large.npy", np.random.default_rng(3).standard_normal((2, 700)))
    arguments = ["denoise", "survey/**/*.npy", "bad.npy", "--json"]
    one = run(capsys, *arguments, "--out-dir", "one", "-j", "1")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "wavefilt_shared.py", *arguments, "--out-dir", "two", "-j", "2"]
    two = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    assert (one[0], two.returncode) == (4, 4)
    assert "6 files: 5 done, 1 failed" in two.stderr
    assert "0/6 [" not in two.stderr  # no bar where there is no terminal
    assert len(files("one")) == 5
    assert content("one") == content("two")
    assert [json.loads(line)["input"] for line in two.stdout.splitlines()][-1] == "survey/large.npy"
    assert {json.loads(line)["input"] for line in two.stdout.splitlines()} == {
        json.loads(line)["input"] for line in one[1].splitlines()
    }


WAITING = """
import sys, time, wavefilt.cli, wavefilt.cli.denoise.batch as batch, wavefilt.io
batch.START = 0.01
write = wavefilt.io.write
def slow(recording, path, **options):
    write(recording, path, **options)
    open("begun", "a").write(".")
    time.sleep(0.2)
wavefilt.io.write = slow
if __name__ == "__main__":
    wavefilt.cli.main(sys.argv[1:])
"""
"""The command with processes, whose files take a moment after they are written."""


@pytest.mark.skipif(os.name == "nt", reason="signals to a group of processes")
def test_an_interrupt_leaves_whole_files_and_counts_them(here):
    Path("wavefilt_waiting.py").write_text(WAITING)
    for i in range(60):
        np.save(f"survey/a/{i:02}.npy", np.load("survey/a/1.npy"))
    line = "wavefilt_waiting.py denoise survey/a/??.npy --out-dir out -j 2 --log log"
    command = [sys.executable, *line.split()]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True
    )
    while process.poll() is None and not Path("begun").exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 130, err
    assert "Traceback" not in err
    written = files("out")
    assert 0 < len(written) < 60
    assert f"60 files: {len(written)} done, 0 failed, {60 - len(written)} not begun" in err
    logged = [json.loads(line)["output"] for line in Path("log").read_text().splitlines()]
    assert sorted(logged) == [f"out/{name}" for name in written]
    assert {np.load(path).shape for path in logged} == {(2, 300)}


def test_a_process_that_dies_is_an_error():
    with pytest.raises(Failure, match="a worker process ended") as raised:
        workers.shared([(9,)], os._exit, 1, pytest.fail)
    assert raised.value.code == 1


def test_the_bar_is_for_terminals(here):
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "wavefilt.cli", "denoise", "survey/*/*.npy", "--out-dir", "out"]
    subprocess.run(command, stderr=terminal, env=env, timeout=60, check=True)
    os.close(terminal)
    shown = os.read(controller, 100_000).decode()
    assert "| 0/3 [" in shown
    assert shown.index("| 0/3 [") < shown.index("of each file")


def test_the_study_in_small(here, monkeypatch):
    def timed(arguments):
        with pytest.raises(SystemExit) as ended:
            main(["denoise", "-q", *map(str, arguments)])
        assert not ended.value.code
        return 0.25

    monkeypatch.setattr(batches, "_timed", timed)
    row = batches.measure(batches.make_npy, 3, 1, 2)
    assert (row["commands"], row["command"]["median"]) == (2, 250)
    assert {(found["median"], found["ratio"]) for found in row["batches"]} == {(0.25, 3)}
    where = {"processor": "x", "cores": 2, "load": 0}
    assert (
        "| npy, 24 x 1000 | 0.750 | 1 | 0.250 (0.250-0.250) | 12.0 | 3 |"
        in batches.TABLE({"environment": where, "rows": [row]}).markdown()
    )
    monkeypatch.setattr(batches, "_timed", lambda arguments: Path(arguments[2]).mkdir(exist_ok=True) or 1)
    with pytest.raises(Mismatch, match="wrote 0 of 3 files"):
        batches.measure(batches.make_npy, 3, 1, 2)
