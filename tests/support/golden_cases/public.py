"""Public names with their signatures, and what `backend="auto"` chooses."""

from __future__ import annotations

import importlib
import inspect
from functools import partial
from typing import Any

import numpy as np

from .inputs import TRANSFORMS, traces
from .running import Cases, area, sweep


@area
def auto() -> Cases:
    """What `backend="auto"` takes in a process that has loaded nothing; threads; the backends by name.

    It also depends on which kernels the checkout has compiled.
    """
    import pywt

    import wavefilt

    def chosen(taps: int, modwt: int, **options: Any) -> str:
        from wavefilt.transforms import TRANSFORMS, Analysis

        transform = TRANSFORMS["modwt" if modwt else "dwt"]
        analysis = Analysis(transform, (pywt.Wavelet(f"db{taps // 2}"),), ("symmetric",), modwt or 1)
        return wavefilt.backends.choose("auto", analysis=analysis, **options).name

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


TYPES = "Mode Rule Shrink Estimator Sigma Window Scope Transform Hiding"
PUBLIC = {
    "quality": "arrival_shift rmse snr",
    "obspy": "denoise filter_samples",
    "dask": "denoise",
    "xarray": "DataArrayAccessor DatasetAccessor",
    "dascore": "WavefiltNameSpace",
    "files": "Report denoise_file",
    "errors": "BackendUnavailable FormatError",
    "online": "OnlineDenoiser",
    "recording": "Recording",
    "threads": "get_num_threads set_num_threads",
    "ske": "",
    "plot": "",
    "io": "",
    "backends": "",
    "vocabulary": f"MODES RULES SHRINKS ESTIMATORS SIGMAS SCOPES TRANSFORMS HIDINGS {TYPES} check",
}
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
        table = isinstance(value, dict) or name == "FORMATS"
        return sorted(value) if table else str(value) if name[0].isupper() else type(value).__name__

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
