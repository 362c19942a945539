"""Copies of host memory to and from pinned buffers, as machine code for threads without Python.

In Python every call of the driver takes the interpreter's lock, for which eight threads wait longer than they copy; and
to wake a Python thread takes as long as to copy half a MiB.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from llvmlite import ir

from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import native, team

from .graph import DriverError

if TYPE_CHECKING:
    from llvmlite.ir import Value

WORD, ERROR = ir.IntType(64), ir.IntType(32)
PAGE = 4 << 10


class Functions(NamedTuple):
    """Addresses of the C library's function that copies memory, and of the driver's."""

    move: int
    send: int
    fetch: int
    record: int
    synchronize: int
    use: int


class Job(NamedTuple):
    """A transfer: all numbers and addresses."""

    piece: int
    """Bytes that are staged and sent at a time."""
    total: int
    host: int
    device: int
    stream: int
    context: int


Lane = tuple[int, int, int, int]
"""Two pinned buffers, and the events after which they may be used again: what one thread works with at a time."""


@cache
def driver() -> Functions:
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    names = "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuCtxSetCurrent"
    return Functions(*(_address(function) for function in (ctypes.memmove, *(library[name] for name in names))))


def _address(function: Callable[..., object]) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]


def run(job: Job, up: bool, lanes: Sequence[Lane], touched: Sequence[Array] = ()) -> None:
    """Copy everything, to the device or from it, with a thread for each lane.

    More threads write a byte of every page of memory that holds nothing yet. Raises DriverError.
    """
    taken, calls = np.zeros(1, np.int64), driver()
    common = taken.ctypes.data, *job, calls.move, calls.send if up else calls.fetch, calls.record, calls.synchronize
    parts = [(part.ctypes.data, part.ctypes.data + part.nbytes, 0, 0) for part in touched]
    words = np.array([*common, calls.use, len(lanes), *sum([*lanes, *parts], ())], np.int64)
    place = _compiled()[up]
    work = native.Work("touch", place, native.FUNCTION(place), bytearray(words.tobytes()), 0, (taken, touched))
    error = team.parallel(work, len(lanes) + len(parts))
    if error:
        raise DriverError(error, f"error {error} in a transfer")


@cache
def _compiled() -> Sequence[int]:
    """Return where the programs are that copy from the device, and to it."""
    module, names = ir.Module("staging"), ("fetch", "send")
    for up, name in enumerate(names):
        _Program(module, name, bool(up))
    found = native.addresses(str(module), names)
    return [found[name] for name in names]


class _Program:
    """``name(block, workspace, begin, end)``: the parts of a job from one to another; 0, or the driver's error."""

    def __init__(self, module: ir.Module, name: str, up: bool) -> None:
        function = ir.Function(module, ir.FunctionType(WORD, [WORD] * 4), name)
        block, _, begin, end = function.args
        self.builder = builder = ir.IRBuilder(function.append_basic_block())
        self._job = block
        fields = "taken", *Job._fields, "move", "copy", "record", "synchronize", "use", "lanes"
        self._words = {field: self._word(_number(i)) for i, field in enumerate(fields)}
        part, self._turn, self._page = (builder.alloca(WORD) for _ in range(3))
        builder.store(begin, part)
        self._call("use", self._words["context"])
        loop, lane, touching, following, done = map(
            function.append_basic_block, ("loop", "lane", "touching", "following", "done")
        )
        builder.branch(loop)
        builder.position_at_end(loop)
        here = builder.load(part)
        record = builder.add(_number(len(fields)), builder.mul(here, _number(4)))
        own = [self._word(builder.add(record, _number(i))) for i in range(4)]
        some = function.append_basic_block("some")
        builder.cbranch(builder.icmp_signed("<", here, end), some, done)
        builder.position_at_end(some)
        builder.cbranch(builder.icmp_signed("<", here, self._words["lanes"]), lane, touching)
        builder.position_at_end(lane)
        self._copy(own, up, following)
        builder.position_at_end(touching)
        self._touch(own[0], own[1], following)
        builder.position_at_end(following)
        builder.store(builder.add(here, _number(1)), part)
        builder.branch(loop)
        builder.position_at_end(done)
        builder.ret(_number(0))

    def _word(self, i: Value) -> Value:
        place = self.builder.add(self._job, self.builder.mul(i, _number(8)))
        return self.builder.load(self.builder.inttoptr(place, WORD.as_pointer()))

    def _call(self, name: str, *arguments: Value, result: ir.IntType = ERROR) -> None:
        """Call a C function, and return its result if that is an error."""
        builder, kind = self.builder, ir.FunctionType(result, [WORD] * len(arguments))
        found = builder.call(builder.inttoptr(self._words[name], kind.as_pointer()), arguments)
        if result is ERROR:
            with builder.if_then(builder.icmp_signed("!=", found, ir.Constant(ERROR, 0)), likely=False):
                builder.ret(builder.zext(found, WORD))

    def _copy(self, lane: Sequence[Value], up: bool, following: ir.Block) -> None:
        """Pieces until none is left, each after its slot was sent; two slots take turns.

        To the device one is copied into the slot and enqueued; from the device enqueued, waited for and copied.
        """
        builder, words = self.builder, self._words
        builder.store(_number(0), self._turn)
        again, body = (builder.append_basic_block(name) for name in ("again", "body"))
        builder.branch(again)
        builder.position_at_end(again)
        taken = builder.inttoptr(words["taken"], WORD.as_pointer())
        start = builder.atomic_rmw("add", taken, words["piece"], "monotonic")
        builder.cbranch(builder.icmp_signed("<", start, words["total"]), body, following)
        builder.position_at_end(body)
        left = builder.sub(words["total"], start)
        size = builder.select(builder.icmp_signed("<", left, words["piece"]), left, words["piece"])
        turn = builder.load(self._turn)
        builder.store(builder.xor(turn, _number(1)), self._turn)
        odd = builder.icmp_signed("!=", turn, _number(0))
        slot, event = (builder.select(odd, lane[i + 1], lane[i]) for i in (0, 2))
        here, there = builder.add(words["host"], start), builder.add(words["device"], start)
        self._call("synchronize", event)
        if up:
            self._call("move", slot, here, size, result=WORD)
        self._call("copy", *((there, slot) if up else (slot, there)), size, words["stream"])
        self._call("record", event, words["stream"])
        if not up:
            self._call("synchronize", event)
            self._call("move", here, slot, size, result=WORD)
        builder.branch(again)

    def _touch(self, begin: Value, end: Value, following: ir.Block) -> None:
        builder, byte = self.builder, ir.IntType(8)
        builder.store(begin, self._page)
        again, body = (builder.append_basic_block(name) for name in ("pages", "page"))
        builder.branch(again)
        builder.position_at_end(again)
        page = builder.load(self._page)
        builder.cbranch(builder.icmp_signed("<", page, end), body, following)
        builder.position_at_end(body)
        builder.store(ir.Constant(byte, 0), builder.inttoptr(page, byte.as_pointer()))
        builder.store(builder.add(page, _number(PAGE)), self._page)
        builder.branch(again)


def _number(value: int) -> ir.Constant:
    return ir.Constant(WORD, value)
