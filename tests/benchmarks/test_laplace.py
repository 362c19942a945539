"""The Laplace studies: at tiny sizes, their kernels in numba's CUDA simulator, and compiled for sm_90.

The simulator is chosen before numba is imported, and a compiler has no device: both need a process of their own.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from tests.support.checkout import ROOT, run
from tests.support.simulation import SIMULATED, inside, outside
from wavefilt.benchmarks.common.columns import Mismatch, derived, unavailable
from wavefilt.benchmarks.laplace import images, rows
from wavefilt.benchmarks.laplace.images import NUMPY, RADIUS, ROWS, SCIPY, VARIANTS

VARIANT = {variant.name: variant for variant in VARIANTS}
STUDIES = {"1d": (rows, ["--samples", "4Ki"]), "2d": (images, ["--size", "61x47"])}


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
def test_host_loops_of_rows_at_any_length(n, monkeypatch):
    monkeypatch.setattr(rows, "GRAIN", 3)  # so that there are pieces
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
    assert np.array_equal(problem.expected(SCIPY), problem.expected(NUMPY))
    for one in (*images.IMPLEMENTATIONS, images.COPIES[0]):
        if "GPU" not in one.heads:
            y = one.prepare(problem).call()
            assert y.dtype == np.uint8
            assert np.array_equal(y, problem.expected(one.oracle)), one.name


@outside
@pytest.mark.parametrize("oracle", [SCIPY, NUMPY])
def test_oracles_agree_with_a_count_by_hand(oracle):
    x = np.zeros((9, 9, 3), np.uint8)
    x[4, 4] = 10, 0, 255
    y = images.Problem(x).expected(oracle)
    assert y[4, 4].tolist() == [240, 0, 255]
    assert y.sum() == 495
    even = images.Problem(np.full((6, 7, 3), 10, np.uint8)).expected(oracle)
    assert even[[0, 0, 2], [0, 3, 2], 0].tolist() == [10 * (25 - 9), 10 * (25 - 15), 0]  # 9 and 15 pixels are inside


@outside
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
def test_one_loop_is_vectorised_and_the_other_is_not():
    def assembly(kernel, *arrays):
        fresh = numba.jit(**kernel.targetoptions)(kernel.py_func)  # one from the cache shows none
        fresh(*arrays, 0, len(arrays[1]))
        (text,) = fresh.inspect_asm().values()
        return text

    problem = random_image(11, 7)
    plain = assembly(images.plain, problem.bordered, problem.x.copy())
    vectors = assembly(images.vectors, problem.x.reshape(7, -1), problem.x.reshape(7, -1).copy())
    packed = r"v?p(addw|subw)\s.*%[xyz]mm"  # 16-bit lanes
    assert {found[1] for found in re.finditer(packed, vectors)} == {"addw", "subw"}
    assert not re.search(r"v?p(add|sub)[bwdq]\s.*%[xyz]mm", plain)


@outside
def test_wrong_results_are_errors(monkeypatch, capsys):
    monkeypatch.setattr(images, "by_scipy", lambda x: x)
    with pytest.raises(Mismatch, match="plain 1 core"):
        images.run(images.Problem(images.made(61, 50)), repeats=1)
    monkeypatch.setattr(rows.Problem, "expected", lambda self, oracle: self.x)
    code, out, err = run(capsys, "bench", "laplace", "1d", "--samples", 4096)
    assert (code, out) == (1, "")
    assert "Python loop" in err


@outside
def test_wavefronts_are_those_of_bank_conflicts():
    """A float tile's second row of a warp meets the banks of the first; padding and one row a warp do not."""

    def degree(variant):
        y, x = np.divmod(np.arange(32), variant.block[0])
        words = np.unique((y * variant.pitch + images.CHANNELS * x) * np.dtype(variant.held).itemsize // 4)
        return np.bincount(words % 32).max()

    tiles = {name: variant for name, variant in VARIANT.items() if variant.memory == "tile"}
    degrees = {name: degree(variant) for name, variant in tiles.items()}
    assert degrees == {"gpu_tile": 1, "gpu_float": 2, "gpu_padded": 1, "gpu_row": 1}
    for name, variant in tiles.items():
        assert 0 < variant.instructions["wavefront"] - images.READS * degrees[name] < 0.4 * images.READS, name


@outside
def test_launches_counted_by_hand():
    width = 4992  # rows are a multiple of 128 bytes
    for name in ("gpu_tile", "gpu_float"):  # 60 bytes from 48 k - 6 on always lie in 3 sectors
        assert VARIANT[name].read == 3 * 32 * 20 / 256
    launched = VARIANT["gpu_tile"].launch(width, 3744)
    assert (launched.blocks, launched.touched) == (312 * 234, 6 * width * 3744)


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
    blocks = {"gpu_row": (8, 2), "gpu_wide": (2, 1)}
    small = replace(variant, block=blocks.get(variant.name, (4, 4)))
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


def test_kernels_use_the_declared_registers_and_shared_memory(compiled):
    from tests.support.ptx import ptxas

    if (assembler := ptxas()) is None:
        pytest.skip("ptxas is not installed (wheel nvidia-cuda-nvcc)")
    declared = rows.launches(1 << 20) | {name: v.launch(640, 480) for name, v in VARIANT.items()}
    assert compiled.keys() == declared.keys()
    for name, path in compiled.items():
        command = [assembler, "-arch=sm_90", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert " 0 bytes spill stores" in text, name
        shared = re.search(r"(\d+) bytes smem", text)
        assert int(shared[1] if shared else 0) == declared[name].shared <= 48 << 10, name
        registers = int(re.search(r"Used (\d+) registers", text)[1])
        assert -(-registers // 8) * 8 == declared[name].registers, name  # as they are allocated


def test_row_kernels_execute_the_declared_instructions(compiled):
    """Arithmetic, accesses and barriers exactly; all instructions, of PTX, within a fifth."""
    from tests.support.ptx import listing

    for name, declared in rows.launches(1 << 20).items():
        ptx = compiled[name].read_text()
        assert ".f64" not in ptx
        cached = name in ("readonly", "barrier")
        assert len(re.findall(r"\bld\.global\.nc\.f32\b", ptx)) == (3 if cached else 0), name
        if name == "barrier":  # it waits for the loads: the predicate that it reduces is made of them
            rest = ptx[ptx.rindex("ld.global.nc") :]
            assert re.search(r"setp\.\w+\.f32.*bar(rier)?(\.cta)?\.red\.or\.pred.*sub\.f32.*st\.global", rest, re.S)
        found = listing(ptx).count()
        assert found["fma"] == declared.instructions["fma"], name
        assert found.get("barrier", 0) == declared.barriers, name
        assert found["global load"] + found["global store"] == rows.ACCESSES, name
        assert found.get("shared load", 0) + found.get("shared store", 0) == (6 if declared.shared else 0), name
        total = sum(n for kind, n in declared.instructions.items() if kind != "wavefront") + declared.barriers
        assert sum(found.values()) == pytest.approx(total, rel=0.2), name


def test_image_kernels_execute_the_declared_instructions(compiled):
    """Accesses and barriers exactly; all instructions, of PTX, within a quarter."""
    from tests.support.ptx import listing

    for name, variant in VARIANT.items():
        text, wide, tile = compiled[name].read_text(), variant.memory == "wide", variant.memory == "tile"
        assert ".f64" not in text, name
        assert all((f"{access}.global.v4.u32" in text) == wide for access in ("ld", "st")), name
        found = listing(text).count((2 * RADIUS, ROWS) if wide else ())
        assert found.get("barrier", 0) == tile, name
        assert found.get("shared load", 0) == images.READS * tile, name
        if not tile:
            reads = 3 * (2 * RADIUS + 2 * ROWS) + ROWS if wide else images.READS + 3
            assert found["global load"] == reads, name
        declared = sum(n for kind, n in variant.instructions.items() if kind != "wavefront") + tile
        assert sum(found.values()) == pytest.approx(declared, rel=0.25), name


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
