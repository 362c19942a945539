"""The package as it is installed: lazy imports, one import name, versions, and examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec

import pytest

import wavefilt
from tests.support.checkout import ROOT, needs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = ["numba", "scipy", "obspy", "matplotlib", "segyio", "tqdm", "dask", "pandas", "xarray"]
HEAVY += ["dascore", "sklearn", "zarr", "h5py", "panel", "bokeh"]
OPTIONAL = {"dascore": "das", "dask": "dask", "obspy": "seismic", "xarray": "xarray"}
"""Modules for libraries of these names, with the extras that install them."""


def python(code: str) -> list[str]:
    """Run Python in a new process; return the lines that it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


COMMAND = "import wavefilt.cli\ntry: wavefilt.cli.main({})\nexcept SystemExit: pass"
FIGURE = "import wavefilt\nwavefilt.Recording(numpy.eye(3), (None,) * 3, 'npy', None).plot()"
ACTIONS = ["import wavefilt", "import wavefilt\nwavefilt.denoise(numpy.ones(64))"]
ACTIONS += [COMMAND.format("['--help']"), COMMAND.format("['denoise', '--help']")]


@pytest.mark.parametrize(
    ("action", "unwanted"),
    [
        *((action, HEAVY) for action in ACTIONS),
        pytest.param(FIGURE, ["matplotlib.pyplot"], marks=needs("matplotlib")),
    ],
)
def test_heavy_packages_are_imported_when_needed(action, unwanted):
    given = "import sys, numpy, pywt\nbefore = set(sys.modules)\n"  # older versions of PyWavelets import SciPy
    loaded = f"\nprint('LOADED', [m for m in {unwanted} if m in sys.modules.keys() - before])"
    assert python(given + action + loaded)[-1] == "LOADED []"


def test_importing_needs_none_of_the_optional_packages():
    block = "import sys\n" + "".join(f"sys.modules[{m!r}] = None\n" for m in HEAVY)
    assert python(f"{block}import wavefilt; print(*wavefilt.backends.names())")[0].startswith("pywavelets")


def test_every_public_name_is_there_in_a_new_process():
    assert dir(wavefilt) == wavefilt.__all__ == sorted(wavefilt.__all__)
    installed = [name for name in OPTIONAL if find_spec(name)]
    code = "import wavefilt\nfor name in dir(wavefilt): getattr(wavefilt, name)\n"
    code += f"print([getattr(wavefilt, name).__name__ for name in {installed}], hasattr(wavefilt, 'no'))"
    assert python(code)[-1] == f"{[f'wavefilt.{name}' for name in installed]} False"


@pytest.mark.parametrize("module", OPTIONAL)
def test_modules_for_other_libraries_name_what_to_install(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    for name in [name for name in sys.modules if f"{name}.".startswith(f"wavefilt.{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=rf"wavefilt\[{OPTIONAL[module]}\]"):
        importlib.import_module(f"wavefilt.{module}")


@pytest.mark.parametrize(("word", "code"), [("info", 1), ("infos", 2)])
def test_the_command_without_pywavelets_ends_with_one_sentence(word, code):
    block = "import sys\nsys.modules['pywt'] = None\nfrom wavefilt.__main__ import main\nmain()"
    run = subprocess.run([sys.executable, "-c", block, word, "x"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == code
    assert ("pip install PyWavelets" in run.stderr, "Traceback" in run.stderr) == (code == 1, False)


def test_format_obspy_names_what_to_install():
    code = "import sys, wavefilt\nsys.modules['obspy'] = None\n"
    code += f"try: wavefilt.read({__file__!r}, format='obspy')\nexcept wavefilt.FormatError as error: print(error)"
    assert 'pip install "wavefilt[seismic]"' in python(code)[0]


def test_every_package_is_named_in_the_build():
    named = set(PROJECT["tool"]["setuptools"]["packages"])
    folders = ("wavefilt", *PROJECT["tool"]["setuptools"]["package-dir"].values())
    paths = [path.parent.relative_to(ROOT) for top in folders for path in (ROOT / top).rglob("__init__.py")]
    found = {".".join(path.parts if path.parts[0] == "wavefilt" else ("wavefilt", *path.parts)) for path in paths}
    assert found - named == {"wavefilt.benchmarks.quality", "wavefilt.benchmarks.asv"}  # for developers only
    assert named <= found
    for name in ("backends", "benchmarks", "cli") if (ROOT / ".git").exists() else ():  # an sdist has no links
        assert os.readlink(ROOT / "wavefilt" / name) == f"../{name}"


def test_versions_agree():
    assert f"\nversion: {wavefilt.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {wavefilt.__version__} " in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", wavefilt.__all__)
def test_examples_in_docstrings(name):
    found = doctest.DocTestFinder(recurse=False).find(getattr(wavefilt, name), name, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in found:
        runner.run(example)
    assert not runner.failures
    assert name != "denoise" or len(found[0].examples) > 5
