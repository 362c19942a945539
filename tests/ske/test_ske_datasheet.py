"""Data sheets: what is made of one, what is refused, and an H200 estimated from its own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.checkout import ROOT, run
from wavefilt.ske import WrongDevice, calibration, datasheet
from wavefilt.ske.calibrated import Launch, estimate
from wavefilt.ske.datasheet import DataSheet

RESULTS = ROOT / "benchmarks/results"
SHEETS = [name for name in datasheet.names() if name != calibration.ITS_SHEET]


def text(name: str) -> str:
    return (datasheet.FOLDER / f"{name}.json").read_text()


@pytest.fixture
def sheet() -> dict:
    return json.loads(text("l4"))


def test_sheets_are_shipped_for_gpus_of_three_generations():
    assert SHEETS == ["a100", "b200", "l4", "rtx4090"]
    for name in datasheet.names():
        made = calibration.load(name.upper())
        assert made.basis == "data sheet"
        assert made.name.startswith("NVIDIA ")
        assert made.sources.keys() == json.loads(text(name)).keys() - {"format", "name", "capability"}
        assert calibration.load("h200").basis == "calibration"


def test_what_is_published_is_taken_and_the_rest_is_that_of_an_h200(sheet):
    made, like = calibration.published(DataSheet.from_json(json.dumps(sheet))), calibration.default()
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


def test_without_a_published_bandwidth_of_l2_it_goes_with_multiprocessors_and_clock(sheet):
    del sheet["l2 bandwidth"]
    made, like = calibration.published(DataSheet.from_json(json.dumps(sheet))), calibration.default()
    assert made.bandwidth[0][1] == pytest.approx(like.bandwidth[0][1] * 58 * 2.04 / (132 * 1.98))


def test_half_the_bandwidth_of_dram_takes_twice_as_long(sheet):
    launch = Launch("copy", 1 << 16, 256, {"other": 4}, read=1 << 29, written=1 << 29, touched=1 << 30)
    whole = estimate(launch, calibration.published(DataSheet.from_json(json.dumps(sheet))))
    sheet["dram bandwidth"]["value"] /= 2
    half = estimate(launch, calibration.published(DataSheet.from_json(json.dumps(sheet))))
    assert half.parts["bandwidth"] == pytest.approx(2 * whole.parts["bandwidth"], rel=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("l2 latency"), "the data sheet of NVIDIA L4 lacks l2 latency"),
        (lambda s: s.update(price=3), "has no use for price"),
        (lambda s: s.update(clock=2e9), "clock in the data sheet of NVIDIA L4 must have a value and a source"),
        (lambda s: s["clock"].update(source=""), "must have a value and a source"),
        (lambda s: s["clock"].update(value="fast"), "clock='fast' must be a finite number"),
        (lambda s: s["clock"].update(value=0), "clock in the data sheet of NVIDIA L4 must be above 0"),
        (lambda s: s.update(capability="8.4"), "8.4 is not one of 7.0"),
        (lambda s: s.pop("name"), "lacks the name"),
        (lambda s: s.update(format="data"), "no calibration"),
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


def test_estimates_say_what_they_are_from(tmp_path, capsys, sheet):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(sheet | {"name": "NVIDIA Mine"}))
    for command in (["estimate"], ["tune"], ["explain", "forward"]):
        options = ["ske", *command, "--samples", "1Mi", "--device"]
        out = run(capsys, *options, path)[1]
        assert out.count(calibration.CAUTION) == 1
        assert "NVIDIA Mine" in out
        found = json.loads(run(capsys, *options, path, "--json")[1])
        for row in found if isinstance(found, list) else [found]:
            assert (row["device"], row["basis"]) == ("NVIDIA Mine", "data sheet")
        found = json.loads(run(capsys, *options, "h200", "--json")[1])
        for row in found if isinstance(found, list) else [found]:
            assert (row["device"], row["basis"]) == ("NVIDIA H200", "calibration")
        assert calibration.CAUTION not in run(capsys, *options, "h200")[1]


def test_a_sheet_is_no_calibration(capsys):
    rows = RESULTS / "ske_h200.json"
    code, out, err = run(capsys, "ske", "validate", "--device", calibration.ITS_SHEET, "--rows", rows)
    assert (code, out) == (2, "")
    assert "NVIDIA H200 is known from a data sheet only" in err
    with pytest.raises(WrongDevice, match=r"NVIDIA L4 is shipped .*: --device l4$"):
        calibration.of("NVIDIA L4")
    calibration.load("h200").require_measured()


def test_an_h200_from_its_sheet_is_within_what_is_said():
    """The mean error of the transforms of the development set, and that the order of times is kept."""
    from scipy.stats import spearmanr

    from wavefilt.benchmarks.ske import sheets
    from wavefilt.benchmarks.ske.fit import launches, predicted

    rows = json.loads((RESULTS / "ske_h200.json").read_text())["rows"]
    rows = [row for row in rows if row["kernel"] in ("forward", "inverse") and row["seconds"] >= 1e-5]
    devices = sheets.devices()
    assert devices["data sheet, θ = 1"] == replace(devices["data sheet, θ of the H200"], theta={})
    for by, most in zip(devices, (0.15, 0.15, 0.4), strict=True):
        estimates = [predicted(launches(row), devices[by]) for row in rows]
        times = [row["seconds"] for row in rows]
        errors = [abs(e / t - 1) for e, t in zip(estimates, times, strict=True)]
        assert sum(errors) / len(errors) < most, by
        assert spearmanr(estimates, times).statistic > 0.9, by
