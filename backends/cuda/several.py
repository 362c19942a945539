"""Several GPUs of one host as one backend: whole rows are dealt to the GPUs, at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeVar

from wavefilt.backends.cuda.backend import Cuda
from wavefilt.backends.cuda.denoiser import Denoised, joined
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import Samples
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.runtime.transfer import Ring
from wavefilt.options import Options

Devices = Literal["all"] | Sequence[int]
Result = TypeVar("Result")

LEAST = 1 << 22
"""Samples below which one GPU is faster than several, which take time to start and to wait for."""
STAGING = 8
"""Threads of all GPUs together that copy host memory: more would only share its bandwidth."""


class Member:
    """One GPU, the thread that works for it, and its backend."""

    def __init__(self, number: int, make: Callable[[], Cuda]) -> None:
        self.number = number
        self._pool = ThreadPoolExecutor(1, f"wavefilt-gpu-{number}", partial(cuda.select_device, number))
        self.backend = self.submit(make).result()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Begin ``work()`` in the GPU's thread; the simulator, which runs one kernel at a time, does it at once."""
        if not SIMULATED:
            return self._pool.submit(work)
        done = Future[Result]()
        done.set_result(work())
        return done


class Several(Cuda):
    """`Cuda` on several GPUs of this host: ``devices="all"``, or their numbers; the others options are as there.

    Rows in host memory are divided among the GPUs. A record or few long rows are denoised by the first GPU. Arrays on a
    GPU stay on it. Single transforms run on the first GPU.

    Raises ValueError for a number of no GPU, and what `Cuda` raises.
    """

    def __init__(self, devices: Devices = "all", **options: Any) -> None:
        super().__init__(**options)
        numbers = checked(devices, len(cuda.gpus))
        self._members = [Member(number, lambda: Cuda(**options)) for number in numbers]
        for member in self._members:
            member.backend.ring = Ring(max(STAGING // len(numbers), 2))

    def describe(self) -> str:
        return "; ".join(member.submit(member.backend.describe).result() for member in self._members)

    def clear(self) -> None:
        super().clear()
        for member in self._members:
            member.submit(member.backend.clear).result()

    def check(self) -> None:
        failed = None
        for check in (super().check, *(member.backend.check for member in self._members)):
            try:
                check()
            except ValueError as error:  # the others are waited for, too
                failed = error
        if failed is not None:
            raise failed

    def denoise(
        self,
        x: Samples,
        options: Options,
        level: int,
        report: bool = False,
        out: Samples | None = None,
        wait: bool = True,
    ) -> Denoised:
        if options.ndim == 2:
            return super().denoise(x, options, level, report, out, wait)
        if interop.on_device(x):
            member = self._home(x)
            with interop.on_device_of(x):
                return member.backend.denoise(x, options, level, report, out, wait)
        if len(self._members) > 1 and x.size >= LEAST and options.scope == "trace" and len(x) >= len(self._members):
            return self._dealt(x, options, level, report, out)
        first = self._members[0]
        return first.submit(partial(first.backend.denoise, x, options, level, report, out)).result()

    def _dealt(self, x: Samples, options: Options, level: int, report: bool, out: Samples | None) -> Denoised:
        """Denoise whole rows, some on every GPU."""
        out = self._results.lend(x.shape, x.dtype)[0] if out is None else out
        edges = [len(x) * i // len(self._members) for i in range(len(self._members) + 1)]
        parts = [slice(a, b) for a, b in pairwise(edges)]

        def work(member: Member, part: slice) -> Callable[[], Denoised]:
            return lambda: member.backend.denoise(x[part], options, level, report, out[part])

        futures = [m.submit(work(m, part)) for m, part in zip(self._members, parts, strict=True)]
        return joined([future.result() for future in futures], out, report)

    def at_once(self, x: Samples, options: Options, axes: tuple[int, ...], wait: bool) -> Samples | None:
        if options.ndim == 2:
            return super().at_once(x, options, axes, wait)
        with interop.on_device_of(x):
            return self._home(x).backend.at_once(x, options, axes, wait)

    def take(self, x: Samples, *axes: int) -> interop.Traces:
        with interop.on_device_of(x):
            return super().take(x, *axes)

    def _home(self, x: Samples) -> Member:
        """Return the member on whose GPU an array is. Raises ValueError if there is none."""
        number = interop.device_of(x)
        for member in self._members:
            if member.number == number:
                return member
        raise ValueError(f"the array is on GPU {number}, and devices are {[m.number for m in self._members]}")


def checked(devices: Devices, count: int) -> list[int]:
    """Return the numbers of GPUs. Raises ValueError for numbers of none of ``count`` GPUs, and for one named twice."""
    if isinstance(devices, str):
        if devices != "all":
            raise ValueError(f"devices={devices!r} must be 'all' or numbers of GPUs")
        return list(range(count))
    found = list(devices)
    there = f"GPUs here: {', '.join(map(str, range(count)))}"
    if not found or any(isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < count for n in found):
        raise ValueError(f"devices={devices!r} must be 'all' or numbers of GPUs; {there}")
    if len(set(found)) < len(found):
        raise ValueError(f"devices={devices!r} names a GPU twice; {there}")
    return found
