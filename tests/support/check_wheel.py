"""Check a built wheel: one top-level name, and every module of the checkout. Run as `check_wheel.py FILE.whl`."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check(wheel: str) -> None:
    """Raise AssertionError unless the wheel holds exactly the checkout's modules under `wavefilt`."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"wavefilt"}, tops
    held = {name for name in names if name.endswith(".py")}
    wanted = set()
    for top in ("wavefilt", "backends", "benchmarks", "cli"):
        for path in (ROOT / top).rglob("*.py"):
            inside = path.relative_to(ROOT).as_posix()
            if not any(inside.startswith(f"wavefilt/{link}/") for link in ("backends", "benchmarks", "cli")):
                wanted.add(inside if top == "wavefilt" else f"wavefilt/{inside}")
    assert held == wanted, held ^ wanted
    assert "wavefilt/py.typed" in names
    assert {f"wavefilt/benchmarks/report/{name}" for name in ("page.html", "report.css")} <= set(names)
    results = {f"wavefilt/benchmarks/results/{path.name}" for path in (ROOT / "benchmarks/results").glob("*.json")}
    assert results, "no results in this checkout"
    assert results <= set(names), results - set(names)
    print(f"{len(held)} modules in {Path(wheel).name}")


if __name__ == "__main__":
    check(sys.argv[1])
