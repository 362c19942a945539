"""Leaves out tests that passed in an earlier run: ``-p tests.support.passed_before``, for `.ci/run`.

The file that PASSED_BEFORE names lists them; the run that finds none writes it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILE = Path(os.environ["PASSED_BEFORE"])
passed: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    before = set(FILE.read_text().splitlines()) if FILE.exists() else set()
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in before])
    items[:] = [item for item in items if item.nodeid not in before]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        passed.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not FILE.exists() and "PYTEST_XDIST_WORKER" not in os.environ:
        FILE.write_text("\n".join(passed))
