"""Instructions counted in a kernel's text: SASS as nvdisasm and cuobjdump print it, or PTX where there is neither.

Text is not time: an instruction counts as often as it is executed, and the text does not say how often that is. What
it says for certain is `Listing.path`: of the paths from the entry to an end, the one with most multiply-adds, then
with most bytes moved in fewest instructions. A loop is one step of a path, and counts as often as its author declares
(``trips``, in the order of the text; once if nothing is declared). A kernel whose rounds are constants is nearly
straight-line code there: one warp executes just that if it takes part in every guarded remainder (``if thread <
rest``). How many warps do is known from the constants, and declared beside the kernel as a function of its launch.

PTX is what the assembler turns into SASS: arithmetic and memory accesses are the same ones, but a 64-bit address
operation is one instruction in PTX and two or three in SASS, so integer counts from PTX are lower.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Literal

import numpy as np

Counts = Counter[str]
"""Instructions by class: "fma", "fma64", "int", "int mul", "other", "barrier", and loads and stores by memory."""

ACCESS = ("global load", "global store", "shared load", "shared store")

_SASS = (  # the first pattern that an opcode begins with
    (r"FFMA|FADD|FMUL|HFMA2|HADD2|HMUL2", "fma"),
    (r"DFMA|DADD|DMUL|DSETP|DMNMX", "fma64"),
    (r"IMAD|IMUL", "int mul"),
    (r"LDG|LD\b", "global load"),
    (r"STG|ST\b", "global store"),
    (r"LDS", "shared load"),
    (r"STS", "shared store"),
    (r"BAR", "barrier"),
    (r"IADD|VIADD|IABS|ISETP|IMNMX|VIMNMX|LOP3|PLOP3|SHF|LEA|SEL|PRMT|MOV|SGXT|BMSK", "int"),
    (r"FSEL|FMNMX|FSETP|FCHK", "int"),  # floating-point, but in the pipe of the integers
)
_PTX = (
    (r"(fma|add|sub|mul|mad)(\.\w+)*\.f32", "fma"),
    (r"(fma|add|sub|mul|mad|setp|min|max)(\.\w+)*\.f64", "fma64"),
    (r"(mul|mad)\.", "int mul"),
    (r"ld(\.\w+)*\.global", "global load"),
    (r"st(\.\w+)*\.global", "global store"),
    (r"ld(\.\w+)*\.shared", "shared load"),
    (r"st(\.\w+)*\.shared", "shared store"),
    (r"bar\.|barrier\.", "barrier"),
    (r"add|sub|setp|selp|min|max|and|or\.|xor|not|shl|shr|lop3|abs|neg|prmt|bfe|bfi", "int"),
)
_NAMES = r"[\w.$]+"
_IN_SASS = r"^\s*(?:\.section\s+\.text\.|Function\s*:\s*)(\S+)"
_IN_PTX = rf"^[^\n/]*\.(?:entry|func)[^\n]*?({_NAMES})\s*\("
"""Where a kernel begins, and its name."""
Step = frozenset[int]


@dataclass(frozen=True)
class Instruction:
    """``opcode`` with its modifiers, whether a predicate may skip it, and the label it may jump to."""

    opcode: str
    guarded: bool = False
    target: str = ""
    ends: bool = False


@dataclass(frozen=True)
class Block:
    """Instructions that are executed one after the other, and the blocks that may follow, by number."""

    instructions: tuple[Instruction, ...]
    followers: tuple[int, ...]


@dataclass(frozen=True)
class Listing:
    """The basic blocks of one kernel, the entry first."""

    kind: Literal["SASS", "PTX"]
    blocks: tuple[Block, ...]

    def of(self, block: Block) -> Counts:
        """Instructions of one block by class."""
        return Counter(self._class(i.opcode) for i in block.instructions)

    @cached_property
    def loops(self) -> tuple[Step, ...]:
        """Blocks that can be reached from each other, one set for each outermost loop, in the order of the text."""
        reached = np.zeros((len(self.blocks),) * 2, bool)
        for number, block in enumerate(self.blocks):
            reached[number, list(block.followers)] = True
        for between in range(len(self.blocks)):
            reached |= np.outer(reached[:, between], reached[between])
        both = [frozenset(map(int, np.flatnonzero(row))) for row in reached & reached.T]
        return tuple(dict.fromkeys(loop for loop in both if loop))

    @cached_property
    def path(self) -> tuple[Step, ...]:
        """Blocks of the path with most work, a set for each step; see the module's docstring."""
        step_of = {number: loop for loop in self.loops for number in loop}
        steps = [step_of.get(number, frozenset([number])) for number in range(len(self.blocks))]
        after = {step: {steps[f] for number in step for f in self.blocks[number].followers} - {step} for step in steps}
        best: dict[Step, tuple[tuple[float, float, float], tuple[Step, ...]]] = {}
        for step in TopologicalSorter(after).static_order():  # each after all that may follow it
            followers = (best[s] for s in after[step])
            (work, moved, size), rest = max(followers, default=((0.0, 0.0, 0.0), ()), key=lambda b: b[0])
            counts, sizes = self._sum([step], (), self.of), self._sum([step], (), self._moved)
            work += counts.get("fma", 0) + counts.get("fma64", 0)
            best[step] = (work, moved + sum(sizes.values()), size - sum(counts.values())), (step, *rest)
        return best[steps[0]][1]

    def count(self, trips: Sequence[float] = ()) -> dict[str, float]:
        """Instructions by class on the path; its loops as often as ``trips`` says, one number for each in order."""
        return self._sum(self.path, trips, self.of)

    def bytes(self, trips: Sequence[float] = ()) -> dict[str, float]:
        """Bytes that a thread moves on the path, by kind of access."""
        return self._sum(self.path, trips, self._moved)

    def _sum(self, path: Iterable[Step], trips: Sequence[float], of: Callable[[Block], Counts]) -> dict[str, float]:
        total: dict[str, float] = {}
        remaining = list(trips)
        for step in path:
            times = remaining.pop(0) if step in self.loops and remaining else 1
            for number in step:
                for name, n in of(self.blocks[number]).items():
                    total[name] = total.get(name, 0) + times * n
        if remaining:
            raise ValueError(f"{len(trips)} trip counts are given for {len(trips) - len(remaining)} loops on the path")
        return total

    def _moved(self, block: Block) -> Counts:
        moved: Counts = Counter()
        for i in block.instructions:
            kind = self._class(i.opcode)
            if kind in ACCESS:
                vector = re.search(r"\.v(\d)", i.opcode)
                bits = re.search(r"\.[busf]?(8|16|32|64|128)\b", i.opcode)
                moved[kind] += (int(vector[1]) if vector else 1) * (int(bits[1]) if bits else 32) // 8
        return moved

    def _class(self, opcode: str) -> str:
        table = _SASS if self.kind == "SASS" else _PTX
        return next((name for pattern, name in table if re.match(pattern, opcode)), "other")


def listing(text: str, kernel: str | None = None) -> Listing:
    """The kernel in a disassembly or in PTX; ``kernel`` is a part of its name where the text holds several.

    Raises ValueError if there is none.
    """
    sass = re.search(r"/\*[0-9a-f]{4,}\*/", text) is not None
    start = _IN_SASS if sass else _IN_PTX
    before, *bodies = re.split(start, text, flags=re.M)  # then names and texts in turn
    for name, body in zip(bodies[::2], bodies[1::2], strict=True) if bodies else [("", before)]:
        if kernel is None or kernel in name:
            lines = _sass(body) if sass else list(_ptx(body))
            if any(isinstance(line, Instruction) for line in lines):
                return Listing("SASS" if sass else "PTX", _blocks(lines))
    raise ValueError("no instructions" + (f" of {kernel!r}" if kernel else "") + " in this text")


def _sass(body: str) -> list[str | Instruction]:
    """Labels and instructions; an address that is jumped to is a label."""
    found: list[tuple[str, str | Instruction]] = []
    for line in body.splitlines():
        if label := re.match(rf"^({_NAMES}):", line):
            found.append(("", label[1]))
        code = re.match(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)([^;]*);", line)
        if code is None:
            continue
        address, guard, opcode, rest = code.groups()
        target, jumps = "", re.match(r"(BRA|BRX|JMP)\b", opcode)
        if jumps and (to := re.search(rf"`\(({_NAMES})\)|0x([0-9a-f]+)", rest)):
            target = to[1] or format(int(to[2], 16), "x")
        guarded = guard is not None or (bool(target) and re.search(r"\bU?P\d", rest.split("`")[0]) is not None)
        ends = bool(jumps or re.match(r"(EXIT|RET)\b", opcode))
        found.append((format(int(address, 16), "x"), Instruction(opcode, guarded, target, ends)))
    targets = {line.target for _, line in found if isinstance(line, Instruction)} - {""}
    return [part for address, line in found for part in ([address, line] if address in targets else [line])]


def _ptx(body: str) -> Iterator[str | Instruction]:
    for line in map(str.strip, body.splitlines()):
        code = re.match(r"^(@!?%\w+\s+)?([a-z][\w.:]*)\s*([^;]*);", line)
        if label := re.match(rf"^({_NAMES}):", line):
            yield label[1]
        elif code:
            guard, opcode, rest = code.groups()
            target = rest.strip() if opcode.startswith("bra") else ""
            yield Instruction(opcode, guard is not None, target, re.match(r"(ret|exit|bra)\b", opcode) is not None)


def _blocks(lines: Iterable[str | Instruction]) -> tuple[Block, ...]:
    """Basic blocks: they begin at labels and end at jumps."""
    parts: list[tuple[list[str], list[Instruction]]] = [([], [])]
    for line in lines:
        if parts[-1][1] and (isinstance(line, str) or parts[-1][1][-1].ends):
            parts.append(([], []))
        labels, held = parts[-1]
        if isinstance(line, str):
            labels.append(line)
        else:
            held.append(line)
    at = {label: number for number, (labels, _) in enumerate(parts) for label in labels}
    blocks = []
    for number, (_, held) in enumerate(parts):
        last = held[-1] if held else Instruction("")
        followers = [at[last.target]] if last.target in at else []
        if (not last.ends or last.guarded) and number + 1 < len(parts):
            followers.append(number + 1)
        blocks.append(Block(tuple(held), tuple(dict.fromkeys(followers))))
    return tuple(blocks)
