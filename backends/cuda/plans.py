"""Plans ready for use: lent to one caller at a time, kept afterwards up to a number of bytes.

And the requests of calls, cached by their options and the type, shape and dtype of their array.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from wavefilt.arrays import DType, dtype_name
from wavefilt.backends.cuda.dwt.plan import DwtPlan
from wavefilt.backends.cuda.modwt import ModwtPlan
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import Plan, Shape
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.sections.dual_tree import DualTreeSectionPlan
from wavefilt.backends.cuda.sections.dwt2 import SectionPlan
from wavefilt.options import Options

FAMILIES: dict[str, type[Plan]] = {
    "dwt": DwtPlan,
    "modwt": ModwtPlan,
    "dwt2": SectionPlan,
    "dtcwt2": DualTreeSectionPlan,
}
"""The plans of a transform, by its name."""


MOST = 512
"""Most plans that are kept, however small: each has streams, events and graphs."""


class Plans:
    """Plans of a backend with its ``options``; up to ``limit`` bytes of device memory are kept.

    ``finite`` is False once a run that was not waited for had a sample that is not finite.
    """

    def __init__(self, limit: int, options: KernelOptions) -> None:
        self.limit, self.options, self.finite = limit, options, True
        self._lock = threading.Lock()
        self._idle: OrderedDict[Hashable, list[Plan]] = OrderedDict()
        self.spent: list[Plan] = []  # used by graphs of callers, for an unknown time
        self._kept = self._count = 0  # bytes and number of idle plans

    def borrow(self, shape: Shape, number: int = -1) -> Plan:
        """Return a plan for this shape that is not in use, to be returned by `give_back`; use it on its ``stream``.

        The stream is the caller's, by its ``number``, for an array on a GPU, else the plan's own. A plan is used by one
        thread and stream only, whose work is in order. Raises ValueError where PyWavelets does.
        """
        plan = self.idle(shape, number)
        if plan is None:
            plan = FAMILIES[shape.transform](shape, self.options)
            plan.key = shape, threading.get_ident(), number
            plan.stream = plan.own_stream if number < 0 else interop.stream_of(number)
        plan.take_over()
        return plan

    def idle(self, shape: Shape, number: int) -> Plan | None:
        """Return an idle plan as `borrow` does; None if there is none."""
        with self._lock:
            idle = self._idle.get((shape, threading.get_ident(), number))
            plan = idle.pop() if idle else None
            if plan is not None:
                self._kept -= plan.bytes
                self._count -= 1
        return plan

    def give_back(self, plan: Plan) -> None:
        """Keep the plan for the next caller, dropping those unused for longest beyond the limit."""
        dropped = []
        with self._lock:
            self._idle.setdefault(plan.key, []).append(plan)
            self._idle.move_to_end(plan.key)
            self._kept += plan.bytes
            self._count += 1
            while (self._kept > self.limit or self._count > MOST) and self._idle:
                dropped += self._popped()
        self._release(dropped)

    def settled(self, plan: Plan) -> None:
        """Wait for runs left on a plan, and note whether they were finite."""
        if not plan.settled():
            self.finite = False

    def settle(self) -> None:
        """Call `settled` for all plans that are not in use."""
        plans = self._taken()
        try:
            for plan in plans:
                self.settled(plan)
        finally:
            for plan in plans:
                self.give_back(plan)

    def clear(self) -> None:
        """Release all plans that are not in use."""
        self._release(self._taken())

    def _taken(self) -> list[Plan]:
        with self._lock:
            return [plan for _ in range(len(self._idle)) for plan in self._popped()]

    def _popped(self) -> list[Plan]:
        """Remove and return the plans that are unused for longest."""
        plans = self._idle.popitem(last=False)[1]
        self._kept -= sum(plan.bytes for plan in plans)
        self._count -= len(plans)
        return plans

    def _release(self, plans: list[Plan]) -> None:
        for plan in plans:
            self.settled(plan)
            plan.release()


DTYPES = ("float32", "float64")
"""Names of the dtypes that kernels compute in."""


class Asked(NamedTuple):
    """The key of a plan, and the key of a denoiser in it: the options that it depends on beside the shape."""

    shape: Shape
    key: Hashable


@lru_cache(maxsize=1024)
def asked(options: Options, level: int, dtype: str, shape: tuple[int, ...], report: bool) -> Asked:
    """Return the request for a batch of this shape."""
    key = options.rule, options.shrink_function, options.sigma, options.scope, options.keep, options.trend, report
    return Asked(Shape.of(options.analysis(level), dtype, shape[0], shape[1:]), key)


@lru_cache(maxsize=1024)
def simple(
    options: Options, kind: type, shape: tuple[int, ...], dtype: object, axes: tuple[int, ...]
) -> tuple[interop.Library, DType, Asked] | None:
    """Return library, dtype of computation and request for arrays of a type and shape; None if not for `Cuda.at_once`.

    Raises the errors of `interop.take` and `Options.level_for`.
    """
    library, found = interop.library_of_type(kind), interop.layout(shape, axes)
    level = options.level_for(*found.rows[1:])
    if library is None or found.orders is not None or not level or not found.rows[0]:
        return None
    computed = interop.computed(dtype)
    name, analysis = dtype_name(computed), options.analysis(level)
    known = name in DTYPES and analysis.transform.name in FAMILIES and analysis.builtin_modes
    if not known or not options.plain or options.blend or options.host_only:
        return None
    return library, computed, asked(options, level, name, found.rows, False)
