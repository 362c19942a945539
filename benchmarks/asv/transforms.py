"""Wavelet transforms: decomposition and reconstruction."""

from __future__ import annotations

import numpy as np

import wavefilt


class Transforms:
    """One trace, or one section for a two-dimensional transform."""

    param_names = ("samples",)
    params = ([1 << 14, 1 << 20],)

    def setup(self, samples: int) -> None:
        self.x = np.random.default_rng(7).standard_normal(samples, dtype="float32")
        self.section = self.x.reshape(64, -1)
        self.dwt = wavefilt.wavedec(self.x, "db8", level=5)
        self.dwt2 = wavefilt.wavedec2(self.section, "db4", level=3)
        self.modwt = wavefilt.modwt(self.x, "db8", level=5)
        self.dtcwt = wavefilt.dtcwt(self.x)

    def time_wavedec(self, samples: int) -> None:
        wavefilt.wavedec(self.x, "db8", level=5)

    def time_waverec(self, samples: int) -> None:
        wavefilt.waverec(self.dwt, "db8")

    def time_wavedec2(self, samples: int) -> None:
        wavefilt.wavedec2(self.section, "db4", level=3)

    def time_waverec2(self, samples: int) -> None:
        wavefilt.waverec2(self.dwt2, "db4")

    def time_modwt(self, samples: int) -> None:
        wavefilt.modwt(self.x, "db8", level=5)

    def time_imodwt(self, samples: int) -> None:
        wavefilt.imodwt(self.modwt, "db8")

    def time_dtcwt(self, samples: int) -> None:
        wavefilt.dtcwt(self.x)

    peakmem_wavedec = time_wavedec
