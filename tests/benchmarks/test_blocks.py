"""The study of block sizes: estimates and table here, kernels in the simulator, each in its own process."""

from __future__ import annotations

import json

import pytest

from tests.support.checkout import run as run_command
from tests.support.simulation import inside, outside


@inside
def test_every_block_is_compared_and_timed(monkeypatch):
    from wavefilt.benchmarks.common.implementation import Mismatch
    from wavefilt.benchmarks.gpu import blocks

    monkeypatch.setattr(blocks, "KERNELS", (blocks.KERNELS[0], blocks.KERNELS[2]))
    result = blocks.run(300, (8, 12), repeats=1, tile=128)
    for row in result["rows"]:
        assert set(row["times"]) == {"forward_db4", "inverse_db4"}
        assert all(0 < t["error"] < 1e-6 and t["median"] > 0 for t in row["times"].values())
    assert "\n| 8 | " in blocks.report(result).markdown()
    monkeypatch.setattr(blocks, "TOLERANCE", 1e-12)
    with pytest.raises(Mismatch, match="forward_db4 with blocks of 8 threads: differs"):
        blocks.run(300, (8,), repeats=1, tile=128)


@outside
def test_estimates_without_a_gpu(tmp_path, capsys):
    path = tmp_path / "blocks.json"
    code, out, err = run_command(capsys, "bench", "blocks", "--device", "h200", "-o", path)
    assert (code, err) == (0, "")
    result = json.loads(path.read_text())
    assert [row["block"] for row in result["rows"]] == [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024]
    if result["columns"]["forward_db8"]["missing"]:
        assert "Not measured: backend 'cuda'" in out
        assert all(not row["times"] and not row["skipped"] for row in result["rows"])
    for name, entry in result["choices"].items():
        estimates = {row["block"]: row["estimates"][name]["calibrated"] for row in result["rows"]}
        assert estimates[entry["calibrated"]["block"]] == min(estimates.values())


@outside
def test_regret_is_the_time_of_the_choice():
    from wavefilt.benchmarks.gpu.blocks import KERNELS, choices

    def row(block, measured, calibrated):
        return {
            "block": block,
            "times": {k.name: {"median": measured} for k in KERNELS},
            "estimates": {k.name: {"calibrated": calibrated, "classic": None} for k in KERNELS},
        }

    (found, *_) = choices([row(32, 3.0, 2.0), row(64, 2.0, 2.5), row(128, 4.0, 9.0)]).values()
    assert found == {
        "fastest": 64,
        "calibrated": {"block": 32, "regret": 1.5},
        "classic": {"block": None, "regret": None},
    }


@outside
@pytest.mark.parametrize(("arguments", "words"), [(["--device", "x"], "h200"), (["--samples", "0"], "no size")])
def test_mistakes(arguments, words, capsys):
    code, out, err = run_command(capsys, "bench", "blocks", *arguments)
    assert (code, out) == (2, "")
    assert words in err
