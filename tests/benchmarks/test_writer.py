"""The writer of results refuses uncommitted changes, and so do pages."""

from __future__ import annotations

import json
import subprocess

import click
import pytest
from click.testing import CliRunner

from tests.support.simulation import outside
from wavefilt.benchmarks import documents
from wavefilt.benchmarks.common import environment
from wavefilt.benchmarks.common.command import Results, with_results
from wavefilt.cli.ske import ske

pytestmark = outside


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with a committed module, which stands for the checkout of the package."""
    root = tmp_path / "checkout"
    (root / "benchmarks" / "results").mkdir(parents=True)
    git(root, "init", "-q")
    commit(root, "module.py", "one")
    monkeypatch.setattr(environment, "ROOT", root)
    monkeypatch.setattr(environment, "RESULTS", root / "benchmarks" / "results")
    return root


def git(root, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(root, name, text):
    (root / name).write_text(text)
    git(root, "add", name)
    git(root, "commit", "-qm", name)
    return git(root, "rev-parse", "HEAD")


def study(before=lambda: None):
    """A command that records its commit, saves as it goes with ``before`` in between, and counts its runs."""

    @click.command()
    @with_results
    def command(results):
        result = {"environment": {"commit": environment.commit()}, "rows": [1]}
        results.keep(result)
        before()
        result["rows"].append(2)
        results.finish(result, lambda: "the table")

    return lambda *arguments: CliRunner().invoke(command, [str(a) for a in arguments])


def read(path):
    return json.loads(path.read_text())


def test_a_clean_checkout_records_its_commit(checkout, tmp_path):
    path = tmp_path / "result.json"
    assert study()("-o", path).exit_code == 0
    assert read(path) == {"environment": {"commit": git(checkout, "rev-parse", "HEAD")}, "rows": [1, 2]}


def test_uncommitted_changes_are_refused_before_measuring(checkout, tmp_path):
    path = tmp_path / "result.json"
    (checkout / "module.py").write_text("two")
    done = study(lambda: pytest.fail("measured"))("-o", path)
    assert done.exit_code == 2
    assert "module.py" in done.output
    assert not path.exists()
    assert study()().exit_code == 0  # nothing is written


def test_untracked_files_and_the_result_itself_are_no_changes(checkout):
    commit(checkout, "result.json", "{}")
    commit(checkout, "benchmarks/results/other.json", "{}")
    for name in ("untracked", "result.json", "benchmarks/results/other.json"):
        (checkout / name).write_text("changed")
    path = checkout / "result.json"
    assert environment.uncommitted(path) == []
    assert environment.uncommitted() == ["result.json"]
    git(checkout, "mv", "module.py", "renamed.py")
    assert environment.uncommitted(path) == ["renamed.py"]


def test_allowed_changes_are_named_and_pages_refuse_them(checkout, tmp_path):
    path = tmp_path / "cpu.json"
    (checkout / "module.py").write_text("two")
    done = study()("-o", path, "--allow-dirty")
    assert done.exit_code == 0
    assert read(path)["environment"]["commit"].endswith(environment.CHANGED)
    with pytest.raises(documents.Unusable, match="--allow-dirty"):
        documents.tables({"cpu": lambda result: {"": ""}}, tmp_path)


def test_outside_a_checkout_no_commit_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    path = tmp_path / "result.json"
    assert study()("-o", path).exit_code == 0
    assert read(path)["environment"]["commit"] is None


def test_what_measures_nothing_is_written_from_any_checkout(checkout, tmp_path):
    (checkout / "module.py").write_text("two")
    path = tmp_path / "estimates.json"
    assert (
        CliRunner().invoke(ske, ["estimate", "--samples", "64Ki", "--device", "h200", "-o", str(path)]).exit_code == 0
    )
    assert [launch["name"] for launch in read(path)][-1].startswith("inverse")
    with pytest.raises(click.UsageError, match="exist"):
        Results(path=path).claim()
