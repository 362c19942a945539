"""The Laplace studies: at tiny sizes, their kernels in numba's CUDA simulator, and compiled for sm_90.

The simulator is chosen before numba is imported, and a compiler has no device: both need a process of their own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.checkout import ROOT, run
from tests.support.simulation import SIMULATED, inside, outside
from wavefilt.benchmarks.common.columns import derived, unavailable
from wavefilt.benchmarks.laplace import images, rows
from wavefilt.benchmarks.laplace.images import RADIUS, ROWS, SCIPY, VARIANTS

VARIANT = {variant.name: variant for variant in VARIANTS}
STUDIES = {"1d": (rows, ["--samples", "4Ki"]), "2d": (images, ["--size", "61", "47"])}


def laplace(x):
    """By one formula for every sample."""
    n = len(x)
    return np.array([float(x[(i + 1) % n]) - 2 * float(x[i]) + float(x[i - 1]) for i in range(n)])


def random_image(width, height):
    """All bytes there are, so that sums become as large as they can."""
    rng = np.random.default_rng(width)
    return images.Problem(rng.choice([0, 1, 128, 255], (height, width, 3)).astype(np.uint8))


@outside
@pytest.mark.parametrize("name", STUDIES)
def test_every_column_has_times_or_says_why(name, tmp_path, capsys):
    study, size = STUDIES[name]
    path = tmp_path / "result.json"
    device = ["--device", "h200"] if unavailable(study.COPIES[1].require) else []
    options = ("--quick", "--repeats", "3", "-o", path, "--allow-dirty", *size, *device)
    code, out, err = run(capsys, "bench", "laplace", name, *options)
    assert (code, err) == (0, "")
    result = json.loads(path.read_text())
    (row,) = result["rows"]
    for one in (*study.IMPLEMENTATIONS, *study.COPIES):
        column = result["columns"][one.name]
        assert bool(column["missing"]) != (one.name in row["times"])
        assert f"{one.label}: {one.what}" in " ".join(out.split())
        if one.name in row["times"]:
            assert row["times"][one.name]["error"] <= one.tolerance
    assert row["estimates"].keys() == {n for n in result["columns"] if n.startswith("gpu_")} - {"gpu_copy"}
    assert all(estimate["calibrated"] > 0 for estimate in row["estimates"].values())
    assert study.report(result).markdown().count("\n| ") == len(result["columns"]) + 2


@outside
def test_ratios_shares_and_errors_of_estimates():
    times = {name: {"mean": mean} for name, mean in {"loop": 2.0, "gpu_shared": 0.01, "gpu_copy": 0.008}.items()}
    row = {"times": times, "bytes": 8 << 20, "estimates": {"gpu_shared": {"calibrated": 0.012, "classic": 0.005}}}
    found = derived(row, "loop", "mean")
    assert found["ratios"]["gpu_shared"] == 200
    assert found["shares"] == {"gpu_shared": 0.8, "gpu_copy": 1}
    assert found["copy"] == {"gpu_copy": pytest.approx(1048.576)}
    assert found["estimate errors"]["gpu_shared"] == pytest.approx({"calibrated": 0.2, "classic": -0.5})


@outside
@pytest.mark.parametrize("n", [2, 3, 4, 7, 50])
def test_host_loops_of_rows_at_any_length(n):
    problem = rows.Problem(n)
    assert np.array_equal(problem.expected(""), laplace(problem.x))
    for one in rows.IMPLEMENTATIONS:
        if "GPU" not in one.heads:
            np.testing.assert_allclose(one.prepare(problem).call(), laplace(problem.x), rtol=0, atol=1e-6)


@outside
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (11, 7), (44, 9)])
def test_host_loops_of_images_at_any_size(size, monkeypatch):
    monkeypatch.setattr(images, "GRAIN", 1)  # so that there are pieces
    problem = random_image(*size)
    for one in (*images.IMPLEMENTATIONS, images.COPIES[0]):
        if "GPU" not in one.heads:
            y = one.prepare(problem).call()
            assert y.dtype == np.uint8
            assert np.array_equal(y, problem.expected(one.oracle)), one.name


@outside
def test_the_oracle_agrees_with_a_count_by_hand():
    x = np.zeros((9, 9, 3), np.uint8)
    x[4, 4] = 10, 0, 255
    y = images.Problem(x).expected(SCIPY)
    assert y[4, 4].tolist() == [240, 0, 255]
    assert y.sum() == 495
    even = images.Problem(np.full((6, 7, 3), 10, np.uint8)).expected(SCIPY)
    assert even[[0, 0, 2], [0, 3, 2], 0].tolist() == [10 * (25 - 9), 10 * (25 - 15), 0]  # 9 and 15 pixels are inside


@outside
def test_wavefronts_are_those_of_bank_conflicts():
    """In a float tile, the second row of a warp uses the banks of the first; padding avoids that."""

    def degree(variant):
        y, x = np.divmod(np.arange(32), variant.block[0])
        words = np.unique((y * variant.pitch + images.CHANNELS * x) * np.dtype(variant.held).itemsize // 4)
        return np.bincount(words % 32).max()

    tiles = {name: variant for name, variant in VARIANT.items() if variant.memory == "tile"}
    degrees = {name: degree(variant) for name, variant in tiles.items()}
    assert degrees == {"gpu_tile": 1, "gpu_float": 2, "gpu_padded": 1}
    for name, variant in tiles.items():
        assert 0 < variant.instructions["wavefront"] - images.READS * degrees[name] < 0.4 * images.READS, name
        assert variant.launch(4992, 3744).touched == 6 * 4992 * 3744


@inside
@pytest.mark.parametrize("name", rows.KERNELS)
def test_row_kernels_at_the_edges_of_blocks(name):
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.laplace.rows import run_kernel

    for n in (1, 2, 7, 8, 9, 16, 17, 31):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        y = cuda.to_device(np.full(n, np.nan, np.float32))
        run_kernel(name, cuda.to_device(x), y, block=8)
        np.testing.assert_allclose(y.copy_to_host(), laplace(x), rtol=0, atol=2e-6)


@inside
@pytest.mark.parametrize("variant", VARIANTS, ids=VARIANT)
def test_image_kernels_at_the_edges_of_blocks(variant):
    small = replace(variant, block=(2, 1) if variant.memory == "wide" else (4, 4))
    # the last is as wide as its rows are apart, and higher than a thread's rows
    for width, height in ((1, 1), (11, 7), (128, ROWS + 1))[: 3 if variant.memory == "wide" else 2]:
        problem = random_image(width, height)
        prepared = images.on_gpu(small, problem)
        assert np.array_equal(prepared.host(prepared.call()), problem.expected(SCIPY)), (width, height)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """PTX of every kernel, by name."""
    if SIMULATED or find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    folder = tmp_path_factory.mktemp("ptx")
    command = [sys.executable, "-m", "tests.benchmarks.test_laplace", str(folder)]
    subprocess.run(command, check=True, timeout=600, cwd=ROOT)
    return {path.stem: path for path in folder.glob("*.ptx")}


def test_kernels_use_what_is_declared(compiled):
    """Accesses and barriers of PTX exactly, all instructions within a quarter; of SASS registers and shared memory."""
    from tests.support.ptx import listing, ptxas

    assembler = ptxas()
    declared = rows.launches(1 << 20) | {name: v.launch(640, 480) for name, v in VARIANT.items()}
    assert compiled.keys() == declared.keys()
    for name, path in compiled.items():
        one, text = declared[name], path.read_text()
        wide = name == "gpu_wide"
        found = listing(text).count((2 * RADIUS, ROWS) if wide else ())
        assert found.get("barrier", 0) == one.barriers, name
        assert ("ld.global.nc.f32" in text) == (name == "readonly"), name
        assert all((f"{access}.global.v4.u32" in text) == wide for access in ("ld", "st")), name
        if name in rows.KERNELS:
            assert found["global load"] + found["global store"] == rows.ACCESSES, name
        else:
            assert found.get("shared load", 0) == (images.READS if one.shared else 0), name
        total = sum(n for kind, n in one.instructions.items() if kind != "wavefront") + one.barriers
        assert sum(found.values()) == pytest.approx(total, rel=0.25), name
        if assembler is None:
            continue
        command = [assembler, "-arch=sm_90", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert " 0 bytes spill stores" in report, name
        shared, registers = re.search(r"(\d+) bytes smem", report), re.search(r"Used (\d+) registers", report)
        assert int(shared[1] if shared else 0) == one.shared <= 48 << 10, name
        assert -(-int(registers[1]) // 8) * 8 == one.registers, name  # as they are allocated


def _compile(folder: Path) -> None:
    from numba import types
    from numba.cuda import dispatcher

    # device functions ask the driver, which need not be there, what to compile for
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # type: ignore[attr-defined]

    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.laplace import image_kernels

    def write(name, kernel, number, *sizes):
        row = types.Array(number, 1, "C")
        ptx, _ = cuda.compile_ptx(kernel.py_func, (row, row, *sizes), cc=(9, 0))
        (folder / f"{name}.ptx").write_text(ptx)

    for name, kernel in vars(rows.kernels()).items():
        write(name, kernel, types.float32)
    for variant in VARIANTS:
        number = types.uint32 if variant.memory == "wide" else types.uint8
        write(variant.name, image_kernels.kernel(variant), number, types.int32, types.int32)


if __name__ == "__main__":
    _compile(Path(sys.argv[1]))
