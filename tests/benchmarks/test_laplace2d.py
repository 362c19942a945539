"""The 2-D Laplace study: at tiny sizes, its kernels in numba's CUDA simulator, and compiled for sm_90.

The simulator is chosen before numba is imported, and a compiler has no device: both want a process of their own.
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
from wavefilt.benchmarks.common import implementation
from wavefilt.benchmarks.common.comparison import derived
from wavefilt.benchmarks.common.implementation import Mismatch, missing
from wavefilt.benchmarks.laplace2d import cases, counts, image, study
from wavefilt.benchmarks.laplace2d.cases import COPIES, IMPLEMENTATIONS, NUMPY, SCIPY, Problem
from wavefilt.benchmarks.laplace2d.variants import RADIUS, ROWS, VARIANTS
from wavefilt.benchmarks.ske.compiled import ptxas as _ptxas

MODULE = "tests.benchmarks.test_laplace2d"
VARIANT = {variant.name: variant for variant in VARIANTS}
SIZES = ((1, 1), (3, 2), (11, 7), (44, 9))
no_gpu = pytest.mark.skipif(not missing(COPIES[1]), reason="a GPU is here, and is estimated itself")


def random(width, height):
    """All bytes there are, so that sums become as large as they can."""
    rng = np.random.default_rng(width)
    return Problem(rng.choice([0, 1, 128, 255], (height, width, 3)).astype(np.uint8))


@pytest.fixture(scope="module")
def result():
    return study.run(Problem.of(3000), repeats=3, budget=0.02, device="h200" if missing(COPIES[1]) else None)


@outside
@pytest.mark.parametrize("oracle", [SCIPY, NUMPY])
def test_oracles_agree_with_a_count_by_hand(oracle):
    x = np.zeros((9, 9, 3), np.uint8)
    x[4, 4] = 10, 0, 255
    y = Problem(x).expected(oracle)
    assert y[4, 4].tolist() == [240, 0, 255]
    assert y.sum() == 495
    even = Problem(np.full((6, 7, 3), 10, np.uint8)).expected(oracle)
    assert even[0, 0, 0] == 10 * (25 - 9)  # of 25 pixels 9 are inside
    assert even[0, 3, 0] == 10 * (25 - 15)
    assert even[2, 2, 0] == 0


@outside
@pytest.mark.parametrize("size", SIZES)
def test_host_loops_at_any_size(size, monkeypatch):
    monkeypatch.setattr(cases, "GRAIN", 1)  # so that there are pieces
    problem = random(*size)
    assert np.array_equal(problem.expected(SCIPY), problem.expected(NUMPY))
    for one in (*IMPLEMENTATIONS, *COPIES):
        if not one.device:
            y = one.prepare(problem).call()
            assert y.dtype == np.uint8
            assert np.array_equal(y, problem.expected(one.oracle)), one.name


@outside
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
def test_one_loop_is_vectorised_and_the_other_is_not():
    from wavefilt.benchmarks.laplace2d import cpu_kernels

    def assembly(kernel, *images):
        fresh = numba.jit(**kernel.targetoptions)(kernel.py_func)  # one from the cache shows none
        fresh(*images, 0, len(images[1]))
        (text,) = fresh.inspect_asm().values()
        return text

    problem = random(11, 7)
    plain = assembly(cpu_kernels.plain, problem.bordered, problem.x.copy())
    vectors = assembly(cpu_kernels.vectors, problem.x.reshape(7, -1), problem.x.reshape(7, -1).copy())
    packed = r"v?p(addw|subw)\s.*%[xyz]mm"  # 16-bit lanes
    assert {found[1] for found in re.finditer(packed, vectors)} == {"addw", "subw"}
    assert not re.search(r"v?p(add|sub)[bwdq]\s.*%[xyz]mm", plain)


@outside
def test_every_column_has_times_or_says_why(result):
    (row,) = result["rows"]
    for one in (*IMPLEMENTATIONS, *COPIES):
        column = result["columns"][one.name]
        assert bool(column["missing"]) != (one.name in row["times"])
        if one.name in row["times"]:
            assert row["times"][one.name]["error"] == 0
    medians = {name: times["median"] for name, times in row["times"].items()}
    assert row["ratios"]["simd"] == medians["plain"] / medians["simd"]
    assert row["shares"]["simd"] == medians["host_copy"] / medians["simd"]
    assert row["megapixels a second"]["simd"] == pytest.approx(row["samples"] / (1e-3 * medians["simd"]) / 1e6)
    assert row["copy"]["host_copy"] == pytest.approx(6 * row["samples"] / (1e-3 * medians["host_copy"]) / 1e9)
    assert json.loads(json.dumps(result))["study"] == "laplace2d"


@outside
@no_gpu
def test_estimates_need_no_gpu(result):
    assert result["estimates"] == {"calibration": "NVIDIA H200", "missing": None}
    (row,) = result["rows"]
    assert set(row["estimates"]) == set(row["explained"]) == set(VARIANT)
    assert row["estimate errors"] == {}
    lines = {cells[0]: cells for cells in study.report(result).sheets[0].rows}
    heads = [" ".join(head).strip() for head in study.report(result).sheets[0].heads]
    for model in ("calibrated", "classic"):
        value = float(lines["GPU wide"][heads.index(f"SKE {model}")])
        assert value == pytest.approx(row["estimates"]["gpu_wide"][model], rel=0.01)
        assert value > 0
    assert lines["GPU wide"][1:5] == ["-"] * 4


@outside
def test_an_estimate_has_its_error():
    times = {
        name: {"median": median, "low": median, "high": median, "error": 0.0}
        for name, median in {"plain": 400.0, "gpu_tile": 0.2, "gpu_copy": 0.05}.items()
    }
    row = {
        "width": 4000,
        "height": 1000,
        "samples": 4_000_000,
        "image": "a.png",
        "bytes": 24_000_000,
        "times": times,
        "skipped": {"scipy": "ran out of memory"},
        "estimates": {"gpu_tile": {"calibrated": 0.25, "classic": 0.1}},
        "explained": {},
    }
    row |= derived(row, "plain", "median") | study.megapixels(row)
    assert row["copy"] == {"gpu_copy": 480.0}
    columns = {n: {"heads": ("of", n), "what": "x", "missing": None} for n in (*times, "scipy")}
    found = {"columns": columns, "rows": [row], "method": "m", "date": "d", "capability": "9.0"}
    found |= {
        "environment": {"processor": "p", "cores": 1, "gpu": "g"},
        "estimates": {"calibration": "c"} | {"missing": 0},
    }
    assert study.report(found).sheets[0].rows == [
        ["of plain", "400 ±0%", "10.0", "1.00", *["-"] * 5],
        ["of gpu_tile", "0.200 ±0%", "20000", "2000", "25%", "0.250", "+25%", "0.100", "-50%"],
        ["of gpu_copy", "0.0500 ±0%", "80000", "8000", "100%", *["-"] * 4],
        ["of scipy", *["-"] * 8],
    ]
    assert "Skipped: of scipy: ran out of memory." in study.report(found).notes


@outside
@pytest.mark.parametrize("width", [80, 200])
def test_the_table_keeps_to_the_width(result, width):
    text = study.report(result).text(width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for one in (*IMPLEMENTATIONS, *COPIES):
        assert f"{one.label}: {one.what}" in words
        assert (missing(one) or "") in words
    assert "bank conflict degree of tile reads 2, of writes 1; 32 registers and 4800 bytes of shared memory" in words
    assert study.report(result).markdown().count("\n| ") == len(IMPLEMENTATIONS) + len(COPIES) + 2


@outside
def test_bank_conflicts_counted_by_hand():
    assert counts.conflict_degree([4 * lane for lane in range(32)]) == 1
    assert counts.conflict_degree([8 * lane for lane in range(32)]) == 2
    assert counts.conflict_degree([128 * lane for lane in range(32)]) == 32
    assert counts.conflict_degree([12 * lane for lane in range(32)]) == 1  # 3 and 32 have no common divisor
    assert counts.conflict_degree([0] * 31 + [128]) == 2  # one word for all but one lane
    assert counts.conflict_degree(range(32)) == 1  # bytes of eight words
    reads = {
        name: set(counts.conflicts(variant)["reads"]) for name, variant in VARIANT.items() if variant.memory == "tile"
    }
    # float: lanes 0 to 3 of a row read words 0 to 9, lanes 12 to 15 of the next 96 to 105: the same banks
    assert reads == {"gpu_tile": {1}, "gpu_convert": {1}, "gpu_float": {2}, "gpu_padded": {1}, "gpu_row": {1}}
    assert counts.conflicts(VARIANT["gpu_padded"])["writes"][:2] == [
        1,
        2,
    ]  # words 0 to 31; then 32 to 59 of a row and 80 to 83 of the next: banks 0 to 27, 16 to 19


@outside
def test_bytes_and_lines_counted_by_hand():
    width = 4992  # rows are a multiple of 128 bytes
    for name in ("gpu_tile", "gpu_float"):  # 60 bytes from 48 k - 6 on always lie in 3 sectors
        assert counts.bytes_read(VARIANT[name], width) == 3 * 32 * 20 / 256
    # 64 rows and 4 more of 512 bytes and a sector on either side
    assert counts.bytes_read(VARIANT["gpu_wide"], width) == 68 * (512 + 64) / (64 * 512 / 3)
    assert counts.lines(counts.image_writes(VARIANT["gpu_wide"], width)) == 4
    assert counts.lines(counts.image_reads(VARIANT["gpu_wide"], width)) == (5 + 4 + 5) / 3
    facts = counts.explained(VARIANT["gpu_tile"], counts.launch(VARIANT["gpu_tile"], width, 3744), width, "9.0")
    assert facts["bytes"] == {"DRAM": 6, "L2": 10.5, "shared": 75 + 4.75}
    assert (facts["warps"], facts["occupancy"], facts["shared"]) == (64, 1.0, 1200)
    launched = counts.launch(VARIANT["gpu_tile"], width, 3744)
    assert (launched.blocks, launched.touched) == (312 * 234, 6 * width * 3744)


@outside
def test_the_image_that_is_made():
    x, again = (image.made(160, 120) for _ in range(2))
    assert np.array_equal(x, again)
    assert x.shape == (120, 160, 3)
    assert 20 < x.std() < 80
    y = Problem(x).expected(SCIPY)
    assert 0.3 < np.mean((y > 0) & (y < 255)) < 0.9
    assert Problem.of(4096).samples == pytest.approx(4096, rel=0.05)


@outside
def test_images_in_files(tmp_path, monkeypatch, capsys):
    pillow = pytest.importorskip("PIL.Image")
    x = image.made(30, 20)
    files = {name: tmp_path / name for name in ("a.png", "a.jpg", "grey.png", "cut.png", "black.png", "text.png")}
    files["a.png"].write_bytes(image.png(x))
    assert np.array_equal(image.read(str(files["a.png"])), x)
    pillow.fromarray(x).save(files["a.jpg"])
    assert image.read(str(files["a.jpg"])).shape == x.shape
    pillow.fromarray(x[..., 0]).save(files["grey.png"])
    assert np.array_equal(image.read(str(files["grey.png"])), np.repeat(x[..., :1], 3, axis=2))
    files["cut.png"].write_bytes(files["a.png"].read_bytes()[:400])
    files["black.png"].write_bytes(image.png(0 * x))
    files["text.png"].write_text("no image")
    for name, words in (("cut.png", "not an image"), ("black.png", "all black"), ("text.png", "not an image")):
        with pytest.raises(ValueError, match=f"{name}: {words}"):
            image.read(str(files[name]))
    for name, words in (("cut.png", "cut.png: not an image"), ("none.png", "No such file")):
        code, out, err = run(capsys, "bench", "laplace2d", "--image", tmp_path / name)
        assert (code, out) == (2, "")
        assert words in err
        assert "Traceback" not in err
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        image.read(str(files["a.png"]))


@outside
def test_a_wrong_result_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(cases, "by_scipy", lambda x: x)
    with pytest.raises(Mismatch, match=r"plain 1 core, 5x5 Laplace filter, 61x50 RGB pixels.*: differs from"):
        study.run(Problem(image.made(61, 50)), repeats=1)
    code, out, err = run(capsys, "bench", "laplace2d", "--size", "61x50")
    assert (code, out) == (1, "")
    assert "wavefilt: error: plain 1 core" in err


@outside
def test_what_does_not_fit_is_skipped(monkeypatch):
    monkeypatch.setattr(implementation, "free_memory", lambda: 1000)
    (row,) = study.run(Problem.of(300), repeats=1)["rows"]
    assert row["times"] == {}
    assert "GiB of memory" in row["skipped"]["simd"]


@outside
def test_command_without_a_gpu(tmp_path, capsys):
    pytest.importorskip("PIL")
    first, second, path = tmp_path / "first.png", tmp_path / "second.png", tmp_path / "laplace2d.json"
    options = ("--quick", "--repeats", "1", "-o", path)
    code, out, err = run(capsys, "bench", "laplace2d", "--size", "61x47", *options, "--filtered", first)
    assert (code, err) == (0, "")
    assert "SIMD all cores" in out
    assert json.loads(path.read_text())["rows"][0]["samples"] == 61 * 47
    filtered = Problem(image.made(61, 47)).expected(NUMPY)
    assert np.array_equal(image.read(str(first)), filtered)
    code, out, err = run(capsys, "bench", "laplace2d", "--image", first, *options, "--filtered", second, "--overwrite")
    assert (code, err) == (0, "")
    assert "image first.png" in out
    assert np.array_equal(image.read(str(second)), Problem(filtered).expected(NUMPY))


@outside
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", "many"], "no size such as"),
        (["--size", "0x5"], "0x5 is no size"),
        (["--size", "-3x5"], "-3x5"),
        (["--size", "65535x65535"], "2 GiB"),
        (["--size", "9x9", "--image", "a.png"], "its own"),
        (["--repeats", "0"], "repeats"),
        (["--size", "9x9", "--device", "abacus"], "abacus"),
        (["--fast"], "--fast"),
    ],
)
def test_mistakes(arguments, words, capsys):
    code, out, err = run(capsys, "bench", "laplace2d", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


@outside
def test_the_cases_need_no_cuda():
    code = "import sys; from wavefilt.benchmarks.laplace2d import cases, counts; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "wavefilt.benchmarks.laplace2d.cases" in loaded
    assert not {"numba.cuda", "numba_cuda", "PIL", "wavefilt.backends.cuda.runtime.target"} & set(loaded)


@inside
@pytest.mark.parametrize("variant", VARIANTS, ids=VARIANT)
def test_kernel_at_the_edges_of_blocks(variant):
    blocks = {"gpu_row": (8, 2), "gpu_wide": (2, 1)}
    small = replace(variant, block=blocks.get(variant.name, (4, 4)))
    # the last is as wide as its rows are apart, and higher than a thread's rows
    for width, height in ((1, 1), (11, 7), (128, ROWS + 1))[: 3 if variant.memory == "wide" else 2]:
        problem = random(width, height)
        prepared = cases._gpu(small, problem)
        assert np.array_equal(prepared.host(prepared.call()), problem.expected(SCIPY)), (width, height)


@inside
def test_implementations_launch_their_kernels():
    problem = random(5, 3)
    for one in (*IMPLEMENTATIONS, COPIES[1]):
        if one.device:
            prepared = one.prepare(problem)
            assert np.array_equal(prepared.host(prepared.call()), problem.expected(one.oracle)), one.name


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """PTX of every kernel, by name."""
    if SIMULATED or find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    folder = tmp_path_factory.mktemp("ptx")
    subprocess.run([sys.executable, "-m", MODULE, str(folder)], check=True, timeout=600, cwd=ROOT)
    return {path.stem: path for path in folder.glob("*.ptx")}


def test_kernels_are_compiled_as_declared(compiled):
    ptxas = _ptxas()
    if ptxas is None:
        pytest.skip("ptxas is not installed (wheel nvidia-cuda-nvcc)")
    assert set(compiled) == set(VARIANT)
    for name, path in compiled.items():
        command = [ptxas, "-arch=sm_90", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert " 0 bytes spill stores" in text, name
        shared = re.search(r"(\d+) bytes smem", text)
        assert int(shared[1] if shared else 0) == VARIANT[name].shared <= 48 << 10, name
        registers = int(re.search(r"Used (\d+) registers", text)[1])
        assert -(-registers // 8) * 8 == VARIANT[name].registers, name  # as they are handed out


def test_instructions_are_those_declared(compiled):
    """Accesses and barriers exactly; all instructions, of PTX, within a quarter."""
    from wavefilt.ske.instructions import listing

    for name, path in compiled.items():
        text, variant = path.read_text(), VARIANT[name]
        assert ".f64" not in text, name
        wide = variant.memory == "wide"
        assert all((f"{access}.global.v4.u32" in text) == wide for access in ("ld", "st")), name
        found = listing(text).count((2 * RADIUS, ROWS) if wide else ())
        tile = variant.memory == "tile"
        assert found.get("barrier", 0) == tile, name
        assert found.get("shared load", 0) == counts.READS * tile, name
        used, rows = variant.tile
        assert found.get("shared store", 0) == -(-used * rows // variant.threads) * tile, name
        if not tile:
            reads = 3 * (2 * RADIUS + 2 * ROWS) + ROWS if wide else counts.READS + 3
            assert found["global load"] == reads, name
        declared = sum(counts.instructions(variant).values()) + tile
        assert sum(found.values()) == pytest.approx(declared, rel=0.25), name


def _compile(folder: Path) -> None:
    from numba import types
    from numba.cuda import dispatcher

    # device functions ask the driver, which need not be there, what to compile for
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # type: ignore[attr-defined]

    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.laplace2d.kernels import kernel

    for variant in VARIANTS:
        row = types.Array(types.uint32 if variant.memory == "wide" else types.uint8, 1, "C")
        ptx, _ = cuda.compile_ptx(kernel(variant).py_func, (row, row, types.int32, types.int32), cc=(9, 0))
        (folder / f"{variant.name}.ptx").write_text(ptx)


if __name__ == "__main__":
    _compile(Path(sys.argv[1]))
