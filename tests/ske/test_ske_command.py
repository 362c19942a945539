"""Test `wavefilt ske`."""

from __future__ import annotations

import json

import pytest

from tests.support.checkout import run
from wavefilt.ske import devices


def test_occupancy(capsys):
    arguments = ["ske", "occupancy", "--device", "G80", "--threads", "64", "--registers", "8", "--shared", "256"]
    assert run(capsys, *arguments)[1].startswith("8 blocks, 16 of 24 warps (67%), limited by BlockMaxInSM\n")
    assert json.loads(run(capsys, *arguments, "--json")[1])["limits"]["MaxSharedMemory"] == 64


def test_estimates(capsys):
    arguments = ["ske", "estimate", "--samples", "64Mi", "--device"]
    out = run(capsys, *arguments, "h200")[1]
    launches = json.loads(run(capsys, *arguments, "h200", "--json")[1])
    names = [one["name"].split()[0] for one in launches]
    assert names == ["forward", "sample", "scan", "finish", "forward", "choose", "inverse", "inverse"]
    whole = float(out.splitlines()[-1].split()[1])
    assert whole == pytest.approx(1e6 * sum(one["seconds"] for one in launches), abs=0.01)
    assert devices.CAUTION in run(capsys, *arguments, "a100")[1]
    (blocks,) = {
        one["at"]["n"] // one["at"]["nb"]
        for one in json.loads(run(capsys, *arguments, "a100", "--block", "512", "--json")[1])
        if one["name"].startswith("inverse")
    }
    assert blocks == 512 // 32
    short = json.loads(
        run(capsys, "ske", "estimate", "--samples", "4Ki", "--rows", "99", *arguments[4:], "h200", "--json")[1]
    )
    assert [(one["name"], one["at"]["n"] // one["at"]["nb"]) for one in short] == [("one block", 128 // 32)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["occupancy", "--device", "9.0", "--threads", "2048"], "ThreadMaxInBlock: 2048 threads"),
        (["occupancy", "--device", "9.0", "--threads", "0"], "--threads 0 must be"),
        (["occupancy", "--device", "GTX760", "--threads", "32"], "did you mean 'GTX670'"),
        (["estimate", "--samples", "64Qi", "--device", "h200"], "64Qi"),
        (["estimate", "--samples", "99999999Ti", "--device", "h200"], "99999999Ti"),
        (["estimate", "--samples", "100", "--device", "h200"], "level"),
        (["calibrate"], "-o, or print it with --json"),
    ],
)
def test_bad_input(arguments, words, capsys):
    code, out, err = run(capsys, "ske", *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_the_crossover_of_auto_comes_from_the_model():
    from wavefilt.backends.crossover import cuda_crossover
    from wavefilt.benchmarks.ske.estimate import estimates, problem

    by_name = {device.name: device for device in map(devices.load, devices.names())}
    for name, gpu in cuda_crossover.GPUS.items():
        few, many, most = (
            sum(one.seconds for one in estimates(problem("db8", samples), by_name[name]))
            for samples in (1 << 20, 1 << 24, 1 << 26)
        )
        assert gpu.kernels == pytest.approx(few, rel=0.2), name
        assert gpu.sample == pytest.approx((most - many) / (3 << 24), rel=0.1), name
