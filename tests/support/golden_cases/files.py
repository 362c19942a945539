"""Input files of every format, and the contents of output files."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .inputs import SAMPLES, traces

Written = tuple[str, dict[str, Any]]
"""The name of a file in the folder, and its layout as `wavefilt.read` takes it."""


def put(name: str, data: bytes | str, **layout: Any) -> Written:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return name, layout


def npy(x: np.ndarray, **layout: Any) -> Written:
    np.save("x.npy", x)
    return "x.npy", layout


def npz(x: np.ndarray, **more: np.ndarray) -> Written:
    np.savez("x.npz", x=x, **more)
    return "x.npz", {"component": "x"} if more else {}


def raw(x: np.ndarray) -> Written:
    layout = {"dtype": x.dtype.str[1:], "endian": "big" if x.dtype.byteorder == ">" else "little", "ns": x.shape[-1]}
    return put("x.bin", x.tobytes(), format="raw", **layout)


def segy(x: np.ndarray, code: int = 5) -> Written:
    import segyio

    spec = segyio.spec()
    spec.format, spec.samples, spec.tracecount, spec.endian = code, np.arange(x.shape[1]) * 4.0, len(x), "big"
    with segyio.create("x.sgy", spec) as file:
        file.text[0] = segyio.tools.create_text_header({1: "GOLDEN"})
        file.bin.update(hdt=4000)
        for i, trace in enumerate(x):
            file.header[i] = {115: x.shape[1], 117: 4000, 1: i + 1, 189: 100 - i}
            file.trace[i] = trace.astype(file.dtype)
    return "x.sgy", {}


def su(x: np.ndarray, order: str = "<") -> Written:
    head = bytes(range(114)) + struct.pack(f"{order}2H", x.shape[1], 2000) + bytes(122)
    return put("x.su", b"".join(head + trace.astype(f"{order}f4").tobytes() for trace in x))


def hdf5(x: np.ndarray, chunks: tuple[int, ...] | None = None, **layout: Any) -> Written:
    import h5py

    with h5py.File("x.h5", "w") as file:
        file["note"], file["time"] = "kept", np.arange(x.shape[-1]) * 0.002
        data = file.create_dataset("wave/data", data=x, chunks=chunks, compression="gzip" if chunks else None)
        data.attrs["unit"] = "counts"
    return "x.h5::wave/data", layout


def zarr(x: np.ndarray, chunks: tuple[int, ...], zarr_format: int = 3, **options: Any) -> Written:
    import zarr

    root = zarr.open_group("x.zarr", mode="w", zarr_format=zarr_format)
    root["shots"] = np.arange(5)
    attributes = {"unit": "counts"}
    root.create_array("data", shape=x.shape, dtype=x.dtype, chunks=chunks, attributes=attributes, **options)[:] = x
    return "x.zarr::data", {}


def wav(x: np.ndarray) -> Written:
    from scipy.io import wavfile

    wavfile.write("x.wav", 8000, x.T)
    return "x.wav", {}


def waveform(x: np.ndarray, format: str, **options: Any) -> Written:
    stream(list(x)).write("x.wf", format=format, **options)
    return "x.wf", {}


def stream(rows: list[np.ndarray], rate: float = 100.0) -> Any:
    import obspy

    head = {"network": "XX", "channel": "BHZ", "sampling_rate": rate, "starttime": obspy.UTCDateTime(2026, 11, 20)}
    return obspy.Stream([obspy.Trace(row, {**head, "station": f"S{i}"}) for i, row in enumerate(rows)])


def table(x: np.ndarray, form: str = "%.3f", between: str = " ", head: str = "", **layout: Any) -> Written:
    rows = "\n".join(between.join(form % value for value in row) for row in x.T)
    return put("x.txt", f"{head}{rows}\n", **layout)


def timed(x: np.ndarray) -> np.ndarray:
    return np.vstack([np.arange(x.shape[1]) * 0.25, x])


def files() -> dict[str, Callable[[], Written]]:
    """Makers of a file of every format, in variants."""
    x, seg2 = traces((4, 300)), (SAMPLES / "seismic.dat").read_bytes()
    words = "time;up;north\n" + "".join(f"{0.5 * i:.1f};{a:.2f};{b:.2f}\n" for i, (a, b) in enumerate(x[:2].T))
    return {
        "seg2": partial(put, "x.dat", seg2),
        "ascii-sample": partial(put, "x.txt", (SAMPLES / "seismic.txt").read_bytes()),
        "ascii-column": partial(table, x[:1], "%.4f"),
        "ascii-time": partial(table, timed(x), "%9.3f", head="# made here\n t  a  b  c  d\n"),
        "ascii-commas": partial(table, x, "%.5g", ","),
        "ascii-decimal-commas": partial(put, "x.txt", words.replace(".", ",").replace("\n", "\r\n")),
        "ascii-tabs-exponents": partial(table, x, "%.6e", "\t"),
        "ascii-integers": partial(table, 100 * x, "%.0f"),
        "ascii-columns": partial(table, timed(x), columns=(2, 4), delimiter=" "),
        "ascii-gaps": partial(table, np.where(x > 55, np.nan, x), dt=0.01),
        **{f"npy-{d}": partial(npy, traces((2, 3, 300), d)) for d in ("f4", ">f8", "f2", "i2", ">i4", "u1", "c8")},
        "npy-axis-0": partial(npy, traces((3, 300)).T, axis=0),
        "npy-fortran": partial(npy, np.asfortranarray(x)),
        "npz": partial(npz, x),
        "npz-of-two": partial(npz, x, other=np.arange(3)),
        **{f"raw-{d}": partial(raw, traces((3, 300), d)) for d in ("<f4", ">f8", "<i2", ">i4")},
        **{f"wav-{d}": partial(wav, traces((2, 300), d)) for d in ("i2", "u1", "i4", "f4", "f8")},
        "wav-mono": partial(wav, traces((1, 300), "i2")[0]),
        **{f"segy-{code}": partial(segy, x, code) for code in (1, 2, 3, 5, 8)},
        "su-little": partial(su, x),
        "su-big": partial(su, x, ">"),
        **{f"hdf5-{d}": partial(hdf5, traces((2, 3, 300), d)) for d in ("f4", ">f8", "i2")},
        "hdf5-chunks": partial(hdf5, x, (2, 100)),
        "hdf5-axis-0": partial(hdf5, traces((3, 300)).T, axis=0),
        "zarr-3": partial(zarr, x, (2, 100)),
        "zarr-2-i2": partial(zarr, traces((4, 300), "i2"), (2, 100), 2),
        "zarr-shards": partial(zarr, traces((4, 300), "f4"), (2, 100), shards=(4, 200)),
        **{f"mseed-{d}": partial(waveform, traces((2, 300), d), "MSEED") for d in ("f4", "f8", "i4")},
        "sac": partial(waveform, traces((1, 300), "f4"), "SAC"),
        "gse2": partial(waveform, traces((2, 300), "i4"), "GSE2"),
        "slist": partial(waveform, traces((2, 300), "f4"), "SLIST"),
        "tspair": partial(waveform, traces((2, 300), "i4"), "TSPAIR"),
    }


def contents(path: str) -> Any:
    """Of a file the text if it is JSON, the datasets if it is HDF5, else the bytes; of a folder all files."""
    if os.path.isdir(path):
        return {name: contents(os.path.join(path, name)) for name in names_in(path)}
    data = Path(path).read_bytes()
    if data.startswith(b"\x89HDF\r\n\x1a\n"):
        return hdf5_contents(path)
    return data.decode() if path.endswith((".json", ".jsonl")) else data


def names_in(folder: str) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in Path(folder).rglob("*") if file.is_file())


def hdf5_contents(path: str) -> dict[str, Any]:
    """Its datasets: bytes of the file hold the time at which one was made in place of another."""
    import h5py

    found: dict[str, Any] = {"bytes": os.path.getsize(path)}

    def add(name: str, item: Any) -> None:
        found[name] = dict(item.attrs)
        if isinstance(item, h5py.Dataset):
            found[name] = [found[name], item[()], item.chunks, item.compression, item.maxshape]

    with h5py.File(path) as file:
        file.visititems(add)
    return found
