"""Samples that do not come as one array: large files, real-time streams, Dask, and arrays of other libraries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .commands import command, flags
from .files import Written, contents, files, hdf5, npy, raw, segy, stream, su, zarr
from .inputs import MODES, NAMED, RESIDUAL, RULES, SCOPES, SHRINKS, TRANSFORMS, traces, with_gaps
from .running import Cases, Command, area, sweep


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
        yield from sweep(f"chunks/{limit}", chunks, rule=["js"], detrend=["mean", "line"], blend=[0.0, 0.2])
        yield from sweep(f"chunks/{limit}/mode", chunks, mode=MODES[1:4], spins=[1])
        yield from sweep(f"chunks/{limit}/sigma", chunks, sigma=["global", 7.0, ("window", 0, 900)], shrink=["firm"])
    longest = partial(npy, traces((1, 1_500_000), "f4"))
    yield from sweep("chunks/ebayes", run, make={"npy": longest}, max_memory=["60MiB"], rule=["ebayes"])
    makers = {"raw": raw, "segy": segy, "su": su, "hdf5": hdf5}
    records = {name: partial(make, many) for name, make in makers.items()}
    records |= {"hdf5-chunks": partial(hdf5, many, (10, 20_000)), "zarr": partial(zarr, many, (10, 5000))}
    yield from sweep("record", run, make=records, max_memory=["54MiB"], rule=["bayes"], scope=["record"])
    yield from sweep("limit", run, make={"npy": partial(npy, single)}, max_memory=["1MiB", "20MB", "16x", "0"])


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
    rows = [traces(900, dtype) for dtype in ("f8", "f4", "i4")]
    rows += [gaps["masked-f8"][0], gaps["runs-f8"][2], traces(500), np.zeros(0, "i4")]

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

    streams = {"stream": stream(rows), "trace": stream(rows)[0], "empty": stream([]), "array": rows[0]}
    streams["infinite"] = stream([np.array([1, np.inf, 2] * 20)])
    yield from sweep("obspy", streamed, data=streams, rule=[*NAMED, 7.5], scope=SCOPES)
    yield from sweep("obspy/noise", streamed, data=streams, level=[None, 2], spins=[1, 2], **{RESIDUAL: [True]})
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
    labelled = partial(sweep, "xarray", accessed, data=arrays, dim=["time", "channel", "tme"])
    yield from labelled(rule=["bayes", "sure", 7.5], wavelet=["haar", "db4"], scope=SCOPES)
    when = np.datetime64("2026-11-20") + np.arange(700) * np.timedelta64(2, "ms")
    axes = {"distance": np.arange(5.0), "time": when}
    known = {"station": "S1", "history": ["read"]}
    patch = partial(accessed, dascore.Patch(traces((5, 700), "f4"), axes, ("distance", "time"), known), wavelet="haar")
    yield from sweep("dascore", patch, dim=["time", "distance", "tme"], rule=[*NAMED, 7.5])
