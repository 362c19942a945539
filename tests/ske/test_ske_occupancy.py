"""Active blocks: the worked example, the paper's Table 5 rule, and what NVIDIA's own calculator says."""

from __future__ import annotations

import gc
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavefilt.ske import CAPABILITIES, occupancy
from wavefilt.ske.occupancy import residents

MODERN = [name for name in CAPABILITIES if name[0].isdigit()]


def test_the_worked_example():
    found = occupancy("G80", threads=64, registers=8, shared=256)
    assert (found.blocks, found.warps, found.limit) == (8, 16, "BlockMaxInSM")
    assert found.limits == {
        "ThreadMaxInSM": 12,
        "RegistersFilesInSM": 16,
        "MaxSharedMemory": 64,
        "WarpMaxInSM": 12,
        "BlockMaxInSM": 8,
    }
    assert found.share == pytest.approx(0.667, abs=5e-4)


@pytest.mark.parametrize(
    ("device", "threads", "registers", "shared", "blocks"),
    [
        # cuda_occupancy.h of CUDA 13.0
        ("7.0", 54, 4, 366, 32),
        ("7.0", 48, 252, 49848, 1),
        ("7.0", 42, 77, 549, 12),
        ("7.0", 64, 37, 0, 24),
        ("7.2", 41, 10, 25290, 3),
        ("7.2", 321, 4, 4825, 5),
        ("7.2", 32, 82, 0, 20),
        ("7.5", 58, 7, 61, 16),
        ("7.5", 449, 2, 49848, 1),
        ("7.5", 64, 232, 732, 4),
        ("7.5", 32, 147, 0, 12),
        ("8.0", 52, 22, 549, 32),
        ("8.0", 64, 167, 135801, 1),
        ("8.0", 833, 67, 732, 1),
        ("8.0", 32, 187, 0, 8),
        ("8.6", 43, 3, 0, 16),
        ("8.6", 320, 10, 74406, 1),
        ("8.6", 43, 187, 17104, 4),
        ("8.6", 69, 17, 488, 16),
        ("8.7", 48, 5, 488, 16),
        ("8.7", 49, 157, 41662, 3),
        ("8.7", 64, 97, 0, 8),
        ("8.9", 65, 5, 4825, 16),
        ("8.9", 37, 52, 17104, 5),
        ("8.9", 673, 7, 305, 2),
        ("8.9", 288, 102, 0, 1),
        ("9.0", 67, 4, 610, 21),
        ("9.0", 417, 9, 229940, 1),
        ("9.0", 66, 87, 8918, 6),
        ("9.0", 513, 3, 183, 3),
        ("9.0", 32, 177, 0, 8),
        ("10.0", 163, 11, 13011, 10),
        ("10.0", 57, 152, 217661, 1),
        ("10.0", 45, 37, 366, 24),
        ("10.0", 672, 42, 0, 1),
        ("12.0", 65, 5, 4825, 16),
        ("12.0", 37, 52, 17104, 5),
        ("12.0", 32, 16, 0, 24),
        ("12.0", 256, 40, 31440, 3),
        ("12.0", 288, 102, 0, 1),
    ],
)
def test_as_the_calculator_of_cuda(device, threads, registers, shared, blocks):
    assert occupancy(device, threads, registers, shared).blocks == blocks


def test_the_most_shared_memory_of_a_block():
    most = {"7.0": 96, "7.2": 96, "7.5": 64, "8.0": 163, "8.6": 99, "8.7": 163, "8.9": 99, "9.0": 227, "10.0": 227}
    most["12.0"] = 99
    assert list(most) == MODERN
    for device, kib in most.items():
        assert occupancy(device, 128, 32, 1024 * kib).blocks == 1
        with pytest.raises(ValueError, match="MaxSharedMemory"):
            occupancy(device, 128, 32, 1024 * kib + 1)


def test_registers_lie_in_one_of_four_parts():
    assert occupancy("9.0", 32, 224).blocks == 8
    with pytest.raises(ValueError, match="RegistersFilesInSM: 9 warps of 224 registers a thread, at most 8"):
        occupancy("9.0", 288, 224)


def test_the_driver_of_an_h200_said_the_same_of_every_launch_measured():
    path = Path(__file__).parents[2] / "benchmarks/results/ske_h200.json"
    rows = [row for row in json.loads(path.read_text())["rows"] if "error" not in row]
    seen = {
        (launch["threads"], launch["registers"], launch["shared"], launch["resident"])
        for row in rows
        for launch in row["launches"]
    }
    assert len(seen) > 30
    for threads, registers, shared, resident in seen:
        assert occupancy("9.0", threads, registers, shared).blocks == resident


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
def test_the_driver_says_the_same_of_every_kernel_and_block():
    wavefilt = pytest.importorskip("wavefilt")
    try:
        wavefilt.backends.get("cuda")
    except wavefilt.BackendUnavailable as error:
        pytest.skip(str(error))
    from wavefilt.backends.cuda.runtime.target import cuda

    x = np.random.default_rng(0).standard_normal(1 << 18).astype(np.float32)
    for rule in ("universal", "bayes", "sure"):
        wavefilt.denoise(x, "db8", level=8, rule=rule, sigma="level", backend="cuda")
        wavefilt.denoise(x.reshape(64, -1), "db8", level=8, rule=rule, backend="cuda")
    device = cuda.get_current_device()
    name, count = "{}.{}".format(*device.compute_capability), device.MULTIPROCESSOR_COUNT
    dispatcher = import_module("numba.cuda.dispatcher").CUDADispatcher
    made = [one for one in gc.get_objects() if issubclass(type(one), dispatcher)]
    kernels = [kernel for one in made for kernel in getattr(one, "overloads", {}).values()]
    kernels = [kernel for kernel in kernels if hasattr(kernel, "max_cooperative_grid_blocks")]
    assert len(kernels) >= 8
    for kernel in kernels:
        for threads in range(32, 1025, 32):
            try:
                ours = occupancy(name, threads, kernel.regs_per_thread, kernel.shared_mem_per_block).blocks
            except ValueError:  # more registers than an SM has
                continue
            assert kernel.max_cooperative_grid_blocks(threads, 0) // count == ours


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("9.1", 32), "device='9.1' is not one of G80, .*; did you mean"),
        (("9.0", 0), "threads=0"),
        (("9.0", 32.0), "threads=32.0"),
        (("9.0", 32, -1), "registers=-1"),
        (("9.0", 32, 1, -1), "shared=-1"),
        (("9.0", 1025), "on 9.0: ThreadMaxInBlock: 1025 threads in a block, at most 1024"),
        (("9.0", 32, 256), "RegistersPerThread"),
        (("9.0", 1024, 65), "RegistersFilesInSM"),
        (("GTX280", 512, 33), "RegistersFilesInSM: 512 threads of 33 registers a thread, at most 496"),
        (("G80", 769), "ThreadMaxInBlock.*ThreadMaxInSM"),
    ],
)
def test_what_cannot_run_is_an_error_that_says_why(arguments, words):
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
