"""The structure of the code, within limits: no import circles, small folders, modules and functions."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

ROOTS = {"wavefilt": "wavefilt", "backends": "wavefilt.backends", "cli": "wavefilt.cli"}
ROOTS["benchmarks"] = "wavefilt.benchmarks"
MODULES_OF_A_FOLDER, LINES_OF_A_MODULE, LINES_OF_A_FUNCTION = 24, 450, 120
LINES, ANYS, UNFORMATTED = 61_637, 624, 20
"""As many as there are: lines grow with features alone."""


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name; the symbolic links in `wavefilt` are left out."""
    found = {}
    for top, dotted in ROOTS.items():
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            if top != "wavefilt" or parts[0] not in ROOTS:
                found[".".join([dotted, *parts]).removesuffix(".__init__")] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(name: str) -> set[str]:
    """Modules that one imports anywhere, in functions too, but not for type checking alone."""
    path = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found, nodes = set(), [tree(path)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= names if names <= modules().keys() else names | {base}
    return (found & modules().keys()) - {name, "wavefilt"}


def test_no_import_circles():
    """Take away what imports nothing that is left, or is imported by nothing that is left: only circles remain."""
    left = {name: imported(name) for name in modules() if name != "wavefilt"}
    while True:
        needed = set().union(*left.values())
        kept = {name: needs & left.keys() for name, needs in left.items() if needs & left.keys() and name in needed}
        if kept == left:
            break
        left = kept
    assert left == {}


def test_folders_are_small():
    sizes = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules().values())
    assert {folder: size for folder, size in sizes.items() if size > MODULES_OF_A_FOLDER} == {}


def test_modules_are_short():
    sizes = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name: size for name, size in sizes.items() if size > LINES_OF_A_MODULE} == {}


def test_functions_are_short():
    """Lines without those of the docstring."""
    long = {}
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = (ast.get_docstring(node, clean=False) or "").count("\n")
                lines = node.end_lineno - node.lineno - docstring
                if lines > LINES_OF_A_FUNCTION:
                    long[f"{name}.{node.name}"] = lines
    assert long == {}


@pytest.mark.parametrize(
    ("what", "most", "also_tests"),
    [(r"\n", LINES, False), (r"\bAny\b", ANYS, False), (r"# fmt: skip", UNFORMATTED, True)],
    ids=["lines", "Any", "fmt: skip"],
)
def test_the_whole_is_small(what, most, also_tests):
    paths = [*modules().values(), *((ROOT / "tests").rglob("*.py") if also_tests else [])]
    count = sum(len(re.findall(what, path.read_text())) for path in paths if path != Path(__file__))
    assert count <= most
