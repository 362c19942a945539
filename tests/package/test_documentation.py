"""The documentation: its code blocks run, its tables are up to date, its links lead somewhere, the API is complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

import wavefilt
from tests.support import pages
from tests.support.checkout import ROOT, SAMPLES
from wavefilt import ske

FOUND = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), SAMPLES / "README.md"]
PAGES = {str(path.relative_to(ROOT)): path for path in FOUND}


def simulated(page):
    """Return whether a page computes on a GPU, for which a simulator stands here."""
    run = [block.code for block in pages.blocks(PAGES[page]) if block.reason is None]
    return any(re.search(r"""["']cuda["']|import cuda|devices=|--backend cuda""", code) for code in run)


@pytest.mark.parametrize("page", PAGES)
def test_blocks(page, tmp_path):
    shown = [block for block in pages.blocks(PAGES[page]) if block.language != "first"]
    text = PAGES[page].read_text("utf-8")
    fences = re.findall(r"^ *```.*$", text, re.MULTILINE)  # each is of a block or a directive: none hides by indenting
    directives = [fence for fence in fences if re.match(r" *```\{", fence)]
    assert len(fences) == 2 * (len(directives) + len(shown) + sum(bool(block.printed) for block in shown))
    if not any(block.reason is None and block.language != "text" for block in shown):
        for block in shown:
            pages.parse(block)
        return
    shutil.copytree(SAMPLES, tmp_path / "samples", ignore=shutil.ignore_patterns("gallery", "__pycache__"))
    for name in ("seismic.dat", "seismic_clean.npy", "field.dat"):
        shutil.copy(SAMPLES / name, tmp_path)
    environment = os.environ | {"MPLBACKEND": "Agg"}
    if simulated(page):
        if find_spec("greenlet") is None:
            pytest.skip("the simulator needs greenlet")
        environment["NUMBA_ENABLE_CUDASIM"] = "1"
    command = [sys.executable, "-m", "tests.support.pages", PAGES[page]]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode == pages.SKIPPED:
        pytest.skip("a package that the page needs is not installed")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "printed\n1"),
        ("```console\n$ echo one\ntwo\n```\n", "printed\none"),
        ("```sh\nwavefilt info missing.dat\n```\n", "ended with 3"),
        ("<!-- not run: takes long -->\n```sh\nwavefilt denoise x --shape\n```\n", "shape"),
    ],
)
def test_wrong_blocks_are_found(text, found, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(Exception, match=found):
        pages.run(page)


def test_links_lead_to_files():
    broken = []
    for name, path in PAGES.items():
        text = re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            place = target.partition("#")[0]
            generated = "gallery/" in place or "benchmarks/" in place
            if place and not re.match(r"\w+:", place) and not generated and not (path.parent / place).exists():
                broken.append(f"{name}: {target}")
    assert broken == []


def test_generated_tables_are_up_to_date():
    documents = pytest.importorskip("wavefilt.benchmarks.documents")
    assert documents.checked(documents.pages(), documents.tables(documents.TABLES)) == ({}, [])
    assert [name for name, path in PAGES.items() if "<!-- value" in path.read_text("utf-8")] == []


def test_the_reference_has_every_public_name():
    texts = [path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")]
    directives = re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)", "\n".join(texts), re.MULTILINE)
    assert {*wavefilt.__all__, *ske.__all__} - {name.split(".")[-1] for name in directives} - {
        "backends",
        "extending",
        "trust",
    } == set()
