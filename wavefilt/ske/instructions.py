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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

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

    name: str
    instructions: tuple[Instruction, ...]
    followers: tuple[int, ...]


@dataclass(frozen=True)
class Listing:
    """The basic blocks of one kernel, the entry first."""

    kind: Literal["SASS", "PTX"]
    blocks: tuple[Block, ...]

    def of(self, block: Block) -> Counts:
        """Instructions of one block by class."""
        return Counter(_class(i.opcode, self._table) for i in block.instructions)

    @cached_property
    def loops(self) -> tuple[frozenset[int], ...]:
        """Blocks that can be reached from each other, one set for each outermost loop, in the order of the text."""
        reached = [self._reached(number) for number in range(len(self.blocks))]
        found: dict[frozenset[int], None] = {}
        for number, others in enumerate(reached):
            if number in others:
                found[frozenset(n for n in others if number in reached[n])] = None
        return tuple(found)

    @cached_property
    def path(self) -> tuple[frozenset[int], ...]:
        """Blocks of the path with most work, a set for each step; see the module's docstring."""
        step_of = {number: loop for loop in self.loops for number in loop}
        steps = [step_of.get(number, frozenset([number])) for number in range(len(self.blocks))]
        best: dict[frozenset[int], tuple[tuple[float, float, float], tuple[frozenset[int], ...]]] = {}
        for step in self._last_first(steps):
            after = {steps[f] for number in step for f in self.blocks[number].followers} - {step}
            (work, moved, size), rest = max((best[s] for s in after), default=((0.0, 0.0, 0.0), ()), key=lambda b: b[0])
            counts, sizes = self._counted(step)
            best[step] = (
                (work + counts["fma"] + counts["fma64"], moved + sizes.total(), size - counts.total()),
                (step, *rest),
            )
        return best[steps[0]][1]

    def count(self, trips: Sequence[float] = ()) -> dict[str, float]:
        """Instructions by class on the path; its loops as often as ``trips`` says, one number for each in order."""
        return self._sum(trips, lambda number: self.of(self.blocks[number]))

    def bytes(self, trips: Sequence[float] = ()) -> dict[str, float]:
        """Bytes that a thread moves on the path, by kind of access."""
        return self._sum(trips, lambda number: self._moved(self.blocks[number]))

    def _sum(self, trips: Sequence[float], of: Callable[[int], Counts]) -> dict[str, float]:
        total: dict[str, float] = {}
        remaining = list(trips)
        for step in self.path:
            times = remaining.pop(0) if step in self.loops and remaining else 1
            for number in step:
                for name, n in of(number).items():
                    total[name] = total.get(name, 0) + times * n
        if remaining:
            raise ValueError(f"{len(trips)} trip counts are given for {len(trips) - len(remaining)} loops on the path")
        return total

    def _counted(self, step: frozenset[int]) -> tuple[Counts, Counts]:
        counts: Counts = Counter()
        moved: Counts = Counter()
        for number in step:
            counts += self.of(self.blocks[number])
            moved += self._moved(self.blocks[number])
        return counts, moved

    def _moved(self, block: Block) -> Counts:
        moved: Counts = Counter()
        for i in block.instructions:
            kind = _class(i.opcode, self._table)
            if kind in ACCESS:
                moved[kind] += _bytes(i.opcode)
        return moved

    @property
    def _table(self) -> tuple[tuple[str, str], ...]:
        return _SASS if self.kind == "SASS" else _PTX

    def _reached(self, start: int) -> set[int]:
        seen: set[int] = set()
        waiting = list(self.blocks[start].followers)
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                waiting.extend(self.blocks[number].followers)
        return seen

    def _last_first(self, steps: Sequence[frozenset[int]]) -> Iterator[frozenset[int]]:
        """Steps that the entry reaches, each after all that may follow it."""
        seen, stack = {steps[0]}, [(steps[0], self._after(steps[0], steps))]
        while stack:
            step, followers = stack[-1]
            follower = next((f for f in followers if f not in seen), None)
            if follower is None:
                yield step
                stack.pop()
            else:
                seen.add(follower)
                stack.append((follower, self._after(follower, steps)))

    def _after(self, step: frozenset[int], steps: Sequence[frozenset[int]]) -> Iterator[frozenset[int]]:
        return (steps[f] for number in step for f in self.blocks[number].followers)


def listing(text: str, kernel: str | None = None) -> Listing:
    """The kernel in a disassembly or in PTX; ``kernel`` is a part of its name where the text holds several.

    Raises ValueError if there is none.
    """
    sass = re.search(r"/\*[0-9a-f]{4,}\*/", text) is not None
    for body in _bodies(text, sass):
        if kernel is None or kernel in body[0]:
            lines = list(_sass(body[1]) if sass else _ptx(body[1]))
            if any(isinstance(line, Instruction) for line in lines):
                return Listing("SASS" if sass else "PTX", _blocks(lines))
    raise ValueError("no instructions" + (f" of {kernel!r}" if kernel else "") + " in this text")


def _bodies(text: str, sass: bool) -> list[tuple[str, str]]:
    """Name and text of every kernel."""
    marks = list(re.finditer(_IN_SASS if sass else _IN_PTX, text, re.M))
    if not marks:
        return [("", text)]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [(mark[1], text[mark.start() : end]) for mark, end in zip(marks, ends, strict=True)]


def _sass(body: str) -> list[str | Instruction]:
    """Labels and instructions; an address that is jumped to is a label."""
    found: list[tuple[str, str | Instruction]] = []
    targets = set()
    for line in body.splitlines():
        label = re.match(rf"^({_NAMES}):", line)
        if label:
            found.append(("", label[1]))
        code = re.match(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)([^;]*);", line)
        if code is None:
            continue
        address, guard, opcode, rest = code.groups()
        target = ""
        if re.match(r"(BRA|BRX|JMP)\b", opcode):
            to = re.search(rf"`\(({_NAMES})\)|0x([0-9a-f]+)", rest)
            target = (to[1] or format(int(to[2], 16), "x")) if to else ""
            targets.add(target)
        ends = re.match(r"(EXIT|RET|BRA|BRX|JMP)\b", opcode) is not None
        guarded = guard is not None or (bool(target) and re.search(r"\bU?P\d", rest.split("`")[0]) is not None)
        found.append((format(int(address, 16), "x"), Instruction(opcode, guarded, target, ends)))
    return [part for address, line in found for part in ([address, line] if address in targets else [line])]


def _ptx(body: str) -> list[str | Instruction]:
    lines: list[str | Instruction] = []
    for raw in body.splitlines():
        line = raw.strip()
        label = re.match(rf"^({_NAMES}):", line)
        if label:
            lines.append(label[1])
            continue
        code = re.match(r"^(@!?%\w+\s+)?([a-z][\w.:]*)\s*([^;]*);", line)
        if code is None or line.startswith("."):
            continue
        guard, opcode, rest = code.groups()
        target = rest.strip() if opcode.startswith("bra") else ""
        ends = re.match(r"(ret|exit|bra)\b", opcode) is not None
        lines.append(Instruction(opcode, guard is not None, target, ends))
    return lines


def _blocks(lines: list[str | Instruction]) -> tuple[Block, ...]:
    """Basic blocks: they begin at labels and end at jumps."""
    parts: list[tuple[list[str], list[Instruction]]] = [([], [])]
    for line in lines:
        labels, held = parts[-1]
        if isinstance(line, str):
            if held:
                parts.append(([line], []))
            else:
                labels.append(line)
        else:
            held.append(line)
            if line.ends:
                parts.append(([], []))
    parts = [part for part in parts if part[0] or part[1]]
    at = {label: number for number, (labels, _) in enumerate(parts) for label in labels}
    blocks = []
    for number, (labels, held) in enumerate(parts):
        last = held[-1] if held else Instruction("")
        followers = [at[last.target]] if last.target in at else []
        falls = not last.ends or last.guarded
        if falls and number + 1 < len(parts):
            followers.append(number + 1)
        blocks.append(Block(labels[0] if labels else f"block {number}", tuple(held), tuple(dict.fromkeys(followers))))
    return tuple(blocks)


def _class(opcode: str, table: tuple[tuple[str, str], ...]) -> str:
    return next((name for pattern, name in table if re.match(pattern, opcode)), "other")


def _bytes(opcode: str) -> int:
    """Bytes of a thread that an access moves."""
    vector = re.search(r"\.v(\d)", opcode)
    bits = re.search(r"\.[busf]?(8|16|32|64|128)\b", opcode)
    return (int(vector[1]) if vector else 1) * (int(bits[1]) if bits else 32) // 8
