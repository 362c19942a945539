"""Plans ready for use: lent to one caller at a time, kept afterwards up to a number of bytes."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias

from wavefilt.backends.cuda.dual_tree.panels_plan import DualTreePanelPlan
from wavefilt.backends.cuda.dual_tree.traces_plan import DualTreePlan
from wavefilt.backends.cuda.dwt.plan import DwtPlan
from wavefilt.backends.cuda.dwt2.plan import PanelPlan
from wavefilt.backends.cuda.modwt.plan import ModwtPlan
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import Plan, Shape
from wavefilt.backends.cuda.runtime import interop

TransformFamily: TypeAlias = type[Plan]
"""The plans of a transform, made with a shape and options: all that is not written once for all transforms."""

FAMILIES: dict[str, TransformFamily] = {
    "dwt": DwtPlan,
    "modwt": ModwtPlan,
    "dwt2": PanelPlan,
    "dtcwt": DualTreePlan,
    "dtcwt2": DualTreePanelPlan,
}
"""By the transform's name."""


MOST = 512
"""Plans that are kept at most, however small they are: each has streams, events and graphs as well."""


class Plans:
    """Those of a backend, with its ``options``; ``limit`` bytes of device memory are kept.

    ``finite`` until a plan that was not waited for has met a sample that is not.
    """

    def __init__(self, limit: int, options: KernelOptions) -> None:
        self.limit, self.options, self.finite = limit, options, True
        self._lock = threading.Lock()
        self._idle: OrderedDict[Hashable, list[Plan]] = OrderedDict()
        self.spent: list[Plan] = []  # in use by graphs of callers, nobody knows until when
        self._kept = self._count = 0  # bytes and number of those that are idle

    def borrow(self, shape: Shape, number: int = -1) -> Plan:
        """A plan for this shape that nobody else uses, for `give_back`; its ``stream`` is the one to use it on.

        That is the caller's, by its ``number``, for an array on a GPU, else the plan's own. The plan goes to the same
        thread and stream again, whose work is in order. Raises ValueError where PyWavelets does.
        """
        plan = self.idle(shape, number)
        if plan is None:
            plan = FAMILIES[shape.transform](shape, self.options)
            plan.key = shape, threading.get_ident(), number
            plan.stream = plan.own_stream() if number < 0 else interop.stream_of(number)
        plan.take_over()
        return plan

    def idle(self, shape: Shape, number: int) -> Plan | None:
        """As `borrow`, of those used before; None if there is none."""
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

    def lend(self, owner: object, plan: Plan) -> None:
        """Give the plan back when ``owner`` is no longer used."""
        weakref.finalize(owner, self.give_back, plan).atexit = False

    def settled(self, plan: Plan) -> None:
        """Wait for what was left on a plan, and keep what came of it."""
        if not plan.settled():
            self.finite = False

    def settle(self) -> None:
        """`settled` for all that are not in use."""
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
        """The plans that are unused for longest, which are kept no longer."""
        plans = self._idle.popitem(last=False)[1]
        self._kept -= sum(plan.bytes for plan in plans)
        self._count -= len(plans)
        return plans

    def _release(self, plans: list[Plan]) -> None:
        for plan in plans:
            self.settled(plan)
            plan.release()
