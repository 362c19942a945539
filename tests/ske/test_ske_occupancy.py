"""Test occupancy against the paper's example, NVIDIA's calculator and the driver of an H200."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checkout import ROOT
from wavefilt.ske import CAPABILITIES, occupancy
from wavefilt.ske.occupancy import residents


def test_the_worked_example():
    found = occupancy("G80", threads=64, registers=8, shared=256)
    assert (found.blocks, found.warps, found.limit) == (8, 16, "BlockMaxInSM")
    assert (*found.limits.values(),) == (12, 16, 64, 12, 8)  # threads, registers, shared memory, warps, blocks
    assert found.share == pytest.approx(0.667, abs=5e-4)


def test_blocks_equal_those_of_cuda_s_calculator():
    """The rows are from cuda_occupancy.h of CUDA 13.0; the last ones are at the largest shared memory of a block."""
    with (ROOT / "tests/ske/cuda_occupancy.csv").open() as file:
        rows = [(row.pop("capability"), *map(int, row.values())) for row in csv.DictReader(file)]
    assert {row[0] for row in rows} == {name for name in CAPABILITIES if name[0].isdigit()}
    for *launch, blocks in rows:
        if blocks:
            assert occupancy(*launch).blocks == blocks, launch
        else:
            with pytest.raises(ValueError, match="MaxSharedMemory"):
                occupancy(*launch)


def test_the_driver_of_an_h200_reported_the_same_blocks():
    rows = json.loads((ROOT / "benchmarks/results/ske_blind_h200.json").read_text())["rows"]
    names = "registers", "shared", "resident"
    seen = {(one.get("threads", row["threads"]), *map(one.get, names)) for row in rows for one in row["launches"]}
    assert len(seen) > 100
    for threads, registers, shared, resident in seen:
        assert occupancy("9.0", threads, registers, shared).blocks == resident


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("9.1", 32), "`device='9.1'` is not one of G80, .*; did you mean"),
        (("9.0", 32.0), "threads=32.0"),
        (("9.0", 32, -1), "registers=-1"),
        (("9.0", 288, 224), "RegistersFilesInSM: 9 warps of 224 registers a thread, at most 8"),
        (("9.0", 1025), "on 9.0: ThreadMaxInBlock: 1025 threads in a block, at most 1024"),
        (("9.0", 32, 256), "RegistersPerThread"),
        (("GTX280", 512, 33), "RegistersFilesInSM: 512 threads of 33 registers a thread, at most 496"),
        (("G80", 769), "ThreadMaxInBlock.*ThreadMaxInSM"),
    ],
)
def test_launches_that_cannot_run(arguments, words):
    with pytest.raises(ValueError, match=words):
        occupancy(*arguments)


@given(st.sampled_from(list(CAPABILITIES)), st.integers(1, 1024), st.integers(0, 255), st.integers(0, 227 * 1024))
def test_the_blocks_fit_and_one_more_does_not(device, threads, registers, shared):
    cap = CAPABILITIES[device]
    try:
        found = occupancy(cap, threads, registers, shared)
    except ValueError:
        return
    assert found.blocks >= 1
    assert found.limits[found.limit] == found.blocks == min(found.limits.values())
    assert found.warps == found.blocks * -(-threads // 32) <= cap.warps
    assert all(c.holds for c in residents(cap, threads, registers, shared, found.blocks))
    broken = [c.name for c in residents(cap, threads, registers, shared, found.blocks + 1) if not c.holds]
    assert found.limit in broken
    if threads > 32:
        assert occupancy(cap, threads - 32, registers, shared).blocks >= found.blocks
    assert occupancy(cap, threads, registers // 2, shared // 2).blocks >= found.blocks
