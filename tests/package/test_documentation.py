"""The API reference is complete and the code blocks of all pages run; .ci/run builds the site without warnings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec

import pytest

import wavefilt
from tests.support.checkout import ROOT, SAMPLES
from tests.support.pages import Block, blocks, parse, same
from wavefilt import ske

REFERENCE = {"index": wavefilt, "ske": ske}

PAGES = {path.stem: path for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]}
PAGES["samples"] = SAMPLES / "README.md"
NEEDS = {
    "command": ["matplotlib"],
    "dask": ["dask", "distributed", "zarr"],
    "das": ["dascore"],
    "gpu": ["greenlet"],
    "gpu_in_ten_minutes": ["greenlet"],
    "integrations": ["obspy", "xarray", "dascore", "sklearn", "pandas"],
    "obspy_users": ["obspy"],
    "out_of_core": ["zarr"],
    "report": ["bokeh"],
    "samples": ["matplotlib"],
    "trust": ["matplotlib"],
    "tuning": ["matplotlib", "obspy"],
    "tutorial": ["matplotlib"],
    "view": ["panel"],
}
"""Packages of extras, without which a page is not run."""
SIMULATED = {"gpu", "gpu_in_ten_minutes"}
"""Pages that run in numba's CUDA simulator."""
NOT_RUN = {
    ("README", "installs packages"): 2,
    ("README", "opens a browser"): 1,
    ("CONTRIBUTING", "installs packages"): 1,
    ("architecture", "an outline"): 1,
    ("block_size", "measures the machine"): 1,
    ("command", "needs other shells"): 1,
    ("cpu", "installs packages"): 1,
    ("dask", "installs packages"): 1,
    ("dask", "needs a cluster"): 3,
    ("gpu", "installs packages"): 1,
    ("gpu_in_ten_minutes", "installs packages"): 1,
    ("gpu_in_ten_minutes", "needs a GPU"): 3,
    ("index", "installs packages"): 1,
    ("laplace", "measures the machine"): 2,
    ("obspy_users", "installs packages"): 1,
    ("quality", "takes minutes"): 2,
    ("report", "takes minutes"): 1,
    ("robustness", "installs packages"): 1,
    ("scaling", "measures the machine"): 1,
    ("sections", "takes minutes"): 1,
    ("ske", "needs a GPU"): 1,
    ("tuning", "depends on the machine's speed"): 1,
    ("tutorial", "installs packages"): 1,
    ("tutorial", "opens a browser"): 1,
    ("view", "measures the machine"): 1,
    ("view", "opens a browser"): 1,
}
"""How many blocks of a page are not run for a reason, which the page gives before each."""
REASONS = {
    "depends on the machine's speed": r"--seconds",
    "an outline": r"^pyramid = backend\.",
    "installs packages": r"\bpip install\b",
    "measures the machine": r"^wavefilt bench |wavefilt\.benchmarks\.",
    "needs a GPU": r"\bcupy\b|\btorch\b|devices=|ske calibrate",
    "needs a cluster": r"tcp://",
    "needs other shells": r"zsh.*\n.*fish",
    "opens a browser": r"^(\$ )?wavefilt view ",
    "takes minutes": r"^wavefilt bench (quality|report -o)|benchmarks\.quality",
}
"""What a block must contain that is not run for a reason."""


def _shown(page: str) -> list[Block]:
    return [block for block in blocks(PAGES[page]) if block.language not in ("first", "text")]


@pytest.mark.parametrize("page", REFERENCE)
def test_the_reference_has_every_public_name(page):
    text = (ROOT / "docs" / "api" / f"{page}.md").read_text("utf-8")
    described = {name.split(".")[-1] for name in re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)", text, re.MULTILINE)}
    assert set(REFERENCE[page].__all__) - described - {"backends"} == set()


def test_blocks_that_are_not_run_are_few_and_need_to_be():
    left_out = [(page, block) for page in PAGES for block in _shown(page) if block.reason is not None]
    assert Counter((page, block.reason) for page, block in left_out) == NOT_RUN
    for page, block in left_out:
        assert re.search(REASONS[block.reason], block.code, re.MULTILINE), f"{page}.md:{block.line}: {block.reason}?"
        parse(block)


@pytest.mark.parametrize("page", PAGES)
def test_no_block_escapes(page):
    """Each fence is of a block, or of a directive; indented ones would be neither."""
    fences = re.findall(r"^ *```.*$", PAGES[page].read_text("utf-8"), re.MULTILINE)
    directives = [fence for fence in fences if re.match(r" *```\{", fence)]
    found = [block for block in blocks(PAGES[page]) if block.language != "first"]
    assert len(fences) == 2 * (len(directives) + len(found) + sum(bool(block.printed) for block in found))


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.reason is None for block in _shown(page))])
def test_the_blocks_of_a_page_run(page, tmp_path):
    for module in NEEDS.get(page, ()):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    shutil.copytree(SAMPLES, tmp_path / "samples", ignore=shutil.ignore_patterns("gallery", "__pycache__"))
    for name in ("seismic.dat", "seismic_clean.npy"):
        shutil.copy(SAMPLES / name, tmp_path)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    if page in SIMULATED:
        environment["NUMBA_ENABLE_CUDASIM"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.pages", PAGES[page]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if page == "extending":
        assert (tmp_path / "denoised.trc").exists()


def test_a_page_that_is_wrong_is_found(tmp_path):
    """The runner itself: output that differs, commands that fail, and options that do not exist."""
    assert same("took 0.3 s, ... of 7", "it\ntook 12.1 s, 3 of\n7 files")
    assert not same("5 of 7", "6 of 7")
    page = tmp_path / "page.md"
    wrong = {
        "```python\nprint(1)\n```\n\n```text\n2\n```\n": "printed\n1",
        "```sh\nfalse\ntrue\n```\n": "ended with 1",
        "```console\n$ echo one\ntwo\n```\n": "printed\none",
        "```sh\nwavefilt info missing.dat\n```\n": "ended with 3",
    }
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for number, (text, found) in enumerate(wrong.items()):
        page.write_text(text)
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [sys.executable, "-m", "tests.support.pages", page]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 1
        assert found in done.stderr
    for text in ("wavefilt denoise x --shape", "wavefilt bend x", "for x in"):
        with pytest.raises(Exception, match=r"(?i)shape|bend|unexpected"):
            parse(Block(1, "sh", text, "needs a GPU"))
