"""Public calls: rules and transforms on the CPU and on the GPU, gathers, sections, files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import wavefilt

DB8: dict[str, Any] = {"wavelet": "db8", "level": 5}
CALLS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    **{rule: ((1 << 20,), {"rule": rule}) for rule in ("universal", "bayes", "sure", "js", "ebayes")},
    "short": ((1 << 14,), {}),
    "long": ((1 << 24,), {}),
    "24 traces": ((24, 1024), {}),
    "4096 traces": ((4096, 4096), {}),
    "modwt": ((1 << 20,), {"transform": "modwt"}),
    "section, dwt": ((1024, 4096), {"axes": (0, 1)}),
    "section, modwt": ((1024, 4096), {"axes": (0, 1), "transform": "modwt", "level": 3}),
    "section, dtcwt": ((1024, 4096), {"axes": (0, 1), "transform": "dtcwt", "level": 4}),
    "section, fk": ((1024, 4096), {"axes": (0, 1), "transform": "fk"}),
}
"""Shape and options of calls of `wavefilt.denoise`."""


def noise(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape, dtype="float32")


class Denoise:
    """Denoising by each backend, of NumPy's arrays and of arrays on the GPU; the first call, which compiles, before."""

    param_names = ("call", "where")
    params = (list(CALLS), ["numba", "cuda", "cupy"])
    timeout = 300

    def setup(self, call: str, where: str) -> None:
        shape, options = CALLS[call]
        self.options = options | {"backend": "cuda" if where == "cupy" else where}
        if where != "numba" and isinstance(wavefilt.backends.available()["cuda"], wavefilt.BackendUnavailable):
            raise NotImplementedError("no GPU")  # asv skips the benchmark
        self.x = noise(*shape)
        if where == "cupy":
            try:
                import cupy
            except ImportError as error:
                raise NotImplementedError("CuPy is not installed") from error
            self.x = cupy.asarray(self.x)
        wavefilt.denoise(self.x, **self.options)

    def time_denoise(self, call: str, where: str) -> None:
        wavefilt.denoise(self.x, **self.options)

    peakmem_denoise = time_denoise


class Transforms:
    """Decomposition and reconstruction of one trace, or of one section."""

    param_names = ("transform",)
    params = (["wavedec", "waverec", "wavedec2", "waverec2", "modwt", "imodwt", "dtcwt"],)

    def setup(self, transform: str) -> None:
        x = noise(1 << 20)
        section = x.reshape(64, -1)
        arguments: dict[str, tuple[Any, dict[str, Any]]] = {
            "wavedec": (x, DB8),
            "waverec": (wavefilt.wavedec(x, **DB8), {"wavelet": "db8"}),
            "wavedec2": (section, DB8 | {"level": 3}),
            "waverec2": (wavefilt.wavedec2(section, "db8", level=3), {"wavelet": "db8"}),
            "modwt": (x, DB8),
            "imodwt": (wavefilt.modwt(x, **DB8), {"wavelet": "db8"}),
            "dtcwt": (x, {}),
        }
        self.argument, self.options = arguments[transform]

    def time_transform(self, transform: str) -> None:
        getattr(wavefilt, transform)(self.argument, **self.options)

    peakmem_transform = time_transform


class Files:
    """A file of traces, read whole, and denoised in chunks to another file."""

    param_names = ("traces",)
    params = ([64, 16384],)

    def setup(self, traces: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.out = (str(Path(self.folder.name) / name) for name in ("in.npy", "out.npy"))
        np.save(self.path, noise(traces, 4096))

    def teardown(self, traces: int) -> None:
        self.folder.cleanup()

    def time_read(self, traces: int) -> None:
        wavefilt.read(self.path)

    def time_denoise_file(self, traces: int) -> None:
        wavefilt.denoise_file(self.path, self.out, max_memory="64MiB", overwrite=True)

    peakmem_denoise_file = time_denoise_file
