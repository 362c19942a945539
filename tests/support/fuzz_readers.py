"""Fuzz the readers, guided by coverage (group `fuzz`): ``python tests/support/fuzz_readers.py KIND [OPTION...]``

The kinds are those of `reader_contract.py`, the options those of libFuzzer, such as ``-atheris_runs=100000``. The run
ends at the first input that violates the contract or crashes Python. This input is saved in tests/support/findings,
where a regular test reads it from then on.
"""

from __future__ import annotations

import ast
import itertools
import resource
import sys
import zipfile
import zlib
from pathlib import Path

MEASURED = 8
"""The memory of one input in this number is measured."""
RESIDENT = 16 << 20
"""Bytes by which an input may raise the resident memory of the process, beside those its size allows."""


def resident() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(kind: str, *options: str) -> None:
    import atheris
    import numpy as np  # before wavefilt, or it is instrumented with it
    import pywt  # noqa: F401
    import scipy.io.wavfile

    with atheris.instrument_imports(include=["wavefilt.io"]):
        import wavefilt.io  # noqa: F401
    functions = (np.lib.format.descr_to_dtype, ast.literal_eval, zipfile.ZipFile.open, scipy.io.wavfile.read)
    for function in functions:
        atheris.instrument_func(function)
    from tests.support.reader_contract import FINDINGS, TIMES, Broken, read_bytes, without_obspy
    from tests.support.reader_seeds import TOKENS, seeds

    inputs = itertools.count()

    def one(data: bytes) -> None:
        before = resident()
        read_bytes(data, kind, memory=zlib.crc32(data[::-1]) % MEASURED == 0)
        grown = resident() - before
        if next(inputs) > 100 and grown > TIMES * len(data) + RESIDENT:  # the first ones load what all need
            raise Broken("resident memory", f"{grown} bytes more for {len(data)}")

    corpus, found, tokens = Path("build/fuzz") / kind, FINDINGS / kind, Path("build/fuzz") / f"{kind}.tokens"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    escaped = ("".join(map("\\x{:02x}".format, token)) for token in TOKENS)
    tokens.write_text("".join(f'"{token}"\n' for token in escaped))
    limits = ["-max_len=4096", "-len_control=20", "-timeout=10", "-rss_limit_mb=2048"]
    limits += [f"-dict={tokens}", f"-artifact_prefix={found}/"]
    with without_obspy():
        for name, data in seeds(kind).items():
            (corpus / name.replace(" ", "-")).write_bytes(data)
            read_bytes(data, kind, memory=False)  # imports, and the memory that the first call takes
        atheris.Setup([sys.argv[0], *map(str, (corpus, found)), *limits, *options], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
