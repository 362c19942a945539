"""The API reference is complete and the page "Extending" runs; .ci/run builds the documentation without warnings."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import wavefilt
from tests.support.checkout import ROOT
from wavefilt import ske

REFERENCE = {"index": wavefilt, "ske": ske}


@pytest.mark.parametrize("page", REFERENCE)
def test_the_reference_has_every_public_name(page):
    text = (ROOT / "docs" / "api" / f"{page}.md").read_text("utf-8")
    described = {name.split(".")[-1] for name in re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)", text, re.MULTILINE)}
    assert set(REFERENCE[page].__all__) - described - {"backends"} == set()


def test_the_examples_of_extending_run(tmp_path):
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "denoised.trc").exists()
