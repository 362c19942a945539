"""The scripts of the gallery run, their figures are not empty, and the claims in their text hold."""

from __future__ import annotations

import io
import re
import runpy
import sys
import tomllib

import numpy as np
import pytest

from tests.support.checkout import ROOT, SAMPLES

pytest.importorskip("matplotlib")

FOLDER = SAMPLES / "gallery"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a script in its folder; check its figures; return its variables and its output."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    def of(name, figures):
        monkeypatch.chdir(FOLDER)
        monkeypatch.setattr(plt, "show", lambda: None)
        monkeypatch.setitem(sys.modules, "dascore", None)  # takes 3 s to import, and has tests of its own
        plt.close("all")
        found = runpy.run_path(f"{name}.py", run_name="__main__")
        pictures = []
        for number in plt.get_fignums():
            buffer = io.BytesIO()
            plt.figure(number).savefig(buffer, format="png", dpi=30)
            pictures.append(plt.imread(io.BytesIO(buffer.getvalue())))
        plt.close("all")
        assert len(pictures) == figures
        for picture in pictures:
            assert picture.shape[0] > 100
            assert 0.02 < (picture[..., :3] < 0.9).any(axis=-1).mean() < 0.98  # not empty
        return found, capsys.readouterr().out

    return of


def test_every_script_has_a_test():
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in FOLDER.glob("*.py")} <= tests


def test_binder_installs_what_the_scripts_import():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own, *_ = (ROOT / ".binder" / "requirements.txt").read_text().split()
    extras = re.fullmatch(r"\.\[([\w,]+)\]", own)[1].split(",")
    needed = [*project["dependencies"], *(need for extra in extras for need in project["optional-dependencies"][extra])]
    installed = {re.match(r"[\w-]+", need)[0].lower() for need in needed} | {"wavefilt"}
    scripts = "\n".join(path.read_text() for path in FOLDER.glob("*.py"))
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", scripts, re.MULTILINE))
    assert imported - installed - sys.stdlib_module_names == set()


def test_field_record(run):
    found, printed = run("field_record", 1)
    assert found["recording"].offsets[0] == 10  # by which the last figure, which is none of pyplot's, places traces
    clean = np.load(SAMPLES / "seismic_clean.npy").astype(float)
    error = found["denoised"].samples - clean
    assert 10 * np.log10(np.sum(clean**2) / np.sum(error**2)) > 13  # of 6 before
    assert re.findall(r"(\d+)\.\d dB(?:\n|, trust: (\w+))", printed) == [
        ("6", ""),
        ("13", "undecided"),
        ("11", "harmless"),
    ]
    assert not found["denoised"].samples[16].any()


def test_earthquake(run):
    pytest.importorskip("obspy")
    found, _ = run("earthquake", 1)
    assert max(found["shares"]) < 0.001
    assert len(found["gains"]) == 3
    for before, after, clean in zip(found["noisy"], found["denoised"], found["record"], strict=True):
        errors = [np.sum((x.data - clean.data) ** 2) for x in (before, after)]
        assert found["gains"][after.id] == pytest.approx(10 * np.log10(errors[0] / errors[1]))
        assert found["gains"][after.id] > 7
        assert after.stats.starttime == clean.stats.starttime
    assert max(map(abs, found["shifts"].values())) < 0.2


def test_das_patch(run):
    found, _ = run("das_patch", 1)
    loud = found["loudness"][:, 0] > 1
    assert loud.sum() > 3
    assert found["gains"].min() > 8
    assert found["gains"][loud].mean() > found["gains"][~loud].mean()


def test_noise_comparison(run):
    found, printed = run("noise_comparison", 2)
    gains, finest = found["gains"], found["gains_finest"]
    rules = found["ranked"]
    assert len(rules) == len(printed.splitlines()) == 12
    assert all(gains["pink", rule] < gains["white", rule] > 1 for rule in rules)
    assert all(finest[rule] > gains["pink", rule] + 1 for rule in ("minimax", "universal"))
    assert all(finest[rule] < gains["pink", rule] for rule in ("bayes", "sure"))
    assert rules[-1] == "universal"


def test_further_options(run):
    found, _ = run("further_options", 2)
    decimated, *shifted = found["edges"].values()
    assert min(shifted) > decimated + 0.3
    level, *others = found["dense"].values()
    assert min(others) > level + 5
