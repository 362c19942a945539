"""A whole denoise of sections on the device, as one sequence of launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavefilt.backends.cuda.dwt.denoiser import Denoiser
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.statistics.details import Selection
from wavefilt.method import Method

from .plan import BANDS, Band, SectionsPlan, SectionsStatistics


class Bands:
    """`Found` of all bands of a plan, a search for each level, or for each band where all sections share it."""

    def __init__(self, plan: SectionsPlan, groups: int, pooled: bool) -> None:
        s = plan.shape
        together = 1 if pooled and s.rows > 1 else BANDS
        segments = s.level * groups
        self.middle, self.energy = cuda.device_array(2 * segments, s.dtype), cuda.device_array(segments, np.float64)
        self.state = cuda.device_array(1, np.int64)  # no search is cut short
        counts = [rows * columns * s.rows / groups for rows, columns in s.sizes[1:] for _ in range(BANDS)]
        self.amounts = cuda.to_device(np.array(counts))
        self._of = []
        for first in range(0, s.level, together):
            place = slice(first * groups, (first + together) * groups)
            own = {"middle": self.middle[2 * place.start : 2 * place.stop], "energy": self.energy[place]}

            def reserve(name: str, size: int, dtype: Any, own: Any = own) -> Any:
                found = own.get(name.split()[0])
                return cuda.device_array(size, dtype) if found is None else found

            bands: Any = [Band(plan, first // BANDS + 1, first % BANDS, together)]
            self._of.append(Selection(bands, 1, together == 1 and pooled, reserve))

    def run(self, every: bool, median: bool, energy: bool, stream: Any) -> None:
        """Launch what fills `energy` and `middle`, this of ``every`` band or of the finest alone."""
        for i, one in enumerate(self._of):
            wanted = median and (every or i == 0)
            if wanted or energy:
                one.run(wanted, energy, stream)


class SectionsDenoiser(Denoiser):
    """Of a decimated transform of both axes."""

    plan: SectionsPlan

    def __init__(self, plan: SectionsPlan, method: Method, report: bool) -> None:
        super().__init__(plan, method, report)
        self._alone = self._depth == 1  # the finest diagonal band tells the noise of all
        if self._alone:
            finest: Any = [Band(plan, 1, 0)]
            self.found = self._finest = Selection(finest, 1, self._pooled)
            self.quick = True
        else:
            self.found = self._bands = Bands(plan, self._groups, self._pooled)
        self._events = [cuda.event() for _ in range(2)]

    def _measure(self, stream: Any) -> None:
        if self._alone:
            self._finest.run(self._median, self._energy, stream, self.quick)
        else:
            self._bands.run(self._sigma_of == "level", self._median, self._energy, stream)

    def run(self, x: Any, y: Any, x_aligned: bool, y_aligned: bool, stream: Any) -> None:
        plan = self.plan
        measured = self._median or self._energy
        beside = measured and self._alone and plan.shape.depth > 1 and not SIMULATED
        before, after = self._events

        def fork() -> None:
            """Measure the finest band while the forward transform goes on."""
            side = plan.side_stream()
            before.record(stream)
            before.wait(side)
            self._measure(side)
            after.record(side)

        plan.forward(x, stream, fork if beside else None)
        if beside:
            after.wait(stream)
        elif measured:
            self._measure(stream)
        function, bands = self._function, None
        if self.replayable:
            self._choose(stream, self._finest.big * self._groups if self._alone and self._median else 0)
        else:
            shrinkage = self._choose_on_host(SectionsStatistics([plan], self._pooled, stream, None), stream)
            if not isinstance(function, str):
                bands = plan.shrunk(shrinkage, stream)
        thresholds = self._thresholds if bands is None else None
        word = str(function) if bands is None else "keep"
        plan.inverse(y, y_aligned, word, thresholds, stream, self._flags, bands)
        plan.leave(x, y, self._live, stream)
