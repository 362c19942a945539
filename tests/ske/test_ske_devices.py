"""Test calibrations made from data sheets."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.support.checkout import ROOT, run
from wavefilt.benchmarks.ske import fit
from wavefilt.ske import WrongDevice, devices
from wavefilt.ske.calibrated import Launch, estimate
from wavefilt.ske.devices import from_data_sheet


@pytest.fixture
def sheet() -> dict:
    facts = json.loads((devices.FOLDER / "data_sheets.json").read_text())["l4"]
    return {"format": "data sheet", **facts}


def test_bundled_devices():
    assert devices.names() == ["h200", "a100", "b200", "h200-sheet", "l4", "rtx4090"]
    assert devices.load("H200").basis == "calibration"
    for name in devices.names()[1:]:
        made = devices.load(name)
        assert (made.basis, made.name[:7]) == ("data sheet", "NVIDIA ")
        assert set(devices.FIGURES) - {devices.OPTIONAL} <= made.sources.keys()
    with pytest.raises(WrongDevice, match=r"NVIDIA L4 is bundled .*: --device l4$"):
        devices.of("NVIDIA L4")


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


def test_half_the_bandwidth_of_dram_takes_twice_as_long(sheet):
    launch = Launch("copy", 1 << 16, 256, {"other": 4}, read=1 << 29, written=1 << 29, touched=1 << 30)
    whole = estimate(launch, from_data_sheet(sheet))
    sheet["dram bandwidth"]["value"] /= 2
    half = estimate(launch, from_data_sheet(sheet))
    assert half.parts["bandwidth"] == pytest.approx(2 * whole.parts["bandwidth"], rel=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("l2 latency"), "data sheet of NVIDIA L4: l2 latency is missing"),
        (lambda s: s.update(price=3), "price is unknown"),
        (lambda s: s.update(clock=2e9), "clock must have a value and a source"),
        (lambda s: s["clock"].update(value=0), "clock must be above 0"),
        (lambda s: s.update(capability="8.4"), "8.4 is not one of 7.0"),
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
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("device", "theta", "most"), [("h200", None, 0.1), ("h200-sheet", None, 0.1), ("h200-sheet", {}, 0.25)]
)
def test_an_h200_from_its_data_sheet(device, theta, most):
    rows = json.loads((ROOT / "benchmarks/results/ske_h200.json").read_text())["rows"]
    rows = [row for row in rows if row["seconds"] >= 1e-5 and not row.get("fit")]
    made = devices.load(device)
    errors = fit.relative(
        fit.predicted(rows, made if theta is None else replace(made, theta=theta)), [r["seconds"] for r in rows]
    )
    assert len(rows) == 62
    assert np.abs(errors).mean() < most
