"""The verdicts of the trust report, the limits of its tests, and an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["harmful", "signal", "none", "untested"]
WORDS: dict[Verdict, str] = {
    "harmful": "harmful",
    "signal": "signal removed",
    "none": "no signal found",
    "untested": "not tested",
}
"""What stands beside the colours, worst first."""
OWN_WORDS: dict[str, dict[Verdict, str]] = {
    "error": {"none": "not harmful"},
    "lateral": {"signal": "coherent", "none": "not coherent"},
    "breaks": {"signal": "moved", "none": "did not move"},
}
"""Of single answers, where they differ."""
TOTAL, WORST = 0.0, 1.3
"""Growth of the error's energy from which a denoise counts as harmful, over the noise's: in all, and in a window."""
FEWEST_PICKS, MOVED = 6, 0.01
"""First breaks that a test of their shift needs, and its p-value."""


@dataclass(frozen=True)
class Answer:
    """A question about a denoise: the verdict, what was found, and by which test."""

    name: str
    question: str
    verdict: Verdict
    found: str
    test: str

    @property
    def word(self) -> str:
        """The verdict in words."""
        return OWN_WORDS.get(self.name, {}).get(self.verdict, WORDS[self.verdict])
