"""SAC: samples are rewritten in place; of the header only the extremes and the mean, where they are given, change.

Layout after the manual of Seismic Analysis Code, "SAC data file format" (IRIS).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io.arrays.contiguous import ContiguousFile, Places, Samples
from wavefilt.io.detection import Probe, sac_order
from wavefilt.io.file_source import opened
from wavefilt.io.layout import Layout

HEADER = 632
UNDEFINED = -12345.0
MINIMUM, MAXIMUM, MEAN = 4, 8, 224
"""Where the header says what the samples are like."""
EVENLY, TYPES = 420, {1: "a time series", 4: "x and y", -12345: "of no type"}
"""Where it says that samples are evenly spaced, and the types of file that hold one component of samples."""
BLOCK = 1 << 18
"""Samples whose extremes are found at a time."""


class SacFile(ContiguousFile):
    """A `wavefilt.io.sources.Source`. Raises FormatError for a file that is damaged or not of the format."""

    def __init__(self, file: str | BinaryIO, layout: Layout, format: str) -> None:
        layout.only("sac", "dt")
        with opened(file) as stream:
            probe = Probe(stream)
            order = sac_order(probe)
            if order is None:
                raise FormatError(f"SAC: {probe.size} bytes are not the {HEADER} of the header and the samples it says")
            (delta,), (count,) = probe.unpack(order + "f", 0), probe.unpack(order + "i", 316)
            codes, start = _codes(probe), _start(probe, order)
            (type,), (evenly,) = probe.unpack(order + "i", 340), probe.unpack(order + "i", EVENLY)
        if count == 0:
            raise FormatError("SAC: no samples")
        if type not in TYPES or not evenly:
            raise FormatError("SAC: a spectrum, or samples that are not evenly spaced")
        # the shortest number that is the same float: 0.01 instead of 0.009999999776
        interval = float(str(np.float32(delta))) if delta > 0 else layout.dt
        places = Places(HEADER, np.dtype(order + "f4"), (1,), (count,), count, 1)
        super().__init__(file, "sac", places, interval)
        if start is not None and any(codes):
            self.ids, self.starts = (".".join(codes),), (start,)

    @contextmanager
    def rewritten(self, file: BinaryIO) -> Iterator[Samples]:
        with super().rewritten(file) as samples:
            yield samples
        self._describe(file, samples)

    def _describe(self, file: BinaryIO, samples: Samples) -> None:
        """Correct the extremes and the mean."""
        low, high, total, count = np.inf, -np.inf, 0.0, self.shape[1]
        for at in range(0, count, BLOCK):
            block = np.empty((1, min(BLOCK, count - at)), np.float32)
            samples.read(slice(0, 1), at, block)
            low, high = min(low, float(block.min())), max(high, float(block.max()))
            total += block.sum(dtype=np.float64)
        for at, value in ((MINIMUM, low), (MAXIMUM, high), (MEAN, total / count)):
            form = self._places.dtype.byteorder.replace("=", "<" if np.little_endian else ">") + "f"
            file.seek(at)
            if struct.unpack(form, file.read(4)) != (UNDEFINED,):
                file.seek(at)
                file.write(struct.pack(form, value))


def _codes(probe: Probe) -> list[str]:
    """Network, station, location and channel."""
    texts = [probe.bytes(at, 8).split(b"\0")[0].decode("latin-1").strip() for at in (608, 440, 464, 600)]
    return ["" if text == "-12345" else text for text in texts]


def _start(probe: Probe, order: str) -> np.datetime64 | None:
    """The time of the first sample, None where the reference time is not defined."""
    year, day, *clock = probe.unpack(order + "6i", 280)
    (begin,) = probe.unpack(order + "f", 20)
    hour, minute, second, millisecond = clock
    if not (0 < year < 3000 and 0 < day < 367 and min(clock) >= 0 and math.isfinite(begin)):
        return None
    milliseconds = millisecond + 1000 * (second + 60 * (minute + 60 * (hour + 24 * (day - 1))))
    microseconds = 0 if begin == UNDEFINED else round(begin * 1e6)
    reference = np.datetime64(f"{year:04}-01-01", "ns") + np.timedelta64(milliseconds, "ms")
    return reference + np.timedelta64(microseconds, "us")


open_source = SacFile
