"""Plans ready for use: lent to one caller at a time, kept afterwards up to a number of bytes."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias

from wavefilt.backends.cuda.dwt.plan import DwtPlan
from wavefilt.backends.cuda.dwt2.plan import PanelPlan
from wavefilt.backends.cuda.modwt.plan import ModwtPlan
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.plan import Plan, Shape
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import Samples, Stream

TransformFamily: TypeAlias = type[Plan]
"""The plans of a transform, made with a shape and options: all that is not written once for all transforms."""

FAMILIES: dict[str, TransformFamily] = {"dwt": DwtPlan, "modwt": ModwtPlan, "dwt2": PanelPlan}
"""By the transform's name."""


class Plans:
    """Those of a backend, with its ``options``; ``limit`` bytes of device memory are kept."""

    def __init__(self, limit: int, options: Options) -> None:
        self.limit, self.options = limit, options
        self._lock = threading.Lock()
        self._idle: OrderedDict[Hashable, list[Plan]] = OrderedDict()
        self._kept = 0  # bytes of those that are idle

    def borrow(self, shape: Shape, like: Samples | None = None) -> tuple[Plan, Stream]:
        """A plan for this shape that nobody else uses, and the stream to use it on.

        The stream is the caller's for an array ``like`` on a GPU, else the plan's own. The plan is for `give_back`; it
        goes to the same thread and stream again, whose work is in order. Raises ValueError where PyWavelets does.
        """
        number = -1 if like is None else interop.stream_number(like)
        key = (shape, threading.get_ident(), number)
        with self._lock:
            idle = self._idle.get(key)
            plan = idle.pop() if idle else None
            if plan is not None:
                self._kept -= plan.bytes
        if plan is None:
            plan = FAMILIES[shape.transform](shape, self.options)
            plan.key = key
        return plan, plan.own_stream() if like is None else interop.stream_of(number)

    def give_back(self, plan: Plan) -> None:
        """Keep the plan for the next caller, dropping those unused for longest beyond the limit."""
        with self._lock:
            self._idle.setdefault(plan.key, []).append(plan)
            self._idle.move_to_end(plan.key)
            self._kept += plan.bytes
            while self._kept > self.limit and self._idle:
                for p in self._idle.popitem(last=False)[1]:
                    self._kept -= p.bytes
                    p.release()

    def lend(self, owner: object, plan: Plan) -> None:
        """Give the plan back when ``owner`` is no longer used."""
        weakref.finalize(owner, self.give_back, plan).atexit = False

    def clear(self) -> None:
        """Release all plans that are not in use."""
        with self._lock:
            for plan in (p for plans in self._idle.values() for p in plans):
                plan.release()
            self._idle.clear()
            self._kept = 0
