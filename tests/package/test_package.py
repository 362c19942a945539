"""The package as it is installed: one import name, lazy imports, everything in the wheel."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec

import pytest

from tests.support.checkout import ROOT

HEAVY = [
    "numba",
    "scipy",
    "obspy",
    "matplotlib",
    "segyio",
    "tqdm",
    "dask",
    "pandas",
    "xarray",
    "dascore",
    "sklearn",
    "zarr",
    "h5py",
    "panel",
    "bokeh",
]


def python(code: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60)


@pytest.mark.parametrize(
    "action",
    [
        "import wavefilt",
        "import wavefilt.cli\ntry: wavefilt.cli.main(['--help'])\nexcept SystemExit: pass",
        "import wavefilt.cli\ntry: wavefilt.cli.main(['denoise', '--help'])\nexcept SystemExit: pass",
        "import wavefilt, numpy\nwavefilt.denoise(numpy.ones(64))",
    ],
)
def test_heavy_packages_are_imported_when_needed(action):
    given = "import sys, numpy, pywt\nbefore = set(sys.modules)\n"  # older versions of PyWavelets import SciPy
    loaded = f"\nprint('LOADED', [m for m in {HEAVY} if m in sys.modules.keys() - before])"
    result = python(given + action + loaded)
    assert result.stdout.splitlines()[-1] == "LOADED []", result.stderr


def test_importing_needs_none_of_the_optional_packages():
    block = "import sys\n" + "".join(f"sys.modules[{m!r}] = None\n" for m in HEAVY)
    result = python(block + "import wavefilt; print(sorted(wavefilt.backends.names())[-1])")
    assert result.stdout.strip() == "pywavelets", result.stderr


OPTIONAL = ["dascore", "dask", "obspy", "xarray"]
PUBLIC_MODULES = [
    "dask",
    "dascore",
    "errors",
    "extending",
    "io",
    "obspy",
    "online",
    "plot",
    "quality",
    "recording",
    "ske",
]
PUBLIC_MODULES += ["streaming", "threads", "vocabulary", "xarray", "backends"]


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_public_modules_are_there_after_import(name):
    """In a process of its own; in this one other tests have imported them."""
    if name in OPTIONAL and find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    code = f"import wavefilt, types; assert {name!r} in dir(wavefilt)\n"
    result = python(f"{code}assert isinstance(wavefilt.{name}, types.ModuleType); print(wavefilt.{name}.__name__)")
    assert result.stdout.strip().splitlines()[-1:] == [f"wavefilt.{name}"], result.stderr


def test_modules_of_libraries_that_are_missing():
    block = "import sys\n" + "".join(f"sys.modules[{m!r}] = None\n" for m in OPTIONAL)
    code = "import wavefilt\ntry: wavefilt.obspy\nexcept ImportError as error: print(error)\n"
    result = python(f"{block}{code}print(hasattr(wavefilt, 'no'))")
    assert 'pip install "wavefilt[seismic]"' in result.stdout
    assert result.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("module", "extra"),
    [("obspy", "seismic"), ("xarray", "xarray"), ("dascore", "das")],
)
def test_modules_for_other_libraries_name_what_to_install(monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"wavefilt.{module}", raising=False)
    with pytest.raises(ImportError, match=rf'wavefilt.{module} needs .*pip install "wavefilt\[{extra}\]"'):
        importlib.import_module(f"wavefilt.{module}")


def test_the_top_level_is_as_agreed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    top = {name.split("/")[0] for name in listed.stdout.splitlines()}
    files = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff"}
    folders = {"wavefilt", "backends", "cli", "benchmarks", "tests", "samples", "docs"}
    assert {name for name in top if not name.startswith(".")} == files | folders


def test_every_sub_package_is_named_in_the_build():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = set(project["tool"]["setuptools"]["packages"])
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("wavefilt", "backends", "cli", "benchmarks")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert named == {name if name.startswith("wavefilt") else f"wavefilt.{name}" for name in found}


def test_no_module_hides_behind_the_symbolic_links():
    for name in ("backends", "benchmarks", "cli"):
        assert os.readlink(ROOT / "wavefilt" / name) == f"../{name}"
