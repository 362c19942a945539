"""Many files by one command: which they are, where results go, failures, the table, the log, and several processes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT, run


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    """An empty folder with four files in folders, each of other samples; `bad.npy` is damaged."""
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
        (["survey/a/1.npy", "survey/b/1.npy"], ["a/1", "b/1"]),
        (["survey/b/../a/?.npy", "survey/b/1.npy"], ["a/1", "a/2", "b/1"]),
        (["survey/a/1.npy"], ["1"]),
    ],
)
def test_results_lie_in_the_folder_as_the_inputs_do(here, capsys, patterns, written):
    assert run(capsys, "denoise", *patterns, "--out-dir", "out", "-q") == (0, "", "")
    assert files("out") == [f"{name}.denoised.npy" for name in written]


def test_the_result_of_a_compressed_file_is_not_compressed(here, capsys):
    Path("1.npy.gz").write_bytes(gzip.compress(Path("survey/a/1.npy").read_bytes()))
    assert run(capsys, "denoise", "1.npy.gz", "-q") == (0, "", "")
    assert Path("1.denoised.npy").exists()


def test_patterns_leave_out_earlier_results_unless_they_name_them(here, capsys):
    assert run(capsys, "denoise", "survey/a/*", "-q") == (0, "", "")
    first = files("survey/a")
    assert len(first) == 4
    assert run(capsys, "denoise", "survey/a/*")[0] == 2
    assert run(capsys, "denoise", "survey/**/*.npy", "--overwrite", "-q") == (0, "", "")
    assert files("survey/a") == first
    assert run(capsys, "denoise", "survey/a/*.denoised.npy", "-q")[0] == 0
    assert run(capsys, "denoise", "survey/a/1.denoised.npy", "-q", "--overwrite")[0] == 0
    results = [f"{i}{'.denoised' * n}.npy" for i in (1, 2) for n in range(3)]
    assert [name for name in files("survey/a") if name.endswith(".npy")] == sorted(results)
    assert run(capsys, "denoise", "survey/a/*.npy", "--out-dir", "out", "-q")[0] == 0
    assert len(files("out")) == 6


def test_patterns_take_stores_whole_and_leave_other_folders(here, capsys):
    zarr = pytest.importorskip("zarr")
    zarr.create_array("survey/b/cube.zarr", shape=(2, 300), dtype="f4")[:] = 1
    assert run(capsys, "denoise", "survey/b/**", "--out-dir", "out", "-q") == (0, "", "")
    assert sorted(os.listdir("out")) == ["1.denoised.npy", "cube.denoised.zarr", "deep"]


def test_failures_are_listed_at_the_end_and_the_rest_is_done(here, capsys):
    Path("shot.dat").write_bytes((ROOT / "samples/seismic.dat").read_bytes())
    arguments = ["bad.npy", "shot.dat", "survey/**/*.npy", "no/gone.npy", "--max-memory", "1GiB"]  # SEG-2: in memory
    code, out, err = run(capsys, "denoise", *arguments)
    assert (code, out) == (4, "")
    assert sum("denoised" in name for name in files(".")) == 4
    *_, ended, head, bad, shot, gone = err.splitlines()
    assert ended.startswith("7 files: 4 done, 3 failed, ")
    assert head.startswith("wavefilt: error: 3 of 7 ")
    for line, name in ((bad, "bad.npy"), (shot, "shot.dat"), (gone, "no/gone.npy")):
        assert line.startswith(f"  {name}: ")
        assert err.count(name) == 1


def test_fail_fast_stops_and_tells_what_was_done(here, capsys):
    line = "denoise survey/a/1.npy bad.npy survey/a/2.npy --out-dir out --fail-fast --log log"
    code, _, err = run(capsys, *line.split())
    assert code == 3
    assert "3 files: 1 done, 1 failed, 1 not begun" in err
    assert files("out") == ["survey/a/1.denoised.npy"]
    assert len(Path("log").read_text().splitlines()) == 2


def test_the_table_has_the_figures_of_the_files(here, capsys):
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
    removed = [100 * found["residual_energy"] for found in facts]
    assert table["residual energy, %"] == [f"{v:.3g}" for v in (min(removed), np.median(removed), max(removed))]
    assert "5 files: 5 done (1 unchanged), 0 failed" in err
    verbose = run(capsys, "denoise", "survey/**/*.npy", "--out-dir", "out", "--overwrite", "-v")[2]
    assert all(verbose.count(f"survey/{name}.npy -> ") == 1 for name in ("a/1", "b/deep/3", "long"))


def test_the_log_has_an_object_for_every_file(here, capsys):
    arguments = ["denoise", "bad.npy", "survey/a/*.npy", "--out-dir", "out", "--log", "out/log.jsonl", "--json"]
    code, out, _ = run(capsys, *arguments)
    assert code == 4
    lines = Path("out/log.jsonl").read_text().splitlines()
    failed, *done = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert [failed[name] for name in ("input", "output", "status")] == ["bad.npy", "out/bad.denoised.npy", "failed"]
    assert "bad.npy" in failed["error"]
    assert [found["status"] for found in done] == ["done", "done"]
    for found, line in zip(done, out.splitlines(), strict=True):
        assert json.loads(line).items() <= found.items()
        assert found["elapsed_s"] >= found["seconds"] > 0
        assert (found["error"], found["traces"], found["samples"], found["wavelet"]) == (None, 2, 300, "db8")


def test_a_dry_run_writes_neither_log_nor_folder(here, capsys):
    before = content(".")
    code, out, _ = run(capsys, "denoise", "survey/*/*.npy", "--out-dir", "out", "--log", "log", "--dry-run", "--json")
    assert code == 0
    assert [json.loads(line)["dry_run"] for line in out.splitlines()] == [True] * 3
    assert "npy, 2 traces (dry run)" in run(capsys, "denoise", "survey/a/1.npy", "--dry-run")[2]
    assert content(".") == before
    assert not Path("out").exists()


@pytest.fixture
def many(here, rng):
    """Enough small files for two processes, `m/000.npy` to `m/299.npy`."""
    Path("m").mkdir()
    for i in range(300):
        np.save(f"m/{i:03}.npy", rng.standard_normal((2, 300)))
    return here


def test_processes_give_what_one_does(many, capsys):
    np.save("m/large.npy", np.random.default_rng(3).standard_normal((2, 600_000)).astype("f4"))  # is not shared
    arguments = ["denoise", "m/*.npy", "bad.npy", "--json", "--backend", "pywavelets"]
    found = {}
    for jobs in ("1", "2"):
        command = [sys.executable, "-m", "wavefilt", *arguments, "--out-dir", f"out{jobs}", "-j", jobs]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert (done.returncode, "302 files: 301 done, 1 failed" in done.stderr) == (4, True), done.stderr
        found[jobs] = {json.loads(line)["input"] for line in done.stdout.splitlines()}
    assert found["1"] == found["2"]
    assert len(files("out1")) == 301
    assert content("out1") == content("out2")
    expected = wavefilt.denoise(np.load("m/007.npy"), backend="pywavelets")
    np.testing.assert_array_equal(np.load("out2/m/007.denoised.npy"), expected)


def workers(process: subprocess.Popen) -> list[int]:
    """The processes that a batch has started."""
    children = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes by /proc")
@pytest.mark.parametrize("ending", ["interrupted", "a process is killed"])
def test_a_batch_that_ends_early_leaves_whole_files_and_counts_them(many, ending):
    line = "denoise m/*.npy --out-dir out -j 2 --log log --spins 16 --backend pywavelets"
    command = [sys.executable, "-m", "wavefilt", *line.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while process.poll() is None and not (Path("log").exists() and Path("log").read_text()):
        time.sleep(0.01)
    if ending == "interrupted":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    else:
        os.kill(workers(process)[0], signal.SIGKILL)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == (130 if ending == "interrupted" else 1), err
    assert "Traceback" not in err
    logged = [json.loads(line)["output"] for line in Path("log").read_text().splitlines()]
    written = [f"out/{name}" for name in files("out") if name.endswith(".denoised.npy")]
    assert 0 < len(logged) < 300
    assert f"300 files: {len(logged)} done, 0 failed, {300 - len(logged)} not begun" in err
    assert {np.load(path).shape for path in written} == {(2, 300)}
    if ending == "interrupted":
        assert sorted(logged) == [f"out/{name}" for name in files("out")]
    else:
        assert set(logged) <= set(written)
