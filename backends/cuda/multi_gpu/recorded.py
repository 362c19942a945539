"""Denoises of arrays on several GPUs launched again: their Python, 30 µs a GPU, is most of what they do not share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.graph import Graph
from wavefilt.backends.cuda.runtime.interfaces import Samples, Stream

Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class Recorded:
    """One denoise: its graph, where and on which stream it runs, and the plan it holds until it is released."""

    current: AbstractContextManager[object]
    graph: Graph
    stream: Stream
    outcome: Callable[[Stream], tuple[bool, bool]]
    release: Callable[[], None]

    def launch(self) -> None:
        with self.current:
            self.graph.launch(self.stream)

    def finished(self) -> bool:
        """Whether the result is there; False if it has to be made in another way. Waits for it."""
        with self.current:
            unfinished, finite = self.outcome(self.stream)
        return finite and not unfinished


@dataclass(frozen=True)
class Batch:
    """Denoises of the same arrays into the same ones as before, by ``key``."""

    key: Key
    parts: Sequence[Recorded]

    def again(self) -> bool:
        """Launch all; whether all results are there."""
        for part in self.parts:
            part.launch()
        return False not in [part.finished() for part in self.parts]  # every one is waited for

    def release(self) -> None:
        for part in self.parts:
            part.release()


def key(parts: Sequence[Samples], outs: Sequence[Samples], *how: Hashable) -> Key:
    """What recorded launches depend on."""
    places = (
        (interop.address(x), tuple(x.shape), x.dtype, interop.stream_number(x), interop.address(y))
        for x, y in zip(parts, outs, strict=True)
    )
    return (*how, *places)
