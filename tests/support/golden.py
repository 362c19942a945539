"""Pins what wavefilt does, bit for bit, so that its modules can be moved without a change of behaviour.

    python tests/support/golden.py write CHECKOUT OUT.json [--backends pywavelets,numba] [--only PREFIX]
    python tests/support/golden.py compare A.json B.json

`write` runs every case below with the package of that checkout and writes what came of it, by the case's name: of
arrays and files a digest, else the value. It imports public names alone. What raises is "raises TYPE" under its name,
with the message under `error/NAME`, so that words may change on purpose: `compare` prints every difference but those
under the prefixes of `--without`, as `error/`, `help/` or `names/`, and exits with 1 if there is one.

Each area runs in a process of its own: the choice of `backend="auto"` depends on what a process has loaded before.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import hashlib
import importlib
import inspect
import io
import itertools
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Cases = Iterator[tuple[str, Callable[[], Any]]]

ENVIRONMENT = {"WAVEFILT_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "80", "MPLBACKEND": "agg",
               "PYTHONHASHSEED": "0"}  # fmt: skip
"""What results or the width of a text could depend on."""
AREAS: dict[str, tuple[Callable[..., Cases], bool]] = {}
"""The cases of each area, and whether there are some for each backend."""
MASKS = {
    r"[\d.e+-]+ s \(": "<time> s (",  # of a file, in its line
    r"(?m)^seconds .*$": "seconds <times>",  # of a batch, in its table
    r"[\d.e+-]+ s, [\d.e+-]+ files/s": "<time>",
    r'"(seconds|elapsed_s)": [\d.e+-]+': r'"\1": <time>',
    r'"versions": \{[^}]*\}': '"versions": <versions>',
    r"wavefilt(,? version)? \d+(\.\d+)+": "wavefilt <version>",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ wavefilt": "<now> wavefilt",  # in a history of xarray
    r" at 0x[0-9a-f]+": " at <address>",
}
"""What differs from run to run, or between versions, in texts."""


# ------------------------------------------------------------------------------------------------ running cases


class Command(NamedTuple):
    """What a command left: the error text of a failed one goes to `error/`."""

    code: int
    out: Any
    err: str
    files: dict[str, Any]


def area(function: Callable[..., Cases]) -> Callable[..., Cases]:
    """Take the cases into `AREAS`, by the function's name."""
    AREAS[function.__name__.strip("_")] = function, bool(inspect.signature(function).parameters)
    return function


def sweep(name: str, function: Callable[..., Any], **options: Any) -> Cases:
    """The function with all combinations of options: each a list of values, or a dict with a label for each."""
    tables = [o if isinstance(o, dict) else {_label(value): value for value in o} for o in options.values()]
    for labels in itertools.product(*tables):
        values = {key: table[label] for key, table, label in zip(options, tables, labels, strict=True)}
        yield "/".join([name, *map(str, labels)]), partial(function, **values)


def _label(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def masked(text: str) -> str:
    """The text without what differs from run to run."""
    for folder in {os.getcwd(), os.path.realpath(os.getcwd())}:
        text = text.replace(folder, "<folder>")
    for pattern, instead in MASKS.items():
        text = re.sub(pattern, instead, text)
    return text


def described(value: Any) -> Any:
    """A result for JSON: digests of arrays and bytes, the rest as it is."""
    if isinstance(value, np.ma.MaskedArray):
        parts = [described(value.data), described(np.ma.getmaskarray(value)), repr(value.fill_value)]
        return {"masked": parts}
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        kind = f"{array.dtype.str} {array.shape}"
        data = np.ascontiguousarray(array).tobytes()
        if array.dtype == np.longdouble:  # 10 bytes of 16, the others being whatever was in memory
            data = np.frombuffer(data, "u1").reshape(-1, array.itemsize)[:, :10].tobytes()
        return f"{kind} {digest(kind.encode() + data)}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes {digest(value)}"
    if hasattr(value, "__cuda_array_interface__"):
        return {type(value).__name__: described(value.get() if hasattr(value, "get") else value.copy_to_host())}
    if isinstance(value, Command):
        return described(value._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"is": type(value).__name__} | {
            field.name: described(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {str(key): described(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(entry) for entry in value]
    return value if value is None or isinstance(value, (bool, int)) else masked(str(value))


def result(name: str, case: Callable[[], Any]) -> dict[str, Any]:
    """What comes of a case in an empty folder, by its name."""
    top, folder = os.getcwd(), tempfile.mkdtemp(dir=".")
    os.chdir(folder)
    message = None
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            found = case()
        if isinstance(found, Command) and found.code:
            found, message = found._replace(err=""), found.err
        found = described(found)
        if told:
            words = {masked(f"{warning.category.__name__}: {warning.message}") for warning in told}
            found = {"found": found, "warnings": sorted(words)}
    except Exception as error:
        found, message = f"raises {type(error).__name__}", f"{type(error).__name__}: {error}"
    finally:
        text = None if message is None else masked(message)
        os.chdir(top)
        shutil.rmtree(folder)
    if text is None:
        return {name: found}
    return {name: [found, text]} if name.startswith("error/") else {name: found, f"error/{name}": text}


def run_unit(checkout: Path, unit: str, only: str, target: Path) -> None:
    """Run the cases of an area (`AREA` or `AREA/BACKEND`), with the package that is imported here."""
    import wavefilt

    assert wavefilt.__file__, "wavefilt is no package here"
    name, _, backend = unit.partition("/")
    cases = AREAS[name][0](*([backend] if backend else []))
    found: dict[str, Any] = {}
    for rest, case in cases:
        if f"{unit}/{rest}".startswith(only) or (only.startswith("error/") and name != "error"):
            new = result(f"{unit}/{rest}", case)
            assert not found.keys() & new.keys(), f"two cases are named {unit}/{rest}"
            found |= new
    for module in [m for key, m in sys.modules.items() if key.partition(".")[0] == "wavefilt"]:
        assert checkout in Path(module.__file__).resolve().parents, f"{module.__file__} is not in {checkout}"
    target.write_text(json.dumps({key: value for key, value in found.items() if key.startswith(only)}))


def write(checkout: Path, target: Path, backends: list[str], only: str) -> None:
    """Run all areas, two at a time."""
    units = [
        f"{name}/{backend}" if backend else name
        for name, (_, each) in AREAS.items()
        for backend in (backends if each else [""])
    ]
    units = [u for u in units if only.startswith(("error/", f"{u}/")) or f"{u}/".startswith(only)]
    begin, found, done = time.perf_counter(), {}, 0
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "PYTHONPATH": str(checkout),
        "GOLDEN_SAMPLES": str(checkout / "samples"),
    }

    def run(unit: str) -> tuple[str, dict[str, Any], float]:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out.json")
            command = [sys.executable, "-P", __file__, "unit", str(checkout), unit, str(out), "--only", only]
            subprocess.run(command, cwd=folder, env=environment, check=True)
            return unit, json.loads(out.read_text()), time.perf_counter() - start

    with ThreadPoolExecutor(2) as pool:
        for unit, results, seconds in pool.map(run, units):
            found, done = found | results, done + 1
            print(f"{done}/{len(units)} {unit}: {len(results)} results, {seconds:.1f} s", file=sys.stderr)
    target.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    print(f"{len(found)} results, {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def compare(a: Path, b: Path, without: tuple[str, ...]) -> bool:
    """Print every difference; whether there is none."""
    before, after = json.loads(a.read_text()), json.loads(b.read_text())
    same, names = True, sorted(name for name in before.keys() | after.keys() if not name.startswith(without))
    for name in names:
        if name not in after or name not in before:
            same = False
            print(f"{'missing' if name in before else 'added'}: {name}")
        elif before[name] != after[name]:
            same = False
            print(f"changed: {name}")
            texts = (json.dumps(found[name], indent=1).replace("\\n", "\n") for found in (before, after))
            lines = difflib.ndiff(*(text.splitlines() for text in texts))
            print("\n".join(f"  {line}" for line in lines if line[0] in "+-"))
    if same:
        print(f"{len(names)} results, all the same")
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, places in {"write": ["checkout", "target"], "unit": ["checkout", "unit", "target"]}.items():
        command = commands.add_parser(name, help=None if name == "unit" else "run all cases with a checkout")
        for place in places:
            command.add_argument(place, type=str if place == "unit" else Path)
        command.add_argument("--only", default="", metavar="PREFIX")
        command.add_argument("--backends", default="pywavelets,numba", help="names, with commas between them")
    command = commands.add_parser("compare", help="print the differences of two results")
    command.add_argument("a", type=Path)
    command.add_argument("b", type=Path)
    command.add_argument("--without", action="append", default=[], metavar="PREFIX", help="leave these out; repeatable")
    given = parser.parse_args()
    if given.command == "compare":
        sys.exit(not compare(given.a, given.b, tuple(given.without)))
    checkout = given.checkout.resolve()
    if given.command == "unit":
        run_unit(checkout, given.unit, given.only, given.target)
    else:
        write(checkout, given.target, given.backends.split(","), given.only)


# ---------------------------------------------------------------------------------------------- inputs and files

MODES = ["symmetric", "reflect", "periodic", "periodization", "zero", "constant", "smooth", "antisymmetric",
         "antireflect"]  # fmt: skip
NAMED = ["universal", "minimax", "sure", "hybrid", "bayes", "fdr", "blockjs", "neighblock", "ebayes", "ebayes-cauchy"]
RULES = [*NAMED, 7.5, [40.0, 30, 20, 10]]
"""Rules for four levels."""
SHRINKS = [None, "soft", "hard", "garrote", "firm", "median", "mean"]
TRANSFORMS, SCOPES = ["dwt", "modwt"], ["trace", "record"]
SAMPLES = Path(os.environ.get("GOLDEN_SAMPLES", "samples"))


def traces(shape: tuple[int, ...] | int = (3, 600), dtype: str = "f8", seed: int = 7) -> np.ndarray:
    """Chirps of several heights under noise; integers are rounded, unsigned ones moved above 0."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else shape
    t = np.linspace(0, 1, shape[-1])
    x = 50 * np.sin(40 * t**2) * np.exp(-2 * t) + 9 * rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 9j * rng.standard_normal(shape)
    return np.abs(x).astype(dtype) if dtype.kind in "ub" else x.astype(dtype)


def with_gaps(dtype: str = "f8") -> dict[str, Any]:
    """Traces with gaps of all kinds."""
    runs, dead = traces((5, 400), dtype), traces((4, 400), dtype)
    runs[0, 100:140] = runs[1, :7] = runs[1, -1] = runs[2, ::130] = runs[3] = np.nan
    dead[0], dead[1], dead[2, :300] = 0, 3, 0
    mask = np.zeros((3, 400), bool)
    mask[0, 50:90] = mask[1, 399] = mask[2, :380] = True
    return {
        f"runs-{dtype}": runs,
        f"dead-{dtype}": dead,
        f"nothing-{dtype}": np.full((2, 300), np.nan, dtype),
        f"masked-{dtype}": np.ma.MaskedArray(traces((3, 400), dtype), mask, fill_value=-1),
        f"unmasked-{dtype}": np.ma.MaskedArray(traces((3, 400), dtype)),
    }


def on_device() -> dict[str, Callable[[Any], Any]]:
    """What sends an array to a GPU: numba, and CuPy where it is installed."""
    from numba import cuda

    ways: dict[str, Callable[[Any], Any]] = {"numba": cuda.to_device}
    with contextlib.suppress(ImportError):
        ways["cupy"] = importlib.import_module("cupy").asarray
    return ways


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
    }  # fmt: skip


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


def command(line: str | list[str], stdin: bytes = b"", prepare: Callable[[], Any] = lambda: None) -> Command:
    """`wavefilt LINE` in this process, and the files that are new after it."""
    from wavefilt.cli import main

    prepare()
    before = names_in(".")
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8", write_through=True) for data in (stdin, b"", b"")]
    code, old, sys.stdin = 0, sys.stdin, streams[0]
    try:
        with contextlib.redirect_stdout(streams[1]), contextlib.redirect_stderr(streams[2]):
            main(shlex.split(line) if isinstance(line, str) else line)
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.stdin = old
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    new = {name: contents(name) for name in names_in(".") if name not in before}
    return Command(code, out if b"\0" in out else out.decode(errors="replace"), err.decode(), new)


# ------------------------------------------------------------------------------------------------------- the areas


@area
def denoise(backend: str) -> Cases:
    """Traces, with every option."""
    import pywt

    import wavefilt

    run = partial(wavefilt.denoise, backend=backend)
    four = partial(run, level=4, wavelet="db4")
    both = {d: traces(dtype=d) for d in ("f4", "f8")}
    x = traces()
    yield from sweep("rule", four, x=both, rule=RULES, transform=TRANSFORMS, scope=SCOPES)
    kinds = ["c8", "c16", "f2", ">f4", ">f8", "g", "i1", "i2", "i4", "i8", "u1", "u4", "?"]
    yield from sweep("dtype", four, x={d: traces(dtype=d) for d in kinds}, rule=RULES)
    yield from sweep("shrink", four, x=both | {"c8": traces((2, 300), "c8")}, rule=RULES, shrink=SHRINKS[1:])
    lengths = {f"{n}-f8": traces((2, n)) for n in (1, 2, 15, 16, 17, 31, 64, 101, 256)}
    lengths |= {f"{n}-f4": traces((2, n), "f4") for n in (31, 101, 256)}
    yield from sweep("mode", partial(run, rule="universal"), x=lengths, mode=MODES,
                     wavelet=["haar", "db4", "db8", "bior2.4", "coif3"], transform=TRANSFORMS)  # fmt: skip
    yield from sweep("wavelet", partial(run, rule="universal"), x=both, wavelet=pywt.wavelist(kind="discrete"))
    taps = pywt.Wavelet("sym4")
    own = type("Bank", (), {n: list(getattr(taps, n)) for n in ("dec_lo", "dec_hi", "rec_lo", "rec_hi")})()
    yield from sweep("wavelet", run, x=both, wavelet={"pywt": taps, "object": own})
    sigmas = ["level", "global", 7.0, 0.0, ("window", 10, 200), ("window", 0, 12)]
    yield from sweep("sigma", four, x={"f4": both["f4"]}, sigma=sigmas, rule=RULES, scope=SCOPES, transform=TRANSFORMS)
    yield from sweep("keep", run, x=both, keep=[1, 2, 9], level=[None, 0, 1, 3, 5], transform=TRANSFORMS)
    odd = {"odd": traces((2, 101))}
    rules = ["bayes", "blockjs", 7.5]
    yield from sweep("spins", run, x=both | odd, spins=[2, 5], rule=rules, mode=MODES, level=[None, 2])
    cube = traces((4, 5, 150))
    yield from sweep("axis", run, x={"3d": cube, "fortran": np.asfortranarray(cube), "reversed": cube[::-1, :, ::-1]},
                     axis=[0, 1, 2, -2], wavelet=["haar", "db4"], scope=SCOPES, return_noise=[False, True])  # fmt: skip
    gapped = with_gaps("f4") | with_gaps() | {"masked-i4": with_gaps()["masked-f8"].astype("i4")}
    gapped["complex"] = np.where(np.isnan(gapped["runs-f8"]), np.nan, traces((5, 400), "c16"))
    short = partial(run, wavelet="db2")
    yield from sweep("gaps", short, x=gapped, rule=[*NAMED, 7.5], scope=SCOPES)
    yield from sweep("gaps/modwt", short, x=gapped, rule=["bayes", "sure", 7.5], scope=SCOPES, transform=["modwt"])
    yield from sweep("gaps/noise", run, x=gapped, sigma=["global", 7.0], return_noise=[False, True], scope=SCOPES)
    yield from sweep("gaps/spins", run, x=gapped, spins=[3], mode=["symmetric", "periodization"], level=[2])
    forms = {"list": x.tolist(), "rows": list(x), "masked": list(gapped["masked-f8"]), "empty": x[:0], "scalar": 3.0,
             "ragged": [x[0], x[1, :50]], "1d": x[0], "strided": x[:, ::2], "no-samples": x[:, :0]}  # fmt: skip
    yield from sweep("form", run, x=forms, return_noise=[False, True])
    large = {f"{d}-{shape[0]}": traces(shape, d) for d in ("f4", "f8") for shape in ((200, 2000), (1, 1 << 18))}
    yield from sweep("large", run, x=large, rule=[*NAMED, 7.5], scope=SCOPES)
    yield from sweep("large/modwt", partial(run, transform="modwt", level=3), x=large, rule=["bayes"])
    yield "backend/object", partial(wavefilt.denoise, x, backend=wavefilt.backends.get(backend))
    if backend == "cuda":
        for kind, send in on_device().items():
            for rule, d in itertools.product(NAMED, both):
                yield f"device/{kind}/{rule}/{d}", lambda send=send, rule=rule, d=d: run(send(both[d]), rule=rule)


@area
def sections(backend: str) -> Cases:
    """Denoising in two dimensions."""
    import wavefilt

    run = partial(wavefilt.denoise, backend=backend)
    plane = partial(run, axes=(-2, -1))
    shapes = {f"{shape}-{d}": traces(shape, d) for d in ("f4", "f8")
              for shape in ((33, 40), (64, 64), (17, 150), (2, 37, 50), (15, 15), (1, 90))}  # fmt: skip
    yield from sweep("mode", plane, x=shapes, mode=MODES, wavelet=["haar", "db4", "bior2.4"])
    both = {d: traces((2, 49, 64), d) for d in ("f4", "f8", "c8", "i2")}
    both["gaps"] = with_gaps()["runs-f8"]
    four = partial(plane, wavelet="db2", level=4)
    yield from sweep("rule", four, x=both, rule=RULES)
    yield from sweep("shrink", four, x={"f8": both["f8"][0]}, rule=RULES, shrink=SHRINKS[1:])
    yield from sweep("sigma", plane, x=both, wavelet=["db2"], sigma=["level", "global", 7.0, ("window", 0, 20)],
                     rule=["bayes", "sure", "universal"], scope=SCOPES, return_noise=[False, True])  # fmt: skip
    yield from sweep("level", plane, x=both, wavelet=["db2", "db8"], level=[None, 0, 2, 9], keep=[0, 1])
    cube = {"cube": traces((20, 3, 40)), "fortran": np.asfortranarray(traces((20, 3, 40)))}
    yield from sweep("axes", run, x=cube, wavelet=["haar"],
                     axes=[(0, 2), (2, 0), (-1, -3), (1, 2), (0, 0), (0, 5), (1,)])  # fmt: skip
    yield from sweep("large", plane, x={d: traces((300, 700), d) for d in ("f4", "f8")}, rule=["bayes", "sure", "fdr"])


@area
def transforms(backend: str) -> Cases:
    """Forward and back, of one and two axes, with and without decimation."""
    import wavefilt

    def decimated(x: Any, wavelet: Any, mode: Any, level: Any, axis: int = -1) -> Any:
        c = wavefilt.wavedec(x, wavelet, mode, level, axis, backend=backend)
        back = partial(wavefilt.waverec, wavelet=wavelet, mode=mode, axis=axis, backend=backend)
        return c, back(c), back([c[0], *[None] * (len(c) - 1)]) if len(c) > 1 else None

    def single(x: Any, wavelet: Any, mode: Any, axis: int = -1) -> Any:
        a, d = wavefilt.dwt(x, wavelet, mode, axis, backend=backend)
        back = partial(wavefilt.idwt, wavelet=wavelet, mode=mode, axis=axis, backend=backend)
        return a, d, back(a, d), back(None, d), back(a, None)

    def overlapping(x: Any, wavelet: Any, mode: Any, level: Any, axis: int = -1) -> Any:
        c = wavefilt.modwt(x, wavelet, level, mode, axis, backend=backend)
        return c, wavefilt.imodwt(c, wavelet, mode, axis, backend=backend)

    def stationary(x: Any, wavelet: Any, level: Any, norm: bool, trim: bool, axis: int = -1, start: int = 0) -> Any:
        c = wavefilt.swt(x, wavelet, level, start, axis, trim, norm, backend=backend)
        return c, None if start else wavefilt.iswt(c, wavelet, norm, axis, backend=backend)

    def plane(x: Any, wavelet: Any, mode: Any, level: Any = None, axes: Any = (-2, -1)) -> Any:
        c = wavefilt.wavedec2(x, wavelet, mode, level, axes, backend=backend)
        return c, wavefilt.waverec2(c, wavelet, mode, axes, backend=backend)

    lengths = {n: traces((2, n)) for n in (1, 2, 7, 16, 33, 64, 101)} | {"50-f4": traces((2, 50), "f4")}
    wavelets = ["haar", "db4", "db8", "sym5", "bior2.4", "rbio3.1", "dmey"]
    kinds = {d: traces((3, 64), d) for d in ("f4", "f8", "c8", "c16", "f2", "i2", "u1", "i8", "?", ">f4", "g")}
    cube = {d: traces((24, 3, 40), d) for d in ("f4", "f8")} | {"fortran": np.asfortranarray(traces((24, 3, 40)))}
    yield from sweep("wavedec", decimated, x=lengths, wavelet=wavelets, mode=MODES, level=[None, 1, 3])
    yield from sweep("wavedec/dtype", decimated, x=kinds, wavelet=["db2"], mode=MODES, level=[2])
    yield from sweep("wavedec/axis", decimated, x=cube, wavelet=["db2"], mode=[0, "reflect"], level=[0, 2], axis=[0, 1])
    yield from sweep("dwt", single, x=lengths | kinds, wavelet=wavelets[:4], mode=MODES)
    yield from sweep("dwt/axis", single, x=cube, wavelet=["db2"], mode=["zero"], axis=[0, 1, -1])
    yield from sweep("modwt", overlapping, x=lengths, wavelet=wavelets[:3], mode=MODES, level=[None, 1, 3])
    yield from sweep("modwt/axis", overlapping, x=cube | kinds, wavelet=["db2"], mode=MODES, level=[2], axis=[0, -1])
    even, yes_no = {n: traces((2, n)) for n in (16, 64, 96)}, [False, True]
    yield from sweep("swt", stationary, x=even, wavelet=wavelets[:5], level=[None, 1, 3], norm=yes_no, trim=yes_no)
    short = partial(stationary, wavelet="db2", level=2)
    yield from sweep("swt/dtype", short, x=kinds, norm=yes_no, trim=yes_no, start=[0, 1])
    yield from sweep("swt/axis", short, x=cube, norm=[True], trim=yes_no, axis=[0, 2])
    planes = {str(s): traces(s) for s in ((33, 40), (8, 9), (2, 21, 16), (1, 5))} | kinds
    yield from sweep("wavedec2", plane, x=planes, wavelet=wavelets[:3], mode=MODES, level=[None, 1, 2])
    yield from sweep("wavedec2/pairs", plane, x=planes, wavelet=[("db2", "haar")], mode=[("zero", "periodization")])
    yield from sweep("wavedec2/axes", plane, x=cube, wavelet=["haar"], mode=["smooth"], axes=[(0, 1), (2, 0), (0, -1)])


@area
def thresholds() -> Cases:
    """Threshold functions of arrays."""
    import wavefilt

    data = {d: traces((2, 40), d) for d in ("f4", "f8", "c8", "c16", "i4", "f2")}
    data["nan"] = np.array([np.nan, 0, np.inf])
    modes = ["soft", "hard", "garrote", "garotte", "greater", "less", "firm", "sfot"]
    values = [0, 5, 20.5, np.inf, (5, 20), (5, 5), (0, np.inf), -1]
    yield from sweep("threshold", wavefilt.threshold, data=data, value=values, mode=modes, substitute=[0, 1.5])
    yield from sweep("firm", wavefilt.threshold_firm, data=data, value_low=[0, 5], value_high=[0, 5, 20, np.inf])


@area
def streaming(backend: str) -> Cases:
    """Files gone through within a limit of memory, in whole traces and in chunks."""
    import wavefilt

    def run(make: Callable[[], Written], max_memory: str, **options: Any) -> Any:
        source, layout = make()
        target = f"out{Path(source.partition('::')[0]).suffix}"
        report = wavefilt.denoise_file(source, target, max_memory=max_memory, backend=backend, **layout, **options)
        told = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
        return {key: told[key] for key in told if key not in ("seconds", "method")}, contents(target)

    def line(make: Callable[[], Written], options: str) -> Command:
        source, layout = make()
        return command(["denoise", source, *flags(layout), "--backend", backend, *options.split()])

    kinds = ("npy", "raw", "segy", "su", "hdf5", "zarr")
    small = {name: make for name, make in files().items() if name.startswith(kinds)}
    yield from sweep("whole", run, make=small, max_memory=["64MiB"], rule=["bayes"], scope=SCOPES)
    some = {name: small[name] for name in ("npy-f4", "zarr-shards")}
    yield from sweep("whole/rule", run, make=some, max_memory=["1GiB"], rule=RULES, transform=TRANSFORMS, level=[4])
    yield from sweep("command", line, make=small, options=["--max-memory 64MiB --json -v --rule universal"])
    single, double, many = traces((2, 700_000), "f4"), traces((2, 450_000)), traces((50, 20_000), "f4")
    for limit, make in {"37MiB": partial(npy, single), "42MiB": partial(npy, double)}.items():
        chunks = partial(run, make=make, max_memory=limit)
        yield from sweep(f"chunks/{limit}", chunks, rule=["universal", "minimax", "bayes", "fdr", 7.5, "sure"])
        yield from sweep(f"chunks/{limit}", chunks, rule=["universal", "bayes", 7.5], scope=["record"])
        yield from sweep(f"chunks/{limit}/mode", chunks, mode=MODES[1:4], spins=[1])
        yield from sweep(f"chunks/{limit}/sigma", chunks, sigma=["global", 7.0, ("window", 0, 900)], shrink=["firm"])
    longest = partial(npy, traces((1, 1_500_000), "f4"))
    yield from sweep("chunks/ebayes", run, make={"npy": longest}, max_memory=["60MiB"], rule=["ebayes"])
    records = {"raw": partial(raw, many), "segy": partial(segy, many), "su": partial(su, many),
               "hdf5": partial(hdf5, many), "hdf5-chunks": partial(hdf5, many, (10, 20_000)),
               "zarr": partial(zarr, many, (10, 5000))}  # fmt: skip
    yield from sweep("record", run, make=records, max_memory=["54MiB"], rule=["bayes"], scope=["record"])
    yield from sweep("limit", run, make={"npy": partial(npy, single)}, max_memory=["1MiB", "20MB", "16x", "0"])


def flags(layout: dict[str, Any]) -> list[str]:
    """The layout as options of the command."""
    values = {key: _label(value) for key, value in layout.items()}
    return [word for key, value in values.items() for word in (f"--{key}", value)]


@area
def online() -> Cases:
    """Samples pushed in uneven lengths, with gaps and starting anew."""
    import wavefilt

    def run(dtype: str, cuts: Any, channels: int | None = None, gap: int = 0, **options: Any) -> Any:
        x = traces((channels or 1, 2000), dtype)
        if gap:
            x[:, gap] = np.nan
        denoiser = wavefilt.OnlineDenoiser(channels=channels, dtype=dtype, **options)
        out: list[Any] = [denoiser.latency]
        for part in np.split(x if channels else x[0], np.cumsum(cuts), axis=-1):
            try:
                out.append(denoiser.push(part))
            except ValueError as error:
                out += [str(error), denoiser.flush()]
        return [*out, denoiser.flush(), denoiser.push(x[..., :90] if channels else x[0, :90]), denoiser.flush()]

    cuts = {"uneven": [1, 0, 17, 500, 3, 999], "whole": []}
    numbers = [7.5, [40.0, 20, 10]]
    rules = ["universal", "minimax", "bayes", *numbers, "sure"]
    three = partial(run, level=3)
    noise = ["running", 9.0, [9.0, 8, 7]]
    yield from sweep("rule", three, dtype=["f4", "f8"], cuts=cuts, rule=rules, window=[None, 512], noise=noise)
    yield from sweep("channels", three, dtype=["f8"], cuts=cuts, rule=rules, window=[512], noise=noise, channels=[1, 3])
    yield from sweep("mode", three, dtype=["f8"], cuts=cuts, rule=[7.5], mode=MODES, wavelet=["haar", "db8"])
    yield from sweep("shrink", three, dtype=["f8", "f4"], cuts=cuts, rule=[7.5, "bayes"], window=[400], shrink=SHRINKS)
    yield from sweep("gap", three, dtype=["f8"], cuts=cuts, rule=["bayes", 7.5], window=[400], gap=[5, 700, 1999])
    yield from sweep("level", run, dtype=["f8", "f2"], cuts=cuts, rule=[0.0, 7.5], level=[0, 1, 6], wavelet=["db4"])


@area
def dask(backend: str) -> Cases:
    """Dask arrays in chunks of whole and cut traces."""
    import dask
    import dask.array as da

    import wavefilt.dask

    def run(x: Any, chunks: Any, **options: Any) -> Any:
        lazy = wavefilt.dask.denoise(da.from_array(x, chunks=chunks), backend=backend, **options)
        with dask.config.set(scheduler="synchronous"):
            return lazy.chunks, str(lazy.dtype), lazy.compute()

    x = {"f8": traces((6, 3000)), "gaps": with_gaps()["runs-f8"]}
    kinds = {d: traces((6, 3000), d) for d in ("f4", "i2", "c8")}
    chunks = {"rows": (2, -1), "cut": (6, 700), "both": (4, 1000), "one": -1, "uneven": ((1, 5), -1)}
    yield from sweep("rule", run, x=x, chunks=chunks, rule=[*NAMED, 7.5], scope=SCOPES)
    yield from sweep("dtype", run, x=kinds, chunks=chunks, rule=["universal", "bayes", 7.5])
    yield from sweep("mode", run, x={"f4": kinds["f4"]}, chunks=chunks, mode=MODES, level=[2])
    double = partial(run, x["f8"])
    yield from sweep("sigma", double, chunks=chunks, sigma=["global", 7.0, ("window", 0, 200)], keep=[1])
    yield from sweep("transform", double, chunks=chunks, transform=TRANSFORMS, spins=[1, 2], level=[2])
    long = {"f8": traces(5000), "c8": traces(5000, "c8")}
    yield from sweep("1d", run, x=long, chunks=[1000, 4999, 64], rule=["bayes", 7.5])
    cube = partial(run, traces((40, 2, 50)), wavelet="haar")
    yield from sweep("axis", cube, chunks=[(20, 1, 50), (40, 2, 25)], axis=[0, 2], scope=SCOPES)


@area
def ecosystem(backend: str) -> Cases:
    """ObsPy, xarray and DASCore."""
    import dascore
    import xarray

    import wavefilt.dascore
    import wavefilt.obspy
    import wavefilt.xarray

    gaps = with_gaps()
    rows = [traces(900), traces(900, "f4"), traces(900, "i4"), gaps["masked-f8"][0], gaps["runs-f8"][2], traces(500),
            np.zeros(0, "i4")]  # fmt: skip

    def facts(found: Any) -> Any:
        if isinstance(found, tuple):
            return [facts(one) for one in found]
        if hasattr(found, "stats"):
            return str(found.stats), found.data
        if isinstance(found, xarray.Dataset):
            return dict(found.attrs), {name: facts(found[name]) for name in found}
        if isinstance(found, xarray.DataArray):
            return found.dims, found.name, dict(found.attrs), str(found.coords), found.values
        if isinstance(found, dascore.Patch):
            return found.dims, list(found.attrs.history), str(found.attrs.station), found.data
        return [facts(trace) for trace in found]

    def streamed(data: Any, **options: Any) -> Any:
        return facts(wavefilt.obspy.denoise(data, backend=backend, **options))

    def accessed(data: Any, **options: Any) -> Any:
        return facts(data.wavefilt.denoise(backend=backend, **options))

    streams = {"stream": stream(rows), "trace": stream(rows)[0], "empty": stream([]), "array": rows[0],
               "infinite": stream([np.array([1, np.inf, 2] * 20)])}  # fmt: skip
    yield from sweep("obspy", streamed, data=streams, rule=[*NAMED, 7.5], scope=SCOPES)
    yield from sweep("obspy/noise", streamed, data=streams, level=[None, 2], spins=[1, 2], return_noise=[True])
    yield from sweep("obspy/typo", streamed, data=streams, lvel=[2])
    for rule in NAMED:
        yield f"obspy/filter/{rule}", lambda rule=rule: facts(stream(rows[:3]).filter("wavelet", rule=rule))
        options = {"wavelet": "sym4", "rule": rule, "backend": backend, "df": 100.0}
        yield f"obspy/samples/{rule}", partial(wavefilt.obspy.filter_samples, rows[0], **options)
    x = {"time": ("time", np.arange(700) * 0.01), "depth": ("channel", np.arange(4.0))}
    kept = {"units": "m/s", "history": "read"}
    array = xarray.DataArray(traces((4, 700), "f4").T, x, ("time", "channel"), "velocity", kept)
    dataset = xarray.Dataset({"velocity": array, "again": 2 * array.astype("f8"), "names": ("channel", list("abcd"))})
    lazy, cut = array.chunk({"channel": 2}), array.chunk({"time": 350})
    arrays = {"array": array, "lazy": lazy, "cut": cut, "dataset": dataset}
    yield from sweep("xarray", accessed, data=arrays, dim=["time", "channel", "tme"], rule=["bayes", "sure", 7.5],
                     wavelet=["haar", "db4"], scope=SCOPES)  # fmt: skip
    when = np.datetime64("2026-11-20") + np.arange(700) * np.timedelta64(2, "ms")
    axes = {"distance": np.arange(5.0), "time": when}
    known = {"station": "S1", "history": ["read"]}
    patch = partial(accessed, dascore.Patch(traces((5, 700), "f4"), axes, ("distance", "time"), known), wavelet="haar")
    yield from sweep("dascore", patch, dim=["time", "distance", "tme"], rule=[*NAMED, 7.5])


@area
def quality() -> Cases:
    """Measures of how well it went."""
    from wavefilt import quality

    shape = 3, 200
    clean = {"real": traces(shape), "one": traces(200), "complex": traces(shape, "c16"), "flat": np.ones(shape)}
    other = {"noisy": traces(shape, seed=8), "f4": traces(shape, "f4", 9), "flat": np.ones(shape), "short": np.ones(9)}
    for name in ("snr", "rmse", "leakage"):
        call = getattr(quality, name)
        yield from ((f"{name}/{a}/{b}", partial(call, clean[a], other[b])) for a in clean for b in other)
    late = {f"{s}-{d}": np.roll(traces((2, 200), d), s, -1) for s in (0, 3, -40) for d in ("f8", "c8")}
    shift = partial(quality.arrival_shift, traces((2, 200)))
    yield from sweep("shift", shift, after=late, start=[0, 50, -1], stop=[52, 150, 300])


@area
def ske() -> Cases:
    """Estimates of kernels."""
    from wavefilt import ske

    def kernel(number: int) -> Any:
        counts = {name: i + number for i, name in enumerate(ske.INSTRUCTIONS)}
        work = ske.computation(counts), ske.communication(dict.fromkeys(ske.MEMORIES, number), number)
        return ske.Kernel(*work, barriers=number, registers=10 * number, shared=8 * number)

    for name in ("CAPABILITIES", "DEVICES", "INSTRUCTIONS", "MEMORIES"):
        yield name, partial(getattr, ske, name)
    yield from sweep("occupancy", ske.occupancy, device=[*ske.CAPABILITIES, "9.1"], threads=[0, 32, 100, 1024, 2048],
                     registers=[0, 40, 255], shared=[0, 5000, 60_000])  # fmt: skip
    two = {n: kernel(n) for n in (1, 5)}
    ways = ["product", "separate", "swapped"]
    yield from sweep("estimate", ske.estimate, kernel=two, device=[*ske.DEVICES, "G80"], threads=[32, 96, 256, 2000],
                     blocks=[1, 4096], hiding=ways, correction=[None, 1, 2, 3])  # fmt: skip
    yield from sweep("constraints", ske.constraints, kernel=two, device=ske.DEVICES, threads=[64, 4096], blocks=[1, 9])
    yield from sweep("optimise", ske.optimise, kernel=two, device=ske.DEVICES, grid=[(640, 480), (5, 3), (1000, 1)])
    yield from sweep("shapes", ske.shapes, kernel=two, device=ske.DEVICES, grid=[(640, 480), (5, 3)])
    shared = partial(ske.threads_by_shared, shared=1156)
    yield from sweep("shared", shared, device=ske.DEVICES, mode=["per_sm", "total"])
    lines = [f"estimate --samples {n} -w {w} --rows {r} --device h200 --json e.json"
             for n in ("4Ki", "1Mi", "64Mi") for w in ("haar", "db4", "db8", "coif3") for r in (1, 16)]  # fmt: skip
    lines += [f"tune --samples {n} --device h200 --no-measure --json t.json" for n in ("64Ki", "16Mi")]
    corrections = ("", "--correction 1", "--correction 2")
    lines += [f"reproduce --hiding {h} {c} --json r.json" for h in ways for c in corrections]
    lines += split("""
        estimate --samples 1Mi --block 128 --tile 2048 --level 3 --device h200 | estimate --samples 1Mi --device v1
        | occupancy --device 9.0 --threads 256 --registers 40 | occupancy --device G80 --threads 64 --json | tune
        | occupancy --device 8.6 --threads 2048 | estimate --samples 5x --device h200 | reproduce --plot r.png""")
    yield from ((f"command/{line}", partial(command, f"ske {line}")) for line in lines)


@area
def formats() -> Cases:
    """Every format of files: read, told about, denoised and written."""
    import wavefilt

    def read(make: Callable[[], Written]) -> Any:
        source, layout = make()
        recording = wavefilt.read(source, **layout)
        told = [getattr(recording, name) for name in ("format", "intervals", "source", "notes", "traces")]
        quiet = recording.denoise("db4", rule="sure", backend="pywavelets")
        quiet.write(target := f"out{Path(source.partition('::')[0]).suffix}")
        return told, contents(target), quiet.less(recording).traces, repr(quiet)

    def line(make: Callable[[], Written], verb: str, options: str) -> Command:
        source, layout = make()
        return command([verb, source, *flags(layout), *options.split()])

    yield from sweep("read", read, make=files())
    yield from sweep("info", partial(line, verb="info"), make=files(), options=["", "--json"])
    more = {"plain": "-v", "removed": "--json --rule sure --removed r.x"}
    more["section"] = "--two-dimensional -w haar --sidecar"
    yield from sweep("denoise", partial(line, verb="denoise"), make=files(), options=more)


def split(lines: str) -> list[str]:
    """What stands between bars."""
    return [" ".join(line.split()) for line in lines.split("|")]


def survey() -> None:
    """Files to run the command on."""
    for name in ("seismic.dat", "survey/a.dat", "survey/line 2/b.dat"):
        put(name, (SAMPLES / "seismic.dat").read_bytes())
    put("survey/bad.dat", b"")
    npy(traces((3, 400), "i2"))


@area
def cli(backend: str) -> Cases:
    """`wavefilt denoise`, its options."""
    options = [f"--rule {r}" for r in [*NAMED, "0.5", "2,1,0.5"]] + [f"--mode {mode} -w sym5 -l 3" for mode in MODES]
    options += [f"--rule {r} --shrink {s}" for r in ("bayes", "ebayes", "blockjs", "1.5") for s in SHRINKS[1:]]
    options += [f"--transform {t} --scope {s}" for t in TRANSFORMS for s in SCOPES]
    options += split("""
        --rule 2,1,0.5 -l 3 | --keep 2 | --spins 3 | --noise-window 0 0.1 | --sigma global | --sigma 0.9 | -l 0 | -l 99
        | --two-dimensional | --two-dimensional --rule fdr -w db3 --json | -o out.dat --removed r.dat -q | --sidecar
        | --json -v | --dry-run | --dry-run --json | --log log.jsonl | -j 1 --overwrite | --noise-window 0.5 9
        | --max-memory 1GiB | -o - | --wavelet gaus1""")
    for option in options:
        yield option, partial(command, f"denoise seismic.dat --backend {backend} {option}", prepare=survey)
    batches = split("""
        'survey/**/*.dat' --out-dir clean --log log.jsonl | 'survey/**/*.dat' x.npy --out-dir clean --fail-fast
        | survey/a.dat x.npy seismic.dat -v | survey/a.dat x.npy --json -q | 'survey/*/*.dat' --dry-run""")
    for line in batches:
        yield f"batch/{line}", partial(command, f"denoise --backend {backend} {line}", prepare=survey)

    def hundreds() -> None:
        for i in range(270):
            put(f"many/{i:03}.npy", b"")
            np.save(f"many/{i:03}.npy", traces((2, 100), seed=i))

    def many() -> Any:
        done = command(f"denoise 'many/*.npy' --backend {backend} --out-dir clean -j 2", prepare=hundreds)
        return done._replace(files=digest(json.dumps(described(done.files), sort_keys=True).encode()))

    yield "batch/270 files in 2 processes", many


@area
def commands() -> Cases:
    """The other commands, pipes, and a process of its own."""

    def process(*arguments: str) -> Command:
        survey()
        done = subprocess.run([sys.executable, "-m", "wavefilt.cli", *arguments], capture_output=True, check=False)
        return Command(done.returncode, done.stdout.decode(), done.stderr.decode(), contents("."))

    lines = split("""
        wavelets | wavelets db | wavelets sym --json | wavelets dv | --version | backends --json | info | | deniose
        | denoise x.npy --plot p.png -q | denoise x.npy --scheduler here
        | denoise x.npy --max-memory 1GiB --plot p.png""")
    yield from ((f"line/{line}", partial(command, line, prepare=survey)) for line in lines)
    data = (SAMPLES / "seismic.dat").read_bytes()
    for line in ("denoise - -q", "denoise - -o out.dat --sidecar", "denoise - --json", "denoise - -", "info -"):
        yield f"pipe/{line}", partial(command, line, data)
    for words in (["--version"], ["denoise", "seismic.dat"], ["info", "x.npy"], ["denoise", "nowhere.dat"]):
        yield f"process/{' '.join(words)}", partial(process, *words)


@area
def auto() -> Cases:
    """What `backend="auto"` takes in a process that has loaded nothing; threads; the backends by name."""
    import wavefilt

    def chosen(**options: Any) -> str:
        return wavefilt.backends.choose("auto", **options).name

    def threads(count: Any) -> Any:
        try:
            wavefilt.set_num_threads(count)
            return wavefilt.get_num_threads()
        finally:
            wavefilt.set_num_threads(None)

    yield "names", wavefilt.backends.names
    yield "on_gpu", lambda: [wavefilt.backends.on_gpu(np.ones(3)), wavefilt.backends.home(np.ones(3))]
    yield from sweep("threads", threads, count=[None, 1, 3, 0, 2.0, True])
    small = {d: traces(dtype=d) for d in ("f4", "f8", "c8", "i2")}
    yield from sweep("denoise", wavefilt.denoise, x=small, transform=TRANSFORMS, rule=["bayes", "sure"])
    yield from sweep("section", partial(wavefilt.denoise, wavelet="haar", axes=(0, 1)), x=small)
    yield from sweep("wavedec", partial(wavefilt.wavedec, wavelet="db4"), data=small)
    shapes = [(1, 100), (24, 1024), (1, 40_000_000), (4096, 16384)]
    yield from sweep("choose", chosen, dtype=["float32", "complex64"], shape=shapes, taps=[2, 16], modwt=[0, 3])


@area
def plot() -> Cases:
    """Figures: the same data give the same file, but for svg, in which matplotlib draws names at random."""
    import wavefilt
    from wavefilt import plot

    def draw(make: Callable[[], Written], kind: str, **options: Any) -> Any:
        source, layout = make()
        before = wavefilt.read(source, **layout)
        after = before.denoise(backend="pywavelets", **options)
        plot.plot_denoising(before, after, f"p.{kind}", dpi=60)
        return contents(f"p.{kind}") if kind != "svg" else None

    def labels(make: Callable[[], Written]) -> Any:
        before = wavefilt.read(make()[0])
        return [(axes.get_label(), axes.get_title()) for axes in plot.draw(before, before.denoise()).axes]

    some = {name: files()[name] for name in ("ascii-column", "npy-c8", "ascii-gaps")}
    yield from sweep("draw", draw, make=some, kind=["png"], rule=["bayes", 7.5])
    yield from sweep("kind", draw, make={"npy": files()["npy-f4"]}, kind=["pdf", "svg", "gif"])
    yield from sweep("section", draw, make=some, kind=["png"], two_dimensional=[True], wavelet=["haar"])
    yield from sweep("labels", labels, make={name: files()[name] for name in ("npy-f4", "npz")})
    yield from sweep("type", plot.file_type, path=["a.png", "b/c.PDF", "d", "e.jpg"])


@area
def error() -> Cases:
    """What is refused, and in which words."""
    import wavefilt

    x, run = traces((2, 300)), partial(wavefilt.denoise, backend="pywavelets")
    bad = x.copy()
    bad[1, 7] = np.inf
    wrong: list[dict[str, Any]] = [
        {"rule": "sur"}, {"rule": -1}, {"rule": [1, 2]}, {"rule": np.nan}, {"rule": None}, {"wavelet": "db99"},
        {"wavelet": "gaus1"}, {"wavelet": 3}, {"mode": "mirror"}, {"shrink": "sft"}, {"shrink": "median"},
        {"sigma": "levl"}, {"sigma": -1}, {"sigma": ("window", 5, 6)}, {"sigma": ("window", 0, 999)},
        {"sigma": ("win", 0, 99)}, {"scope": "all"}, {"keep": -1}, {"keep": 1.5}, {"transform": "dtw"}, {"spins": 0},
        {"transform": "modwt", "spins": 2}, {"level": -1}, {"level": 9}, {"level": "2"}, {"level": True}, {"axis": 5},
        {"axis": 0}, {"axes": (0, 1), "axis": 0}, {"axes": (0, 1), "spins": 2}, {"axes": (0, 1), "rule": "blockjs"},
        {"lvel": 3}, {"devices": "all"}, {"rule": "blockjs", "shrink": "soft"},
    ]  # fmt: skip
    yield from ((f"denoise/{option}", partial(run, x, **option)) for option in wrong)
    yield from sweep("backend", partial(wavefilt.denoise, x), backend=["cuda", "gpu", "Numba"])
    for name in ("wavedec", "dwt", "modwt", "swt", "wavedec2"):
        call = partial(getattr(wavefilt, name), backend="pywavelets")
        inputs = {"wavelet": (x, "db99"), "nothing": (x[:, :0], "db2"), "text": ("x", "db2"), "scalar": (3.0, "db2")}
        yield from ((f"{name}/{what}", partial(call, *arguments)) for what, arguments in inputs.items())
        wrong = [{"mode": "mirror"}, {"level": -1}, {"level": 99}, {"axis": 7}, {"axes": (0, 0)}, {"level": 1.5}]
        yield from ((f"{name}/{option}", partial(call, x, "db2", **option)) for option in wrong)
    for name in ("waverec", "imodwt", "iswt", "waverec2"):
        call = partial(getattr(wavefilt, name), wavelet="db2", backend="pywavelets")
        given = {"empty": [], "none": [None, None], "shapes": [x, x[:, :9]], "pair": [x, (x, x)], "array": 3}
        yield from ((f"{name}/{what}", partial(call, coefficients)) for what, coefficients in given.items())
    yield "idwt/none", partial(wavefilt.idwt, None, None, "db2")
    yield "idwt/shapes", partial(wavefilt.idwt, x, x[:, :9], "db2")
    lines = split("""
        --rule sur | -w db99 | --mode mirror | -l five | --rule -3 | --wavlet db4 | -o x --out-dir y | -q -v | y*.npy
        | -o a/b.npy | --plot x.docx | --columns a-b | --format segd | --dt 1 | -l 99 | --rule 1,2,3 -l 2 | -o x.npy
        | --max-memory 3q | --noise-window 0 1 | --fast-math | --devices 0 | nowhere.npy | --axis 9 | --component y
        | --backend gpu | --backend cuda | --spins 2 --two-dimensional | --format raw --dtype f4
        | --sigma 3 --noise-window 0 1""")
    yield from ((f"line/{line}", partial(command, f"denoise x.npy {line}", prepare=survey)) for line in lines)
    for name, data in damaged().items():
        yield f"read/{name}", lambda data=data: wavefilt.read(put("bad.x", data)[0])
        yield f"file/{name}", partial(command, "denoise bad.x", prepare=partial(put, "bad.x", data))
    inputs = {"infinite": bad, "huge": 1e305 * x, "squares": 1e200 * x, "text": np.array(["a"]), "none": None,
              "object": np.array([None]), "dates": np.array(["2026-01-01"], "M8[D]"), "word": "x"}  # fmt: skip
    yield from sweep("input", wavefilt.denoise, x=inputs, rule=["bayes", "universal"], transform=TRANSFORMS,
                     axes=[None, (0, 1)], backend=["pywavelets", "numba"])  # fmt: skip


def damaged() -> dict[str, bytes | str]:
    """Files that cannot be read."""
    seg2, stream = (SAMPLES / "seismic.dat").read_bytes(), io.BytesIO()
    np.save(stream, traces())
    found: dict[str, bytes | str] = {f"seg2-{n}": seg2[:n] for n in (3, 20, 100, 5000, -100)}
    found |= {f"npy-{n}": stream.getvalue()[:n] for n in (8, 60, 500)} | {"npy-long": stream.getvalue() + b"x"}
    return found | {
        "empty": b"", "zeros": bytes(4096), "random": np.random.default_rng(5).bytes(3001),
        "gzip": b"\x1f\x8b" + bytes(30), "pickle": b"\x80\x04\x95" + bytes(30),
        "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(600), "wav": b"RIFF\x10\0\0\0WAVEfmt " + bytes(4),
        "rsf": 'n1=100 d1=0.004\nin="x.rsf@" data_format="native_float"\n', "sac": b"\0" * 304 + b"\6",
        "mseed": b"000001D " + bytes(56), "gse2": "WID2 1990/01/01\nDAT2\n1\n2\n", "lengths": "1 2\n3 4\n5\n",
        "words": "a b\n1 2\n3 x\n", "one-row": "1 2 3\n", "time": "0 1\n1 2\n3 4\n4 5\n",
        "commas": "1,5\n2,5\n3,5\n", "comments": "# a\n# b\n",
    }  # fmt: skip


@area
def help() -> Cases:
    """The help of every command."""
    lines = ["", "denoise", "info", "wavelets", "backends", "bench", "ske"]
    lines += [f"bench {n}" for n in split("blocks | cpu | cuda | laplace1d | laplace2d | quality | report | scaling")]
    lines += [f"ske {n}" for n in split("calibrate | estimate | occupancy | reproduce | tune | validate")]
    yield from ((line or "wavefilt", partial(command, f"{line} --help")) for line in lines)


PUBLIC = {
    "quality": "arrival_shift leakage rmse snr", "obspy": "denoise filter_samples", "dask": "denoise",
    "xarray": "DataArrayAccessor DatasetAccessor", "dascore": "WavefiltNameSpace", "streaming": "Report denoise_file",
    "errors": "BackendUnavailable FormatError", "online": "OnlineDenoiser", "recording": "Recording",
    "threads": "get_num_threads set_num_threads", "ske": "", "plot": "", "io": "", "backends": "",
    "vocabulary": "MODES RULES SHRINKS ESTIMATORS SIGMAS SCOPES TRANSFORMS HIDINGS Mode Rule Shrink Estimator Sigma "
                  "Window Scope Transform Hiding check",
}  # fmt: skip
"""Public modules, with the names that are for users in those without an `__all__`."""


@area
def names() -> Cases:
    """Public names, signatures and methods."""

    def told(module: Any, name: str) -> Any:
        value = getattr(module, name)
        if isinstance(value, type):
            members = {key: _signature(member) for key, member in inspect.getmembers(value) if not key.startswith("_")}
            return {"class": [base.__name__ for base in value.__mro__], "call": _signature(value), "members": members}
        if inspect.isroutine(value):
            return _signature(value)
        return sorted(value) if isinstance(value, dict) else str(value) if name[0].isupper() else type(value).__name__

    for path in ("", *PUBLIC):
        module = importlib.import_module(f"wavefilt.{path}".rstrip("."))
        if not (listed := PUBLIC.get(path, "").split()):
            listed = sorted(module.__all__)
            yield f"{path or 'wavefilt'}/__all__", partial(list, listed)
        for name in listed:
            yield f"{path or 'wavefilt'}/{name}", partial(told, module, name)


def _signature(value: Any) -> str:
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return type(value).__name__


if __name__ == "__main__":
    main()
