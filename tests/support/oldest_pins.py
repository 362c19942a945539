"""Print pip constraints that pin the dependencies, and those of the extra `test`, to their lower bounds.

`pip install -c` takes them: the oldest versions that pyproject.toml says will do.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def pins() -> list[str]:
    """``numpy==2.0.*`` for ``numpy>=2.0``, ``obspy==1.4.2.*`` for ``obspy>=1.4.2``."""
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
    found = [re.fullmatch(r"([\w-]+)>=([\d.]+)", need) for need in needed]
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


if __name__ == "__main__":
    print("\n".join(pins()))
