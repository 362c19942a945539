"""The result of a blind test as it is committed: ``python -m wavefilt.benchmarks.ske.publish FILE COMMIT``.

Writes `benchmarks/results/ske_blind_h200.json`, with the commit that was measured, and its table into `docs/ske.md`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from wavefilt.benchmarks import documents

from .validation import write

RESULT = "benchmarks/results/ske_blind_h200.json"
AFTER = "It is not measured again with other constants under this name.\n"
"""The sentence that the table follows."""


def publish(source: Path, commit: str, root: Path = documents.ROOT) -> None:
    """Into the checkout at ``root``. Raises ValueError for a page without the sentence that the table follows."""
    result = json.loads(source.read_text())
    result["environment"]["commit"] = commit
    for row in result["rows"]:
        row.pop("took", None)
    write(result, root / RESULT)
    page = root / "docs/ske.md"
    text, mark = page.read_text(), f"<!-- table of {RESULT} -->"
    if mark in text:
        return
    if AFTER not in text:
        raise ValueError(f"{page} has no line {AFTER!r}")
    page.write_text(text.replace(AFTER, f"{AFTER}\n{mark}\n<!-- end -->\n", 1))


if __name__ == "__main__":
    publish(Path(sys.argv[1]), sys.argv[2])
    documents.main([])
