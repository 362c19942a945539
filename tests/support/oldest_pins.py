"""Print constraints for `pip install -c`: the lower bounds of the dependencies and of the group `test-core`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


def pins() -> list[str]:
    """Return ``numpy==2.0.*`` for ``numpy>=2.0``, and so on."""
    needed = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["test-core"]]
    found = [re.match(r"([\w-]+)>=([\d.]+)", need) for need in needed]
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


if __name__ == "__main__":
    print("\n".join(pins()))
