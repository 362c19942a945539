"""Check built distributions: ``python check_wheel.py FILE...`` with a wheel, an sdist, or both."""

from __future__ import annotations

import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST = 1_000_000
"""Bytes of a wheel."""


def modules() -> dict[str, Path]:
    """Return every module of the packages in pyproject.toml, by its place in the wheel."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {}
    for package in tool["packages"]:
        top = next((top for top in tool["package-dir"] if f"{package}.".startswith(f"{top}.")), "")
        start = tool["package-dir"].get(top, "") + package.removeprefix(top)
        for path in (ROOT / start.replace(".", "/")).glob("*.py"):
            found[f"{package.replace('.', '/')}/{path.name}"] = path
    return found


def check_wheel(wheel: Path) -> None:
    """Raise AssertionError unless the wheel holds exactly those modules, and no results, tests or asv suite."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"wavefilt"}, tops
    held = {name for name in names if name.endswith(".py")}
    assert held == modules().keys(), held ^ modules().keys()
    assert "wavefilt/py.typed" in names
    unwanted = ("/results/", "/tests/", "/asv/", "/quality/")
    assert not [name for name in names if name.startswith("wavefilt/") and any(word in name for word in unwanted)]
    size = wheel.stat().st_size
    assert size < LARGEST, f"{size} bytes"
    print(f"{wheel.name}: {len(held)} modules, {size / 1e6:.2f} MB")


def check_sdist(sdist: Path) -> None:
    """Raise AssertionError unless the sdist holds all code, tests, documentation, samples and the changelog."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    paths = [
        path
        for kind in ("tests/**/*.py", "docs/**/*.md", "samples/**/*.*", "benchmarks/**/*.py", "*.md")
        for path in ROOT.glob(kind)
    ]
    wanted = {path.relative_to(ROOT).as_posix() for path in [*modules().values(), *paths] if path.suffix != ".pyc"}
    assert wanted <= names, wanted - names
    print(f"{sdist.name}: {len(names)} files, {sdist.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        (check_wheel if name.endswith(".whl") else check_sdist)(Path(name))
