"""Test the calibrated SKE model: its parts, its fits, calibration files and data sheets."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from tests.support.checkout import ROOT, run
from wavefilt.benchmarks.ske import fit
from wavefilt.ske import calibrated, devices
from wavefilt.ske.calibrated import PARTS, Launch
from wavefilt.ske.devices import Calibration, Operation, WrongDevice, from_data_sheet

DEVICE = Calibration(
    name="NVIDIA Imaginary",
    capability="9.0",
    multiprocessors=100,
    clock=1e9,
    cache=50 << 20,
    memory=100 << 30,
    launch=2e-6,
    latency={"l1": 40.0, "shared": 30.0, "l2": 250.0, "dram": 700.0},
    operations={
        "fma": Operation(4.0, 4.0),
        "fma64": Operation(8.0, 2.0),
        "wavefront": Operation(30.0, 1.0),
    },
    bandwidth=((1e6, 8e12), (1e8, 4e12)),
    barrier=((32.0, 10.0), (1024.0, 50.0)),
)
"""An imaginary device with round numbers."""
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


def test_pipes_and_memory():
    assert calibrated.parts(replace(LAUNCH, instructions={"wavefront": 300.0}), DEVICE).pipe == "memory pipe"
    assert calibrated.parts(replace(LAUNCH, instructions={"fma64": 300.0}), DEVICE).pipe == "fp64"
    device = replace(DEVICE, reads=((1e6, 5e12),), writes=((1e6, 2e12),))
    small = replace(LAUNCH, touched=1e6)
    for launch, part, seconds in (
        (small, "bandwidth", 8e7 / 8e12 + 2e7 / 5e12),
        (replace(small, written=8e7), "bandwidth", 12e7 / 8e12 + 2e7 / 2e12),
        (replace(small, halves=8e7), "bandwidth", 12e7 / 8e12 + 6e7 / 2e12),
        (replace(small, shared=37_000, registers=32), "crowding", 8e7 / 8e12 + 2e7 / 5e12),
    ):
        assert calibrated.parts(launch, device).bulk[part] == pytest.approx(seconds)


def test_more_blocks_are_never_faster():
    launches = (replace(LAUNCH, blocks=b, read=5e3 * b, written=5e3 * b) for b in range(1, 3000, 37))
    times = [calibrated.estimate(launch, DEVICE).seconds for launch in launches]
    assert times == sorted(times)
    empty = calibrated.estimate(Launch("empty", 1, 32, {}), DEVICE)
    assert empty.seconds == pytest.approx(2e-6 + 18e-9)
    assert empty.resource == "launch"


def test_the_longest_block_and_its_neighbours():
    end = replace(LAUNCH, path={"fma": 1e6}, blocks=1, boundary=True)
    device = replace(DEVICE, theta={"boundary": 1.5})
    with_end = calibrated.estimate(replace(LAUNCH, longest=end), device)
    issue = 1e-9 * 8 * 560 / 4
    assert with_end.binds == "end"
    assert with_end.parts["compute"] == pytest.approx(1.5 * 1e6 * 1e-9)
    assert with_end.parts["issue"] == pytest.approx(issue + 5 / 6 * 100 * issue)
    alone = calibrated.estimate(replace(LAUNCH, longest=end, resident=1), device)
    assert alone.parts["issue"] == pytest.approx(issue)


def test_launches_that_cannot_run():
    wrong = {"shared": (300_000, "MaxSharedMemory"), "threads": (2048, "ThreadMaxInBlock")}
    wrong |= {"blocks": (0, "blocks=0"), "path": ({"fma": -1.0}, "fma=-1")}
    for name, (value, words) in wrong.items():
        with pytest.raises(ValueError, match=words):
            calibrated.estimate(replace(LAUNCH, **{name: value}), DEVICE)


def test_calibrations_round_trip(tmp_path):
    path = tmp_path / "mine.json"
    fitted = replace(DEVICE, theta={"launch": 1.0}, fit={"rows": 3}, measured={"date": "2026-11-21"})
    path.write_text(fitted.to_json())
    assert devices.load(str(path)) == fitted
    bundled = devices.default()
    assert set(bundled.theta) == set(PARTS)
    assert min(bundled.theta.values()) >= 0
    assert devices.of(bundled.name) == bundled


def test_another_device_is_refused():
    DEVICE.require("NVIDIA Imaginary")
    with pytest.raises(WrongDevice, match="NVIDIA Imaginary, not of NVIDIA Other"):
        DEVICE.require("NVIDIA Other")
    with pytest.raises(WrongDevice, match="NVIDIA Other is bundled"):
        devices.of("NVIDIA Other")
    with pytest.raises(WrongDevice, match=r"NVIDIA L4 is bundled .*: --device l4$"):
        devices.of("NVIDIA L4")
    with pytest.raises(ValueError, match="not one of h200, a100, b200, h200-sheet, l4, rtx4090"):
        devices.load("h900")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 3, "name": "x"}'])
def test_other_files_are_refused(text, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a calibration"):
        devices.load(str(path))


def test_parameters_are_recovered():
    theta = dict(zip(PARTS, (1.5, 0.9, 1.1, 0.8, 1.1, 0.9, 1.2, 0.1, 1.3), strict=True))
    known = replace(DEVICE, theta=theta)
    rows = []
    for case in [*fit.fit_cases()][::2]:
        row = asdict(case) | {"launches": [{"registers": 40, "shared": 30_000}]}
        rows.append(row | {"seconds": sum(calibrated.estimate(one, known).seconds for one in fit.launches(row))})
    found = fit.fitted([*rows, {"error": "x"}], DEVICE)
    assert found.fit["mean error"] < 0.01
    assert found.fit["rows"] == len(rows)
    for name in ("memory", "issue", "bandwidth"):  # the springs hold the others nearer to 1
        assert found.theta[name] == pytest.approx(theta[name], rel=0.1)


@pytest.fixture
def sheet() -> dict:
    facts = json.loads((devices.FOLDER / "data_sheets.json").read_text())["l4"]
    return {"format": "data sheet", **facts}


def test_published_figures_are_used_and_the_rest_is_from_the_h200(sheet):
    made, like = from_data_sheet(sheet), devices.default()
    assert (made.name, made.capability, made.multiprocessors, made.clock) == ("NVIDIA L4", "8.9", 58, 2.04e9)
    assert made.latency == {"l1": 40, "shared": 30, "l2": 274, "dram": 625}
    assert [made.operations[name].rate for name in ("fma", "fma64", "issue", "wavefront")] == [4, 2 / 32, 4, 1]
    assert made.operations["fma"].latency == like.operations["fma"].latency
    assert (made.launch, made.barrier, made.theta) == (like.launch, like.barrier, like.theta)
    assert made.bandwidth[-1][1] == pytest.approx(0.85 * 3e11)
    larger = made.cache / like.cache
    for ours, its in zip(made.bandwidth, like.bandwidth, strict=True):
        assert ours[0] == pytest.approx(larger * its[0])
        part = 2.13e12 / 9.8e12 if its[0] <= like.cache else 0.85 * 3e11 / like.bandwidth[-1][1]
        assert ours[1] == pytest.approx(part * its[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("l2 latency"), "data sheet of NVIDIA L4: l2 latency is missing"),
        (lambda s: s.update(price=3), "price is unknown"),
        (lambda s: s.update(clock=2e9), "clock must have a value and a source"),
        (lambda s: s["clock"].update(value=0), "clock must be above 0"),
        (lambda s: s.update(capability="8.4"), "capability='8.4'` is not one of 7.0"),
        (lambda s: s.update(format="data"), "not a calibration"),
    ],
)
def test_a_damaged_sheet_is_one_line(change, words, sheet, tmp_path, capsys):
    change(sheet)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(sheet))
    code, out, err = run(capsys, "ske", "estimate", "--samples", "1Mi", "--device", path)
    assert (code, out) == (2, "")
    assert words in err.splitlines()[0]


def test_an_h200_from_its_data_sheet():
    rows = json.loads((ROOT / "benchmarks/results/ske_fit_h200.json").read_text())["rows"]
    rows = [row for row in rows if row["seconds"] >= 1e-5]
    sheet = devices.load("h200-sheet")
    for made, most in ((devices.default(), 0.1), (sheet, 0.12), (replace(sheet, theta={}), 0.35)):
        found = [sum(calibrated.estimate(one, made).seconds for one in fit.launches(row)) for row in rows]
        errors = np.array(found) / [row["seconds"] for row in rows] - 1
        assert len(errors) > 200
        assert np.abs(errors).mean() < most
