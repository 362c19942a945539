"""HDF5 and Zarr by path::dataset: the samples of one array change, in memory as streamed, and nothing else does."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from wavefilt.cli import group
from wavefilt.io.arrays import chunked
from wavefilt.outofcore import memory_budget

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")

DTYPES = ["<f4", ">f8", "<i2", "|u1", ">i4", "<c8"]


def _samples(shape, dtype="f4"):
    rng = np.random.default_rng(4)
    x = 60 * (1.1 + np.sin(np.arange(shape[-1]) / 9)) + rng.standard_normal(shape) * 9
    return x.astype(dtype)


def _hdf5(path, x, chunks=None):
    """A dataset with attributes and a scale of its time axis, beside others."""
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(x.shape[-1]) * 0.002
        file["time"].make_scale("t")
        file["other/shots"] = np.arange(5)
        file["note"] = "kept"
        data = file.create_dataset("wave/data", data=x, chunks=chunks, compression="gzip" if chunks else None)
        data.dims[x.ndim - 1].attach_scale(file["time"])
        data.attrs["unit"], data.attrs["shots"] = "counts", np.arange(3, dtype="i2")
    return f"{path}::wave/data"


def _zarr(path, x, chunks, **options):
    root = zarr.open_group(str(path), mode="w", zarr_format=options.pop("zarr_format", 3))
    root.attrs["survey"] = 7
    root["other/shots"] = np.arange(5)
    array = root.create_array(
        "wave/data", shape=x.shape, dtype=x.dtype, chunks=chunks, attributes={"unit": "counts"}, **options
    )
    array[:] = x
    return f"{path}::wave/data"


def _expected(x, axis=-1, **options):
    y = wavefilt.denoise(x, axis=axis, backend="pywavelets", **options)
    return y if x.dtype.kind in "fc" else y.astype(wavefilt.arrays.compute_dtype(x.dtype))


def _both_ways(tmp_path, source, suffix, monkeypatch=None, max_memory="1GiB", **options):
    """Where the results of denoising in memory and streamed are."""
    axis = options.pop("axis", None)
    whole, parts = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    wavefilt.read(source, axis=axis).denoise(backend="pywavelets", **options).write(whole)
    report = wavefilt.denoise_file(source, parts, axis=axis, max_memory=max_memory, backend="pywavelets", **options)
    return whole, parts, report


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunks", [None, (2, 3, 100)])
def test_hdf5(tmp_path, dtype, chunks):
    x = _samples((5, 4, 300), dtype)
    source = _hdf5(tmp_path / "x.h5", x, chunks)
    before = (tmp_path / "x.h5").read_bytes()
    for path in _both_ways(tmp_path, source, ".h5")[:2]:
        with h5py.File(path) as file:
            data = file["wave/data"]
            y = _expected(x)
            assert np.array_equal(data[:], y)
            assert data.dtype == (x.dtype if x.dtype.kind in "fc" else y.dtype)
            assert (data.chunks, data.compression) == (chunks, "gzip" if chunks else None)
            assert data.attrs["unit"] == "counts"
            assert np.array_equal(data.attrs["shots"], [0, 1, 2])
            assert data.attrs["shots"].dtype == "i2"
            assert data.dims[2][0] == file["time"]
            assert file["note"][()] == b"kept"
            assert sorted(file["wave"]) == ["data"]
            assert np.array_equal(file["other/shots"], np.arange(5))
    assert (tmp_path / "x.h5").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["parts.h5", "whole.h5", "x.h5"]


@pytest.mark.parametrize("name", ["ints", "wave/alias", "soft"])
@pytest.mark.parametrize("dtype", ["i2", "f4"])
def test_every_link_to_a_dataset_of_hdf5_has_the_new_samples(tmp_path, dtype, name):
    x = _samples((4, 300), dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["ints"] = x
        file["ints.float"] = np.arange(3)
        file["alias"] = file["wave/alias"] = file["ints"]
        file["again"] = file["wave"]
        file["soft"] = h5py.SoftLink("/ints")
        file["gone"] = h5py.SoftLink("/nowhere")
        file["elsewhere"] = h5py.ExternalLink("y.h5", "x")
    for path in _both_ways(tmp_path, f"{tmp_path / 'x.h5'}::{name}", ".h5")[:2]:
        with h5py.File(path) as file:
            assert np.array_equal(file["ints"][:], _expected(x))
            for other in ("alias", "wave/alias", "again/alias", "soft"):
                assert file[other] == file["ints"]
            assert np.array_equal(file["ints.float"], np.arange(3))
            assert isinstance(file.get("soft", getlink=True), h5py.SoftLink)
            assert sorted(file) == ["again", "alias", "elsewhere", "gone", "ints", "ints.float", "soft", "wave"]


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("<f4", {}),
        ("<i2", {}),
        (">f8", {"zarr_format": 2}),
        ("|u1", {"zarr_format": 2}),
        (">i4", {"shards": (4, 4, 200)}),
        ("<c8", {"shards": (4, 4, 200)}),
    ],
)
def test_zarr(tmp_path, dtype, options):
    x = _samples((5, 4, 300), dtype)
    options = {**options, "compressors": zarr.codecs.GzipCodec(level=2)} if "shards" in options else options
    source = _zarr(tmp_path / "x.zarr", x, (2, 2, 100), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr's own, on its consolidated metadata
        zarr.consolidate_metadata(str(tmp_path / "x.zarr"))
    before = {path: path.read_bytes() for path in (tmp_path / "x.zarr").rglob("*") if path.is_file()}
    old = zarr.open(str(tmp_path / "x.zarr"))["wave/data"]
    for path in _both_ways(tmp_path, source, ".zarr")[:2]:
        root = zarr.open_group(str(path), mode="r")
        data = root["wave/data"]
        y = _expected(x)
        assert np.array_equal(data[:], y)
        assert data.dtype == (old.dtype if x.dtype.kind in "fc" else y.dtype)
        assert (data.chunks, data.shards, data.compressors) == (old.chunks, old.shards, old.compressors)
        assert (dict(root.attrs), dict(data.attrs)) == ({"survey": 7}, {"unit": "counts"})
        assert np.array_equal(root["other/shots"][:], np.arange(5))
        if x.dtype.kind in "fc":
            metadata = [name for name in before if name.name in ("zarr.json", ".zarray", ".zattrs", ".zmetadata")]
            assert len(metadata) > 3
            assert all((path / name.relative_to(tmp_path / "x.zarr")).read_bytes() == before[name] for name in metadata)
    assert {path: path.read_bytes() for path in (tmp_path / "x.zarr").rglob("*") if path.is_file()} == before
    assert sorted(os.listdir(tmp_path)) == ["parts.zarr", "whole.zarr", "x.zarr"]


@pytest.mark.parametrize(
    ("shape", "chunks", "axis", "scope"),
    [
        ((2400,), (700,), None, "trace"),
        ((2, 1100), (2, 500), None, "record"),
        ((500, 3, 2), (100, 2, 2), 0, "record"),
        ((2, 1100, 2), (2, 450, 1), 1, "trace"),
    ],
)
def test_chunks_of_the_file_and_parts_of_traces(tmp_path, monkeypatch, shape, chunks, axis, scope):
    """Parts begin anywhere in chunks."""
    plan, piece = memory_budget.plan, chunked.BLOCK
    monkeypatch.setattr(chunked, "BLOCK", 1000)
    x = np.moveaxis(
        _samples([n for i, n in enumerate(shape) if i != (axis or 0)] + [shape[axis or 0]])
        if axis is not None
        else _samples(shape),
        -1,
        -1 if axis is None else axis,
    )
    monkeypatch.setattr(memory_budget, "_extra", lambda method, level: 1e15)
    monkeypatch.setattr(memory_budget, "plan", lambda *a: _smaller(plan(*a), 450))
    options = {"axis": axis, "scope": scope, "wavelet": "db2", "rule": "universal"}
    for source in (_zarr(tmp_path / "x.zarr", x, chunks), _hdf5(tmp_path / "x.h5", x, chunks)):
        whole, parts, report = _both_ways(tmp_path, source, Path(source.partition("::")[0]).suffix, **options)
        assert report.passes > 1.9
        expected = _expected(x, -1 if axis is None else axis, **{k: v for k, v in options.items() if k != "axis"})
        for path in (whole, parts):
            assert np.array_equal(
                wavefilt.read(f"{path}::wave/data", axis=axis).traces.reshape(-1),
                np.moveaxis(expected, -1 if axis is None else axis, -1).reshape(-1),
            )
    assert piece > 1000


def _smaller(plan, samples):
    assert isinstance(plan, memory_budget.Chunks)
    return replace(plan, chunk=samples * 4, buffer=4 * samples)


def test_batches_end_where_chunks_do(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_budget, "FIXED", 0)
    monkeypatch.setattr(chunked, "BLOCK", 100)
    x = _samples((30, 500))
    source = _zarr(tmp_path / "x.zarr", x, (4, 500))
    places = []
    write = chunked.ChunkedArray.write
    monkeypatch.setattr(
        chunked.ChunkedArray, "write", lambda self, rows, *rest: (places.append(rows), write(self, rows, *rest))
    )
    parts = _both_ways(tmp_path, source, ".zarr", max_memory=250_000)[1]
    streamed = places[1:]
    assert len(streamed) > 2
    assert all(rows.start % 4 == 0 for rows in streamed)
    assert np.array_equal(zarr.open(str(parts))["wave/data"][:], _expected(x))


def test_boxes_are_the_rows():
    shape = (3, 4, 5)
    numbers = np.arange(60).reshape(shape)
    for first in range(60):
        for last in range(first + 1, 61):
            found = [numbers[box].reshape(-1) for box in chunked.boxes(first, last, shape)]
            assert len(found) <= 5
            assert np.array_equal(np.concatenate(found), np.arange(first, last))
    assert list(chunked.boxes(0, 1, ())) == [()]


def test_chunks_that_do_not_suit_the_limit(tmp_path, monkeypatch):
    x = np.zeros((4096, 3000), "f4")
    wide = _zarr(tmp_path / "wide.zarr", x, (4096, 100))
    with pytest.raises(ValueError, match="4096 neighbouring traces lie in the same chunks") as error:
        wavefilt.denoise_file(wide, tmp_path / "y.zarr", max_memory="40MiB")
    enough = wavefilt.outofcore.sizes.in_bytes(str(error.value).split("max_memory='")[1].split("'")[0])
    one = _zarr(tmp_path / "one.zarr", x, (4096, 3000))
    with pytest.raises(ValueError, match=r"too little here: .* MiB is the least"):
        wavefilt.denoise_file(one, tmp_path / "y.zarr", max_memory="40MiB")
    assert sorted(os.listdir(tmp_path)) == ["one.zarr", "wide.zarr"]
    opened = wavefilt.io.sources.open_source(wide, wavefilt.io.Layout())
    method = wavefilt.method.Method()
    plan = memory_budget.plan(opened.shape, opened.dtype, method, enough, "auto", opened.neighbours, opened.overhead)
    assert isinstance(plan, memory_budget.WholeTraces)
    assert plan.together >= 4096 / memory_budget.REREAD


def _cli(*arguments):
    return CliRunner().invoke(group, ["denoise", *map(str, arguments)], standalone_mode=False)


@pytest.mark.parametrize("more", [[], ["--max-memory", "1GiB"]])
def test_what_is_not_there_is_named_with_what_is(tmp_path, more):
    x = _samples((2, 300))
    _hdf5(tmp_path / "x.h5", x)
    _zarr(tmp_path / "x.zarr", x, (2, 300))
    (tmp_path / "cut.h5").write_bytes((tmp_path / "x.h5").read_bytes()[:-900])
    (tmp_path / "folder").mkdir()
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file["word"] = "x"
    with h5py.File(tmp_path / "far.h5", "w") as file:
        file["outside"] = h5py.ExternalLink("x.h5", "wave/data")
        layout = h5py.VirtualLayout((2, 300), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "x.h5"), "wave/data", (2, 300))
        file.create_virtual_dataset("virtual", layout)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name, words in [
        ("x.h5::wave/date", "no array 'wave/date'; it has other/shots, time, wave/data"),
        ("x.h5", "3 arrays; choose one with ::NAME"),
        ("x.h5::wave", "no array 'wave'; it has other/shots"),
        ("x.h5::", "no dataset is named"),
        ("x.h5::note", "dtype object"),
        ("cut.h5::wave/data", "damaged or truncated HDF5"),
        ("empty.h5", "without arrays of numbers"),
        ("far.h5::outside", "file"),
        ("far.h5::virtual", "are stored in other files"),
        ("x.zarr::wave/date", "no array 'wave/date'; it has other/shots, wave/data"),
        ("x.zarr", "2 arrays; choose one with ::NAME"),
        ("folder", "not a zarr store"),
        ("no.h5::wave", "No such file"),
    ]:
        done = _cli(tmp_path / name, *more)
        assert done.exception.code == 3, name
        assert words in str(done.exception)
    assert (
        _cli(tmp_path / "x.zarr::wave/data", "-o", tmp_path / "folder", "--overwrite", *more).exception.exit_code == 2
    )
    for target in ("x.zarr", "x.zarr/y.zarr", "y.zarr::wave"):
        done = _cli(tmp_path / "x.zarr::wave/data", "-o", tmp_path / target, "--overwrite", *more)
        assert done.exception.exit_code == 2
    assert _cli(tmp_path / "x.h5::wave/data", "-o", tmp_path / "y.h5::wave", *more).exception.exit_code == 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert sorted(os.listdir(tmp_path)) == ["cut.h5", "empty.h5", "far.h5", "folder", "x.h5", "x.zarr"]


def test_the_command(tmp_path):
    x = _samples((2, 300))
    y = _expected(x)
    _hdf5(tmp_path / "x.h5", x)
    _zarr(tmp_path / "x.zarr", x, (2, 300))
    for name in ("x.h5", "x.zarr"):
        for more in ([], ["--max-memory", "1GiB"]):
            arguments = [f"{tmp_path / name}::wave/data", "--dt", 0.002, "--overwrite", "--json", *more]
            done = _cli(*arguments)
            assert done.exception is None, done.exception
            assert '"interval_s": 0.002' in done.stdout
            result = tmp_path / name.replace("x.", "x.denoised.")
            np.testing.assert_allclose(wavefilt.read(f"{result}::wave/data").samples, y, rtol=1e-5)
    done = _cli(
        tmp_path / "x.zarr::wave/data", "-o", tmp_path / "s.zarr", "--sidecar", "--removed", tmp_path / "r.zarr"
    )
    assert done.exception is None, done.exception
    removed = wavefilt.read(tmp_path / "r.zarr", component="wave/data").samples
    np.testing.assert_allclose(removed, x - y, atol=1e-4)
    done = _cli(tmp_path / "x.h*5::wave/data", "-o", "-")
    with h5py.File(io.BytesIO(done.stdout_bytes)) as file:
        np.testing.assert_allclose(file["wave/data"][:], y, rtol=1e-5)
    assert _cli(tmp_path / "x.zarr::wave/data", "-o", "-").exception.code == 1


def test_a_chunk_that_goes_or_is_damaged(tmp_path, monkeypatch):
    source = _zarr(tmp_path / "x.zarr", _samples((8, 500)), (2, 500))
    chunk = tmp_path / "x.zarr" / "wave" / "data" / "c" / "3" / "0"
    content = chunk.read_bytes()
    write = chunked.ChunkedArray.write
    monkeypatch.setattr(chunked.ChunkedArray, "write", lambda *a: (chunk.unlink(), write(*a)))
    with pytest.raises(OSError, match="chunks were changed while they were read"):
        wavefilt.denoise_file(source, tmp_path / "y.zarr")
    chunk.write_bytes(content)
    with pytest.raises(OSError, match="chunks were changed while they were read"):
        wavefilt.read(source).denoise().write(tmp_path / "y.zarr")
    monkeypatch.undo()
    chunk.write_bytes(content[:30])
    with pytest.raises(OSError, match="a chunk became shorter, or is damaged"):
        wavefilt.denoise_file(source, tmp_path / "y.zarr")
    assert os.listdir(tmp_path) == ["x.zarr"]


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    x = _samples((2, 300))
    sources = _zarr(tmp_path / "x.zarr", x, (2, 300)), _hdf5(tmp_path / "x.h5", x)
    for source in sources:
        target = tmp_path / f"y{Path(source.partition('::')[0]).suffix}"
        wavefilt.denoise_file(source, target, rule=0.0)

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(chunked.ChunkedArray, "write", full)
        for write in (
            lambda: wavefilt.denoise_file(source, target, overwrite=True),  # noqa: B023
            lambda: wavefilt.read(source).denoise().write(target, overwrite=True),  # noqa: B023
        ):
            with pytest.raises(OSError, match="No space left"):
                write()
        monkeypatch.undo()
        assert np.allclose(wavefilt.read(f"{target}::wave/data").samples, x)
        with pytest.raises(FileExistsError, match="exists"):
            wavefilt.denoise_file(source, target)
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "x.zarr", "y.h5", "y.zarr"]


def test_a_name_with_colons_that_exists_is_a_file(tmp_path):
    np.save(tmp_path / "a::b.npy", _samples((2, 300)))
    assert wavefilt.read(tmp_path / "a::b.npy").samples.shape == (2, 300)
    np.savez(tmp_path / "c.npz", one=_samples((2, 300)), two=np.zeros((1, 50)))
    assert wavefilt.read(f"{tmp_path / 'c.npz'}::two").samples.shape == (1, 50)
    with pytest.raises(wavefilt.FormatError, match="another dataset"):
        wavefilt.read(f"{tmp_path / 'c.npz'}::two", component="one")


def test_without_the_packages_the_error_names_the_extra(tmp_path, monkeypatch):
    x = _samples((2, 300))
    sources = _zarr(tmp_path / "x.zarr", x, (2, 300)), _hdf5(tmp_path / "x.h5", x)
    for package in ("h5py", "zarr"):
        monkeypatch.setitem(__import__("sys").modules, package, None)
    for source in sources:
        for call in (wavefilt.read, lambda path: wavefilt.denoise_file(path, tmp_path / "y")):
            with pytest.raises(wavefilt.FormatError, match=r'pip install "wavefilt\[formats\]"'):
                call(source)
