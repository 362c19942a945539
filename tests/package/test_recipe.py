"""The conda recipe, the citation and the changelog agree with pyproject.toml."""

from __future__ import annotations

import re
import tomllib

import wavefilt
from tests.support.checkout import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_CONDA = {"matplotlib": "matplotlib-base"}
"""Packages that have another name there."""


def section(path: str) -> list[str]:
    """The lines of the recipe below a heading such as ``requirements: run``, without their marks."""
    lines = (ROOT / "docs" / "packaging" / "conda" / "meta.yaml").read_text().splitlines()
    for depth, name in enumerate(path.split(": ")):
        lines = lines[lines.index(f"{'  ' * depth}{name}:") + 1 :]
        inside = [line.startswith("  " * (depth + 1)) or not line for line in lines]
        lines = lines[: inside.index(False)] if False in inside else lines
    return [line.strip().removeprefix("- ") for line in lines if line]


def as_in_conda(requirement: str) -> list[str]:
    """A requirement of pip as conda writes it: one for the package and one for each extra that is a package there."""
    name, extras, bound = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?(.*)", requirement).groups()
    parts = [name, *(extra for extra in (extras or "").split(",") if extra == "distributed")]
    return [f"{OF_CONDA.get(part, part).lower()} {bound}".strip() for part in parts]


def test_the_recipe_needs_what_the_package_needs():
    python = f"python {PROJECT['requires-python']}"
    needed = [line for requirement in PROJECT["dependencies"] for line in as_in_conda(requirement)]
    assert section("requirements: run") == [python, *needed]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert section("requirements: host") == [python, "pip", *(line for need in build for line in as_in_conda(need))]


def test_the_recipe_bounds_what_the_extras_bound():
    extras = PROJECT["optional-dependencies"]
    names = ["plot", "view", "seismic", "formats", "xarray", "das", "dask", "cuda13"]
    needed = [line for name in names for requirement in extras[name] for line in as_in_conda(requirement)]
    bounds = [line for line in dict.fromkeys(needed) if not line.startswith("numpy ")]
    assert section("requirements: run_constrained") == bounds


def test_versions_agree():
    assert section("package") == ["name: wavefilt", f'version: "{wavefilt.__version__}"']
    assert f"\nversion: {wavefilt.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {wavefilt.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_recipe_says_what_the_package_says():
    about = dict(line.split(": ", 1) for line in section("about"))
    assert about["home"] == PROJECT["urls"]["Homepage"]
    assert about["license"] == PROJECT["license"]
    assert about["summary"].strip('"') == PROJECT["description"]
    (command,) = (f"{name} = {target}" for name, target in PROJECT["scripts"].items())
    assert section("build: entry_points") == [command]
