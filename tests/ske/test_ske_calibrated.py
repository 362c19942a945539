"""The calibrated SKE model: its parts, its fits, and the calibrations it needs; no GPU, no measured data."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from wavefilt.benchmarks.ske import baselines, fit
from wavefilt.ske import calibrated, calibration
from wavefilt.ske.calibrated import PARTS, Launch
from wavefilt.ske.calibration import Calibration, Operation, WrongDevice

DEVICE = Calibration(
    name="NVIDIA Imaginary",
    capability="9.0",
    multiprocessors=100,
    clock=1e9,
    cache=50 << 20,
    memory=100 << 30,
    launch=2e-6,
    queued=3e-6,
    block=((32.0, 100.0), (1024.0, 400.0)),
    latency={"l1": 40.0, "shared": 30.0, "l2": 250.0, "dram": 700.0},
    operations={
        "fma": Operation(4.0, 4.0),
        "int": Operation(4.0, 2.0),
        "int mul": Operation(4.0, 2.0),
        "fma64": Operation(8.0, 2.0),
        "wavefront": Operation(30.0, 1.0),
    },
    bandwidth=((1e6, 8e12), (1e8, 4e12)),
    barrier=((32.0, 10.0), (1024.0, 50.0)),
    strides=((1.0, 1.0), (32.0, 8.0)),
    warps=((1.0, 1e-3), (64.0, 1e-4)),
)
"""Round numbers, of no device."""
LAUNCH = Launch(
    "some",
    10_000,
    256,
    {"fma": 400.0, "int": 100.0, "other": 60.0, "wavefront": 120.0},
    {"global": 2.0, "shared": 5.0},
    4,
    read=6e7,
    written=4e7,
    touched=1e8,
    registers=40,
    shared=28_000,
)


def test_parts_by_hand():
    found = calibrated.parts(LAUNCH, DEVICE)
    # 65536/(40*32=1280 -> 51 warps, 48 by partitions) = 6 blocks of 8 warps; 228 KiB/(28000+1024) = 8
    assert (found.nb, found.n, found.warps, found.limit) == (6, 48, 800, "RegistersFilesInSM")
    waves, beyond = 100 / 6, np.log2(2e8 / (50 << 20))
    barrier = 10 + 40 * np.log(256 / 32) / np.log(1024 / 32)
    assert 0 < beyond < 2
    assert found.bulk == pytest.approx(
        {
            "block": 1e-9 * waves * 18 * 8,
            "memory": 1e-9 * waves * (2 * (250 + min(beyond, 1) * 450) + 5 * 30),
            "barrier": 1e-9 * waves * 4 * barrier,
            "compute": 1e-9 * waves * 400 * 4 / 4,
            "issue": 1e-9 * 100 * 8 * 560 / 4,
            "bandwidth": 1e8 / 4e12,
            "crowding": 0,
        }
    )
    assert found.start == {"launch": 2e-6, "start": 2e-6}
    assert (found.pipe, found.memory, found.end) == ("issue", "DRAM", {})
    one = calibrated.estimate(LAUNCH, replace(DEVICE, theta={"issue": 0.9}))
    latency = sum(found.bulk[name] for name in calibrated.LATENCY)
    times = latency, 0.9 * found.bulk["issue"], found.bulk["bandwidth"]
    assert one.seconds == pytest.approx(4e-6 + np.sqrt(np.square(times).sum()))
    assert one.seconds == pytest.approx(sum(one.parts.values()))
    assert (one.resource, one.binds) == ("issue", "issue")


def test_few_warps_issue_on_few_schedulers():
    one = replace(LAUNCH, blocks=1, threads=32)
    issue = [calibrated.parts(launch, DEVICE).bulk["issue"] for launch in (one, replace(one, threads=128))]
    assert issue == pytest.approx([1e-9 * 560, 1e-9 * 560])


def test_the_fullest_pipe_and_both_ways_of_memory():
    assert calibrated.parts(replace(LAUNCH, instructions={"wavefront": 300.0}), DEVICE).pipe == "memory pipe"
    assert calibrated.parts(replace(LAUNCH, instructions={"fma64": 300.0}), DEVICE).pipe == "fp64"
    device = replace(DEVICE, reads=((1e6, 5e12),), writes=((1e6, 2e12),))
    small = replace(LAUNCH, touched=1e6)
    assert calibrated.parts(small, device).memory == "L2"
    assert calibrated.parts(small, device).bulk["bandwidth"] == pytest.approx(8e7 / 8e12 + 2e7 / 5e12)
    more = replace(small, written=8e7)
    assert calibrated.parts(more, device).bulk["bandwidth"] == pytest.approx(12e7 / 8e12 + 2e7 / 2e12)
    halves = replace(small, halves=8e7)
    assert calibrated.parts(halves, device).bulk["bandwidth"] == pytest.approx(12e7 / 8e12 + 6e7 / 2e12)
    crowded = replace(small, shared=37_000, registers=32)
    assert calibrated.parts(crowded, device).bulk["crowding"] == pytest.approx(8e7 / 8e12 + 2e7 / 5e12)


def test_the_longest_warp_is_waited_for_and_the_average_fills_the_pipes():
    more = calibrated.parts(replace(LAUNCH, path={"fma": 800.0}), DEVICE).bulk
    plain = calibrated.parts(LAUNCH, DEVICE).bulk
    assert more["compute"] == pytest.approx(2 * plain["compute"])
    assert more["issue"] == plain["issue"]


def test_more_blocks_are_never_faster_and_an_empty_kernel_is_a_launch():
    times = [
        calibrated.estimate(replace(LAUNCH, blocks=b, read=5e3 * b, written=5e3 * b), DEVICE).seconds
        for b in range(1, 3000, 37)
    ]
    assert all(b >= a for a, b in pairwise(times))
    empty = calibrated.estimate(Launch("empty", 1, 32, {}), DEVICE)
    assert empty.seconds == pytest.approx(2e-6 + 18e-9)
    assert empty.resource == "launch"


def test_the_longest_block_is_held_up_by_its_neighbours():
    end = replace(LAUNCH, path={"fma": 1e6}, blocks=1, boundary=True)
    device = replace(DEVICE, theta={"boundary": 1.5})
    with_end = calibrated.estimate(replace(LAUNCH, longest=end), device)
    issue = 1e-9 * 8 * 560 / 4
    assert with_end.binds == "end"
    assert with_end.parts["compute"] == pytest.approx(1.5 * 1e6 * 1e-9)
    assert with_end.parts["issue"] == pytest.approx(issue + 5 / 6 * 100 * issue)
    alone = calibrated.estimate(replace(LAUNCH, longest=end, resident=1), device)
    assert alone.parts["issue"] == pytest.approx(issue)


def test_a_launch_that_cannot_run_gives_no_number():
    with pytest.raises(ValueError, match="MaxSharedMemory"):
        calibrated.estimate(replace(LAUNCH, shared=300_000), DEVICE)
    with pytest.raises(ValueError, match="ThreadMaxInBlock"):
        calibrated.estimate(replace(LAUNCH, threads=2048), DEVICE)
    with pytest.raises(ValueError, match="blocks=0"):
        replace(LAUNCH, blocks=0)
    with pytest.raises(ValueError, match="fma=-1"):
        replace(LAUNCH, path={"fma": -1.0})


def test_calibrations_round_trip(tmp_path):
    path = tmp_path / "mine.json"
    fitted = replace(DEVICE, theta={"launch": 1.0}, fit={"rows": 3}, measured={"date": "2026-11-21"})
    path.write_text(fitted.to_json())
    assert calibration.load(str(path)) == fitted


def test_another_device_is_refused_by_name():
    DEVICE.require("NVIDIA Imaginary")
    DEVICE.require("NVIDIA Other", force=True)
    with pytest.raises(WrongDevice, match="NVIDIA Imaginary, not of NVIDIA Other"):
        DEVICE.require("NVIDIA Other")
    with pytest.raises(WrongDevice, match="NVIDIA Other is shipped"):
        calibration.of("NVIDIA Other")


def test_shipped_calibrations_are_complete():
    for name in calibration.names():
        shipped = calibration.load(name)
        assert set(shipped.theta) == set(PARTS)
        assert min(shipped.theta.values()) >= 0
        assert calibration.of(shipped.name) == shipped


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 2, "name": "x"}'])
def test_what_is_no_calibration_is_refused(text, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="no calibration"):
        calibration.load(str(path))


def test_unknown_devices_name_the_known_ones(monkeypatch, tmp_path):
    (tmp_path / "imaginary.json").write_text(DEVICE.to_json())
    monkeypatch.setattr(calibration, "FOLDER", tmp_path)
    assert calibration.load("Imaginary") == DEVICE
    with pytest.raises(ValueError, match="not one of imaginary"):
        calibration.load("h900")


def test_parameters_are_recovered():
    rng = np.random.default_rng(3)
    theta = np.array([1.0, 0.4, 0.0, 0.7, 1.1, 0.2])
    parts = rng.lognormal(-10, 2, (60, 6))
    seconds = parts @ theta * (1 + 0.002 * rng.standard_normal(60))
    found = fit.nonnegative(parts, seconds)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, theta, rtol=0.02, atol=0.01)
    with pytest.raises(ValueError, match="at least one row"):
        fit.nonnegative(parts[:5], seconds[:5])
    with pytest.raises(ValueError, match="above 0"):
        fit.nonnegative(parts, 0 * seconds)


def test_launch_and_bandwidth_are_recovered():
    sizes = np.logspace(4, 9, 40)
    start, rate = fit.launch_and_bandwidth(sizes, 2.5e-6 + sizes / 3.5e12)
    assert (start, rate) == (pytest.approx(2.5e-6, rel=0.01), pytest.approx(3.5e12, rel=0.01))


def test_the_geometric_law_cannot_follow_latency_and_floor():
    """A curve with the end ratio seen on a GH200, T(1) = 26.4 T(64)."""
    n = np.array([1, 2, 4, 8, 16, 32, 64])
    times = 43.2 / n + 1
    assert times[0] / times[-1] == pytest.approx(26.4, rel=0.01)
    found = fit.hiding(n, times)
    assert found["latency/n + floor"]["mean error"] < 0.02
    assert found["geometric"]["mean error"] > 0.35


def test_the_classic_form_is_recovered():
    rng = np.random.default_rng(0)
    base, warps, blocks = rng.uniform(1, 9, 40), rng.integers(1, 65, 40), rng.integers(1, 17, 40)
    scale, rw, rb = fit.geometric(base, warps, blocks, 3 * base * 0.96 ** (warps - 1) * 0.98 ** (blocks - 1))
    assert (scale, rw, rb) == (pytest.approx(3), pytest.approx(0.96), pytest.approx(0.98))


def test_baselines_are_positive_and_grow():
    more = replace(LAUNCH, blocks=2 * LAUNCH.blocks, read=1.2e8, written=8e7, touched=2e8)
    for baseline in (baselines.bandwidth, baselines.classic):
        assert 0 < baseline(LAUNCH, DEVICE) < baseline(more, DEVICE)


def test_json_of_a_calibration_has_every_field():
    assert set(json.loads(DEVICE.to_json())) == {"format", *Calibration.__dataclass_fields__}
