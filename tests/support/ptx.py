"""Count the instructions of a compiled kernel in its PTX.

`Listing.count` follows the path from the entry to an exit with most multiply-adds, then with most bytes moved in fewest
instructions. A loop is one step of a path and is counted once, or as often as its trip count says. Multiply-adds,
memory accesses and barriers in PTX are those of the machine code; address arithmetic is fewer instructions in PTX.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import numpy as np

Counts = Counter[str]
Step = frozenset[int]
CLASSES = (  # the first pattern that an opcode begins with
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
ACCESSES = ("global load", "global store", "shared load", "shared store")
NAME = r"[\w.$]+"


def ptxas() -> str | None:
    """Return the path of the assembler in NVIDIA's wheel, since one on PATH may not know this version of PTX."""
    spec = find_spec("nvidia")
    folders = (spec.submodule_search_locations or []) if spec else []
    return next((str(path) for folder in folders for path in sorted(Path(folder).glob("*/bin/ptxas"))), None)


@dataclass(frozen=True)
class Instruction:
    """An opcode with its modifiers, whether it is predicated, and its jump target."""

    opcode: str
    guarded: bool = False
    target: str = ""

    @property
    def ends(self) -> bool:
        return re.match(r"(ret|exit|bra)\b", self.opcode) is not None

    @property
    def kind(self) -> str:
        return next((name for pattern, name in CLASSES if re.match(pattern, self.opcode)), "other")

    @property
    def bytes(self) -> int:
        vector, bits = re.search(r"\.v(\d)", self.opcode), re.search(r"\.[busf]?(8|16|32|64|128)\b", self.opcode)
        return (int(vector[1]) if vector else 1) * (int(bits[1]) if bits else 32) // 8


@dataclass(frozen=True)
class Block:
    """A basic block, and the numbers of the blocks that may follow it."""

    instructions: tuple[Instruction, ...]
    followers: tuple[int, ...]

    def counts(self) -> Counts:
        """Return the instructions by class."""
        return Counter(i.kind for i in self.instructions)

    def moved(self) -> Counts:
        """Return the bytes moved, by kind of access."""
        moved: Counts = Counter()
        for i in self.instructions:
            if i.kind in ACCESSES:
                moved[i.kind] += i.bytes
        return moved


@dataclass(frozen=True)
class Listing:
    """The basic blocks of a kernel, the entry first."""

    blocks: tuple[Block, ...]

    @cached_property
    def loops(self) -> tuple[Step, ...]:
        """The outermost loops, each a set of block numbers, in the order of the text."""
        reached = np.zeros((len(self.blocks),) * 2, bool)
        for number, block in enumerate(self.blocks):
            reached[number, list(block.followers)] = True
        for between in range(len(self.blocks)):
            reached |= np.outer(reached[:, between], reached[between])
        both = [frozenset(map(int, np.flatnonzero(row))) for row in reached & reached.T]
        return tuple(dict.fromkeys(loop for loop in both if loop))

    @cached_property
    def path(self) -> tuple[Step, ...]:
        """The path with most work, as sets of blocks."""
        step_of = {number: loop for loop in self.loops for number in loop}
        steps = [step_of.get(number, frozenset([number])) for number in range(len(self.blocks))]
        after = {step: {steps[f] for number in step for f in self.blocks[number].followers} - {step} for step in steps}
        best: dict[Step, tuple[tuple[float, float, float], tuple[Step, ...]]] = {}
        for step in TopologicalSorter(after).static_order():
            followers = (best[s] for s in after[step])
            (work, moved, size), rest = max(followers, default=((0.0, 0.0, 0.0), ()), key=lambda b: b[0])
            counts, sizes = self._sum([step], (), Block.counts), self._sum([step], (), Block.moved)
            work += counts.get("fma", 0) + counts.get("fma64", 0)
            best[step] = (work, moved + sum(sizes.values()), size - sum(counts.values())), (step, *rest)
        return best[steps[0]][1]

    def count(self, trips: Sequence[float] = ()) -> dict[str, float]:
        """Return the instructions on the path by class; ``trips`` are the trip counts of its loops, in order."""
        return self._sum(self.path, trips, Block.counts)

    def bytes(self) -> dict[str, float]:
        """Return the bytes that a thread moves on the path, by kind of access."""
        return self._sum(self.path, (), Block.moved)

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


def listing(text: str) -> Listing:
    """Parse the first kernel in a PTX text. Raises ValueError if there is none."""
    _, *bodies = re.split(rf"^[^\n/]*\.(?:entry|func)[^\n]*?{NAME}\s*\(", text, flags=re.M)
    for body in bodies:
        lines = list(_lines(body))
        if any(isinstance(line, Instruction) for line in lines):
            return Listing(_blocks(lines))
    raise ValueError("no instructions in this text")


def _lines(body: str) -> Iterator[str | Instruction]:
    for line in map(str.strip, body.splitlines()):
        code = re.match(r"^(@!?%\w+\s+)?([a-z][\w.:]*)\s*([^;]*);", line)
        if label := re.match(rf"^({NAME}):", line):
            yield label[1]
        elif code:
            guard, opcode, rest = code.groups()
            yield Instruction(opcode, guard is not None, rest.strip() if opcode.startswith("bra") else "")


def _blocks(lines: Iterable[str | Instruction]) -> tuple[Block, ...]:
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
