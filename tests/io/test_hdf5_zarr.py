"""HDF5 and Zarr by path::dataset: only the samples of one array change, in memory and streamed."""

from __future__ import annotations

import copy
import io
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wavefilt
from tests.support.checkout import least_memory, run

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")


def _samples(shape, dtype="f4"):
    rng = np.random.default_rng(4)
    x = 60 * (1.1 + np.sin(np.arange(shape[-1]) / 9)) + rng.standard_normal(shape) * 9
    return x.astype(dtype)


def _hdf5(path, x, chunks=None, compression=None):
    """Write a dataset with attributes and a scale of its time axis, beside others."""
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(x.shape[-1]) * 0.002
        file["time"].make_scale("t")
        file["other/shots"] = np.arange(5)
        file["note"] = "kept"
        data = file.create_dataset("wave/data", data=x, chunks=chunks, compression=compression)
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
    return y if x.dtype.kind in "fc" else y.astype("f8" if x.dtype.itemsize > 2 else "f4")


def _both_ways(tmp_path, source, max_memory="1GiB", **options):
    """Return the paths of the results in memory and streamed, and the report."""
    suffix, axis = Path(source.partition("::")[0]).suffix, options.pop("axis", None)
    whole, parts = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    options["backend"] = "pywavelets"
    copy.deepcopy(wavefilt.read(source, axis=axis)).denoise(**options).write(whole, overwrite=True)
    report = wavefilt.denoise_file(source, parts, axis=axis, max_memory=max_memory, overwrite=True, **options)
    return whole, parts, report


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2", "|u1", ">i4", "<c8"])
@pytest.mark.parametrize("chunks", [None, (2, 3, 100)])
def test_hdf5(tmp_path, dtype, chunks):
    x = _samples((5, 4, 300), dtype)
    compression = "gzip" if chunks else None
    source = _hdf5(tmp_path / "x.h5", x, chunks, compression)
    before = (tmp_path / "x.h5").read_bytes()
    for path in _both_ways(tmp_path, source)[:2]:
        with h5py.File(path) as file:
            data, y = file["wave/data"], _expected(x)
            assert_array_equal(data[:], y)
            assert data.dtype == (x.dtype if x.dtype.kind in "fc" else y.dtype)
            assert (data.chunks, data.compression) == (chunks, compression)
            assert data.attrs["unit"] == "counts"
            assert_array_equal(data.attrs["shots"], [0, 1, 2])
            assert data.attrs["shots"].dtype == "i2"
            assert data.dims[2][0] == file["time"]
            assert file["note"][()] == b"kept"
            assert sorted(file["wave"]) == ["data"]
            assert_array_equal(file["other/shots"], np.arange(5))
    assert (tmp_path / "x.h5").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["parts.h5", "whole.h5", "x.h5"]


@pytest.mark.parametrize("name", ["data", "alias", "soft"])
@pytest.mark.parametrize("dtype", ["i2", "f4"])
def test_every_link_to_a_dataset_of_hdf5_has_the_new_samples(tmp_path, dtype, name):
    x = _samples((4, 300), dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"] = x
        file["alias"] = file["data"]
        file["soft"] = h5py.SoftLink("/data")
    source = f"{tmp_path / 'x.h5'}::{name}"
    if dtype == "i2":  # a new dataset is needed, which has one name
        with pytest.raises(wavefilt.FormatError, match="names"):
            _both_ways(tmp_path, source)
        assert os.listdir(tmp_path) == ["x.h5"]
        return
    for path in _both_ways(tmp_path, source)[:2]:
        with h5py.File(path) as file:
            assert_array_equal(file["data"][:], _expected(x))
            assert file["alias"] == file["soft"] == file["data"]


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
    for path in _both_ways(tmp_path, source)[:2]:
        root = zarr.open_group(str(path), mode="r")
        data, y = root["wave/data"], _expected(x)
        assert_array_equal(data[:], y)
        assert data.dtype == (old.dtype if x.dtype.kind in "fc" else y.dtype)
        assert (data.chunks, data.shards, data.compressors) == (old.chunks, old.shards, old.compressors)
        assert (dict(root.attrs), dict(data.attrs)) == ({"survey": 7}, {"unit": "counts"})
        assert_array_equal(root["other/shots"][:], np.arange(5))
        if x.dtype.kind in "fc":
            metadata = [name for name in before if name.name in ("zarr.json", ".zarray", ".zattrs", ".zmetadata")]
            assert len(metadata) > 3
            assert all((path / name.relative_to(tmp_path / "x.zarr")).read_bytes() == before[name] for name in metadata)
    assert {path: path.read_bytes() for path in (tmp_path / "x.zarr").rglob("*") if path.is_file()} == before
    assert sorted(os.listdir(tmp_path)) == ["parts.zarr", "whole.zarr", "x.zarr"]


@pytest.mark.parametrize("make", [_hdf5, _zarr])
@pytest.mark.parametrize(
    ("shape", "chunks", "axis", "scope", "cut"),
    [
        ((1_600_000,), (350_000,), None, "trace", True),
        ((2, 900_000), (1, 350_000), None, "record", True),
        ((1_200_000, 2), (350_000, 1), 0, "trace", True),
        ((600, 3000), (4, 3000), None, "trace", False),
    ],
)
def test_chunks_of_the_file_and_parts_of_traces(tmp_path, make, shape, chunks, axis, scope, cut):
    """Traces are cut anywhere in the chunks of the file; the last case has batches of whole traces."""
    x = np.moveaxis(_samples([*shape[1:], shape[0]]), -1, 0) if axis == 0 else _samples(shape)
    options = {"scope": scope, "wavelet": "db2", "rule": "universal"}
    source = make(tmp_path / f"x.{make.__name__[1:]}", np.ascontiguousarray(x), chunks)
    limit = least_memory(source, axis=axis, backend="pywavelets", **options)
    whole, parts, report = _both_ways(tmp_path, source, axis=axis, max_memory=limit, **options)
    assert (report.passes > 1.9) == cut
    expected = _expected(x, -1 if axis is None else axis, **options)
    for path in (whole, parts):
        assert_array_equal(
            wavefilt.read(f"{path}::wave/data", axis=axis).traces.reshape(-1),
            np.moveaxis(expected, -1 if axis is None else axis, -1).reshape(-1),
        )


@pytest.mark.parametrize("more", [[], ["--max-memory", "1GiB"]])
def test_missing_datasets_and_bad_outputs(tmp_path, capsys, more):
    x = _samples((2, 300))
    _hdf5(tmp_path / "x.h5", x)
    _zarr(tmp_path / "x.zarr", x, (2, 300))
    zarr.open_group(str(tmp_path / "b.zarr"), mode="w").create_array("y", shape=(2, 64), dtype="f4")
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
    names = sorted(os.listdir(tmp_path))
    for name, word in [
        ("x.h5::wave/date", "wave/data"),
        ("x.h5", "::NAME"),
        ("x.h5::wave", "other/shots"),
        ("x.h5::", "no dataset"),
        ("x.h5::note", "object"),
        ("cut.h5::wave/data", "truncated"),
        ("empty.h5", "without arrays"),
        ("far.h5::outside", "file"),
        ("far.h5::virtual", "other files"),
        ("x.zarr::wave/date", "wave/data"),
        ("x.zarr::../b.zarr/y", "wave/data"),  # a name must not leave the store
        ("x.zarr", "::NAME"),
        ("folder", "zarr"),
        ("no.h5::wave", "No such file"),
    ]:
        code, _, err = run(capsys, "denoise", tmp_path / name, *more)
        assert (code, word in err) == (3, True), (name, err)
    for source, target in (
        *(("x.zarr::wave/data", name) for name in ("folder", "x.zarr", "x.zarr/y.zarr", "y.zarr::wave")),
        ("x.h5::wave/data", "y.h5::wave"),
    ):
        assert run(capsys, "denoise", tmp_path / source, "-o", tmp_path / target, "--overwrite", *more)[0] == 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert sorted(os.listdir(tmp_path)) == names


def test_a_chunk_that_is_damaged_or_goes_while_the_array_is_denoised(tmp_path, capsys):
    source = _zarr(tmp_path / "x.zarr", _samples((8, 500)), (2, 500))
    recording, chunk = wavefilt.read(source).denoise(), tmp_path / "x.zarr" / "wave" / "data" / "c" / "3" / "0"
    os.truncate(chunk, 30)
    with pytest.raises(OSError, match="damaged"):
        wavefilt.denoise_file(source, tmp_path / "y.zarr")
    with pytest.raises((OSError, wavefilt.FormatError), match="damaged"):
        wavefilt.read(source).denoise().write(tmp_path / "y.zarr")
    code, _, err = run(capsys, "denoise", source, "-o", tmp_path / "y.zarr", "--max-memory", "1G")
    assert (code, "damaged" in err) == (3, True), err
    chunk.unlink()
    with pytest.raises(OSError, match="changed"):
        recording.write(tmp_path / "y.zarr")
    assert os.listdir(tmp_path) == ["x.zarr"]


def test_a_name_with_colons_that_exists_is_a_file(tmp_path):
    np.save(tmp_path / "a::b.npy", _samples((2, 300)))
    assert wavefilt.read(tmp_path / "a::b.npy").samples.shape == (2, 300)
    np.savez(tmp_path / "c.npz", one=_samples((2, 300)), two=np.zeros((1, 50)))
    assert wavefilt.read(f"{tmp_path / 'c.npz'}::two").samples.shape == (1, 50)
    with pytest.raises(wavefilt.FormatError, match="dataset"):
        wavefilt.read(f"{tmp_path / 'c.npz'}::two", component="one")


def test_damaged_attributes_of_hdf5(tmp_path):
    _hdf5(tmp_path / "x.h5", _samples((2, 300)))
    data = bytearray((tmp_path / "x.h5").read_bytes())
    data[data.index(b"unit") - 8] = 255  # the version of the message
    with pytest.raises(wavefilt.FormatError):
        wavefilt.read(io.BytesIO(data), component="wave/data")
