"""PyWavelets' own tests with our functions in place of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import pywt

from tests.support.checkout import ROOT
from tests.support.pywavelets_suite import NAMES

FOLDER = Path(pywt.__file__).parent / "tests"
MODULES = (
    "concurrent",
    "deprecations",
    "dwt_idwt",
    "modes",
    "multilevel",
    "perfect_reconstruction",
    "swt",
    "thresholding",
)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="PyWavelets is installed without its tests")
def test_all_pass(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    files = [FOLDER / f"test_{name}.py" for name in MODULES]
    options = ["-q", "-p", "tests.support.pywavelets_suite", "-p", "no:cacheprovider", "-W", "ignore"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", tmp_path / "pytest.ini", "--rootdir", tmp_path, *options, *files],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stdout
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed is not None
    assert int(passed[1]) >= 60
    assert "failed" not in result.stdout.splitlines()[-1]


def test_the_functions_are_those_that_both_have():
    import wavefilt

    both = {name for name in wavefilt.__all__ if callable(getattr(pywt, name, None))}
    assert both == set(NAMES)
