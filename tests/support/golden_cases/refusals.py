"""Arguments, commands and files that are refused, and the messages."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import numpy as np

from .commands import command, split, survey
from .files import put
from .inputs import SAMPLES, TRANSFORMS, traces
from .running import Cases, area, sweep

WRONG: dict[str, list[Any]] = {
    "rule": ["sur", -1, [1, 2], np.nan, None],
    "wavelet": ["db99", "gaus1", 3],
    "mode": ["mirror"],
    "shrink": ["sft", "median"],
    "sigma": ["levl", -1, ("window", 5, 6), ("window", 0, 999), ("win", 0, 99)],
    "scope": ["all"],
    "keep": [-1, 1.5],
    "transform": ["dtw"],
    "spins": [0],
    "level": [-1, 9, "2", True],
    "detrend": ["parabola"],
    "blend": [-0.5, 1.0, True],
    "axis": [5, 0],
    "lvel": [3],
    "devices": ["all"],
}
"""Values that `denoise` refuses."""
TOGETHER: list[dict[str, Any]] = [
    {"transform": "modwt", "spins": 2},
    {"axes": (0, 1), "axis": 0},
    {"axes": (0, 1), "spins": 2},
    {"axes": (0, 1), "rule": "blockjs"},
    {"rule": "blockjs", "shrink": "soft"},
    {"axes": (0, 1), "rule": "js"},
    {"axes": (0, 1), "detrend": "mean"},
    {"rule": "js", "shrink": "soft"},
]
"""Options that it refuses together."""


@area
def error() -> Cases:
    """What is refused, and in which words."""
    import wavefilt

    x, run = traces((2, 300)), partial(wavefilt.denoise, backend="pywavelets")
    bad = x.copy()
    bad[1, 7] = np.inf
    wrong = [{name: value} for name, values in WRONG.items() for value in values] + TOGETHER
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
    inputs = {"infinite": bad, "huge": 1e305 * x, "squares": 1e200 * x, "text": np.array(["a"]), "none": None}
    inputs |= {"object": np.array([None]), "dates": np.array(["2026-01-01"], "M8[D]"), "word": "x"}
    refused = partial(sweep, "input", wavefilt.denoise, x=inputs, rule=["bayes", "universal"])
    yield from refused(transform=TRANSFORMS, axes=[None, (0, 1)], backend=["pywavelets", "numba"])


def damaged() -> dict[str, bytes | str]:
    """Files that cannot be read."""
    seg2, stream = (SAMPLES / "seismic.dat").read_bytes(), io.BytesIO()
    np.save(stream, traces())
    found: dict[str, bytes | str] = {f"seg2-{n}": seg2[:n] for n in (3, 20, 100, 5000, -100)}
    found |= {f"npy-{n}": stream.getvalue()[:n] for n in (8, 60, 500)} | {"npy-long": stream.getvalue() + b"x"}
    return found | {
        "empty": b"",
        "zeros": bytes(4096),
        "random": np.random.default_rng(5).bytes(3001),
        "gzip": b"\x1f\x8b" + bytes(30),
        "pickle": b"\x80\x04\x95" + bytes(30),
        "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(600),
        "wav": b"RIFF\x10\0\0\0WAVEfmt " + bytes(4),
        "rsf": 'n1=100 d1=0.004\nin="x.rsf@" data_format="native_float"\n',
        "sac": b"\0" * 304 + b"\6",
        "mseed": b"000001D " + bytes(56),
        "gse2": "WID2 1990/01/01\nDAT2\n1\n2\n",
        "lengths": "1 2\n3 4\n5\n",
        "words": "a b\n1 2\n3 x\n",
        "one-row": "1 2 3\n",
        "time": "0 1\n1 2\n3 4\n4 5\n",
        "commas": "1,5\n2,5\n3,5\n",
        "comments": "# a\n# b\n",
    }
