"""The listing of compiled kernels: how it is made of what the assembler says, and the one that is committed."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.checkout import ROOT
from wavefilt.benchmarks.ske import compiled
from wavefilt.errors import BackendUnavailable
from wavefilt.ske import occupancy

SPILLING = {
    ("inverse-db8-False-soft-128x3840x5", "12.0"),
    *(("dual-panels-analysis-near_sym_b,qshift_b-1", gpu) for gpu in ("10.0", "12.0")),
    *(("dual-panels-analysis-legall,qshift_06-1", gpu) for gpu in ("8.0", "8.6", "8.9", "10.0", "12.0")),
    ("whole", "10.0"),
    *((f"rows-{name}", "12.0") for name in ("db4-128", "db8-128", "db8-512", "sym16-512", "sym8-256")),
}
"""Limited to fewer registers than they take there: the limit was set on an H200."""
GPUS = ["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]
ASSEMBLER = """#!/bin/sh
for last; do :; done
echo "$@" > $(dirname "$0")/asked
cat >&2 <<'END'
ptxas info    : Compiling entry function 'forward' for 'sm_120a'
ptxas info    : Function properties for forward
    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 30784 bytes smem
END
"""


@pytest.fixture
def assembler(tmp_path):
    path = tmp_path / "ptxas"
    path.write_text(ASSEMBLER)
    path.chmod(0o755)
    return str(path)


def test_a_kernel_as_the_assembler_describes_it(tmp_path, assembler):
    path = tmp_path / "forward.sm_120a.40.256.ptx"
    found = compiled.assembled(path, assembler)
    held = occupancy("12.0", 256, 40, 30784)
    assert (held.blocks, held.warps) == (3, 24)
    assert found == {
        "kernel": "forward",
        "threads": 256,
        "gpu": "12.0",
        "registers": 40,
        "shared": 30784,
        "stack": 16,
        "spilled": 24,
        "blocks": 3,
        "warps": 24,
    }
    assert (tmp_path / "asked").read_text().split()[0] == "-arch=sm_120a"
    assert "-maxrregcount=40" in (tmp_path / "asked").read_text()
    sheet = compiled.report({"ptxas": "13.0", "rows": [found]})
    assert sheet.rows == [["forward", "256", "30.1", *[""] * 6, "40 / 24, 24 spilled"]]
    again = compiled.every_assembled([path, tmp_path / "sums.sm_75.0.128.ptx"], assembler)
    assert [(row["kernel"], row["gpu"]) for row in again] == [("forward", "12.0"), ("sums", "7.5")]


def test_without_the_assembler_it_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(compiled, "ptxas", lambda: None)
    with pytest.raises(BackendUnavailable, match="nvidia-cuda-nvcc"):
        compiled.run()


def test_the_committed_listing_is_whole():
    """Every kernel for every GPU, spills where they are known, blocks and warps as occupancy counts them today."""
    rows = json.loads((ROOT / "benchmarks/results/compiled_kernels.json").read_text())["rows"]
    kernels = {row["kernel"] for row in rows}
    assert {(row["kernel"], row["gpu"]) for row in rows} == {(name, gpu) for name in kernels for gpu in GPUS}
    assert len(rows) == len(kernels) * len(GPUS)
    assert len(kernels) == 146
    for each in compiled.DEFAULT:
        assert any(re.match(each, name) for name in kernels), each
    spilling = set()
    for row in rows:
        held = occupancy(row["gpu"], row["threads"], row["registers"], row["shared"])
        assert (held.blocks, held.warps) == (row["blocks"], row["warps"])
        assert row["shared"] <= 48 << 10
        if row["spilled"]:
            spilling.add((row["kernel"], row["gpu"]))
    assert spilling == SPILLING
