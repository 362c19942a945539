"""Examples in docstrings of the public functions, run as they stand."""

from __future__ import annotations

import doctest

import pytest

import wavefilt


@pytest.mark.parametrize("name", wavefilt.__all__)
def test_examples_give_what_they_say(name):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder(recurse=False).find(getattr(wavefilt, name), name, globs={}):
        runner.run(example)
    assert not runner.failures


def test_denoise_has_examples():
    (found,) = doctest.DocTestFinder(recurse=False).find(wavefilt.denoise)
    assert len(found.examples) > 5
